"""The conversation with the node: which call is made when, and what its answer sets going.

- A *poll* asks for all that is free and waits at the node. While no slot is free it asks for nothing and waits for
  `stop`.
- A *quick* call does not wait: it hands in what is ready while a poll is open, and asks for what is free and no other
  call asks for. Under load polls are answered at once, and the two are two streams: one fetches while the other's
  jobs run.

Each slot, and each part of any other resource, is asked for by one call at a time. A call that failed puts back what
it carried, and the next one names what this worker `holds`, so that jobs in a lost answer are sent again.
"""

import asyncio
import logging
import random
from collections.abc import Mapping
from typing import cast

import msgspec

from foliot.domain.needs import SLOT, UNIT, show_amounts
from foliot.wire import ExchangeAnswer, ExchangeBody
from foliot.worker.lease import Lease
from foliot.worker.node import CallRefused, LeaseLost, Node, Unreachable, WorkerRefused
from foliot.worker.outbox import Batch, Outbox
from foliot.worker.runner import Runner

FIRST_BACKOFF, LONGEST_BACKOFF = 0.1, 5.0
TIMER_EARLY = 0.001  # uvloop counts in whole milliseconds: a wake before its time would be the last one

_log = logging.getLogger("foliot.worker")


class Backoff:
    """How long to wait after failures in a row: nothing after the first, then ever longer, spread so that workers
    that lost the same node do not come back in step. Never less than the node asks for."""

    def __init__(self) -> None:
        self._chance = random.Random()
        self._failures = 0

    def reset(self) -> None:
        self._failures = 0

    def next(self, asked: float = 0.0) -> float:
        self._failures += 1
        longest = 0.0 if self._failures == 1 else min(LONGEST_BACKOFF, FIRST_BACKOFF * 2 ** min(self._failures, 10))
        return max(longest * self._chance.uniform(0.5, 1.0), asked * self._chance.uniform(1.0, 1.25))


class Call(msgspec.Struct, eq=False):
    """One exchange under way."""

    batch: Batch
    free: dict[str, int]
    wait: float
    holds: bool
    task: asyncio.Task[None] | None = None


class Exchange:
    """Runs from a registration to the loss of its lease, or until `finish` was called and all is handed in."""

    def __init__(self, node: Node, outbox: Outbox, runner: Runner, *, slots: int) -> None:
        self._node = node
        self._outbox = outbox
        self._runner = runner
        self._share = (slots + 1) // 2 * UNIT
        self._lease: Lease | None = None
        self._loop = asyncio.get_running_loop()
        self._wake = asyncio.Event()
        self._calls: set[Call] = set()
        self._failure: LeaseLost | WorkerRefused | None = None
        self._backoff = Backoff()
        self._not_before = 0.0
        self._no_empty_poll_before = 0.0
        self._name_holds = False
        self._acknowledged_meanwhile: set[str] = set()
        self._full = False  # the last answer had as many jobs as were asked for: there are more
        self._finishing = False
        self.drain_asked = asyncio.Event()

    def wake(self) -> None:
        self._wake.set()

    def lose(self, why: str) -> None:
        """Somebody else found out that the lease is gone."""
        self._fail(LeaseLost(why))

    def refuse(self, why: str) -> None:
        self._fail(WorkerRefused(why))

    def stop_fetching(self) -> None:
        """No new jobs from now on. Open polls are broken off; what they may have brought is asked for by `holds`."""
        for call in list(self._calls):
            if call.wait and call.task is not None:
                call.task.cancel()
        self._wake.set()

    def finish(self) -> None:
        """End as soon as the outbox is empty."""
        self._finishing = True
        self.stop_fetching()

    @property
    def is_needed(self) -> bool:
        """Whether a worker that ends now would lose something by not waiting for it."""
        return self._lease is not None or not self._outbox.is_empty

    async def run(self, lease: Lease) -> None:
        """Raises LeaseLost or WorkerRefused; returns after `finish`."""
        self._lease = lease
        self._failure = None
        self._not_before = 0.0
        try:
            while not self._is_over():
                self._wake.clear()
                self._runner.arm()
                self._start_calls(lease)
                await self._wake.wait()
        finally:
            tasks = [call.task for call in self._calls if call.task is not None]
            for task in tasks:
                task.cancel()
            if tasks:
                await asyncio.wait(tasks)
            self._lease = None
        if self._failure is not None:
            raise self._failure

    def _is_over(self) -> bool:
        return self._failure is not None or (self._finishing and self._outbox.is_empty and not self._calls)

    def _start_calls(self, lease: Lease) -> None:
        now = self._loop.time()
        if now < self._not_before:
            return
        free = self._runner.free
        asked = False
        demanding_poll = any_poll = quick = False
        for call in self._calls:
            if call.free:
                asked = True
                free = _less(free, call.free)
            demanding_poll |= bool(call.wait and call.free)
            any_poll |= bool(call.wait)
            quick |= not call.wait
        if not self._finishing and not demanding_poll:
            if free.get(SLOT):
                demand = free | {SLOT: min(free[SLOT], self._share)} if self._full else free
                free = _less(free, demand)
                self._call(lease, self._outbox.take(whole=False), demand, lease.interval)
            elif not any_poll and not asked and now >= self._no_empty_poll_before:
                self._call(lease, self._outbox.take(whole=False), {}, lease.interval)
        if not quick:
            batch = self._outbox.take(whole=True)
            if batch or (free.get(SLOT) and self._full) or self._name_holds:
                self._call(lease, batch, free, 0.0)

    def _call(self, lease: Lease, batch: Batch, free: dict[str, int], wait: float) -> None:
        call = Call(batch=batch, free=free, wait=wait, holds=self._name_holds)
        self._name_holds = False
        self._calls.add(call)
        call.task = self._loop.create_task(self._exchange(lease, call))
        call.task.add_done_callback(lambda _: self._over(call))

    async def _exchange(self, lease: Lease, call: Call) -> None:
        batch = call.batch
        body = ExchangeBody(
            reports=batch.reports(),
            logs=batch.logs(),
            free=cast(dict[str, float | str], show_amounts(call.free.items())),
            wait=call.wait,
            holds=[*self._runner.attempts, *self._outbox.tokens] if call.holds else None,
        )
        sent = lease.sending()
        began = self._loop.time()
        try:
            answer = await self._node.exchange(lease.worker_id, body, max(2.0, min(15.0, lease.seconds / 2)))
        except Unreachable as error:
            self._failed(call, str(error), error.wait)
        except msgspec.MsgspecError as error:
            self._failed(call, f"an answer of {self._node.url} can not be read: {error}")
        except CallRefused as error:
            lease.answered(sent)
            self._refused(call, str(error))
        except (LeaseLost, WorkerRefused) as error:
            self._outbox.put_back(batch)
            self._fail(error)
        except asyncio.CancelledError:  # by `stop_fetching`, or the end of `run`: not one of ours that waits for it
            self._outbox.put_back(batch)
            self._name_holds = True
        except Exception as error:
            _log.exception("an exchange failed in an unexpected way")
            self._failed(call, repr(error))
        else:
            lease.answered(sent)
            self._backoff.reset()
            self._answered(call, answer)
            if call.wait and not call.free and self._loop.time() - began < call.wait / 2:
                # Its answer came early and nothing was free: do not ask again and again.
                pause = min(1.0, lease.interval)
                self._no_empty_poll_before = self._loop.time() + pause
                self._loop.call_later(pause + TIMER_EARLY, self._wake.set)
        finally:
            self._calls.discard(call)
            if not any(other.holds for other in self._calls):
                self._acknowledged_meanwhile.clear()
            self._wake.set()

    def _over(self, call: Call) -> None:
        if call in self._calls:  # broken off before its first step: it was never sent
            self._calls.discard(call)
            self._outbox.put_back(call.batch)
            self._name_holds |= call.holds
            self._wake.set()

    def _answered(self, call: Call, answer: ExchangeAnswer) -> None:
        if any(other.holds for other in self._calls):
            self._acknowledged_meanwhile.update(ended.report.token for ended in call.batch.ended)
        self._outbox.acknowledge(call.batch)
        if slots := call.free.get(SLOT):
            self._full = len(answer.jobs) * UNIT >= slots
        self._calls.discard(call)  # before `begin`: its slots are taken by the jobs now
        if answer.jobs:
            if self._acknowledged_meanwhile:
                self._runner.begin(job for job in answer.jobs if job.token not in self._acknowledged_meanwhile)
            else:
                self._runner.begin(answer.jobs)
        self.heed(answer)

    def heed(self, answer: ExchangeAnswer) -> None:
        """What an answer says besides jobs; also for the heartbeat's."""
        for stop in answer.stop:
            self._runner.cancel(stop.token)
        for rejected in answer.rejected:
            _log.warning("job %s, attempt %d: not taken: %s", rejected.job_id, rejected.attempt, rejected.reason)
            self._runner.fence(rejected.job_id, rejected.attempt)
        if answer.drain:
            self.drain_asked.set()

    def _failed(self, call: Call, why: str, asked: float = 0.0) -> None:
        self._outbox.put_back(call.batch)
        self._name_holds = True
        pause = self._backoff.next(asked)
        if pause:
            _log.warning("%s; trying again in %.1f s", why, pause)
            self._not_before = max(self._not_before, self._loop.time() + pause)
            self._loop.call_later(pause + TIMER_EARLY, self._wake.set)

    def _refused(self, call: Call, why: str) -> None:
        if call.batch:
            given_up = self._outbox.refuse(call.batch, why)
            if given_up is not None:
                _log.error("the node does not take a report or log line, it is dropped: %s", why)
        else:
            self._fail(WorkerRefused(f"{self._node.url} does not take an empty exchange: {why}"))

    def _fail(self, error: LeaseLost | WorkerRefused) -> None:
        self._failure = self._failure or error
        self._wake.set()


def _less(free: Mapping[str, int], asked: Mapping[str, int]) -> dict[str, int]:
    """What is left when a call has asked for its part. A node may have given more than a call asked for, so that there
    is less free than the calls ask for together."""
    return {name: left for name, amount in free.items() if (left := amount - asked.get(name, 0)) > 0}
