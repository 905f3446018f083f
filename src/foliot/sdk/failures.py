"""What a call can end in, as one tree. The message is the node's own and says what to do next.

FoliotError
├── FoliotHttpError        the node said no, or did not answer; `status`, `problem`, `request_id`
│   ├── BadInput           400  what was sent is wrong; `errors` names the fields
│   │   └── TooLarge       413  send less at once
│   ├── NotAuthenticated   401  no key, or a wrong one
│   ├── Forbidden          403  this key may not do that
│   ├── NotFound           404  no such job, worker or path
│   ├── Conflict           409  the job's state does not allow it, or the id is taken by another body
│   │   └── EventsOff      409  there is no record of events to follow
│   ├── Gone               410  the worker's lease has ended
│   │   └── EventsGone     410  what happened since then is no longer kept: read the jobs, follow on from now
│   ├── Stale              412  changed since it was read: read it again
│   └── Unavailable        429, 5xx  not now; `retry_after` seconds
│       └── Unreachable    no answer at all; `sent` tells whether the request may have arrived
└── JobEnded               the job itself ended without a result; `job_id`, `info`
    ├── JobFailed          `error` is the last attempt's
    └── JobCancelled
"""

from collections.abc import Mapping

import msgspec

from foliot.domain.errors import FoliotError
from foliot.wire import ErrorInfo, JobInfo, Problem, ProblemField


class FoliotHttpError(FoliotError):
    """A call that was refused or not answered."""

    def __init__(self, detail: str, *, problem: Problem | None = None, http_status: int = 0) -> None:
        super().__init__(detail)
        self.problem = problem
        self.http_status = http_status

    @property
    def request_id(self) -> str:
        """What the node's log knows this call by; empty where no answer came."""
        return self.problem.request_id if self.problem else ""

    @property
    def errors(self) -> list[ProblemField]:
        """The fields that were wrong, where the node named them."""
        return self.problem.errors if self.problem else []


class BadInput(FoliotHttpError):
    code, status = "bad-input", 400


class TooLarge(BadInput):
    code, status = "too-large", 413


class NotAuthenticated(FoliotHttpError):
    code, status = "not-authenticated", 401


class Forbidden(FoliotHttpError):
    code, status = "forbidden", 403


class NotFound(FoliotHttpError):
    code, status = "not-found", 404


class Conflict(FoliotHttpError):
    code, status = "conflict", 409


class EventsOff(Conflict):
    code = "events-off"


class Gone(FoliotHttpError):
    code, status = "gone", 410


class EventsGone(Gone):
    """The position that a stream was to go on from is older than what the node keeps."""

    code = "events-gone"


class Stale(FoliotHttpError):
    code, status = "stale", 412


class Unavailable(FoliotHttpError):
    code, status = "unavailable", 503
    retry_after: float | None = None


class Unreachable(Unavailable):
    """No answer. Where `sent` is false the request never left, and doing it again is safe whatever it was."""

    code = "unreachable"

    def __init__(self, detail: str, *, sent: bool) -> None:
        super().__init__(detail)
        self.sent = sent


class JobEnded(FoliotError):
    """A job that has no result, because it ended otherwise."""

    def __init__(self, detail: str, *, info: JobInfo) -> None:
        super().__init__(detail)
        self.info = info
        self.job_id = info.job_id


class JobFailed(JobEnded):
    code = "job-failed"

    @property
    def error(self) -> ErrorInfo | str | None:
        """What the last attempt failed with, where it said so."""
        return self.info.last_error or None

    @property
    def reason(self) -> str | None:
        return self.info.reason


class JobCancelled(JobEnded):
    code = "job-cancelled"


_KINDS: dict[int, type[FoliotHttpError]] = {
    kind.status: kind
    for kind in (BadInput, TooLarge, NotAuthenticated, Forbidden, NotFound, Conflict, Gone, Stale, Unavailable)
} | {422: BadInput, 429: Unavailable, 500: FoliotHttpError, 502: Unavailable, 504: Unavailable}


def refusal(status: int, headers: Mapping[str, str], body: bytes) -> FoliotHttpError:
    """The error that an answer of 300 or more is."""
    try:
        problem: Problem | None = msgspec.json.decode(body, type=Problem)
    except (msgspec.DecodeError, UnicodeDecodeError):
        problem = None
    if problem is None:
        detail = f"the answer was {status}, and not in the words of a Foliot node; is the address right?"
    else:
        detail = (
            "; ".join(f"{each.field}: {each.message}" for each in problem.errors) or problem.detail or problem.title
        )
    kind = _KINDS.get(status, FoliotHttpError)
    if problem is not None and problem.type.endswith(f":{EventsOff.code}"):
        kind = EventsOff
    error = kind(detail, problem=problem, http_status=status)
    if isinstance(error, Unavailable):
        error.retry_after = _seconds(headers.get("retry-after"))
    return error


def ended_otherwise(info: JobInfo) -> JobEnded:
    """The error that a failed or cancelled job's result is."""
    if info.status == "cancelled":
        return JobCancelled(f"{info.job_id} ({info.job_type}) was cancelled", info=info)
    error = info.last_error or None
    said = error.message or error.type if isinstance(error, ErrorInfo) else error
    why = said or info.reason or "no reason was given"
    return JobFailed(f"{info.job_id} ({info.job_type}) failed at attempt {info.attempt}: {why}", info=info)


def _seconds(text: str | None) -> float | None:
    return float(text) if text and text.isascii() and text.isdigit() else None
