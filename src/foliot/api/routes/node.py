"""The calls on the node itself."""

from typing import Any

from foliot.api import node
from foliot.api.node import Health
from foliot.api.routes.route import Route
from foliot.wire import BASE_PATH, Forecast, NodeView, Readiness, Stats, StoreFact

ROUTES: tuple[Route, ...] = (
    Route(
        method="GET",
        path=f"{BASE_PATH}/nodes",
        handler=node.list_nodes,
        group="Node",
        summary="List the nodes.",
        permission="read",
        answer=list[NodeView],
    ),
    Route(
        method="GET",
        path=f"{BASE_PATH}/stats",
        handler=node.read_stats,
        group="Node",
        summary="Read about how many jobs stand where, and this node's rates.",
        permission="read",
        answer=Stats,
    ),
    Route(
        method="GET",
        path=f"{BASE_PATH}/stats/store",
        handler=node.read_store,
        group="Node",
        summary="Read what is measured of the store, and what is wrong with it.",
        detail="Not for keys that reach only some queues or job types: the store is everybody's.",
        permission="read",
        answer=list[StoreFact],
    ),
    Route(
        method="GET",
        path=f"{BASE_PATH}/stats/forecast",
        handler=node.read_forecast,
        group="Node",
        summary="Read what is due in the next 24 hours, by minute, against what the workers can take.",
        detail="Paused schedules do not count. The capacity goes by the last hundred jobs that completed.",
        permission="read",
        answer=Forecast,
    ),
    Route(
        method="GET",
        path="/healthz",
        handler=node.healthz,
        group="Node",
        summary="Tell whether the process answers.",
        permission="none",
        answer=Health,
    ),
    Route(
        method="GET",
        path="/readyz",
        handler=node.readyz,
        group="Node",
        summary="Tell whether the node can do its work, and what stands in its way.",
        detail="It is ready with warnings, too. The checks are kept for a second.",
        permission="none",
        answer=Readiness,
        also={503: "the same checks, as part of a problem"},
    ),
    Route(
        method="GET",
        path="/openapi.json",
        handler=node.openapi_document,
        group="Node",
        summary="Read this contract as OpenAPI 3.1.",
        permission="none",
        answer=Any,
    ),
    Route(
        method="GET",
        path="/docs",
        handler=node.docs,
        group="Node",
        summary="Read this contract as a page.",
        permission="none",
        page=True,
    ),
    Route(
        method="GET",
        path="/",
        handler=node.home,
        group="Node",
        summary="Go to the page.",
        permission="none",
        status=302,
    ),
)
