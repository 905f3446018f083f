"""A schedule as it was written down: its body as JSON text.

Where payloads are sealed, the job's stands in front, sealed for the schedule, on a line of its own. The rest stays
readable, so that a schedule whose key is gone can still be listed and changed, and still makes its runs: those then end
with the reason, which is better than due times that pass without a word.
"""

import msgspec
from msgspec import UNSET, Raw

from foliot.domain.errors import Unreadable
from foliot.domain.ids import ScheduleKey
from foliot.domain.schedule import Schedule
from foliot.service.sealing import Sealer, is_sealed
from foliot.wire import ScheduleBody, encode

decode_body = msgspec.json.Decoder(ScheduleBody).decode


def write_definition(sealer: Sealer, key: ScheduleKey, body: ScheduleBody) -> str:
    payload = body.job.payload
    if not sealer.on or payload is UNSET:
        return encode(body).decode()
    return with_sealed(sealer.seal(bytes(payload).decode(), key, "template"), body)


def with_sealed(sealed: str, body: ScheduleBody) -> str:
    """A definition whose payload is sealed already."""
    bare = msgspec.structs.replace(body, job=msgspec.structs.replace(body.job, payload=UNSET))
    return f"{sealed}\n{encode(bare).decode()}"


def split_definition(schedule: Schedule) -> tuple[str | None, str]:
    """The sealed payload, where it is sealed, and the rest as JSON text."""
    if not is_sealed(schedule.definition):
        return None, schedule.definition
    sealed, _, rest = schedule.definition.partition("\n")
    return sealed, rest


def read_definition(sealer: Sealer, schedule: Schedule) -> ScheduleBody:
    """The body as it was written down; `Unreadable` where its payload does not open."""
    sealed, rest = split_definition(schedule)
    body = decode_body(rest)
    if sealed is None:
        return body
    payload = Raw(sealer.open(sealed, schedule.id, "template").encode())
    return msgspec.structs.replace(body, job=msgspec.structs.replace(body.job, payload=payload))


def read_readable(sealer: Sealer, schedule: Schedule) -> tuple[ScheduleBody, str | None]:
    """The same; where its payload does not open, the body without it, and the payload as it is kept."""
    try:
        return read_definition(sealer, schedule), None
    except Unreadable:
        sealed, rest = split_definition(schedule)
        return decode_body(rest), sealed


def renewed(sealer: Sealer, schedule: Schedule) -> Schedule:
    """The schedule with its payload sealed under the newest key."""
    if not sealer.on:
        return schedule
    sealed, rest = split_definition(schedule)
    if sealed is None:
        definition = write_definition(sealer, schedule.id, decode_body(rest))
    else:
        definition = f"{sealer.renew(sealed, schedule.id, 'template')}\n{rest}"
    return schedule if definition == schedule.definition else msgspec.structs.replace(schedule, definition=definition)
