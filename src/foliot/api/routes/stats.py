"""The calls for figures."""

from foliot.api import stats
from foliot.api.routes.route import Route
from foliot.api.stats import LatenessQuery
from foliot.wire import BASE_PATH, DepthInfo, LatenessInfo

ROUTES: tuple[Route, ...] = (
    Route(
        method="GET",
        path=f"{BASE_PATH}/stats/lateness",
        handler=stats.read_lateness,
        group="Node",
        summary="Read how late jobs started and how long each step took, in percentiles.",
        detail="Of jobs that ended in that time, over all nodes. Attempts that were tried again do not count. The "
        "last ten seconds of other nodes may be missing.",
        permission="read",
        query=LatenessQuery,
        answer=list[LatenessInfo],
    ),
    Route(
        method="GET",
        path=f"{BASE_PATH}/queues/{{queue}}/depth",
        handler=stats.read_depth,
        group="Queues",
        summary="Read how many jobs of a queue wait and run.",
        detail="Exact and cheap at any depth, for programs that scale workers. A queue that nobody has used is empty.",
        permission="read",
        answer=DepthInfo,
    ),
    Route(
        method="GET",
        path="/metrics",
        handler=stats.read_metrics,
        group="Node",
        summary="Read the metrics of the node and of the jobs that the key reaches.",
        detail="As OpenMetrics, or as Prometheus' plain text for who accepts only that. The node's admin key sees all "
        "namespaces, the process and the store; any other key its own namespace.",
        permission="read",
        metrics=True,
    ),
)
