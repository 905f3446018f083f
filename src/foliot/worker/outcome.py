"""How an attempt ended: from what a handler returned or raised to what is reported."""

import traceback

import msgspec
from msgspec import UNSET, Raw, UnsetType

from foliot.sdk.errors import Fatal, HandlerEnd, Judged, Released, Retry
from foliot.wire import RESULT_LIMIT, ErrorInfo, ReportStatus, encode
from foliot.worker.attempt_log import clean

MESSAGE_LIMIT = 4 * 1024
STACK_LIMIT = 16 * 1024


class Outcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The part of a report that the handler decides."""

    status: ReportStatus
    result: Raw | UnsetType = UNSET
    error: ErrorInfo | None = None
    exit_code: int | None = None
    retry_after: float | None = None


SUCCESS = Outcome(status="success")


def of_value(value: object) -> Outcome:
    """What became of an attempt whose handler returned `value`. None is no result."""
    if value is None:
        return SUCCESS
    try:
        encoded = encode(value)
    except Exception as error:
        return fatal(
            "result_not_json", f"what the handler returned, a {type(value).__name__}, is not JSON: {_message(error)}"
        )
    if len(encoded) > RESULT_LIMIT:
        return fatal("result_too_large", f"the result has {len(encoded):,} bytes; at most {RESULT_LIMIT:,} are kept")
    return Outcome(status="success", result=Raw(encoded))


def of_error(error: BaseException) -> Outcome:
    """What became of an attempt whose handler raised `error`."""
    if isinstance(error, Judged):
        status: ReportStatus = "fatal_failure" if error.fatal else "retriable_failure"
        return msgspec.structs.replace(of_error(error.error), status=status, retry_after=error.after)
    if isinstance(error, HandlerEnd):
        return _of_end(error)
    if isinstance(error, SystemExit):
        code = error.code if isinstance(error.code, int) else None
        return retriable(f"the handler called sys.exit({error.code!r})", kind="SystemExit", exit_code=code)
    return Outcome(
        status="retriable_failure",
        error=ErrorInfo(type=type(error).__name__, message=_message(error), stack=_stack(error)),
    )


def _of_end(error: HandlerEnd) -> Outcome:
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    info = ErrorInfo(
        type=type(error).__name__,
        message=clean(str(error.message), MESSAGE_LIMIT),
        code=clean(error.code, 128) if error.code else None,
        stack=_stack(cause) if cause else None,
    )
    match error:
        case Retry():
            return Outcome(status="retriable_failure", error=info, exit_code=error.exit_code, retry_after=error.after)
        case Fatal():
            return Outcome(status="fatal_failure", error=info, exit_code=error.exit_code)
        case Released():
            return Outcome(status="released", error=info)
        case _:
            return Outcome(status="retriable_failure", error=info, exit_code=error.exit_code)


def fatal(code: str, message: str) -> Outcome:
    return Outcome(status="fatal_failure", error=ErrorInfo(code=code, message=clean(message, MESSAGE_LIMIT)))


def retriable(
    message: str, *, code: str | None = None, kind: str | None = None, exit_code: int | None = None
) -> Outcome:
    error = ErrorInfo(type=kind, code=code, message=clean(message, MESSAGE_LIMIT))
    return Outcome(status="retriable_failure", error=error, exit_code=exit_code)


def _message(error: BaseException) -> str:
    try:
        return clean(str(error) or type(error).__name__, MESSAGE_LIMIT)
    except Exception:
        return f"a {type(error).__name__} that can not be shown as text"


def _stack(error: BaseException) -> str:
    """The stack from the handler on; of a long one the end, where the error is."""
    own = error.__traceback__.tb_next if error.__traceback__ is not None else None
    text = "".join(traceback.format_exception(type(error), error, own or error.__traceback__))
    if len(text) > STACK_LIMIT // 2:
        text = "…" + text[-STACK_LIMIT // 2 :]
    return clean(text, STACK_LIMIT)
