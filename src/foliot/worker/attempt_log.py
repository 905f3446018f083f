"""The lines of one attempt's log on their way to the node: bounded, clean, writable from any thread."""

from collections import deque
from collections.abc import Callable
from threading import Lock

from foliot import clock
from foliot.wire import LOG_LINE_LIMIT, LogLevel
from foliot.worker.redaction import CUT_MARK, Redactor

LINES = 10_000
CHARACTERS = 4 * 1024 * 1024
BURST = 1_000
PER_SECOND = 200
_LINE = 1_000_000 // PER_SECOND  # microseconds that a line takes to be made up for

Line = tuple[int, LogLevel, str]  # when (microseconds), level, message


def clean(text: str, limit: int) -> str:
    """Text that every store can keep: no NUL, no half of a surrogate pair, at most `limit` bytes with a mark where it
    was cut."""
    if "\0" in text:
        text = text.replace("\0", "\ufffd")
    if text.isascii():
        return text if len(text) <= limit else text[: limit - len(CUT_MARK.encode())] + CUT_MARK
    encoded = text.encode("utf-8", "replace")
    if len(encoded) > limit:
        return encoded[: limit - len(CUT_MARK.encode())].decode("utf-8", "ignore") + CUT_MARK
    return encoded.decode()


class Pace:
    """`BURST` lines at once, then `PER_SECOND` a second. Once it is out, none pass until there is room for a second's
    worth, so that what is left out is a few long gaps, each told once, and not every other line."""

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self._room = BURST * _LINE
        self._at = now()
        self._out = False

    def passes(self) -> bool:
        now = self._now()
        self._room = min(BURST * _LINE, self._room + now - self._at)
        self._at = now
        if self._room < (PER_SECOND if self._out else 1) * _LINE:
            self._out = True
            return False
        self._out = False
        self._room -= _LINE
        return True


class AttemptLog:
    """Keeps lines until they are taken. Lines that come too fast are left out, and what was left out is told where it
    would have stood. Over its bounds it only counts, and says at the end how much that was, so that a handler that
    prints without end fills neither this memory nor the node. `on_lines` is called when there is something to take,
    `redact` of every line before it is kept."""

    def __init__(
        self,
        on_lines: Callable[[], None],
        redact: Redactor | None = None,
        *,
        now: Callable[[], int] = clock.monotonic,
    ) -> None:
        self._on_lines = on_lines
        self._redact = redact
        self._pace = Pace(now)
        self._left_out = 0
        self._lock = Lock()
        self._lines: deque[Line] = deque()
        self._partial: dict[LogLevel, str] = {}
        self._seen_lines = 0
        self._seen_characters = 0
        self._dropped_lines = 0
        self._dropped_characters = 0
        self._closed = False

    @property
    def pending(self) -> bool:
        return bool(self._lines)

    def line(self, level: LogLevel, message: str) -> None:
        with self._lock:
            self._add(level, message)
        self._tell()

    def note(self, level: LogLevel, message: str) -> None:
        """A line that is kept whatever the bounds are: how the attempt ended, told by its worker."""
        with self._lock:
            if not self._closed:
                self._tell_left_out()
                self._keep(level, message)
        self._tell()

    def write(self, level: LogLevel, text: str) -> None:
        """Text as it comes to a stream: a line is complete with its newline, or at the end of the attempt."""
        with self._lock:
            if self._is_full():
                self._dropped_lines += text.count("\n")
                self._dropped_characters += len(text)
                return
            head, newline, rest = text.partition("\n")
            head = self._partial.pop(level, "") + head
            while newline:
                self._add(level, head)
                if self._is_full():
                    self._dropped_lines += rest.count("\n")
                    self._dropped_characters += len(rest)
                    head = ""
                    break
                head, newline, rest = rest.partition("\n")
            if head:
                # One character over the limit is enough to know that the line is cut.
                kept = head[: LOG_LINE_LIMIT + 1]
                self._partial[level] = kept if self._redact is None or kept == head else self._redact.trimmed(kept)
                self._seen_characters += max(0, len(head) - LOG_LINE_LIMIT - 1)
        self._tell()

    def close(self) -> None:
        """The attempt has ended: unfinished lines are complete, later ones are nobody's."""
        with self._lock:
            if self._closed:
                return
            for level, text in self._partial.items():
                self._add(level, text)
            self._partial.clear()
            self._tell_left_out()
            self._closed = True
            if self._dropped_lines or self._dropped_characters:
                note = (
                    f"{self._dropped_lines:,} more lines ({self._dropped_characters:,} characters) were dropped: "
                    f"an attempt's log keeps {LINES:,} lines and {CHARACTERS // 1024 // 1024} MiB"
                )
                self._lines.append((clock.wall(), "WARNING", note))

    def take(self, lines: int, characters: int) -> list[Line]:
        """The oldest lines, at least one where there is any, within the bounds given."""
        taken: list[Line] = []
        with self._lock:
            while self._lines and len(taken) < lines and (not taken or characters > 0):
                line = self._lines.popleft()
                characters -= len(line[2])
                taken.append(line)
        return taken

    def put_back(self, lines: list[Line]) -> None:
        with self._lock:
            self._lines.extendleft(reversed(lines))

    def _is_full(self) -> bool:
        return self._closed or self._seen_lines >= LINES or self._seen_characters >= CHARACTERS

    def _add(self, level: LogLevel, message: str) -> None:
        if self._is_full():
            if not self._closed:
                self._dropped_lines += 1
                self._dropped_characters += len(message)
            return
        if not self._pace.passes():
            self._left_out += 1
            return
        self._tell_left_out()
        self._keep(level, message)

    def _tell_left_out(self) -> None:
        if self._left_out:
            lines = "line was" if self._left_out == 1 else "lines were"
            text = (
                f"{self._left_out:,} {lines} left out here: an attempt may write {BURST:,} lines at once, "
                f"then {PER_SECOND} a second"
            )
            self._left_out = 0
            self._keep("WARNING", text)

    def _keep(self, level: LogLevel, message: str) -> None:
        self._seen_lines += 1
        self._seen_characters += len(message)
        if self._redact is not None:
            message = self._redact(message)
        self._lines.append((clock.wall(), level, clean(message, LOG_LINE_LIMIT)))

    def _tell(self) -> None:
        if self._lines:
            self._on_lines()
