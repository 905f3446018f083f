"""The one table of all calls. What is answered, documented and allowed comes from here and nowhere else."""

from foliot.api.routes import jobs, limits, node, schedules, workers
from foliot.api.routes.route import HEADERS, Route

__all__ = ["HEADERS", "ROUTES", "Route"]

ROUTES: tuple[Route, ...] = (*jobs.ROUTES, *limits.ROUTES, *schedules.ROUTES, *workers.ROUTES, *node.ROUTES)
