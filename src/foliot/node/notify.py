"""Sends the notices of incidents: at once what this node has opened, within a few seconds what others have."""

from foliot.node.running import Alarm, Running
from foliot.service.alert_notices import Notices
from foliot.service.alerts import Alerts

LOOK_EVERY = 2.0


class Notify(Running):
    def __init__(self, notices: Notices, alerts: Alerts) -> None:
        super().__init__()
        self._notices = notices
        self._alarm = Alarm()
        alerts.on_notice.append(self._alarm.ring)

    async def round(self) -> None:
        while await self._notices.send_due():
            pass
        await self._alarm.wait(LOOK_EVERY)
