"""Lanes: their numbers, and the queues that come into being with them."""

import sqlite3
from collections.abc import Iterable

import msgspec

from foliot.domain.job import Lane
from foliot.store.sqlite.connection import SQL
from foliot.store.sqlite.rows import keys_json


def make_lanes(connection: sqlite3.Connection, lanes: Iterable[Lane]) -> dict[int, Lane]:
    """These lanes by number, made where they are new; a job's own lane comes before those in which it may stand."""
    made = {}
    for lane in sorted(lanes, key=msgspec.structs.astuple):
        columns = msgspec.structs.astuple(lane)
        connection.execute(SQL["make_queue"], (lane.namespace, lane.queue))
        connection.execute(SQL["make_lane"], columns)
        made[connection.execute(SQL["lane_number"], columns).fetchone()[0]] = lane
    return made


def all_lanes(connection: sqlite3.Connection) -> dict[int, Lane]:
    return {number: Lane(*names) for number, *names in connection.execute(SQL["all_lanes"])}


def lanes_numbered(connection: sqlite3.Connection, numbers: Iterable[int]) -> dict[int, Lane]:
    return {number: Lane(*names) for number, *names in connection.execute(SQL["lanes_numbered"], (keys_json(numbers),))}
