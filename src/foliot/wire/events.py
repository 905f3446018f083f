"""Events as they leave: CloudEvents 1.0."""

from typing import Any, Literal

from msgspec import Struct

from foliot.wire.base import Time
from foliot.wire.jobs import JobInfo

SPECVERSION = "1.0"
TYPE_PREFIX = "foliot."


class CloudEvent(Struct, frozen=True, kw_only=True):
    """Something that happened: `type` as in `foliot.job.completed`, `subject` the job's id (or whom it concerns),
    `data` the job as it then was, without payload."""

    specversion: Literal["1.0"] = "1.0"
    id: str
    source: str
    type: str
    subject: str
    time: Time
    datacontenttype: Literal["application/json"] = "application/json"
    data: JobInfo | dict[str, Any]
