"""The one table of all calls. What is answered, documented and allowed comes from here and nowhere else."""

from foliot.api.routes import access, jobs, limits, node, queues, schedules, workers
from foliot.api.routes.route import HEADERS, Route

__all__ = ["HEADERS", "ROUTES", "Route"]

ROUTES: tuple[Route, ...] = (
    *jobs.ROUTES,
    *limits.ROUTES,
    *queues.ROUTES,
    *schedules.ROUTES,
    *workers.ROUTES,
    *access.ROUTES,
    *node.ROUTES,
)
