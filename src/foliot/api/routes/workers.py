"""The calls that workers make."""

from foliot.api import workers
from foliot.api.jobs import NoFields
from foliot.api.routes.route import Route
from foliot.wire import (
    BASE_PATH,
    ExchangeAnswer,
    ExchangeBody,
    RegisterBody,
    Registered,
    WorkerInfo,
)

_WORKER = f"{BASE_PATH}/workers/{{worker_id}}"

ROUTES: tuple[Route, ...] = (
    Route(
        method="POST",
        path=f"{BASE_PATH}/workers",
        handler=workers.register_worker,
        group="Workers",
        summary="Register a worker and what it can do.",
        permission="work",
        body=RegisterBody,
        answer=Registered,
        status=201,
    ),
    Route(
        method="POST",
        path=f"{_WORKER}/exchange",
        handler=workers.exchange,
        group="Workers",
        summary="Hand in what ended and ask for what fits.",
        detail="It is the heartbeat too. Waits up to `wait` seconds for jobs; an empty `free` asks for none.",
        permission="work",
        body=ExchangeBody,
        answer=ExchangeAnswer,
        also={410: "its lease has ended; register anew"},
    ),
    Route(
        method="POST",
        path=f"{_WORKER}/drain",
        handler=workers.drain_worker,
        group="Workers",
        summary="Give a worker no more jobs.",
        permission="control",
        body=NoFields,
        body_required=False,
        status=204,
    ),
    Route(
        method="DELETE",
        path=_WORKER,
        handler=workers.leave_worker,
        group="Workers",
        summary="Leave; what the worker held goes back at once.",
        permission="work",
        status=204,
    ),
    Route(
        method="GET",
        path=f"{BASE_PATH}/workers",
        handler=workers.list_workers,
        group="Workers",
        summary="List the workers: who is there, with what, doing what.",
        permission="read",
        answer=list[WorkerInfo],
    ),
)
