"""The contract as a page to read: plain HTML with its own style, made from the route table, whole without a network."""

import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import groupby
from typing import Any

from msgspec import json

from foliot import __version__
from foliot.api.openapi import Json, operation_id, who
from foliot.api.routes import Route
from foliot.domain.status import STATUSES

_CODE = re.compile(r"`([^`]+)`")

_STYLE = """
:root { color-scheme: light dark; --line: #8886; --soft: #8882; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 1rem; }
code { font: 0.9em ui-monospace, monospace; }
pre { background: var(--soft); padding: 0.7rem; overflow-x: auto; }
section { border-top: 1px solid var(--line); padding: 0.3rem 0 1rem; }
h3 { margin: 0.6rem 0 0; font-weight: 600; overflow-wrap: anywhere; }
h4 { margin: 0.8rem 0 0.2rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: 0.2rem 0.8rem 0.2rem 0; border-bottom: 1px solid var(--soft); }
section td:first-child { white-space: nowrap; }
.method { display: inline-block; min-width: 4.5rem; }
.permission { color: GrayText; }
@media (max-width: 45rem) {
  table, tbody, tr, td { display: block; overflow-wrap: anywhere; }
  td:not(:last-child) { border: 0; padding-bottom: 0; }
}
""".strip()

_INTRODUCTION = """
<p>Send <code>Authorization: Bearer &lt;key&gt;</code> with every call but those open to anybody, and bodies as JSON.
The key is the one that the node was given, or stands in <code>admin.key</code> in its data directory.
Times are RFC 3339 with an offset and come back in UTC; durations are seconds or strings like <code>"250ms"</code>,
<code>"30s"</code>, <code>"2h"</code>. Unknown fields and parameters are refused by name. Errors are
<code>application/problem+json</code> with <code>title</code>, <code>detail</code>, <code>request_id</code> and, for bad
input, <code>errors</code> by field. Every answer carries <code>X-Request-Id</code>, yours if you sent one. Lists are
arrays; the next page is in the <code>Link</code> header.
The same as a document: <a href="/openapi.json">openapi.json</a>.</p>
<pre>curl -H "Authorization: Bearer $FOLIOT_KEY" -H "Content-Type: application/json" \\
  -d '{"job_type": "echo", "payload": {"message": "hello"}}' http://127.0.0.1:7070/api/v1/jobs</pre>
""".strip()

_STATUS_WORDS = (
    f"A job's status is one of {', '.join(f'`{word}`' for word in STATUSES)}. In a filter `waiting` stands for "
    "every status before `running`, `paused` and `retrying` with them."
)


def make_page(routes: Sequence[Route], document: Json) -> bytes:
    parts = [
        "<!doctype html>",
        f'<html lang="en"><head><meta charset="utf-8"><title>Foliot {escape(__version__)}: the HTTP API</title>',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<style>{_STYLE}</style></head><body>",
        f"<h1>Foliot: the HTTP API</h1>{_INTRODUCTION}",
        f"<p>{_text(_STATUS_WORDS)}</p>",
        *_contents(routes),
    ]
    for group, members in groupby(routes, key=lambda route: route.group):
        parts.append(f"<h2>{escape(group)}</h2>")
        for route in members:
            parts += _route(route, document)
    parts.append("<h2>Types</h2>")
    for name, schema in sorted(document["components"]["schemas"].items()):
        parts += _schema(name, schema)
    parts.append("</body></html>")
    return "\n".join(parts).encode()


def _contents(routes: Sequence[Route]) -> Iterator[str]:
    yield "<nav><table>"
    for route in routes:
        yield _row(
            f'<a href="#{operation_id(route)}"><code>{route.method} {escape(route.path)}</code></a>',
            _text(route.summary),
        )
    yield "</table></nav>"


def _route(route: Route, document: Json) -> Iterator[str]:
    operation = document["paths"][route.path][route.method.lower()]
    yield f'<section id="{operation_id(route)}">'
    yield f'<h3><code><span class="method">{route.method}</span> {escape(route.path)}</code></h3>'
    yield f"<p>{_text(route.summary)} {_text(route.detail)}"
    yield f'<span class="permission">{escape(who(route.permission))}</span></p>'
    if operation["parameters"]:
        rows = (
            _row(
                f"<code>{escape(each['name'])}</code>",
                f"{each['in']}",
                f"{_type(each['schema'])} {_text(each.get('description', ''))}",
            )
            for each in operation["parameters"]
        )
        yield _table("Parameters", rows)
    if "requestBody" in operation:
        optional = "" if route.body_required else " (may be left out)"
        yield f"<h4>Body{optional}</h4><p>{_content(operation['requestBody']['content'])}</p>"
    rows = (
        _row(f"<code>{status}</code>", _text(answer["description"]), _content(answer.get("content", {})))
        for status, answer in sorted(operation["responses"].items())
        if "$ref" not in answer  # what any call may be refused with is told once, at the top
    )
    yield _table("Answers", rows)
    yield "</section>"


def _schema(name: str, schema: Json) -> Iterator[str]:
    yield f'<section id="type-{escape(name)}"><h3><code>{escape(name)}</code></h3>'
    yield f"<p>{_text(schema.get('description', ''))}</p>"
    required = schema.get("required", ())
    rows = [
        _row(
            f"<code>{escape(field)}</code>{' (required)' if field in required else ''}",
            _type(each),
            _text(_note(each)),
        )
        for field, each in schema.get("properties", {}).items()
    ]
    if rows:
        yield f"<table>{''.join(rows)}</table>"
    yield "</section>"


def _content(content: Json) -> str:
    return ", ".join(
        f"{_type(each['schema'])}{'' if media == 'application/json' else f' ({escape(media)})'}"
        for media, each in content.items()
    )


def _type(schema: Json) -> str:
    """A schema in a few words, with links to the types it names."""
    if "$ref" in schema:
        name = escape(schema["$ref"].rsplit("/", 1)[1])
        return f'<a href="#type-{name}"><code>{name}</code></a>'
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type(each) for each in schema["anyOf"]))
    if "enum" in schema:
        return " | ".join(f"<code>{escape(str(each))}</code>" for each in schema["enum"])
    match schema.get("type"):
        case "array":
            return f"list of {_type(schema.get('items', {}))}"
        case "object" if "additionalProperties" in schema:
            return f"object of {_type(schema['additionalProperties'])}"
        case "string" if schema.get("format") == "date-time":
            return "time"
        case None:
            return "any JSON"
        case kind:
            return escape(str(kind))


def _note(schema: Json) -> str:
    notes = [found for found in _descriptions(schema) if found]
    if "minimum" in schema or "maximum" in schema:
        notes.append(f"{schema.get('minimum', '…')} to {schema.get('maximum', '…')}")
    if schema.get("default") not in (None, "", [], {}):
        notes.append(f"default `{_plain(schema['default'])}`")
    return "; ".join(notes)


def _descriptions(schema: Any) -> list[str]:
    return [schema.get("description", ""), *(each.get("description", "") for each in schema.get("anyOf", ()))]


def _plain(value: Any) -> str:
    """A default as it is written in JSON; a word without its quotes."""
    return value if isinstance(value, str) else json.encode(value).decode()


def _text(text: str) -> str:
    """Prose of the contract, with what stands between backticks as code."""
    return _CODE.sub(r"<code>\1</code>", escape(text))


def _row(*cells: str) -> str:
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def _table(title: str, rows: Iterable[str]) -> str:
    return f"<h4>{title}</h4><table>{''.join(rows)}</table>"
