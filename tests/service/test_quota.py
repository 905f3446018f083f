"""What a namespace may use."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from foliot.domain.access import ADMIN
from foliot.domain.errors import TooMany
from foliot.service.quota import LOOK_EVERY, Quota
from foliot.wire import QuotasBody
from tests.service.almanac import Almanac, open_almanac


@pytest.fixture
async def almanac() -> AsyncIterator[Almanac]:
    async with open_almanac() as almanac:
        yield almanac


async def allow(almanac: Almanac, **quotas: int) -> None:
    await almanac.services.keys.set_quotas("default", QuotasBody(**quotas), if_match=None, caller=ADMIN)
    almanac.clock.pass_seconds(LOOK_EVERY / 1e6)


async def submitted(almanac: Almanac, most: int, **fields: Any) -> int:
    """How many are taken in until one is refused."""
    for number in range(most):
        try:
            await almanac.submit(**fields)
        except TooMany as error:
            return number if error.retry_after >= 1 else -1
    return most


async def test_without_quotas_nothing_is_refused(almanac: Almanac) -> None:
    assert await submitted(almanac, 30) == 30
    await almanac.services.quota.check("nowhere", 1, 1)


async def test_so_many_jobs_a_second_and_a_second_s_worth_at_once(almanac: Almanac) -> None:
    await allow(almanac, submits_per_second=10)
    assert await submitted(almanac, 100) in (10, 11)
    almanac.clock.pass_seconds(1)
    assert await submitted(almanac, 100) in (9, 10, 11)


async def test_nodes_share_what_a_namespace_may(almanac: Almanac) -> None:
    await allow(almanac, submits_per_second=10)
    other = Quota(almanac.store, almanac.clock)
    await other.check("default", 6, 0)
    assert await submitted(almanac, 100) in (4, 5)


async def test_a_batch_larger_than_a_seconds_worth_gets_through_in_the_end(almanac: Almanac) -> None:
    await allow(almanac, submits_per_second=10)
    for _ in range(10):
        try:
            await almanac.services.quota.check("default", 35, 0)
        except TooMany as error:
            almanac.clock.pass_seconds(error.retry_after)
        else:
            return
    pytest.fail("it never got through")


async def test_so_many_bytes_of_payload_a_second(almanac: Almanac) -> None:
    await allow(almanac, payload_bytes_per_second=10 * 1024)
    assert await submitted(almanac, 100, payload={"text": "x" * 2000}) in (5, 6)
    await allow(almanac, payload_bytes_per_second=100 * 1024)
    assert await submitted(almanac, 20, payload={"text": "x" * 2000}) == 20


async def test_so_many_jobs_that_have_not_ended(almanac: Almanac) -> None:
    await allow(almanac, live_jobs=3)
    assert await submitted(almanac, 10) == 3
    worker = await almanac.worker()
    await almanac.report(worker, await almanac.take_one(worker), "success")
    assert await submitted(almanac, 10) == 0
    almanac.clock.pass_seconds(LOOK_EVERY / 1e6)
    assert await submitted(almanac, 10) == 1
