"""The one table of all calls. What is answered, documented and allowed comes from here and nowhere else."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from foliot.api import jobs, node, workers
from foliot.api.auth import Permission
from foliot.api.call import Handler
from foliot.api.jobs import NoFields
from foliot.api.node import Health
from foliot.api.query import JobsQuery, LogsQuery
from foliot.wire import (
    BASE_PATH,
    BatchBody,
    BatchSubmitted,
    Changed,
    ExchangeAnswer,
    ExchangeBody,
    Execution,
    JobInfo,
    LogInfo,
    ManyBody,
    ManyChanged,
    NodeView,
    RegisterBody,
    Registered,
    RetryJobBody,
    Stats,
    SubmitBody,
    Submitted,
    UpdateBody,
    WorkerInfo,
)

Method = Literal["GET", "POST", "PUT", "DELETE"]
Group = Literal["Jobs", "Many jobs", "Workers", "Node"]

HEADERS = {
    "Idempotency-Key": "1 to 255 printable ASCII characters; the same request within 24 h is answered as the first",
    "If-Match": "the ETag that a read gave; refused with 412 where the job has changed since",
    "Last-Event-ID": "the log_id of the last event seen; goes on after it",
}


class Route(Struct, frozen=True, kw_only=True):
    """One call. `answer` None is no JSON body; `also` are further statuses worth a word; a body that is not
    `body_required` may be left out."""

    method: Method
    path: str
    handler: Handler
    group: Group
    summary: str
    detail: str = ""
    permission: Permission
    body: type[Struct] | None = None
    body_required: bool = True
    query: type[Struct] | None = None
    headers: Sequence[str] = ()
    answer: Any = None
    status: int = 200
    also: Mapping[int, str] = {}


_JOB = f"{BASE_PATH}/jobs/{{job_id}}"
_WORKER = f"{BASE_PATH}/workers/{{worker_id}}"
_NOT_NOW = "its status does not allow it"

ROUTES: tuple[Route, ...] = (
    Route(
        method="POST",
        path=f"{BASE_PATH}/jobs",
        handler=jobs.submit_job,
        group="Jobs",
        summary="Submit a job.",
        permission="submit",
        body=SubmitBody,
        headers=("Idempotency-Key",),
        answer=Submitted,
        status=201,
        also={409: "the job_id or Idempotency-Key was used with another body"},
    ),
    Route(
        method="POST",
        path=f"{BASE_PATH}/jobs/batch",
        handler=jobs.submit_batch,
        group="Jobs",
        summary="Submit up to 10,000 jobs, all or none.",
        detail="The ids come back in the order given.",
        permission="submit",
        body=BatchBody,
        headers=("Idempotency-Key",),
        answer=BatchSubmitted,
        status=201,
        also={409: "a job_id or the Idempotency-Key was used with another body"},
    ),
    Route(
        method="GET",
        path=f"{BASE_PATH}/jobs",
        handler=jobs.list_jobs,
        group="Jobs",
        summary="List jobs, newest first.",
        detail="Without payload and last_error. A page may be short; as long as there is a Link header there is more.",
        permission="read",
        query=JobsQuery,
        answer=list[JobInfo],
    ),
    Route(
        method="GET",
        path=_JOB,
        handler=jobs.read_job,
        group="Jobs",
        summary="Read a job.",
        detail="Its ETag is its version, for If-Match.",
        permission="read",
        answer=JobInfo,
    ),
    Route(
        method="PUT",
        path=_JOB,
        handler=jobs.update_job,
        group="Jobs",
        summary="Change a job that waits.",
        detail="Only the fields given; null sets one back to its default.",
        permission="control",
        body=UpdateBody,
        headers=("If-Match",),
        answer=Changed,
        also={409: "it is running or has ended"},
    ),
    Route(
        method="DELETE",
        path=_JOB,
        handler=jobs.cancel_job,
        group="Jobs",
        summary="Cancel a job.",
        permission="control",
        headers=("If-Match",),
        answer=Changed,
        also={202: "it is running and was asked to stop", 409: "it ended otherwise"},
    ),
    Route(
        method="POST",
        path=f"{_JOB}/pause",
        handler=jobs.pause_job,
        group="Jobs",
        summary="Hold a waiting job.",
        permission="control",
        body=NoFields,
        body_required=False,
        headers=("If-Match",),
        answer=Changed,
        also={409: _NOT_NOW},
    ),
    Route(
        method="POST",
        path=f"{_JOB}/resume",
        handler=jobs.resume_job,
        group="Jobs",
        summary="Let a held job go on.",
        permission="control",
        body=NoFields,
        body_required=False,
        headers=("If-Match",),
        answer=Changed,
        also={409: _NOT_NOW},
    ),
    Route(
        method="POST",
        path=f"{_JOB}/retry",
        handler=jobs.retry_job,
        group="Jobs",
        summary="Run a failed or cancelled job again.",
        detail="With its tries anew, and another payload where one is given.",
        permission="control",
        body=RetryJobBody,
        body_required=False,
        headers=("If-Match",),
        answer=Changed,
        also={409: _NOT_NOW},
    ),
    Route(
        method="POST",
        path=f"{_JOB}/run",
        handler=jobs.run_job,
        group="Jobs",
        summary="Run a waiting job now instead of at its schedule_time.",
        permission="control",
        body=NoFields,
        body_required=False,
        headers=("If-Match",),
        answer=Changed,
        also={409: _NOT_NOW},
    ),
    Route(
        method="GET",
        path=f"{_JOB}/executions",
        handler=jobs.list_executions,
        group="Jobs",
        summary="List a job's attempts, oldest first.",
        permission="read",
        answer=list[Execution],
    ),
    Route(
        method="GET",
        path=f"{_JOB}/logs",
        handler=jobs.read_logs,
        group="Jobs",
        summary="Read a job's log, oldest line first.",
        detail="With Accept: text/event-stream they come as events (id is the log_id) until the job has ended.",
        permission="read",
        query=LogsQuery,
        headers=("Last-Event-ID",),
        answer=list[LogInfo],
    ),
    Route(
        method="GET",
        path=f"{_JOB}/result",
        handler=jobs.read_result,
        group="Jobs",
        summary="Read what the handler returned.",
        permission="read",
        answer=Any,
        also={404: "there is none, or not yet"},
    ),
    Route(
        method="POST",
        path=f"{BASE_PATH}/jobs/cancel",
        handler=jobs.cancel_jobs,
        group="Many jobs",
        summary="Cancel all jobs that match.",
        permission="control",
        body=ManyBody,
        answer=ManyChanged,
    ),
    Route(
        method="POST",
        path=f"{BASE_PATH}/jobs/pause",
        handler=jobs.pause_jobs,
        group="Many jobs",
        summary="Hold all waiting jobs that match.",
        permission="control",
        body=ManyBody,
        answer=ManyChanged,
    ),
    Route(
        method="POST",
        path=f"{BASE_PATH}/jobs/resume",
        handler=jobs.resume_jobs,
        group="Many jobs",
        summary="Let all held jobs that match go on.",
        permission="control",
        body=ManyBody,
        answer=ManyChanged,
    ),
    Route(
        method="POST",
        path=f"{BASE_PATH}/jobs/retry",
        handler=jobs.retry_jobs,
        group="Many jobs",
        summary="Run all failed and cancelled jobs that match again.",
        permission="control",
        body=ManyBody,
        answer=ManyChanged,
    ),
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
        summary="Tell whether the node can do its work.",
        permission="none",
        answer=Health,
        also={503: "what is wrong"},
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
