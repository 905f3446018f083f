"""Sends what is due to be told. Any node may: each incident's notice is taken by one of them, for a time that is longer
than sending takes; where it dies meanwhile, another one takes it after that."""

import asyncio
import logging

from foliot.alerts import words_of
from foliot.clock import Clock
from foliot.domain.alert import NoticeKind, after_sending, to_send
from foliot.domain.duration import SECOND
from foliot.domain.ids import show
from foliot.service.alert_channels import Channels
from foliot.service.alert_desk import INCIDENT, read_trouble, with_trouble
from foliot.service.alerts import Alerts
from foliot.store.base import Incident, Store
from foliot.telemetry.counters import count

LEASE = 60 * SECOND
AT_ONCE = 20
ROUNDS = 20

_log = logging.getLogger("foliot.alerts")


class Notices:
    def __init__(self, store: Store, clock: Clock, channels: Channels, alerts: Alerts) -> None:
        self._store = store
        self._clock = clock
        self._channels = channels
        self._alerts = alerts

    async def send_due(self) -> int:
        """Send what is due; of how many incidents. Where no channel was ever made nothing is asked of the store."""
        if not self._channels.any:
            return 0
        now = self._clock.now()
        taken = await self._store.take_notices(now, now + LEASE, AT_ONCE)
        await asyncio.gather(*(self._tell(incident) for incident in taken))
        return len(taken)

    async def _tell(self, incident: Incident) -> None:
        trouble = read_trouble(incident.body)
        due = to_send(trouble, self._clock.now())
        if due is None:
            await self._keep(incident, None, {})
            return
        notice, channels = due
        words = words_of(
            trouble,
            notice,
            namespace=incident.namespace,
            rule=incident.rule,
            incident_id=show(INCIDENT, incident.id),
        )
        answers = await asyncio.gather(*(self._channels.send(incident.namespace, each, words) for each in channels))
        failed = {channel: error for channel, error in zip(channels, answers, strict=True) if error is not None}
        count("notices", "sent", amount=len(channels) - len(failed))
        count("notices", "failed", amount=len(failed))
        for channel, error in failed.items():
            _log.warning("the channel %s/%s did not take a notice: %s", incident.namespace, channel, error)
        await self._keep(incident, (notice, trouble.count, [each for each in channels if each not in failed]), failed)

    async def _keep(
        self, incident: Incident, told: tuple[NoticeKind, int, list[str]] | None, failed: dict[str, str]
    ) -> None:
        """Note what was told on the incident as it is now: more may have happened meanwhile."""
        for _ in range(ROUNDS):
            trouble = read_trouble(incident.body)
            if told is not None:
                notice, count, sent = told
                trouble = after_sending(trouble, notice, count, self._clock.now(), sent=sent, failed=failed)
            changed = with_trouble(incident, trouble, sending=True)
            if await self._store.save_incidents([changed]):
                self._alerts.saved([changed])
                return
            found = await self._store.incident(incident.namespace, incident.id)
            if found is None:
                return
            incident = found
        _log.warning("what was told of incident %s could not be noted", show(INCIDENT, incident.id))
