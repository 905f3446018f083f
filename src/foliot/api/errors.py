"""Every refusal as RFC 9457 `application/problem+json`. Never a stack trace, never an HTML page."""

from foliot.api.call import Answer, Header
from foliot.domain.errors import BadInput, FoliotError, NotAuthenticated, TooMany, Unavailable
from foliot.wire import Problem, ProblemField

PROBLEM = b"application/problem+json"
TYPE_PREFIX = "urn:foliot:problem:"


class MethodNotAllowed(FoliotError):
    """The path is there, but not for this method."""

    code = "method-not-allowed"
    title = "The path does not take this method"
    status = 405

    def __init__(self, method: str, allow: str) -> None:
        super().__init__(f"{method[:20]} does not work here; use {allow}")
        self.allow = allow


class UnsupportedMediaType(FoliotError):
    code = "unsupported-media-type"
    title = "The body is not sent as JSON"
    status = 415


class Internal(FoliotError):
    """Our mistake; the log has the trace under the request id."""

    def __init__(self, request_id: str) -> None:
        super().__init__(
            f"An error of ours, not of the request. The node's log tells more under request id {request_id}."
        )


class ClientGone(Exception):
    """Nobody is left to answer."""


def problem(error: FoliotError, request_id: str) -> Answer:
    """The answer that tells an error."""
    fields = error.errors if isinstance(error, BadInput) else ()
    return Answer(
        Problem(
            type=TYPE_PREFIX + error.code,
            title=error.title,
            status=error.status,
            detail=error.detail,
            request_id=request_id,
            errors=[ProblemField(field=each.field, message=each.message) for each in fields],
        ),
        status=error.status,
        headers=_headers(error),
        content_type=PROBLEM,
    )


def _headers(error: FoliotError) -> tuple[Header, ...]:
    match error:
        case NotAuthenticated():
            return ((b"www-authenticate", b"Bearer"),)
        case MethodNotAllowed():
            return ((b"allow", error.allow.encode()),)
        case Unavailable() | TooMany():
            return ((b"retry-after", b"%d" % error.retry_after),)
    return ()
