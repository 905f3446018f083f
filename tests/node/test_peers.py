"""Whose share a job is: one home for each, about as many for every node, the same from every side."""

from foliot.domain.ids import IdMaker, JobKey
from foliot.node.peers import Peers

KEYS = [
    JobKey(key) for step in range(300) for key in IdMaker(node=7).take(20, 1_800_000_000_000_000 + step * 1_000_000)
]


def test_every_job_has_one_home_and_every_node_its_share() -> None:
    nodes = [Peers(number) for number in (2, 5, 9)]
    for index, node in enumerate(nodes):
        node.update([2, 5, 9][index:])  # its own number is always among them
        node.update([9, 2, 5])
    homes = [[node.own for node in nodes if node.is_home(key)] for key in KEYS]
    assert all(len(home) == 1 for home in homes)
    for node in nodes:
        assert 0.3 < homes.count([node.own]) / len(KEYS) < 0.37


def test_a_node_that_is_alone_is_home_to_all() -> None:
    peers = Peers(3)
    assert all(map(peers.is_home, KEYS))
    seen = [peers.alone]
    for living in ([3, 4], []):
        peers.update(living)
        seen.append(peers.alone)
    assert seen == [True, False, True]


def test_a_home_is_the_same_whatever_was_known_before() -> None:
    first, second = Peers(0), Peers(0)
    first.update([0, 1, 2, 3])
    first.update([1, 0])
    second.update([0, 1])
    assert [first.is_home(key) for key in KEYS] == [second.is_home(key) for key in KEYS]
