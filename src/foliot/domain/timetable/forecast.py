"""How many due times each minute holds, for what is to come.

The work is a few looks for each minute that has some, whatever it holds: where a second due time lies in the minute of
the first, the minute is counted as a whole. Only a rule's minutes are counted one by one.
"""

from foliot.domain.duration import MINUTE, Micros
from foliot.domain.timetable.due_times import LATEST, next_after, tally
from foliot.domain.timetable.timetable import Timetable


def per_minute(timetable: Timetable, since: Micros, until: Micros, *, runs: int = 0) -> dict[Micros, int]:
    """The due times from `since` until before `until`, counted by minute; the key is a minute's start, and minutes
    without any are left out. `runs` is how many runs there were: where `max_runs` bounds a schedule, each due time is
    taken to become one."""
    found: dict[Micros, int] = {}
    left = LATEST if timetable.max_runs is None else timetable.max_runs - runs
    due = next_after(timetable, since - 1)
    while due is not None and due < until and left > 0:
        minute = due - due % MINUTE
        last = min(minute + MINUTE, until) - 1
        count, following = 1, next_after(timetable, due)
        if following is not None and following <= last:
            count, following = tally(timetable, due - 1, last).count, next_after(timetable, last)
        found[minute] = min(count, left)
        left -= count
        due = following
    return found
