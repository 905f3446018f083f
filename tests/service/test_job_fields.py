"""What a job asks of its worker: taken in, shown, changed field by field, and refused by name where it can not be."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from foliot.domain.access import ADMIN
from foliot.domain.errors import BadInput
from foliot.wire import DependsOn, FilterBody
from tests.service.network import Network, open_network


@pytest.fixture
async def network() -> AsyncIterator[Network]:
    async with open_network() as network:
        yield network


async def asked(network: Network, job_id: str) -> tuple[dict[str, float], dict[str, str]]:
    info = await network.info(job_id)
    return info.resources, info.requires


async def test_a_job_that_asks_for_nothing_is_shown_with_its_one_slot(network: Network) -> None:
    job_id = await network.submit()
    assert await asked(network, job_id) == ({"slot": 1}, {})
    info = await network.info(job_id)
    assert (info.depends_on, info.concurrency, info.unique_key) == ([], None, None)


async def test_what_a_job_asks_for_is_shown(network: Network) -> None:
    await network.submit(job_id="parent")
    job_id = await network.submit(
        resources={"cpu": 0.5, "memory": "256Mi", "gpu": 1},
        requires={"zone": "eu"},
        concurrency={"key": "k", "limit": 3},
        unique_key="u",
        depends_on=[{"job_id": "parent", "on": "any"}],
    )
    assert await asked(network, job_id) == ({"slot": 1, "cpu": 0.5, "memory": 2**28, "gpu": 1}, {"zone": "eu"})
    info = await network.info(job_id)
    assert info.concurrency is not None
    assert (info.concurrency.key, info.concurrency.limit, info.unique_key) == ("k", 3, "u")
    assert info.depends_on == [DependsOn(job_id="parent", on="any")]


async def test_the_list_shows_all_but_what_a_job_depends_on(network: Network) -> None:
    await network.submit(job_id="a")
    await network.submit(job_id="b", depends_on=["a"], resources={"slot": 2}, requires={"zone": "eu"})
    jobs, _ = await network.services.query.jobs(FilterBody(), limit=1, cursor=None, caller=ADMIN)
    (job,) = jobs
    assert (job.job_id, job.resources, job.requires, job.depends_on) == ("b", {"slot": 2}, {"zone": "eu"}, [])
    assert (job.status, job.reason) == ("blocked", "dependency")


async def test_a_change_leaves_what_it_does_not_name(network: Network) -> None:
    job_id = await network.submit(resources={"cpu": 2}, requires={"zone": "eu"})
    await network.change(job_id, priority="high")
    assert await asked(network, job_id) == ({"slot": 1, "cpu": 2}, {"zone": "eu"})
    await network.change(job_id, resources={"gpu": 1, "slot": 0})
    assert await asked(network, job_id) == ({"slot": 0, "gpu": 1}, {"zone": "eu"})
    await network.change(job_id, requires={"disk": "ssd"})
    assert await asked(network, job_id) == ({"slot": 0, "gpu": 1}, {"disk": "ssd"})
    await network.change(job_id, resources=None)
    assert await asked(network, job_id) == ({"slot": 1}, {"disk": "ssd"})
    await network.change(job_id, requires=None, queue="other", job_type="sum")
    record = await network.found(job_id)
    assert (record.job.lane.queue, record.job.lane.job_type, record.job.lane.needs) == ("other", "sum", "")


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"resources": {"cpu": -1}}, "resources.cpu"),
        ({"resources": {"cpu": 1e30}}, "resources.cpu"),
        ({"resources": {"memory": "lots"}}, "resources.memory"),
        ({"resources": {"a b": 1}}, "resources.a b"),
    ],
)
async def test_what_nobody_could_ask_for_is_refused_by_name(
    network: Network, fields: dict[str, Any], field: str
) -> None:
    for where, submit in {"": network.submit(**fields), "jobs[1].": network.batch({}, fields)}.items():
        with pytest.raises(BadInput) as caught:
            await submit
        assert [error.field for error in caught.value.errors] == [where + field]
    assert await network.known() == 0
    job_id = await network.submit()
    with pytest.raises(BadInput) as caught:
        await network.change(job_id, **fields)
    assert [error.field for error in caught.value.errors] == [field]
