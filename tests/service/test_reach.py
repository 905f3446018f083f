"""Who reaches only some queues or job types: what is beyond is not there, and nothing is made there."""

from collections.abc import AsyncIterator

import pytest

from foliot.domain.access import ADMIN, Caller
from foliot.domain.errors import Forbidden, Gone, NotFound
from foliot.service import workers as workers_module
from foliot.wire import ExchangeBody, FilterBody, ManyBody, RegisterBody, RetryJobBody, SubmitBody, UpdateBody
from tests.service.almanac import Almanac, open_almanac
from tests.service.conftest import report

MAIL = Caller(name="mail", role="operator", queues=("mail",))
SENDS = Caller(name="sends", role="operator", job_types=("send",))


@pytest.fixture
async def almanac() -> AsyncIterator[Almanac]:
    async with open_almanac() as almanac:
        yield almanac


@pytest.mark.parametrize("caller", [MAIL, SENDS])
async def test_jobs_beyond_are_not_there(almanac: Almanac, caller: Caller) -> None:
    inside = await almanac.submit("send", queue="mail")
    beyond = await almanac.submit("print", queue="paper")
    query = almanac.services.query
    page, _ = await query.jobs(FilterBody(), limit=9, cursor=None, caller=caller)
    assert [job.job_id for job in page] == [inside]
    assert (await query.job(inside, caller)).job_id == inside
    with pytest.raises(NotFound):
        await query.job(beyond, caller)
    with pytest.raises(NotFound):
        await almanac.services.control.cancel(beyond, if_match=None, caller=caller)
    changed = await almanac.services.control.many("cancel", ManyBody(filter=FilterBody()), caller)
    assert changed.changed == 1
    assert await almanac.status(beyond) == "queued"


async def test_nothing_is_made_or_moved_beyond(almanac: Almanac) -> None:
    for caller in (MAIL, SENDS):
        with pytest.raises(Forbidden, match="reaches only"):
            await almanac.services.submit.one(SubmitBody(job_type="print", queue="paper"), b"", caller)
    inside = await almanac.submit("send", queue="mail")
    with pytest.raises(Forbidden, match="queues mail"):
        await almanac.services.control.update(inside, UpdateBody(queue="paper"), if_match=None, caller=MAIL)
    with pytest.raises(Forbidden, match="whole namespace"):
        await almanac.services.limits.read("k", MAIL)


async def test_dependents_beyond_are_not_run_again_with_their_parent(almanac: Almanac) -> None:
    parent = await almanac.submit("send", queue="mail", job_id="parent")
    await almanac.submit("print", queue="paper", depends_on=[parent])
    await almanac.cancel(parent)
    await almanac.store.release(100, almanac.clock.now())
    with pytest.raises(Forbidden, match="dependents"):
        await almanac.services.control.retry(parent, RetryJobBody(dependents=True), if_match=None, caller=MAIL)


async def test_only_who_may_control_jobs_names_another_owner(almanac: Almanac) -> None:
    submitter = Caller(name="ci", role="submitter")
    with pytest.raises(Forbidden, match="owner"):
        await almanac.services.submit.one(SubmitBody(job_type="a", owner="boss"), b"", submitter)
    await almanac.services.submit.one(SubmitBody(job_type="a", owner="ci"), b"", submitter)
    await almanac.services.submit.one(SubmitBody(job_type="a", owner="boss"), b"", ADMIN)


async def test_a_worker_serves_no_more_than_its_key_reaches(almanac: Almanac) -> None:
    workers = almanac.services.workers
    await workers.register(RegisterBody(name="w"), MAIL)
    await workers.register(RegisterBody(name="v", queues=["mail"]), MAIL)
    found = await almanac.store.workers()
    assert [worker.queues for worker, _ in found] == [("mail",), ("mail",)]
    with pytest.raises(Forbidden, match="not paper"):
        await workers.register(RegisterBody(name="u", queues=["mail", "paper"]), MAIL)


async def test_a_worker_of_others_is_nobodys_to_speak_for(almanac: Almanac) -> None:
    worker = await almanac.worker()
    with pytest.raises(Gone):
        await almanac.services.workers.exchange(worker, ExchangeBody(), MAIL)
    elsewhere = Almanac(almanac.store, almanac.clock)
    with pytest.raises(Gone):
        await elsewhere.services.workers.exchange(worker, ExchangeBody(), MAIL)
    with pytest.raises(NotFound):
        await almanac.services.workers.drain(worker, MAIL)


async def test_what_was_given_out_is_remembered_up_to_a_bound(
    almanac: Almanac, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers_module, "MOST_GIVEN", 1)
    worker = await almanac.worker()
    for _ in range(3):
        await almanac.submit()
    jobs = await almanac.take(worker)
    answer = await almanac.exchange(worker, reports=[report(job, "success") for job in jobs])
    assert answer.rejected == []


async def test_rules_that_change_are_told_to_who_listens(almanac: Almanac) -> None:
    heard: list[bool] = []
    almanac.wake.on_rules.append(heard.append)
    await almanac.services.queues.pause("mail", if_match=None, caller=ADMIN)
    assert heard == [True]
