"""How many may start in a time: the generic cell rate algorithm. One number is kept, the time at which the next start
would be exactly on the beat; a start moves it on by one beat, and `burst` of them may come before their beat.

Beats are counted in nanoseconds and are a hair longer than `per / limit`, so that in any stretch of `per`, both ends
included, there are never more than `limit + burst` starts: of n starts the last is at least n - 1 - burst beats after
the first.
"""

import msgspec

from foliot.domain.duration import Micros

NANOS = 1000  # in a microsecond


class RateLimit(msgspec.Struct, frozen=True, kw_only=True):
    limit: int
    per: Micros
    burst: int = 0

    @property
    def beat(self) -> int:
        return self.per * NANOS // self.limit + 1


def may_start(rate: RateLimit, next_beat: int, now: Micros) -> int:
    """How many may start at once, now."""
    ahead = max(next_beat - now * NANOS, 0)
    return max(0, (rate.burst * rate.beat - ahead) // rate.beat + 1)


def after_starts(rate: RateLimit, next_beat: int, now: Micros, count: int) -> int:
    """The next beat once so many have started now."""
    return max(next_beat, now * NANOS) + count * rate.beat


def next_start(rate: RateLimit, next_beat: int) -> Micros:
    """The first moment at which one may start."""
    return -((rate.burst * rate.beat - next_beat) // NANOS)


def carried_over(rate: RateLimit | None, next_beat: int, now: Micros) -> int:
    """The next beat where this limit comes instead of another: nobody waits longer than it would itself make them."""
    if rate is None:
        return 0
    return min(next_beat, now * NANOS + (rate.burst + 1) * rate.beat)
