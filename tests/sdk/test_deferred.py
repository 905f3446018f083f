"""Calls that are put off inside one process: when they are made, what becomes of them, how they end."""

import asyncio
import itertools
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextvars import ContextVar
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from foliot import Foliot
from foliot.clock import monotonic
from foliot.sdk.deferred import SECOND, DeferredLine
from foliot.sdk.deferred_calls import THREADS, DeferredCalls
from foliot.sdk.loop_thread import LoopThread

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 15.0  # of a test that waits for what must happen


class Clock:
    """Stands still unless it is set."""

    def __init__(self) -> None:
        self.time = 0

    def now(self) -> int:
        return self.time


class Desk:
    """Deferred calls whose time a test sets."""

    def __init__(self, threads: int = THREADS) -> None:
        self.clock = Clock()
        self.thread = LoopThread()
        self.calls = DeferredCalls(self.thread, threads=threads, now=self.clock.now)

    def set(self, seconds: float) -> None:
        self.clock.time = round(seconds * SECOND)
        self.calls.look()


@pytest.fixture
def desk() -> Iterator[Desk]:
    desk = Desk()
    yield desk
    desk.calls.close()
    desk.thread.close()


def drain(line: DeferredLine) -> list[Any]:
    with line.lock:
        return [deferred.call() for deferred in iter(line.pop_due, None)]


# The line


def test_calls_leave_the_line_by_time_and_then_in_the_order_of_adding() -> None:
    clock = Clock()
    line = DeferredLine(clock.now)
    for number, delay in enumerate([3, 1, 2, 1, 0, 3, 2]):
        _ = line.add(delay, lambda number=number: number)
    clock.time = 2 * SECOND
    assert drain(line) == [4, 1, 3, 2, 6]
    assert len(line) == 2
    clock.time = 3 * SECOND
    assert drain(line) == [0, 5]


def test_one_that_was_taken_back_is_stepped_over() -> None:
    clock = Clock()
    line = DeferredLine(clock.now)
    handles = [line.add(1, lambda number=number: number) for number in range(5)]
    assert [handle.cancel() for handle in handles[::2]] == [True] * 3
    assert len(line) == 2
    clock.time = SECOND
    assert drain(line) == [1, 3]
    assert len(line) == 0


def test_calls_that_were_taken_back_do_not_pile_up() -> None:
    line = DeferredLine(Clock().now)
    kept = line.add(2000, print)
    for _ in range(10_000):
        line.add(1000, print).cancel()
    assert len(line) == 1
    assert len(line._heap) < 200
    assert not kept.done()


def test_a_handle_keeps_nothing_alive_once_its_call_is_over() -> None:
    line = DeferredLine(Clock().now)
    argument = [1]
    handle = line.add(1, print, argument)
    before = sys.getrefcount(argument)
    handle.cancel()
    assert sys.getrefcount(argument) == before - 1


@pytest.mark.parametrize("delay", [-1, float("nan"), float("inf"), timedelta(seconds=-1)])
def test_a_delay_that_is_none_is_refused(delay: Any) -> None:
    with pytest.raises(ValueError, match="delay is"):
        _ = DeferredLine(Clock().now).add(delay, print)


def test_what_can_not_be_called_is_refused() -> None:
    with pytest.raises(TypeError, match="can not be called"):
        _ = DeferredLine(Clock().now).add(1, 3)  # type: ignore[arg-type]


# When calls are made


def test_a_call_is_made_at_its_time_and_not_before(desk: Desk) -> None:
    call = desk.calls.add(60, lambda word, *, loud: word + loud, "hey", loud="!")
    earlier = desk.calls.add(timedelta(seconds=59.999999), lambda: call.done())
    desk.set(59.999999)
    assert earlier.result(PATIENCE) is False
    assert len(desk.calls) == 1
    desk.set(60)
    assert call.result(PATIENCE) == "hey!"
    assert call.done()
    assert not call.cancelled()


def test_one_that_is_due_earlier_does_not_wait_for_those_that_were_added_before(desk: Desk) -> None:
    late = desk.calls.add(3600, print)
    assert desk.calls.add(0, lambda: "now").result(PATIENCE) == "now"
    assert not late.done()


def test_without_a_test_clock_time_passes_by_itself() -> None:
    app = Foliot("http://127.0.0.1:1")
    begin = monotonic()
    delays = (0.03, 0.01, 0.02)
    calls = [app.call_later(delay, monotonic) for delay in delays]
    for call, delay in zip(calls, delays, strict=True):
        assert call.result(PATIENCE) - begin >= delay * SECOND
    app.close()


def test_a_slow_call_does_not_hold_up_the_others(desk: Desk) -> None:
    gate = threading.Event()
    slow = [desk.calls.add(0, gate.wait, PATIENCE) for _ in range(THREADS - 1)]
    assert desk.calls.add(0, lambda: "through").result(PATIENCE) == "through"
    assert not any(call.done() for call in slow)
    gate.set()
    assert all(call.result(PATIENCE) for call in slow)


def test_where_every_thread_is_busy_calls_wait_in_their_order_and_can_be_taken_back() -> None:
    calls = Desk(threads=1).calls
    begun, gate = threading.Event(), threading.Event()
    order: list[int] = []

    def hold() -> None:
        begun.set()
        gate.wait(PATIENCE)

    _ = calls.add(0, hold)
    begun.wait(PATIENCE)
    rest = [calls.add(0, order.append, number) for number in range(20)]
    assert rest[7].cancel()
    gate.set()
    rest[-1].result(PATIENCE)
    assert order == [number for number in range(20) if number != 7]
    calls.close()


def test_calls_come_from_many_threads_at_once_and_each_is_made_once(desk: Desk) -> None:
    made = itertools.count()
    handles: list[Any] = []

    def add() -> None:
        for number in range(500):
            handle = desk.calls.add(number % 7, next, made)
            handles.append(handle)
            if number % 5 == 0:
                handle.cancel()

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    desk.set(10)
    left = [handle for handle in handles if not handle.cancelled()]
    assert sorted(handle.result(PATIENCE) for handle in left) == list(range(len(left)))
    assert next(made) == len(left)


def test_a_call_sees_the_context_in_which_it_was_put_off(desk: Desk) -> None:
    word: ContextVar[str] = ContextVar("word", default="none")
    word.set("outer")
    call = desk.calls.add(0, word.get)
    word.set("later")
    assert call.result(PATIENCE) == "outer"


# What becomes of them


def test_an_exception_goes_to_the_handle_and_to_the_log(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> None:
        raise LookupError("nothing there")

    call = desk.calls.add(0, fail)
    for _ in range(2):
        with pytest.raises(LookupError, match="nothing there"):
            call.result(PATIENCE)
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert "fail failed" in record.getMessage()
    assert record.exc_info is not None
    with pytest.raises(SystemExit):
        desk.calls.add(0, sys.exit, 3).result(PATIENCE)
    assert desk.calls.add(0, lambda: "still there").result(PATIENCE) == "still there"


def test_a_call_can_be_taken_back_until_it_begins(desk: Desk) -> None:
    begun, gate = threading.Event(), threading.Event()

    def work() -> bool:
        begun.set()
        return gate.wait(PATIENCE)

    running, waiting = desk.calls.add(0, work), desk.calls.add(5, print)
    begun.wait(PATIENCE)
    assert not running.cancel()
    assert waiting.cancel()
    assert waiting.cancel()
    assert waiting.cancelled()
    assert waiting.done()
    with pytest.raises(CancelledError, match="taken back"):
        waiting.result()
    gate.set()
    assert running.result(PATIENCE)
    assert not running.cancel()


def test_waiting_has_an_end_and_the_call_goes_on(desk: Desk) -> None:
    call = desk.calls.add(60, lambda: "made")
    with pytest.raises(TimeoutError):
        call.result(0)
    desk.set(60)
    assert call.result(PATIENCE) == "made"


def test_a_coroutine_function_runs_on_the_apps_own_event_loop(desk: Desk) -> None:
    async def where() -> object:
        await asyncio.sleep(0)
        return asyncio.get_running_loop()

    async def fail() -> None:
        raise LookupError("there")

    assert desk.calls.add(0, where).result(PATIENCE) is desk.thread.loop
    with pytest.raises(LookupError):
        desk.calls.add(0, fail).result(PATIENCE)


async def test_inside_an_event_loop_a_handle_is_awaited(desk: Desk) -> None:
    async def where() -> object:
        return asyncio.get_running_loop()

    async def fail() -> None:
        raise LookupError("there")

    call = desk.calls.add(60, where)
    with pytest.raises(RuntimeError, match="await the call itself"):
        call.result()
    desk.set(60)
    assert await call is asyncio.get_running_loop()
    assert await call is call.result()
    assert await desk.calls.add(0, threading.get_ident) != threading.get_ident()
    with pytest.raises(LookupError):
        await desk.calls.add(0, fail)


async def test_who_gives_up_awaiting_leaves_the_call_as_it_is(desk: Desk) -> None:
    call = desk.calls.add(60, lambda: "made")

    async def wait() -> None:
        await call

    waiting = asyncio.create_task(wait())
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    assert not call.done()
    desk.set(60)
    assert await call == "made"


def test_an_event_loop_that_is_gone_is_told(desk: Desk) -> None:
    async def work() -> None: ...

    async def add() -> Any:
        return desk.calls.add(60, work)

    call = asyncio.run(add())
    desk.set(60)
    with pytest.raises(RuntimeError, match="closed"):
        call.result(PATIENCE)


# The end


def test_close_drops_what_is_not_due_and_says_so(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    waiting = [desk.calls.add(60, print) for _ in range(3)]
    waiting[0].cancel()
    assert desk.calls.close() == 2
    assert all(call.cancelled() for call in waiting)
    assert "deferred calls dropped, since the app was closed before their time: 2" in caplog.text
    assert desk.calls.close() == 0
    assert desk.calls.add(0, lambda: "anew").result(PATIENCE) == "anew"


def test_close_waits_for_a_call_that_is_being_made(desk: Desk) -> None:
    begun, gate, order = threading.Event(), threading.Event(), []

    def work() -> None:
        begun.set()
        gate.wait(PATIENCE)
        order.append("made")

    _ = desk.calls.add(0, work)
    begun.wait(PATIENCE)

    def close() -> None:
        desk.calls.close()
        order.append("closed")

    closing = threading.Thread(target=close)
    closing.start()
    gate.set()
    closing.join(PATIENCE)
    assert order == ["made", "closed"]


def test_close_can_wait_for_every_call_and_takes_no_new_ones(desk: Desk) -> None:
    dropped: list[int] = []
    call, taken_back = desk.calls.add(60, refused_inside, desk.calls), desk.calls.add(90, print)
    closing = threading.Thread(target=lambda: dropped.append(desk.calls.close(wait=True)))
    closing.start()
    desk.set(60)
    assert "being closed" in call.result(PATIENCE)
    taken_back.cancel()
    closing.join(PATIENCE)
    assert dropped == [0]


def refused_inside(calls: DeferredCalls) -> str:
    while True:
        try:
            calls.add(0, print).cancel()
        except RuntimeError as error:
            return str(error)


def test_a_call_may_close_what_it_runs_in(desk: Desk) -> None:
    assert desk.calls.add(0, desk.calls.close).result(PATIENCE) == 0


async def test_an_app_is_closed_from_an_event_loop_with_its_calls(caplog: pytest.LogCaptureFixture) -> None:
    app = Foliot("http://127.0.0.1:1")
    begun = asyncio.Event()

    async def work() -> str:
        begun.set()
        return "made"

    waiting, made = app.aio.call_later(3600, print), app.call_later(0, work)
    await begun.wait()
    await app.aio.close()
    assert waiting.cancelled()
    assert await made == "made"


def run(code: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-c", code]
    return subprocess.run(
        command, cwd=ROOT, env={**os.environ}, capture_output=True, text=True, timeout=15, check=False
    )


def test_a_program_that_ends_finishes_the_call_it_makes_and_drops_the_rest() -> None:
    done = run(
        "import threading, time\nfrom foliot import Foliot\napp = Foliot()\nbegun = threading.Event()\n"
        "def work():\n    begun.set()\n    time.sleep(0.05)\n    print('made')\n"
        "app.call_later(0, work)\napp.call_later(3600, print, 'never')\nbegun.wait()\n"
    )
    assert (done.returncode, done.stdout) == (0, "made\n")
    assert done.stderr == "deferred calls dropped, since the app was closed before their time: 1\n"


def test_a_program_without_deferred_calls_starts_no_thread_for_them() -> None:
    done = run("import threading\nfrom foliot import Foliot\nFoliot()\nprint(threading.active_count())")
    assert (done.stdout, done.stderr) == ("1\n", "")


def test_a_fork_leaves_its_parents_calls_to_the_parent() -> None:
    done = run(
        "import os, sys\nfrom foliot import Foliot\napp = Foliot()\n"
        "call = app.call_later(0.2, lambda: print('parent', flush=True))\n"
        "child = os.fork()\nif child == 0:\n"
        "    print(call.cancelled(), app.call_later(0, lambda: 'own').result(9), flush=True)\n    os._exit(0)\n"
        "os.waitpid(child, 0)\ncall.result(9)"
    )
    assert (done.stdout, done.stderr) == ("True own\nparent\n", "")
