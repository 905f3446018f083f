"""One thing that happened, as those who watch see it: told to subscribers, webhooks and alert rules alike."""

from collections.abc import Mapping, Sequence

import msgspec

from foliot.domain.duration import Micros
from foliot.domain.feed import Batch, Entry, Happening
from foliot.domain.ids import WORKER, JobKey, show
from foliot.domain.job import Lane, Record
from foliot.domain.status import STATUSES, is_ended
from foliot.service.sealing import Sealer
from foliot.service.view import show_job, shown_id
from foliot.store.base import Store
from foliot.wire import CloudEvent, JobInfo, to_time

SOURCE = "/foliot"
_decode = msgspec.json.Decoder(dict).decode


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """`kind` is `job.<status>`, or that of a happening. `lane` and `entry` are there for a job's; `record` is the job
    as it was loaded, perhaps later than the event, and None where it is not there any more."""

    event_id: str
    time: Micros
    kind: str
    namespace: str | None
    subject: str
    lane: Lane | None = None
    entry: Entry | None = None
    happening: Happening | None = None
    record: Record | None = None

    @property
    def status(self) -> str:
        """The job's, "" for what is not about a job."""
        return "" if self.entry is None else STATUSES[self.entry.status]

    def cloud_event(self, sealer: Sealer) -> CloudEvent:
        return CloudEvent(
            id=self.event_id,
            source=f"{SOURCE}/{self.namespace}" if self.namespace else SOURCE,
            type=f"foliot.{self.kind}",
            subject=self.subject,
            time=to_time(self.time),
            data=self._data(sealer),
        )

    def _data(self, sealer: Sealer) -> JobInfo | dict[str, object]:
        if self.record is not None and self.entry is not None:
            return self._job_then(self.record, self.entry, sealer)
        told: dict[str, object] = _decode(self.happening.data if self.happening is not None else "{}")
        return told

    def _job_then(self, record: Record, entry: Entry, sealer: Sealer) -> JobInfo:
        """The job as it was at the event: as it was loaded, where it has not moved on since; else what the event itself
        knows instead."""
        info = show_job(record, sealer, whole=False)
        if record.row.version == entry.version and info.status == self.status:
            return info
        return msgspec.structs.replace(
            info,
            status=self.status,
            reason=entry.reason,
            attempt=entry.attempt,
            retries=max(0, entry.counted - 1),
            start_time=None if entry.started is None else to_time(entry.started),
            end_time=to_time(self.time) if is_ended(self.status) else None,
            last_updated=to_time(self.time),
            worker_id=None if entry.worker is None else show(WORKER, entry.worker),
            cancel_requested=False,
            progress=None,
            version=entry.version,
        )


class Told(msgspec.Struct, frozen=True):
    """An event and its place among all of its batch. Happenings come first: they are there whatever was asked for."""

    place: int
    event: Event


async def lanes_of(store: Store, batches: Sequence[Batch]) -> dict[int, Lane]:
    """The lanes of all entries; one this process has not met is learnt from a job of it."""
    wanted = {entry.lane_id: entry.id for batch in batches for entry in batch.entries}
    unknown = [key for lane_id, key in wanted.items() if store.lane(lane_id) is None]
    if unknown:
        await store.load(unknown)
    return {lane_id: lane for lane_id in wanted if (lane := store.lane(lane_id)) is not None}


def events_of(batch: Batch, lanes: Mapping[int, Lane], mask: int) -> list[Told]:
    """The events of a batch: all happenings, and entries of the statuses asked for. Without records and a job's id,
    until `with_records` has looked."""
    told = []
    for place, happening in enumerate(batch.happenings):
        event = Event(
            event_id=f"{batch.writer:x}.{batch.number:x}.{place:x}",
            time=batch.time,
            kind=happening.kind,
            namespace=happening.namespace,
            subject=happening.subject,
            happening=happening,
        )
        told.append(Told(place, event))
    for place, entry in enumerate(batch.entries, start=len(batch.happenings)):
        if mask >> entry.status & 1 and (lane := lanes.get(entry.lane_id)) is not None:
            event = Event(
                event_id=f"{batch.writer:x}.{batch.number:x}.{place:x}",
                time=batch.time,
                kind=f"job.{STATUSES[entry.status]}",
                namespace=lane.namespace,
                subject="",
                lane=lane,
                entry=entry,
            )
            told.append(Told(place, event))
    return told


async def with_records(store: Store, events: Sequence[Event]) -> list[Event]:
    """The same with the jobs that they are about. Events of jobs that are past the time that history is kept are left
    out: nothing but a number is left of them."""
    keys = {event.entry.id for event in events if event.entry is not None}
    records: dict[JobKey, Record] = await store.load(sorted(keys)) if keys else {}
    found = []
    for event in events:
        if event.entry is None:
            found.append(event)
        elif (record := records.get(event.entry.id)) is not None:
            found.append(msgspec.structs.replace(event, record=record, subject=shown_id(record.job)))
    return found
