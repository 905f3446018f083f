"""The calls on queues and job types."""

from foliot.api import queues
from foliot.api.jobs import NoFields
from foliot.api.query import PageQuery
from foliot.api.routes.route import Route
from foliot.wire import BASE_PATH, JobTypeInfo, QueueBody, QueueInfo

_QUEUE = f"{BASE_PATH}/queues/{{queue}}"
_TYPE = f"{BASE_PATH}/job-types/{{job_type}}"

ROUTES: tuple[Route, ...] = (
    Route(
        method="GET",
        path=f"{BASE_PATH}/queues",
        handler=queues.list_queues,
        group="Queues",
        summary="List queues, by name.",
        detail="With how many jobs wait only for a worker or for the queue itself (counted up to 100,000), and how "
        "many run.",
        permission="read",
        query=PageQuery,
        answer=list[QueueInfo],
    ),
    Route(
        method="GET",
        path=_QUEUE,
        handler=queues.read_queue,
        group="Queues",
        summary="Read a queue.",
        permission="read",
        answer=QueueInfo,
    ),
    Route(
        method="PUT",
        path=_QUEUE,
        handler=queues.set_queue,
        group="Queues",
        summary="Set the rules of a queue.",
        detail="The fields given are changed, null sets one back to its default. A queue that is not there yet is "
        "made. A new policy applies to the jobs that wait as well. Limits hold across all nodes; what runs already "
        "goes on.",
        permission="control",
        body=QueueBody,
        headers=("If-Match",),
        answer=QueueInfo,
    ),
    Route(
        method="POST",
        path=f"{_QUEUE}/pause",
        handler=queues.pause_queue,
        group="Queues",
        summary="Start nothing of a queue until it is resumed.",
        detail="What runs goes on; jobs are taken in and become due as before.",
        permission="control",
        body=NoFields,
        body_required=False,
        headers=("If-Match",),
        answer=QueueInfo,
    ),
    Route(
        method="POST",
        path=f"{_QUEUE}/resume",
        handler=queues.resume_queue,
        group="Queues",
        summary="Let jobs of a queue start again.",
        permission="control",
        body=NoFields,
        body_required=False,
        headers=("If-Match",),
        answer=QueueInfo,
    ),
    Route(
        method="GET",
        path=f"{BASE_PATH}/job-types",
        handler=queues.list_held_types,
        group="Queues",
        summary="List the job types that are paused.",
        permission="read",
        answer=list[JobTypeInfo],
    ),
    Route(
        method="POST",
        path=f"{_TYPE}/pause",
        handler=queues.pause_type,
        group="Queues",
        summary="Start nothing of a job type, in any queue, until it is resumed.",
        permission="control",
        body=NoFields,
        body_required=False,
        answer=JobTypeInfo,
    ),
    Route(
        method="POST",
        path=f"{_TYPE}/resume",
        handler=queues.resume_type,
        group="Queues",
        summary="Let jobs of a type start again.",
        permission="control",
        body=NoFields,
        body_required=False,
        answer=JobTypeInfo,
    ),
)
