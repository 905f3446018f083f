"""Following what happens."""

from foliot.api import events
from foliot.api.routes.route import Route
from foliot.wire import BASE_PATH

ROUTES: tuple[Route, ...] = (
    Route(
        method="GET",
        path=f"{BASE_PATH}/events",
        handler=events.follow_events,
        group="Events",
        summary="Follow what happens.",
        detail="Server-sent events, one for each change of a job's status, each a CloudEvent (1.0, JSON) of the type "
        "foliot.job.<status> with the job as it then was, without payload. The first message comes as soon as nothing "
        "is missed from then on. Messages without data tell how far was read; a stream that broke goes on with "
        "Last-Event-ID, at any node, with nothing missed. Who does not read is let go.",
        permission="read",
        query=events.EventsQuery,
        headers=("Last-Event-ID",),
        also={409: "The record of events is switched off", 410: "Events from so long ago are no longer kept"},
    ),
)
