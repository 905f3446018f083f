"""The contract as an OpenAPI 3.1 document, made from the route table and the wire types."""

import re
from collections.abc import Iterator, Sequence
from http import HTTPStatus
from typing import Any

import msgspec

from foliot import __version__
from foliot.api.routes import HEADERS, Route
from foliot.domain.access import MATRIX, Permission
from foliot.wire import Problem

Json = dict[str, Any]

_TEMPLATE = "#/components/schemas/{name}"
_ABOUT = (
    "Jobs are handed in, kept, run on time by workers, retried and watched. Times are RFC 3339 with an offset; "
    'durations are seconds or strings like "30s". Errors are application/problem+json. Every answer carries '
    "X-Request-Id."
)


def make_document(routes: Sequence[Route]) -> Json:
    bodies = [route.body for route in routes if route.body]
    answers = [route.answer for route in routes if route.answer is not None]
    types = [*bodies, *answers, Problem]
    shown, components = msgspec.json.schema_components(types, ref_template=_TEMPLATE)
    schemas = {id(type_): schema for type_, schema in zip(types, shown, strict=True)}
    paths: Json = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Foliot", "version": __version__, "description": _ABOUT},
        "servers": [{"url": "/"}],
        "tags": [{"name": group} for group in dict.fromkeys(route.group for route in routes)],
        "security": [{"key": []}],
        "paths": paths,
        "components": {
            "schemas": _portable(components),
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            "responses": {
                "Problem": {
                    "description": "What went wrong and what to do (RFC 9457)",
                    "content": {"application/problem+json": {"schema": {"$ref": _TEMPLATE.format(name="Problem")}}},
                }
            },
        },
    }


def operation_id(route: Route) -> str:
    """The handler's name as other languages write it."""
    first, *rest = route.handler.__name__.split("_")
    return first + "".join(word.title() for word in rest)


def parameters(route: Route) -> Iterator[Json]:
    """All that a call takes beside its body: from the path, the query and the headers."""
    for name in re.findall(r"\{(\w+)\}", route.path):
        yield {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
    if route.query:
        (reference,), components = msgspec.json.schema_components([route.query], ref_template="{name}")
        for name, schema in components[reference["$ref"]]["properties"].items():
            yield {"name": name, "in": "query", "required": False, "schema": _portable(schema)} | _description(schema)
    for name in route.headers:
        yield {
            "name": name,
            "in": "header",
            "required": False,
            "schema": {"type": "string"},
            "description": HEADERS[name],
        }


def _operation(route: Route, schemas: dict[int, Json]) -> Json:
    operation: Json = {
        "operationId": operation_id(route),
        "tags": [route.group],
        "summary": route.summary,
        "description": f"{route.detail} {who(route.permission)}".strip(),
        "x-permission": route.permission,
        "parameters": list(parameters(route)),
        "responses": _responses(route, schemas),
    }
    if route.permission == "none":
        operation["security"] = []
    if route.body:
        operation["requestBody"] = {
            "required": route.body_required,
            "content": {"application/json": {"schema": _portable(schemas[id(route.body)])}},
        }
    return operation


def who(permission: Permission) -> str:
    """Whom a call is for."""
    if permission == "none":
        return "For anybody."
    roles = [role for role, allowed in MATRIX.items() if permission in allowed]
    return f"For {', '.join(roles)}." if len(roles) < len(MATRIX) else "For every role."


def _responses(route: Route, schemas: dict[int, Json]) -> Json:
    content: Json = {"text/html": {"schema": {"type": "string"}}} if route.page else {}
    if route.metrics:
        content = {kind: {"schema": {"type": "string"}} for kind in ("application/openmetrics-text", "text/plain")}
    if route.answer is not None:
        content = {"application/json": {"schema": _portable(schemas[id(route.answer)])}}
    if "Last-Event-ID" in route.headers:
        content["text/event-stream"] = {"schema": {"type": "string"}}
    with_content = {"content": content} if content else {}
    responses: Json = {str(route.status): {"description": HTTPStatus(route.status).phrase} | with_content}
    for status, meaning in route.also.items():
        problem = {"application/problem+json": {"schema": {"$ref": _TEMPLATE.format(name="Problem")}}}
        responses[str(status)] = {"description": meaning, "content": problem if status >= 400 else content}
    refused = {"$ref": "#/components/responses/Problem"}
    return {str(status): refused for status in _refusals(route)} | responses | {"default": refused}


def _refusals(route: Route) -> Iterator[int]:
    """What any call of its kind may be refused with, beside what its table entry tells."""
    if route.permission != "none":
        yield from (400, 401, 403, 429, 503)
    if "{" in route.path:
        yield 404
    if route.body:
        yield from (413, 415)
    if "If-Match" in route.headers:
        yield from (409, 412)


def _description(schema: Json) -> Json:
    return {"description": schema["description"]} if "description" in schema else {}


def _portable(schema: Any) -> Any:
    r"""Patterns as other languages read them: there `$` is the very end, and `\Z` is the letter Z."""
    match schema:
        case dict():
            return {
                key: value.replace(r"\Z", "$") if key == "pattern" and isinstance(value, str) else _portable(value)
                for key, value in schema.items()
            }
        case list():
            return [_portable(each) for each in schema]
    return schema
