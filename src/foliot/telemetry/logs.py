"""What a program logs: one place that says how a line looks and what may stand in it.

A line has the time (RFC 3339, UTC), the level, the logger and the message, and where there is one in hand the id of the
request, of the job with its attempt, and of the trace. No message can break its line or drive a terminal, and none
shows a secret that was named to `set_up`, or that looks like one.
"""

import json
import logging
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Literal, TextIO

from foliot.telemetry import tracing

Format = Literal["auto", "text", "json"]
Redact = Callable[[str], str]
Context = Callable[[], tuple[Mapping[str, object], Redact | None] | None]

REQUEST: ContextVar[str | None] = ContextVar("foliot_request", default=None)
HIDDEN = "***"
SHORTEST = 6  # shorter values would be found everywhere
INDENT = "    "

# What gives a line away as two, or turns the terminal around.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]")
# What gives a secret away, and where it begins.
_HEADER = re.compile(r"(?i)\b((?:authorization|cookie|x-csrf-token)['\"]?[:=,] ?(?:b?['\"])?)[^'\"\n]+")
_SCHEME = re.compile(r"(?i)\b(bearer |basic )[A-Za-z0-9+/=._~-]{12,}")
_ADDRESS = re.compile(r"(://[^\s:/?#@]{0,200}:)[^\s/?#@]{0,500}(?=@)")
_NAMED = re.compile(r"(?i)((?:password|passwd|secret|admin_key|api_key)['\"]?[:=] ?['\"]?)[^\s'\",;&]+")
_OURS = re.compile(r"\b(fk_|whsec_|eyJ)[A-Za-z0-9+/=._-]{8,}")
_LOOKS_SECRET = (_HEADER, _SCHEME, _ADDRESS, _NAMED, _OURS)
_COLOURS = {"DEBUG": "\x1b[90m", "WARNING": "\x1b[33m", "ERROR": "\x1b[31m", "CRITICAL": "\x1b[31m"}
_PLAIN = "\x1b[0m"

_contexts: list[Context] = []


def add_context(context: Context) -> None:
    """`context` is asked at every line for what it is about, as names and values, and for what must not be shown in
    it; None where it knows nothing."""
    _contexts.append(context)


class Line:
    """What one record says, free of secrets."""

    __slots__ = ("exception", "fields", "level", "logger", "message", "time")

    def __init__(self, record: logging.LogRecord, exception: str, hide: Redact) -> None:
        self.time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"
        self.level = record.levelname
        self.logger = record.name
        self.message = hide(_whole(_message(record)))
        self.exception = hide(_whole(exception))
        self.fields: dict[str, object] = {}
        if (request := REQUEST.get()) is not None:
            self.fields["request_id"] = request
        for context in _contexts:
            known = context()
            if known is not None:
                about, redact = known
                self.fields.update(about)
                if redact is not None:
                    self.message, self.exception = redact(self.message), redact(self.exception)
        if (trace := tracing.current()) is not None:
            self.fields["trace_id"] = trace[3:35]


class Lines(logging.Formatter):
    """Common to both forms; `secrets` are values that are never shown."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        super().__init__()
        known = sorted({value for value in secrets if len(value) >= SHORTEST}, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, known))) if known else None

    def hide(self, text: str) -> str:
        if self._known is not None:
            text = self._known.sub(HIDDEN, text)
        for pattern in _LOOKS_SECRET:
            text = pattern.sub(rf"\1{HIDDEN}", text)
        return text

    def line(self, record: logging.LogRecord) -> Line:
        exception = ""
        if record.exc_info and record.exc_info[0] is not None:
            exception = self.formatException(record.exc_info)
        elif record.exc_text:
            exception = record.exc_text
        if record.stack_info:
            exception = f"{exception}\n{record.stack_info}".strip("\n")
        return Line(record, exception, self.hide)


class JsonLines(Lines):
    """One JSON object a line, in ASCII: what reads it gets every character as it was."""

    def format(self, record: logging.LogRecord) -> str:
        line = self.line(record)
        shown = {
            "time": line.time,
            "level": line.level.lower(),
            "logger": line.logger,
            "message": line.message,
            **line.fields,
        }
        if line.exception:
            shown["exception"] = line.exception
        return json.dumps(shown, default=str).replace("\x7f", "\\u007f")


class TextLines(Lines):
    """For people. A trace of an error follows its line, moved in, so that none of its lines passes for one of the
    log's."""

    def __init__(self, secrets: Iterable[str] = (), *, colour: bool = False) -> None:
        super().__init__(secrets)
        self._colour = colour

    def format(self, record: logging.LogRecord) -> str:
        line = self.line(record)
        begin = _COLOURS.get(line.level, "") if self._colour else ""
        level = f"{begin}{line.level}{_PLAIN}" if begin else line.level
        about = "".join(f" {name}={escaped(str(value))}" for name, value in line.fields.items())
        shown = f"{line.time} {level} {line.logger}: {escaped(line.message)}{about and f' [{about[1:]}]'}"
        below = (f"\n{INDENT}{escaped(each)}" for each in line.exception.split("\n")) if line.exception else ()
        return shown + "".join(below)


def escaped(text: str) -> str:
    """Text that stays in its line: what would break or hide it is written as Python writes it in a string."""
    return _CONTROL.sub(lambda found: repr(found[0])[1:-1], text)


def set_up(level: str, form: str = "auto", *, secrets: Iterable[str] = (), stream: TextIO | None = None) -> None:
    """From now on everything that this process logs goes to `stream` (stderr) in this form. `auto` is text on a
    terminal and JSON elsewhere. What was set up before by this function is replaced, what others did stays."""
    stream = sys.stderr if stream is None else stream
    handler = _Output(stream)
    terminal = stream.isatty()
    as_text = form == "text" or (form == "auto" and terminal)
    handler.setFormatter(TextLines(secrets, colour=terminal) if as_text else JsonLines(secrets))
    root = logging.getLogger()
    for old in [each for each in root.handlers if isinstance(each, _Output)]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(level.upper())


class _Output(logging.StreamHandler[TextIO]):
    """A log that can not be written, to a pipe that is closed or a disk that is full, stops nobody's work."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        return


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception:  # arguments that do not fit: the line is worth more than its form
        return f"{record.msg!r} with {record.args!r}"


def _whole(text: str) -> str:
    """Without halves of surrogate pairs, which no file takes."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
