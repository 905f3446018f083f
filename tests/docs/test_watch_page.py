"""How to watch jobs: what the page tells people to type does what it says."""

import io
from contextlib import redirect_stdout
from typing import Any

from foliot import Foliot
from tests.docs.pages import blocks
from tests.docs.shell import Reader
from tests.processes import eventually

PAGE = "docs/how-to/watch-jobs.md"


def test_a_terminal_shows_every_change_as_the_page_has_it(reader: Reader) -> None:
    (typed,) = blocks(PAGE, "sh")
    changes = reader.folder / "changes.txt"
    until = "until [ $(wc -l < changes.txt) -ge 6 ]; do sleep 0.05; done\nkill $!\n"
    shown = reader.type(f"export FOLIOT_URL={reader.url}\n{typed}{until}")
    assert "hello" in shown
    assert shown.endswith("ended with 1\n")
    lines = [line.split() for line in changes.read_text().splitlines()]
    sample = [line.split() for line in blocks(PAGE, "text")[0].splitlines()]
    assert [(line[1], *line[3:5]) for line in lines[:3]] == [(line[1], *line[3:5]) for line in sample]
    assert lines[1][6:] == sample[1][6:] == ["after", "it", "was", "due"]
    assert [line[1] for line in lines[3:]] == ["queued", "running", "failed"]


def test_the_pages_python_waits_and_follows(reader: Reader) -> None:
    wait, follow = blocks(PAGE, "python")
    app = Foliot(reader.url, reader.key)
    names: dict[str, Any] = {"app": app}
    try:
        with redirect_stdout(io.StringIO()) as waited:
            exec(wait, names)
        assert waited.getvalue() == "completed\n{'completed'}\n"
        app.submit("echo", queue="mail").wait(timeout=10)
        app.submit("echo", {"fail": 1}, queue="mail", retry=1).wait(timeout=10)
        with redirect_stdout(io.StringIO()) as followed:
            exec(follow, names)
        assert followed.getvalue() == "completed echo\nfailed echo\ncompleted after that\n"
    finally:
        app.close()


def test_the_stream_has_the_shape_that_the_page_shows(reader: Reader) -> None:
    sample = blocks(PAGE, "text")[1].splitlines()
    with reader.client() as client:
        told = client.thread.iterate(
            lambda: client.aio.transport.stream("/api/v1/events?after=start", client.aio.headers)  # type: ignore[attr-defined]
        )
        first = next(told)
        assert first.startswith(b"id: ")
        assert first.endswith(b"\n\n")
        app = Foliot(reader.url, reader.key)
        app.submit("echo").wait(timeout=10)
        app.close()
        text = b""

        def read() -> bool:
            nonlocal text
            text += next(told)
            return b"foliot.job.completed" in text and text.endswith(b"\n\n")

        eventually(read, "the end of the job")
        told.close()  # type: ignore[attr-defined]
    last = text.decode().strip().split("\n\n")[-1].splitlines()
    assert [line.partition(":")[0] for line in last] == [line.partition(":")[0] for line in sample]
    assert last[1] == sample[1]
