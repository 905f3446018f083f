"""What is going on, on the error stream: one line that changes where a person looks, a line a step elsewhere."""

import sys
import time

REFRESH_SECONDS = 0.1


class Progress:
    def __init__(self) -> None:
        self._live = sys.stderr.isatty()
        self._begin = time.monotonic()
        self._shown = 0.0
        self._about = ""

    def begin(self, about: str) -> None:
        """The next measure."""
        self._about = about
        self._begin = time.monotonic()
        if not self._live:
            print(about, file=sys.stderr, flush=True)

    def tell(self, what: str) -> None:
        now = time.monotonic()
        step = what.split(" ")[0].isalpha()  # counts change all the time, steps do not
        if self._live and (step or now - self._shown > REFRESH_SECONDS):
            self._shown = now
            print(f"\r\033[K{self._about}: {what} ({now - self._begin:.0f} s)", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        """The measure is done."""
        if self._live:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
