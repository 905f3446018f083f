"""One look at the incidents that are open, and what it changes about them."""

from collections.abc import Mapping, Set

import msgspec

from foliot.domain.alert import Kind, Rule, Signal, Trouble, end, fold, mend
from foliot.domain.duration import MINUTE, Micros
from foliot.domain.ids import IdMaker, show
from foliot.store.base import Incident
from foliot.wire import IncidentInfo, NoticeInfo, encode, to_time

INCIDENT = "i_"
WRITTEN_EVERY = MINUTE  # that something still goes on, where there is no other news of it
MENDED_BY_JOBS: frozenset[Kind] = frozenset({"failed", "exhausted", "missed"})

Key = tuple[str, str, str]  # namespace, rule, subject
read_trouble = msgspec.json.Decoder(Trouble).decode


class Desk:
    """One look at what is open, with what it changes."""

    def __init__(self, known: Mapping[Key, Incident], unmended: Set[Key]) -> None:
        self._known = known
        self.unmended = set(unmended)
        self._read: dict[Key, Trouble] = {}
        self._changed: dict[Key, Trouble] = {}

    def trouble(self, key: Key) -> Trouble:
        if key not in self._read:
            self._read[key] = read_trouble(self._known[key].body)
        return self._changed.get(key, self._read[key])

    def fold(self, rule: Rule, signal: Signal) -> None:
        key = (rule.namespace, rule.name, signal.subject)
        known = self._changed.get(key) or (self.trouble(key) if key in self._known else None)
        folded = fold(known, signal, rule)
        if signal.kind in MENDED_BY_JOBS:
            self.unmended.add(key)
        if known is None or _is_news(known, folded):
            self._changed[key] = folded

    def mend(self, key: Key, now: Micros) -> None:
        self.unmended.discard(key)
        known = self._changed.get(key) or self.trouble(key)
        if known.mended is None:
            self._changed[key] = mend(known, now)

    def end(self, key: Key, now: Micros, *, quiet: bool = False) -> None:
        self._changed[key] = end(self.trouble(key), now, quiet=quiet)

    def incidents(self, ids: IdMaker, now: Micros) -> list[Incident]:
        """All that has changed, ready to be saved."""
        made = []
        for key, trouble in self._changed.items():
            known = self._known.get(key)
            if known is not None:
                made.append(with_trouble(known, trouble))
                continue
            namespace, rule, subject = key
            made.append(
                Incident(
                    id=ids.one(now),
                    namespace=namespace,
                    rule=rule,
                    subject=subject,
                    body=encode(trouble).decode(),
                    opened=trouble.first,
                    notify_at=trouble.next,
                )
            )
        return made


def with_trouble(incident: Incident, trouble: Trouble, *, sending: bool = False) -> Incident:
    """An incident as it is to be saved after a change. One whose notice somebody else is sending keeps the time until
    which it is his: he looks again when he is done."""
    before = read_trouble(incident.body)
    held = not sending and incident.notify_at != before.next
    return msgspec.structs.replace(
        incident,
        body=encode(trouble).decode(),
        resolved=trouble.over,
        notify_at=incident.notify_at if held else trouble.next,
        version=incident.version + 1,
    )


def show_incident(incident: Incident) -> IncidentInfo:
    trouble = read_trouble(incident.body)
    return IncidentInfo(
        incident_id=show(INCIDENT, incident.id),
        rule=incident.rule,
        kind=trouble.kind,
        subject=trouble.group,
        status="open" if incident.resolved is None else "resolved",
        detail=trouble.detail,
        count=trouble.count,
        opened_time=to_time(incident.opened),
        last_seen=to_time(trouble.last),
        resolved_time=None if incident.resolved is None else to_time(incident.resolved),
        jobs=list(trouble.jobs),
        channels=list(trouble.channels),
        acknowledged_by=trouble.acknowledged_by,
        acknowledged_time=None if trouble.acknowledged is None else to_time(trouble.acknowledged),
        silenced_until=None if trouble.silenced is None else to_time(trouble.silenced),
        notices=[
            NoticeInfo(
                notice=notice.kind,
                time=to_time(notice.time),
                count=notice.count,
                sent=list(notice.sent),
                failed=dict(notice.failed),
            )
            for notice in trouble.notices
        ],
        trouble_telling=dict(trouble.failing),
        version=incident.version,
    )


def _is_news(before: Trouble, after: Trouble) -> bool:
    """Whether it is worth a write: that a condition holds on is not, each second."""
    same = (before.count, before.jobs, before.mended, before.channels, before.throttle) == (
        after.count,
        after.jobs,
        after.mended,
        after.channels,
        after.throttle,
    )
    return not same or after.last - before.last >= WRITTEN_EVERY
