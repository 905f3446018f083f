"""The words of a notice: what happened, where, since when, how often, and what to do. Never anything of a payload."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Literal, assert_never

import msgspec

from foliot.domain.alert import Kind, NoticeKind, Trouble
from foliot.domain.duration import SECOND, Micros

Tone = Literal["failure", "warning", "success", "info"]


class Words(msgspec.Struct, frozen=True, kw_only=True):
    title: str
    body: str
    tone: Tone


_WHAT: Mapping[Kind, str] = {
    "failed": "Jobs of {0} fail",
    "exhausted": "Jobs of {0} have no tries left",
    "late": "Jobs of {0} are late",
    "overrun": "Jobs of {0} run too long",
    "missed": "The schedule {0} missed runs",
    "queue_age": "Jobs wait too long in the queue {0}",
    "no_worker": "No worker takes jobs of {0}",
    "worker_lost": "The worker {0} is lost",
    "node_lost": "The node {0} is lost",
    "store": "The store is in trouble: {0}",
    "slo": "The queue {0} misses its objective",
    "webhook_disabled": "The webhook {0} was switched off",
}
_TO_DO: Mapping[Kind, str] = {
    "failed": "foliot jobs failed",
    "exhausted": "foliot jobs failed",
    "late": "foliot workers",
    "overrun": "foliot jobs list --status running",
    "missed": "foliot schedules show {0}",
    "queue_age": "foliot queues show {0}",
    "no_worker": "foliot workers",
    "worker_lost": "foliot workers",
    "node_lost": "foliot nodes",
    "store": "foliot doctor",
    "slo": "foliot top",
    "webhook_disabled": "foliot webhooks show {0}",
}
_ABOUT_JOBS: frozenset[Kind] = frozenset({"failed", "exhausted", "late", "overrun", "queue_age", "no_worker"})


def words_of(trouble: Trouble, notice: NoticeKind, *, namespace: str, rule: str, incident_id: str) -> Words:
    what = _WHAT[trouble.kind].format(trouble.group)
    lines = [trouble.detail] if trouble.detail else []
    match notice:
        case "recovered":
            title = f"[over] {what}"
            lines.append(f"It is over since {_clock(trouble.over or trouble.last)}, {_by(trouble)}.")
            lines.append(f"It began {_clock(trouble.first)}; {_times(trouble.count)} in all.")
        case "ongoing":
            title = f"[still] {what}"
            more = trouble.count - trouble.told_count
            lines.append(f"{more} more since {_clock(trouble.told or trouble.first)}; {trouble.count} in all.")
            lines.append(f"It began {_clock(trouble.first)}.")
        case "opened":
            title = what
            lines.append(f"Since {_clock(trouble.first)}, {_times(trouble.count)}.")
        case _:
            assert_never(notice)
    if notice != "recovered":
        lines += _jobs(trouble)
        lines.append(f"Look: {_TO_DO[trouble.kind].format(trouble.group)}")
    lines.append(f"Namespace {namespace}, rule {rule}, incident {incident_id}.")
    tone: Tone = "success" if notice == "recovered" else "warning" if trouble.kind == "late" else "failure"
    return Words(title=title, body="\n".join(lines), tone=tone)


def test_words(channel: str, namespace: str, by: str) -> Words:
    """What the test button sends."""
    return Words(
        title="A test from Foliot",
        body=f"{by} tries the channel {channel} of the namespace {namespace}. Nothing has happened.",
        tone="info",
    )


def _jobs(trouble: Trouble) -> list[str]:
    if not trouble.jobs:
        return []
    beyond = ", …" if trouble.count > len(trouble.jobs) else ""
    lines = [f"Jobs: {', '.join(trouble.jobs)}{beyond}"]
    return [*lines, f"Why: foliot why {trouble.jobs[0]}"] if trouble.kind in _ABOUT_JOBS else lines


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _by(trouble: Trouble) -> str:
    return f"says {trouble.ended_by}" if trouble.ended_by else "by itself"


def _clock(time: Micros) -> str:
    return datetime.fromtimestamp(time // SECOND, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
