"""Jobs that depend on jobs: what an edge asks of a parent's end, and what can not be a graph."""

from collections.abc import Mapping, Sequence
from enum import IntEnum

import msgspec

from foliot.domain.ids import JobKey
from foliot.domain.job import State


class On(IntEnum):
    """Which end of the parent an edge asks for; the numbers are those of the store. A cancelled parent counts as
    failed."""

    SUCCESS = 1
    FAILURE = 2
    ANY = 3


ON_WORDS: dict[str, On] = {on.name.lower(): on for on in On}

HOLDS: Mapping[On, tuple[State, ...]] = {
    On.SUCCESS: (State.COMPLETED,),
    On.FAILURE: (State.FAILED, State.CANCELLED),
    On.ANY: (State.COMPLETED, State.FAILED, State.CANCELLED),
}
"""The ends of a parent with which its edge holds; with any other it never will."""

BROKEN_BY: Mapping[State, str] = {
    State.COMPLETED: "parent_completed",
    State.FAILED: "parent_failed",
    State.CANCELLED: "parent_cancelled",
}
"""The reason with which a child is cancelled whose edge can no longer hold."""


class Edge(msgspec.Struct, frozen=True):
    """`child` starts once `parent` has ended as `on` says; `done` once that was carried on to the child."""

    parent: JobKey
    child: JobKey
    on: On
    done: bool = False


def holds(on: On, ended: State) -> bool:
    return ended in HOLDS[on]


def find_cycle(parents: Mapping[str, Sequence[str]]) -> list[str] | None:
    """A circle in what each name depends on, as the names along it, the first one again at the end; None where there
    is none. Names that depend on nothing may be left out. Without recursion: a chain may be ten thousand long."""
    done: set[str] = set()
    for start in parents:
        if start in done:
            continue
        path: list[str] = [start]
        places = {start: 0}
        turns = [iter(parents.get(start, ()))]
        while turns:
            name = next(turns[-1], None)
            if name is None:
                turns.pop()
                left = path.pop()
                del places[left]
                done.add(left)
            elif name in places:
                return [*path[places[name] :], name]
            elif name not in done:
                places[name] = len(path)
                path.append(name)
                turns.append(iter(parents.get(name, ())))
    return None
