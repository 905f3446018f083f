"""Webhooks: which events somebody wants to be told of at an address of his, how a message is signed, and when one that
did not arrive is sent again.

A message is signed as Standard Webhooks has it: HMAC-SHA256 over its id, the time of the try and its body. The id is
the same for every try, so that a receiver can tell a message it has seen.

A webhook is on, or off for one of `Off`. It fails from its first try without success until the next that has one; when
that has gone on for `give_up_after` it is switched off.
"""

import hmac
import secrets
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from typing import Final, Literal

import msgspec

from foliot.domain.duration import DAY, HOUR, MINUTE, SECOND, Micros
from foliot.domain.feed import ALL_STATUSES, mask_of
from foliot.domain.status import STATUSES

WEBHOOK, DELIVERY = "wh_", "wd_"  # how their ids begin
SECRET = "whsec_"
PREFIX = "foliot."
TEST, DISABLED = "webhook.test", "webhook.disabled"  # kinds of event: asked for by a user; a webhook was switched off

DEFAULT_GIVE_UP: Final[Micros] = 3 * DAY
SHORTEST_GIVE_UP: Final[Micros] = MINUTE
LONGEST_GIVE_UP: Final[Micros] = 30 * DAY
LONGEST_RETRY_AFTER: Final[Micros] = DAY
WAITS: Final[tuple[Micros, ...]] = (
    5 * SECOND,
    5 * MINUTE,
    30 * MINUTE,
    2 * HOUR,
    5 * HOUR,
    10 * HOUR,
    14 * HOUR,
    20 * HOUR,
    DAY,
)
JITTER = 0.1
KINDS: Final[Mapping[str, Sequence[str]]] = {  # of events: what they are about, and what may happen to it
    "job": STATUSES,
    "schedule": ("missed",),
    "worker": ("lost",),
    "node": ("lost",),
    "webhook": ("disabled", "test"),
}

Off = Literal["switched_off", "failing", "gone"]
State = Literal["pending", "delivered", "failed"]


class Match(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which jobs' events: all that is given must hold."""

    queue: str | None = None
    job_type: str | None = None
    schedule_id: str | None = None
    tag: str | None = None

    def takes(
        self,
        *,
        queue: str | None = None,
        job_type: str | None = None,
        schedule_id: str | None = None,
        tags: Sequence[str] = (),
    ) -> bool:
        return (
            self.queue in (None, queue)
            and self.job_type in (None, job_type)
            and self.schedule_id in (None, schedule_id)
            and (self.tag is None or self.tag in tags)
        )


class Webhook(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """As it is kept. `events` are words such as `job.failed`, `job.*` and `*`. The secrets may be sealed; the old one
    signs as well until `old_until`. What is about the nodes goes to those of the node's own admin key (`root`)."""

    url: str
    events: tuple[str, ...]
    match: Match = Match()
    give_up_after: Micros = DEFAULT_GIVE_UP
    secret: str
    old_secret: str | None = None
    old_until: Micros = 0
    off: Off | None = None
    failing_since: Micros | None = None
    created_by: str = ""
    root: bool = False

    def listens(self, kind: str) -> bool:
        """Whether events of this kind are wanted."""
        family, _, _ = kind.partition(".")
        return any(word in ("*", kind) or word == f"{family}.*" for word in self.events)

    @property
    def mask(self) -> int:
        """Which statuses of jobs are asked for (see `domain.feed`)."""
        if {"*", "job.*"} & set(self.events):
            return ALL_STATUSES
        words = (word.partition(".") for word in self.events)
        return mask_of([status for family, _, status in words if family == "job"])


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How one try went: the status of the answer, or why there was none; how long it asks us to wait."""

    status: int | None = None
    error: str | None = None
    retry_after: Micros | None = None

    @property
    def arrived(self) -> bool:
        return self.status is not None and 200 <= self.status < 300

    @property
    def gone(self) -> bool:
        """The receiver wants no more of them."""
        return self.status == 410


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What comes of a try: where the delivery stands, when it is tried next, and since when the webhook fails, or why
    it is switched off."""

    state: State
    next_try: Micros | None = None
    failing_since: Micros | None = None
    off: Off | None = None


def judge(webhook: Webhook, outcome: Outcome, *, attempts: int, now: Micros, chance: float) -> Verdict:
    """After the try number `attempts` (1 is the first). `chance` is a number in [0, 1) that spreads tries."""
    if outcome.arrived:
        return Verdict(state="delivered")
    since = now if webhook.failing_since is None else webhook.failing_since
    if outcome.gone:
        return Verdict(state="failed", failing_since=since, off="gone")
    limit = since + webhook.give_up_after
    if now >= limit:
        return Verdict(state="failed", failing_since=since, off="failing")
    wait = wait_before(attempts, chance)
    if wait is None:
        return Verdict(state="failed", failing_since=since)
    asked = min(outcome.retry_after or 0, LONGEST_RETRY_AFTER)
    # The last try is at the limit itself: only a try can tell that it fails still.
    return Verdict(state="pending", next_try=min(now + max(wait, asked), limit), failing_since=since)


def wait_before(attempts: int, chance: float) -> Micros | None:
    """How long to wait after the try number `attempts`; None after the last one."""
    if attempts > len(WAITS):
        return None
    wait = WAITS[attempts - 1]
    return wait + round(wait * JITTER * (2 * chance - 1))


def read_word(text: str) -> str | None:
    """A word for events in its one form, or None where it can mean none: `foliot.` may stand before it."""
    word = text.removeprefix(PREFIX)
    family, _, rest = word.partition(".")
    known = word == "*" or (family in KINDS and rest in (*KINDS[family], "*"))
    return word if known else None


def new_secret() -> str:
    return SECRET + b64encode(secrets.token_bytes(32)).decode()


def sign(message_id: str, time: Micros, body: bytes, keys: Sequence[str]) -> dict[str, str]:
    """The headers by which a receiver knows that a message is from us; one signature for each secret."""
    timestamp = str(time // SECOND)
    signed = b"%s.%s.%s" % (message_id.encode(), timestamp.encode(), body)
    signatures = (hmac.digest(b64decode(key.removeprefix(SECRET)), signed, "sha256") for key in keys)
    return {
        "webhook-id": message_id,
        "webhook-timestamp": timestamp,
        "webhook-signature": " ".join(f"v1,{b64encode(each).decode()}" for each in signatures),
    }
