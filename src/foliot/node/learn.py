"""Keeps what users have defined for those who watch fresh."""

from foliot.node.running import Alarm, Running
from foliot.service.definitions import Definitions
from foliot.service.wake import Wake

REFRESH_EVERY = 5.0


class Learn(Running):
    """Learns it anew when somebody has changed it, here or on another node, and every few seconds."""

    def __init__(self, definitions: Definitions, wake: Wake) -> None:
        super().__init__()
        self._definitions = definitions
        self._alarm = Alarm()
        wake.on_rules.append(lambda _tell: self._alarm.ring())

    async def round(self) -> None:
        await self._definitions.refresh()
        await self._alarm.wait(REFRESH_EVERY)
