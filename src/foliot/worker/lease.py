"""How long the node holds this worker for alive. Written by the loop and by the heartbeat's thread."""

from foliot import clock

SECOND = 1_000_000


class Lease:
    """A worker's registration. The lease runs from a call's arrival, so from our side it is sure only from the moment
    at which an answered call was sent."""

    def __init__(self, worker_id: str, *, lease_seconds: float, heartbeat_seconds: float) -> None:
        self.worker_id = worker_id
        self.seconds = lease_seconds
        # At least three calls in a lease: a poll's answer is the first news that the call was heard at all.
        self.interval = min(heartbeat_seconds, lease_seconds / 3)
        self.sent = self.confirmed = clock.monotonic()

    def sending(self) -> int:
        self.sent = clock.monotonic()
        return self.sent

    def answered(self, sent: int) -> None:
        self.confirmed = max(self.confirmed, sent)

    @property
    def age(self) -> float:
        """Seconds since the node was surely told that we are alive."""
        return (clock.monotonic() - self.confirmed) / SECOND

    @property
    def silence(self) -> float:
        """Seconds since any call was sent."""
        return (clock.monotonic() - self.sent) / SECOND
