"""Something that happened, as a client is told of it: a CloudEvent, and where it stands in the node's record."""

from typing import Any

import msgspec
from msgspec import Raw, Struct

from foliot.wire import JobInfo, Time

JOB_PREFIX = "foliot.job."


class Event(Struct, frozen=True, kw_only=True):
    """`type` is `foliot.job.<status>`, or tells what else happened, as `foliot.worker.lost`; `subject` is the job's id,
    or whom it concerns; `data` the job as it then was, without payload and error. `position` is where to go on after
    it: `client.events(since=event.position)`. `text` is the CloudEvent as it came."""

    id: str
    type: str
    subject: str
    time: Time
    source: str
    data: JobInfo | dict[str, Any]
    position: str
    text: bytes

    @property
    def job(self) -> JobInfo | None:
        """The job as it then was; None for an event that is not about a job."""
        return self.data if isinstance(self.data, JobInfo) else None

    @property
    def status(self) -> str:
        """What the job changed to; "" for an event that is not about a job."""
        return self.type.removeprefix(JOB_PREFIX) if self.type.startswith(JOB_PREFIX) else ""


class _Told(Struct, frozen=True, kw_only=True):
    id: str
    type: str
    subject: str
    time: Time
    source: str
    data: Raw = Raw(b"{}")


_told = msgspec.json.Decoder(_Told).decode
_job = msgspec.json.Decoder(JobInfo).decode
_other = msgspec.json.Decoder(dict[str, Any]).decode


def read_event(text: bytes, position: str) -> Event:
    told = _told(text)
    return Event(
        id=told.id,
        type=told.type,
        subject=told.subject,
        time=told.time,
        source=told.source,
        data=_job(told.data) if told.type.startswith(JOB_PREFIX) else _other(told.data),
        position=position,
        text=text,
    )
