"""The one table of all calls. What is answered, documented and allowed comes from here and nowhere else."""

from foliot.api.routes import access, alerts, events, jobs, limits, node, queues, schedules, stats, webhooks, workers
from foliot.api.routes.route import HEADERS, Route

__all__ = ["HEADERS", "ROUTES", "Route"]

ROUTES: tuple[Route, ...] = (
    *jobs.ROUTES,
    *events.ROUTES,
    *limits.ROUTES,
    *queues.ROUTES,
    *schedules.ROUTES,
    *workers.ROUTES,
    *alerts.ROUTES,
    *webhooks.ROUTES,
    *access.ROUTES,
    *node.ROUTES,
    *stats.ROUTES,
)
