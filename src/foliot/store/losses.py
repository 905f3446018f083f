"""What is recorded of workers and nodes that went without a word."""

from datetime import UTC, datetime, timedelta

import msgspec

from foliot.domain import ids
from foliot.domain.duration import Micros
from foliot.domain.feed import Happening

_EPOCH = datetime.fromtimestamp(0, UTC)


def lost_worker(key: int, namespace: str, name: str, *, last_seen: Micros, holds: int) -> Happening:
    """`holds` is how many attempts it had under way."""
    shown = ids.show(ids.WORKER, key)
    data = {"worker_id": shown, "name": name, "last_seen": _time(last_seen), "holds": holds}
    return Happening(kind="worker.lost", subject=shown, namespace=namespace, data=_text(data))


def lost_node(number: int, name: str, *, last_seen: Micros) -> Happening:
    shown = ids.show(ids.NODE, number)
    return Happening(
        kind="node.lost",
        subject=shown,
        data=_text({"node_id": shown, "name": name, "last_seen": _time(last_seen)}),
    )


def _time(micros: Micros) -> datetime:
    return _EPOCH + timedelta(microseconds=micros)


def _text(data: dict[str, object]) -> str:
    return msgspec.json.encode(data).decode()
