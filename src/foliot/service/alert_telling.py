"""What queues say of their jobs, and jobs of themselves: whom to tell of what, and how many are to start in time."""

from collections.abc import Sequence

import msgspec

from foliot.clock import Clock
from foliot.domain.alert import Notify
from foliot.domain.duration import DAY, SECOND, Micros, parse_duration, show_duration
from foliot.domain.errors import BadInput
from foliot.domain.job import Lane
from foliot.domain.objective import LONGEST, SHORTEST, Objective
from foliot.service.definitions import Definitions
from foliot.store.base import Definition
from foliot.wire import NotifyBody, NotifyInfo, ObjectiveBody, ObjectiveInfo, encode

LONGEST_AFTER = 366 * DAY
ROUNDS = 20


class QueueTelling(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is kept under a queue's name; and under a queue's and a job type's, with `/` between, what jobs of that type
    say of themselves, all of it together, so that the watch knows that it has to look."""

    notify: Notify | None = None
    objective: Objective | None = None


read_telling = msgspec.json.Decoder(QueueTelling).decode
read_notify = msgspec.json.Decoder(Notify).decode


class Telling:
    """What queues say of their jobs, and jobs of themselves."""

    def __init__(self, clock: Clock, definitions: Definitions) -> None:
        self._clock = clock
        self._definitions = definitions

    def of_queue(self, namespace: str, queue: str) -> QueueTelling:
        found = self._definitions.get("queue", namespace, queue)
        return QueueTelling() if found is None else read_telling(found.body)

    async def refresh(self) -> None:
        """Learn what other nodes have changed."""
        await self._definitions.refresh()

    async def check(self, namespace: str, telling: QueueTelling) -> None:
        """Raises `BadInput` where a channel that is named is not there."""
        if telling.notify is not None:
            await check_channels(self._definitions, namespace, telling.notify.channels, "notify.channels")

    async def set_queue(self, namespace: str, queue: str, telling: QueueTelling) -> None:
        if telling == self.of_queue(namespace, queue):
            return
        if telling == QueueTelling():
            await self._definitions.remove("queue", namespace, queue)
        else:
            await self._definitions.put(self._definition(namespace, queue, telling))

    async def expect(self, lane: Lane, text: str | None, *, new: bool = True) -> None:
        """Let the watch know that jobs of the lane say this of themselves. Raises `BadInput` where that is `new` and
        names a channel that is not there."""
        if text is None:
            return
        notify = read_notify(text)
        if new:
            await check_channels(self._definitions, lane.namespace, notify.channels, "notify.channels")
        name = f"{lane.queue}/{lane.job_type}"
        for _ in range(ROUNDS):
            known = self._definitions.get("queue", lane.namespace, name)
            before = Notify() if known is None else read_telling(known.body).notify or Notify()
            merged = _merged(before, notify)
            if merged == before:
                return
            definition = self._definition(lane.namespace, name, QueueTelling(notify=merged))
            saved = await self._definitions.put(definition, expected=0 if known is None else known.version)
            if saved is None:
                await self._definitions.refresh()

    def _definition(self, namespace: str, name: str, telling: QueueTelling) -> Definition:
        return Definition(
            kind="queue", namespace=namespace, name=name, body=encode(telling).decode(), created=self._clock.now()
        )


async def check_channels(definitions: Definitions, namespace: str, channels: Sequence[str], field: str) -> None:
    """Raises `BadInput` for the first that is not there; one may just have been made on another node."""
    if any(definitions.get("channel", namespace, channel) is None for channel in channels):
        await definitions.refresh()
    for place, channel in enumerate(channels):
        if definitions.get("channel", namespace, channel) is None:
            raise BadInput.at(f"{field}[{place}]", f"there is no channel {channel!r}; make it first: POST /channels")


def parse_notify(body: NotifyBody, *, of_queue: bool = False) -> Notify:
    """Raises `BadInput`."""
    if "slo" in body.on and not of_queue:
        raise BadInput.at("notify.on", "slo is told of queues, not of single jobs")
    if body.on and not body.channels:
        raise BadInput.at("notify.channels", "is required: the names of the channels by which to tell")
    if ("late" in body.on) != (body.late_after is not None):
        raise BadInput.at("notify.late_after", "goes with late in notify.on, and late with it")
    late_after = None if body.late_after is None else parse_length(body.late_after, "notify.late_after")
    return Notify(on=tuple(dict.fromkeys(body.on)), late_after=late_after, channels=tuple(dict.fromkeys(body.channels)))


def write_notify(body: NotifyBody) -> str:
    """As a job keeps it. Raises `BadInput`."""
    return encode(parse_notify(body)).decode()


def parse_objective(body: ObjectiveBody) -> Objective:
    """Raises `BadInput`."""
    within = parse_length(body.within, "objective.within")
    over = parse_duration(body.over, "objective.over")
    if not SHORTEST <= over <= LONGEST:
        raise BadInput.at("objective.over", "must be from an hour to 30 days")
    return Objective(target=body.target, within=within, over=over)


def show_notify(notify: Notify | None) -> NotifyInfo | None:
    if notify is None:
        return None
    late_after = None if notify.late_after is None else show_duration(notify.late_after)
    return NotifyInfo(on=list(notify.on), late_after=late_after, channels=list(notify.channels))


def show_objective(objective: Objective | None) -> ObjectiveInfo | None:
    if objective is None:
        return None
    return ObjectiveInfo(
        target=objective.target, within=show_duration(objective.within), over=show_duration(objective.over)
    )


def parse_length(value: float | str, field: str) -> Micros:
    length = parse_duration(value, field)
    if not SECOND // 1000 <= length <= LONGEST_AFTER:
        raise BadInput.at(field, "must be from 1 ms to a year")
    return length


def _merged(one: Notify, other: Notify) -> Notify:
    """What both say together, as far as the watch has to know it."""
    times = [each.late_after for each in (one, other) if each.late_after is not None]
    on = tuple(dict.fromkeys((*one.on, *other.on)))
    return Notify(on=tuple(sorted(on)), late_after=min(times, default=None))
