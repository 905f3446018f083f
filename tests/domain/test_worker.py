"""What a worker may be given, and who may ask."""

import pytest

from foliot.domain.access import ADMIN, Caller
from foliot.domain.job import NAMESPACE, Lane
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


def test_workers_share_no_resources_by_default() -> None:
    first, second = make_worker(1), make_worker(2)
    assert first.resources is not second.resources
    assert first.labels is not second.labels


def test_the_admin_acts_in_the_default_namespace() -> None:
    assert Caller(name="admin", namespace=NAMESPACE) == ADMIN
