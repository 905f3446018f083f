"""Everything that runs starts, says so, bears errors, and stops."""

import asyncio
import logging

import pytest

from foliot.domain.errors import Unavailable
from foliot.node import running as running_module
from foliot.node.running import Alarm, Running


class Rounds(Running):
    """Fails in its first rounds, then says that it is there."""

    def __init__(self, *errors: Exception) -> None:
        super().__init__()
        self.errors = list(errors)
        self.there = asyncio.Event()
        self.cut_off = False

    async def round(self) -> None:
        if self.errors:
            raise self.errors.pop(0)
        self.there.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cut_off = True
            raise


async def test_an_error_ends_a_round_and_not_the_loop(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(running_module, "PAUSE_AFTER_ERROR", 0)
    rounds = Rounds(Unavailable("the store is away"), RuntimeError("a mistake of ours"))
    rounds.start()
    await rounds.there.wait()
    await rounds.stop()
    ours = [record for record in caplog.records if record.name == "foliot.node"]
    assert [(record.levelno, record.exc_info is not None) for record in ours] == [
        (logging.WARNING, False), (logging.ERROR, True),
    ]  # fmt: skip
    assert ours[0].getMessage() == "Rounds: the store is away; trying again"


async def test_stop_cuts_a_round_off_and_leaves_no_task_behind() -> None:
    before = asyncio.all_tasks()
    rounds = Rounds()
    await rounds.stop()  # not started: nothing to do
    rounds.start()
    await rounds.started.wait()
    await rounds.there.wait()
    await rounds.stop()
    assert rounds.cut_off
    assert asyncio.all_tasks() == before
    await rounds.stop()


async def test_an_alarm_waits_for_its_time_or_a_ring() -> None:
    alarm = Alarm()
    await alarm.wait(0.001)
    await alarm.wait(0)
    await alarm.wait(-1)
    alarm.ring()
    await alarm.wait(1000)
    waiting = asyncio.create_task(alarm.wait(1000))
    await asyncio.sleep(0)
    alarm.ring()
    await waiting


async def test_an_alarm_that_rings_while_its_duty_is_stopped_does_not_keep_it() -> None:
    alarm = Alarm()
    waiting = asyncio.create_task(alarm.wait(1000))
    await asyncio.sleep(0)
    alarm.ring()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
