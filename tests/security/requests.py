"""For every route a request that would do what the route is for, made from the route table: a new route is covered by
itself, unless its body has required fields that no example is there for."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from foliot.api.routes import ROUTES, Route
from foliot.wire import (
    BackfillBody,
    BatchBody,
    ChannelBody,
    ChannelUpdateBody,
    KeyBody,
    LimitBody,
    ManyBody,
    NamespaceBody,
    PreviewBody,
    RegisterBody,
    RetryManyBody,
    RuleBody,
    ScheduleBody,
    SilenceBody,
    SubmitBody,
    WebhookBody,
)
from tests.api.client import AsgiClient, Response

JOB = {"job_type": "kind", "queue": "line"}
EXAMPLES: dict[type, dict[str, Any]] = {
    SubmitBody: JOB,
    BatchBody: {"jobs": [JOB]},
    ManyBody: {"filter": {}},
    RetryManyBody: {"filter": {}},
    LimitBody: {"limit": 2},
    ScheduleBody: {"cron": "0 9 * * *", "job": JOB},
    PreviewBody: {"cron": "0 9 * * *"},
    BackfillBody: {"from": "2025-01-01T00:00:00Z", "to": "2025-01-02T00:00:00Z"},
    RegisterBody: {"name": "new"},
    KeyBody: {"name": "new", "role": "viewer"},
    NamespaceBody: {"name": "new"},
    RuleBody: {"name": "new", "on": "failed", "channels": ["the-channel"]},
    ChannelBody: {"name": "new", "url": "json://127.0.0.1:1/"},
    ChannelUpdateBody: {"url": "json://127.0.0.1:1/"},
    SilenceBody: {"for": "1h"},
    WebhookBody: {"url": "https://receiver.example.org/", "events": ["*"]},
}
QUERIES = {"/api/v1/schedules/preview": "cron=0+9+*+*+*"}
PROTECTED = tuple(route for route in ROUTES if route.permission != "none")
READS = tuple(route for route in PROTECTED if route.method == "GET")
WRITES = tuple(route for route in PROTECTED if route.method != "GET")
NAMED = tuple(route for route in PROTECTED if "{" in route.path)


def title(route: Route) -> str:
    return f"{route.method} {route.path}"


def address(route: Route, names: Mapping[str, str]) -> str:
    path = re.sub(r"\{(\w+)\}", lambda name: names.get(name[1], "a"), route.path)
    query = QUERIES.get(route.path) if route.method == "GET" else None
    return f"{path}?{query}" if query else path


def body(route: Route) -> dict[str, Any] | None:
    if route.body is None:
        return None
    example = EXAMPLES.get(route.body, {})
    try:
        msgspec.convert(example, route.body)
    except msgspec.ValidationError as error:
        raise AssertionError(f"{title(route)} needs an example of its body in EXAMPLES: {error}") from None
    return example


async def ask(client: AsgiClient, route: Route, names: Mapping[str, str], **options: Any) -> Response:
    example = body(route)
    sent = () if example is None else (example,)
    return await client.request(route.method, address(route, names), *sent, **options)
