"""The calls on concurrency keys."""

from foliot.api import limits
from foliot.api.query import PageQuery
from foliot.api.routes.route import Route
from foliot.wire import BASE_PATH, LimitBody, LimitInfo

ROUTES: tuple[Route, ...] = (
    Route(
        method="GET",
        path=f"{BASE_PATH}/limits",
        handler=limits.list_limits,
        group="Limits",
        summary="List concurrency keys, by name.",
        detail="Who holds a token and who waits for one, up to 100 of each.",
        permission="read",
        query=PageQuery,
        answer=list[LimitInfo],
    ),
    Route(
        method="GET",
        path=f"{BASE_PATH}/limits/{{key}}",
        handler=limits.read_limit,
        group="Limits",
        summary="Read a concurrency key.",
        permission="read",
        answer=LimitInfo,
    ),
    Route(
        method="PUT",
        path=f"{BASE_PATH}/limits/{{key}}",
        handler=limits.set_limit,
        group="Limits",
        summary="Set how many jobs of a concurrency key may run at once.",
        detail="More are let in at once where it is raised; where it is lowered nobody is thrown out. A job that names "
        "another limit later sets that.",
        permission="control",
        body=LimitBody,
        answer=LimitInfo,
    ),
)
