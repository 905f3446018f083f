"""Duties for queues with rules of their own: jobs are put in order, rates let the next one start at its moment, and
what the node knows of the rules is kept fresh."""

from foliot.clock import Clock
from foliot.domain.duration import SECOND
from foliot.node.running import Alarm, Running
from foliot.service.dispatch import Dispatch
from foliot.service.gate import Gate
from foliot.service.wake import Wake

REFRESH_EVERY = 5 * SECOND


class Order(Running):
    """Puts what has become ready in order, where its queue has another policy than `priority`."""

    def __init__(self, gate: Gate) -> None:
        super().__init__()
        self._gate = gate
        self._alarm = Alarm()
        gate.on_disorder.append(self._alarm.ring)

    async def round(self) -> None:
        await self._gate.put_in_order()
        await self._alarm.wait(REFRESH_EVERY / SECOND)


class Pace(Running):
    """Flags queues again at the moment at which their rate lets the next job start."""

    def __init__(self, clock: Clock, gate: Gate) -> None:
        super().__init__()
        self._clock = clock
        self._gate = gate
        self._alarm = Alarm()
        gate.on_moment.append(self._alarm.ring)

    async def round(self) -> None:
        self._gate.let_in()
        now = self._clock.now()
        await self._alarm.wait(((self._gate.next_moment or now + REFRESH_EVERY) - now) / SECOND)


class Rules(Running):
    """Learns the rules anew when somebody has changed them, here or on another node, and every few seconds; then looks
    at all lanes, since what was held may start now."""

    def __init__(self, wake: Wake, gate: Gate, dispatch: Dispatch) -> None:
        super().__init__()
        self._gate = gate
        self._dispatch = dispatch
        self._changed = True
        self._alarm = Alarm()
        wake.on_rules.append(lambda _tell: self._hint())

    def _hint(self) -> None:
        self._changed = True
        self._alarm.ring()

    async def round(self) -> None:
        changed, self._changed = self._changed, False
        await self._gate.refresh()
        if changed:
            await self._dispatch.look()
        if not self._changed:
            await self._alarm.wait(REFRESH_EVERY / SECOND)
