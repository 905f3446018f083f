"""What a person sees: the same commands on a terminal, which a pipe does not show."""

import fcntl
import os
import pty
import signal
import struct
import subprocess
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from click.testing import Result

from tests.cli.conftest import FOLIOT, ServedNode, heed_ctrl_c


class Terminal:
    """A program on a terminal of its own."""

    def __init__(self, process: subprocess.Popen[bytes], descriptor: int) -> None:
        self.process = process
        self.seen = ""
        self._descriptor = descriptor

    def read_until(self, text: str | None) -> str:
        """Until `text` was shown, or the program has closed its terminal."""
        while text is None or text not in self.seen:
            try:
                data = os.read(self._descriptor, 4096)
            except OSError:  # Linux tells the end of a terminal so
                data = b""
            if not data:
                assert text is None, f"{text!r} never came: {self.seen!r}"
                break
            self.seen += data.decode("utf-8", "replace")
        return self.seen

    def write(self, text: str) -> None:
        os.write(self._descriptor, text.encode())


@contextmanager
def terminal(node: ServedNode, *words: str, columns: int = 80) -> Iterator[Terminal]:
    own, theirs = pty.openpty()
    try:
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        environment = {**node.environment, "TERM": "xterm-256color"}
        for name in ("NO_COLOR", "COLUMNS", "LINES"):
            environment.pop(name, None)
        process = subprocess.Popen(
            [*FOLIOT, *words],
            cwd=node.directory,
            env=environment,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            preexec_fn=heed_ctrl_c,
        )
    finally:
        os.close(theirs)
    try:
        yield Terminal(process, own)
    finally:
        process.kill()
        process.wait()
        os.close(own)


def test_a_wait_shows_a_bar_and_the_log_above_it(node: ServedNode) -> None:
    with terminal(node, "submit", "echo", '{"message": "said [bold]aloud[/bold]", "seconds": 0.3}', "--wait") as screen:
        seen = screen.read_until(None)
        assert screen.process.wait() == 0
    assert "said [bold]aloud[/bold]" in seen
    assert "completed" in seen
    assert "\x1b[?25l" in seen  # the bar hides the cursor
    assert seen.rindex("\x1b[?25h") > seen.rindex("\x1b[?25l")  # and gives it back


def test_a_narrow_terminal_never_cuts_an_id(node: ServedNode, foliot: Callable[..., Result]) -> None:
    job_id = foliot("submit", "none", "--queue", "narrow").stdout.strip()
    with terminal(node, "jobs", "ls", "--queue", "narrow", columns=30) as screen:
        assert job_id in screen.read_until(None)
        assert "\x1b[" in screen.seen  # in colour


def test_top_takes_the_screen_and_gives_it_back(node: ServedNode) -> None:
    with terminal(node, "top", "--interval", "0.2") as screen:
        assert "\x1b[?1049h" in screen.read_until("built-in@")
        screen.process.send_signal(signal.SIGINT)
        assert "\x1b[?1049l" in screen.read_until(None)
        assert screen.process.wait() == 130
        assert "Traceback" not in screen.seen


def test_a_change_of_many_is_asked_for(node: ServedNode, foliot: Callable[..., Result]) -> None:
    foliot("submit", "none", "--queue", "asked")
    with terminal(node, "jobs", "cancel", "--queue", "asked") as screen:
        assert "cancel 1 job? [y/N]" in screen.read_until("[y/N]")
        screen.write("y\n")
        assert "1 of 1 job changed" in screen.read_until(None)
        assert screen.process.wait() == 0
