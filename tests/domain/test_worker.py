"""What a worker may be given, and who may ask."""

import pytest

from foliot.domain.access import ADMIN, Caller
from foliot.domain.job import NAMESPACE, Lane
from foliot.domain.needs import parse_needs, show_needs
from tests.domain.test_placement import make_worker


@pytest.mark.parametrize(
    ("queues", "job_types", "serves"),
    [
        ((), (), True),
        (("mail", "bills"), (), True),
        ((), ("echo",), True),
        (("mail",), ("echo", "http"), True),
        (("bills",), (), False),
        ((), ("http",), False),
        (("mail",), ("http",), False),
        (("bills",), ("echo",), False),
    ],
)
def test_a_worker_serves_its_queues_and_types_and_every_one_where_it_names_none(
    queues: tuple[str, ...], job_types: tuple[str, ...], serves: bool
) -> None:
    worker = make_worker(1, queues=queues, job_types=job_types)
    assert worker.serves(Lane("default", "mail", "echo")) is serves


def test_a_worker_serves_only_its_namespace() -> None:
    assert not make_worker(1).serves(Lane("other", "mail", "echo"))


NEEDS = parse_needs({"cpu": 2, "memory": "1Gi"}, {"zone": "eu"})
ENOUGH: dict[str, float] = {"slot": 1, "cpu": 2, "memory": 2**30}


@pytest.mark.parametrize(
    ("resources", "labels", "serves"),
    [
        (ENOUGH, {"zone": "eu"}, True),
        (ENOUGH | {"cpu": 8, "gpu": 1}, {"zone": "eu", "disk": "ssd"}, True),
        ({"cpu": 2, "memory": 2**30}, {"zone": "eu"}, True),  # says of slots in each call
        (ENOUGH | {"slot": 0.5}, {"zone": "eu"}, False),
        (ENOUGH | {"cpu": 1.999}, {"zone": "eu"}, False),
        ({"slot": 1, "cpu": 2}, {"zone": "eu"}, False),
        ({}, {"zone": "eu"}, False),
        (ENOUGH, {"zone": "us"}, False),
        (ENOUGH, {}, False),
    ],
)
def test_a_worker_serves_what_it_could_hold_with_nothing_else_running(
    resources: dict[str, float], labels: dict[str, str], serves: bool
) -> None:
    worker = make_worker(1, resources=resources, labels=labels)
    assert worker.serves(Lane("default", "mail", "echo", show_needs(NEEDS))) is serves


@pytest.mark.parametrize(("resources", "serves"), [({}, True), ({"slot": 1}, True), ({"slot": 0.9}, False)])
def test_a_job_that_asks_for_nothing_takes_a_slot(resources: dict[str, float], serves: bool) -> None:
    assert make_worker(1, resources=resources).serves(Lane("default", "mail", "echo")) is serves


def test_workers_share_no_resources_by_default() -> None:
    first, second = make_worker(1), make_worker(2)
    assert first.resources is not second.resources
    assert first.labels is not second.labels


def test_the_admin_acts_in_the_default_namespace() -> None:
    assert Caller(name="admin", namespace=NAMESPACE, root=True) == ADMIN
