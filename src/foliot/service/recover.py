"""Bring back what is stuck: leases whose worker is gone, attempts past their timeout or cancel grace, jobs past their
deadline.

Idempotent steps that any node may take at any time: each change is guarded by the version it was decided from, so of
several nodes one wins and the others change nothing.
"""

import logging
from collections.abc import Sequence

from foliot.clock import Clock
from foliot.domain import events as e
from foliot.domain.changes import Change, Held, Refusal
from foliot.domain.duration import Micros
from foliot.domain.errors import Unreadable
from foliot.domain.job import Lease
from foliot.domain.states import CANCEL_GRACE, transition
from foliot.service.announce import announce
from foliot.service.gate import Gate
from foliot.service.rates import Rate
from foliot.service.wake import Wake
from foliot.store.base import Claimed, Missed, Store
from foliot.wire import ErrorInfo, encode

CHUNK = 500

_log = logging.getLogger("foliot")


class Recover:
    def __init__(self, store: Store, clock: Clock, wake: Wake, gate: Gate, rate: Rate) -> None:
        self._store = store
        self._clock = clock
        self._wake = wake
        self._gate = gate
        self._rate = rate

    async def missed(self) -> int:
        """End the attempts that nobody ends any more; how many."""
        total = 0
        while found := await self._store.missed(self._clock.now(), CHUNK):
            now = self._clock.now()
            ended = await self._carry_out([_end_attempt(one, now) for one in found], now)
            total += ended
            if len(found) < CHUNK or not ended:
                break
        return total

    async def expired(self) -> int:
        """End the jobs that did not start by their deadline; how many."""
        total = 0
        while found := await self._store.expired(self._clock.now(), CHUNK):
            now = self._clock.now()
            decided = [transition(record.row, e.Expire(), now, retry=record.job.retry) for record in found]
            ended = await self._carry_out(decided, now)
            await self._gate.refund(found)
            total += ended
            if len(found) < CHUNK or not ended:
                break
        return total

    async def in_time(self, claimed: Sequence[Claimed]) -> list[Claimed]:
        """Those that may start. A job that was claimed past its deadline, since nobody had ended it yet, ends here."""
        late = [one for one in claimed if _is_late(one)]
        if not late:
            return list(claimed)
        now = self._clock.now()
        await self._carry_out([_expire(one, now) for one in late], now)
        return [one for one in claimed if not _is_late(one)]

    async def unreadable(self, claimed: Sequence[tuple[Claimed, Unreadable]]) -> None:
        """End claimed jobs that no handler can be given, each with the reason."""
        now = self._clock.now()
        first = claimed[0][1]
        _log.error("%d claimed jobs were failed, since they can not be opened: %s", len(claimed), first.detail)
        await self._carry_out([_fail_unread(one, error, now) for one, error in claimed], now)

    async def _carry_out(self, decided: Sequence[Change | Refusal], now: Micros) -> int:
        changes = [change for change in decided if not isinstance(change, Refusal)]
        saved = await self._store.save(changes, now)
        self._rate.add(len(saved.done))
        announce(self._wake, changes, saved)
        return len(saved.done)


def _is_late(claimed: Claimed) -> bool:
    """Only the first start has a deadline; a claim made in time may be handed out later."""
    deadline = claimed.job.deadline
    return deadline is not None and deadline <= claimed.lease.claimed and claimed.lease.attempt == 1


def _expire(claimed: Claimed, now: Micros) -> Change | Refusal:
    """By the nonce alone, so that it counts whatever was noted on the lease since."""
    held = Held(id=claimed.lease.id, nonce=claimed.lease.nonce)
    return transition(held, e.FailFatal(code="expired"), now, retry=claimed.job.retry)


def _fail_unread(claimed: Claimed, error: Unreadable, now: Micros) -> Change | Refusal:
    held = Held(id=claimed.lease.id, nonce=claimed.lease.nonce)
    text = encode(ErrorInfo(code=error.code, message=error.detail)).decode()
    return transition(held, e.FailFatal(code=error.code, error=text), now, retry=claimed.job.retry)


def _end_attempt(missed: Missed, now: Micros) -> Change | Refusal:
    lease = missed.record.row
    assert isinstance(lease, Lease)
    return transition(lease, _what_happened(missed, lease, now), now, retry=missed.record.job.retry)


def _what_happened(missed: Missed, lease: Lease, now: Micros) -> e.Event:
    if not missed.alive:
        return e.WorkerGone()
    if lease.cancel_asked is not None and lease.cancel_asked + CANCEL_GRACE <= now:
        return e.CancelGraceOver()
    return e.Overdue()
