"""What can happen to a job. `states.transition` says what comes of it."""

from collections.abc import Sequence

import msgspec

from foliot.domain.duration import Micros
from foliot.domain.ids import JobKey, WorkerKey
from foliot.domain.job import Job


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """Base of all events; an event's name in the table and the docs is its class's name."""


class ParentsDone(Event, frozen=True):
    """The last open parent ended as its edge asks."""


class ParentEndedOtherwise(Event, frozen=True, kw_only=True):
    """An edge can no longer hold."""

    reason: str


class Due(Event, frozen=True):
    """Its time has come."""


class Claim(Event, frozen=True, kw_only=True):
    """A worker takes it."""

    worker: WorkerKey
    nonce: int
    timeout: Micros


class Progress(Event, frozen=True, kw_only=True):
    """The worker tells how far it is."""

    started: Micros | None = None
    progress: str | None = None


class Succeed(Event, frozen=True, kw_only=True):
    """The worker has done it."""

    started: Micros | None = None
    result: str | None = None


class Failure(Event, frozen=True, kw_only=True):
    """What every failure carries. `code` is the handler's own word for it and becomes the job's reason."""

    started: Micros | None = None
    error: str | None = None
    exit_code: int | None = None
    code: str | None = None


class FailRetriable(Failure, frozen=True, kw_only=True):
    """It failed, and trying again may help."""

    retry_after: Micros | None = None


class FailFatal(Failure, frozen=True, kw_only=True):
    """Trying again would not help."""


class TimeOut(Failure, frozen=True, kw_only=True):
    """The worker ended it for running too long."""


class WorkerGone(Event, frozen=True):
    """Its worker's lease is over."""


class Overdue(Event, frozen=True):
    """Past its timeout and grace, and the worker did not end it."""


class CancelGraceOver(Event, frozen=True):
    """Asked to stop, and the worker did not."""


class Release(Event, frozen=True, kw_only=True):
    """Handed back untouched: the try is given back."""

    started: Micros | None = None


class Cancel(Event, frozen=True):
    """A user wants it to end."""


class Stopped(Event, frozen=True, kw_only=True):
    """The worker stopped it because it was asked to."""

    started: Micros | None = None
    error: str | None = None


class Expire(Event, frozen=True):
    """Not started by its deadline."""


class Pause(Event, frozen=True):
    """A user holds it."""


class Resume(Event, frozen=True):
    """A user lets it go on."""


class TokenFree(Event, frozen=True):
    """Its concurrency key has a token for it."""


class Reschedule(Event, frozen=True, kw_only=True):
    """A user changed what was asked. `job` is the new wide row, `due` its next start, `limit_id` its key's number."""

    job: Job
    due: Micros
    limit_id: int | None = None


class Redrive(Event, frozen=True, kw_only=True):
    """A user runs an ended job again, its tries anew. `job` is the wide row, to be written again where `rewrite` says
    it changed; `reopened` are the parents that it waits for once more."""

    job: Job
    rewrite: bool = False
    limit_id: int | None = None
    ties: int = 0
    reopened: Sequence[JobKey] = ()
