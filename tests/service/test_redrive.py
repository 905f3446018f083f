"""Ended jobs run again: alone, with those that were cancelled because of them, or many at once."""

from collections.abc import AsyncIterator

import pytest
from msgspec import Raw

from foliot.domain.access import ADMIN
from foliot.domain.errors import Conflict, Unavailable
from foliot.service import control as control_module
from foliot.wire import FilterBody, ManyChanged, RetryManyBody
from tests.service.meddling import failing
from tests.service.network import Network, open_network

LOST = Unavailable("the answer was lost", fate_unknown=True)


@pytest.fixture
async def network() -> AsyncIterator[Network]:
    async with open_network() as network:
        yield network


async def fail(network: Network, worker: str, *names: str) -> None:
    """All that is ready, which must be these, fails for good."""
    assert sorted(await network.run(worker, "fatal_failure")) == sorted(names)


def payload(info_payload: object) -> bytes:
    assert isinstance(info_payload, Raw)
    return bytes(info_payload)


async def test_dependents_that_were_cancelled_run_again_in_their_order(network: Network) -> None:
    worker = await network.worker()
    await network.batch(
        {"job_id": "a"},
        {"job_id": "b", "depends_on": ["a"]},
        {"job_id": "c", "depends_on": ["a", "b"]},
        {"job_id": "d", "depends_on": ["c"]},
    )
    await fail(network, worker, "a")
    assert await network.statuses("b", "c", "d") == ["cancelled"] * 3
    assert await network.retry("a", dependents=True) == "queued"
    assert await network.statuses("a", "b", "c", "d") == ["queued", "blocked", "blocked", "blocked"]
    assert [await network.run(worker) for _ in range(5)] == [["a"], ["b"], ["c"], ["d"], []]


async def test_without_dependents_a_job_runs_again_alone(network: Network) -> None:
    worker = await network.worker()
    await network.batch({"job_id": "a"}, {"job_id": "b", "depends_on": ["a"]})
    await fail(network, worker, "a")
    assert await network.retry("a") == "queued"
    assert [await network.run(worker), await network.run(worker)] == [["a"], []]
    assert await network.standing("b") == [("cancelled", "parent_failed")]


async def test_dependents_that_fail_again_can_be_run_again(network: Network) -> None:
    worker = await network.worker()
    await network.batch({"job_id": "a"}, {"job_id": "b", "depends_on": ["a"]})
    for _ in range(2):
        await fail(network, worker, "a")
        assert await network.standing("b") == [("cancelled", "parent_failed")]
        await network.retry("a", dependents=True)
    assert [await network.run(worker), await network.run(worker)] == [["a"], ["b"]]
    with pytest.raises(Conflict, match="'a' is completed and can not be retried"):
        await network.retry("a", dependents=True)


async def test_a_job_without_dependents_may_be_asked_for_with_them(network: Network) -> None:
    worker = await network.worker()
    await network.submit(job_id="a")
    await fail(network, worker, "a")
    assert await network.retry("a", dependents=True) == "queued"
    assert await network.run(worker) == ["a"]


async def test_dependents_cancelled_by_a_user_stay_so_and_so_does_what_is_below_them(network: Network) -> None:
    worker = await network.worker()
    await network.batch(
        {"job_id": "a"},
        {"job_id": "b", "depends_on": ["a"]},
        {"job_id": "c", "depends_on": ["b"]},
        {"job_id": "d", "depends_on": ["a"]},
        {"job_id": "e", "depends_on": [{"job_id": "a", "on": "any"}]},
    )
    await network.cancel("b")
    await network.settle()
    await fail(network, worker, "a")
    await network.retry("a", dependents=True)
    assert await network.standing("b", "c") == [("cancelled", "cancelled_by"), ("cancelled", "parent_cancelled")]
    assert set(await network.run(worker)) == {"a", "e"}
    assert [await network.run(worker), await network.run(worker)] == [["d"], []]


async def test_a_dependent_waits_for_a_parent_of_another_family_that_still_runs(network: Network) -> None:
    worker, other = await network.worker(job_types=["echo"]), await network.worker(job_types=["slow"])
    await network.batch(
        {"job_id": "a"}, {"job_id": "slow", "job_type": "slow"}, {"job_id": "both", "depends_on": ["a", "slow"]}
    )
    slow = await network.take_one(other)
    await fail(network, worker, "a")
    await network.retry("a", dependents=True)
    assert await network.run(worker) == ["a"]
    assert await network.standing("both") == [("blocked", "dependency")]
    await network.report(other, slow, "success")
    await network.settle()
    assert [await network.run(worker), await network.run(worker)] == [["both"], []]


async def test_a_dependent_that_another_parent_bars_stays_cancelled_with_all_below_it(network: Network) -> None:
    worker = await network.worker()
    await network.batch(
        {"job_id": "a"},
        {"job_id": "y"},
        {"job_id": "both", "depends_on": ["a", "y"]},
        {"job_id": "below", "depends_on": ["both"]},
        {"job_id": "only", "depends_on": ["a"]},
    )
    await fail(network, worker, "a", "y")
    await network.retry("a", dependents=True)
    assert await network.statuses("both", "below", "only") == ["cancelled", "cancelled", "blocked"]
    assert [await network.run(worker), await network.run(worker), await network.run(worker)] == [["a"], ["only"], []]


async def test_a_dependent_does_not_wait_again_for_a_parent_that_had_ended(network: Network) -> None:
    worker = await network.worker()
    await network.submit(job_id="done")
    await network.run(worker)
    await network.batch({"job_id": "a"}, {"job_id": "both", "depends_on": ["a", "done"]})
    await network.settle()
    await fail(network, worker, "a")
    await network.retry("a", dependents=True)
    assert await network.run(worker) == ["a"]
    job = await network.take_one(worker)
    assert (job.job_id, set(job.upstream)) == ("both", {"a", "done"})


async def test_a_dependent_does_not_wait_again_for_a_parent_that_ended_since(network: Network) -> None:
    worker = await network.worker()
    await network.batch(
        {"job_id": "a", "priority": 9}, {"job_id": "late"}, {"job_id": "both", "depends_on": ["a", "late"]}
    )
    assert await network.run(worker, "fatal_failure", count=1) == ["a"]
    assert await network.run(worker) == ["late"]
    await network.retry("a", dependents=True)
    assert [await network.run(worker) for _ in range(3)] == [["a"], ["both"], []]


async def test_a_job_that_is_run_again_alone_no_longer_waits_for_its_parents(network: Network) -> None:
    worker, other = await network.worker(job_types=["echo"]), await network.worker(job_types=["slow"])
    await network.batch(
        {"job_id": "a"},
        {"job_id": "slow", "job_type": "slow"},
        {"job_id": "both", "depends_on": ["a", "slow"], "retry": {"backoff": "fixed", "initial": 9, "jitter": 0}},
    )
    slow = await network.take_one(other)
    await fail(network, worker, "a")
    assert await network.retry("both") == "queued"
    assert await network.run(worker, "retriable_failure") == ["both"]
    await network.report(other, slow, "fatal_failure")
    await network.settle()
    assert await network.statuses("both") == ["retrying"], "what it does not wait for can not cancel it"
    network.clock.pass_seconds(9)
    await network.admit()
    assert await network.run(worker) == ["both"]


async def test_a_job_that_is_run_again_is_told_of_its_parents_again(network: Network) -> None:
    worker = await network.worker()
    await network.batch({"job_id": "a"}, {"job_id": "b", "depends_on": ["a"]})
    await network.run(worker, result=7)
    await fail(network, worker, "b")
    await network.retry("b")
    job = await network.take_one(worker)
    assert bytes(job.upstream["a"]["result"]) == b"7"
    await network.report(worker, job, "fatal_failure")
    await network.retry("b", dependents=True)
    assert set((await network.take_one(worker)).upstream) == {"a"}


async def test_another_payload_is_for_the_job_itself(network: Network) -> None:
    worker = await network.worker()
    await network.batch({"job_id": "a", "payload": 1}, {"job_id": "b", "payload": 2, "depends_on": ["a"]})
    await fail(network, worker, "a")
    await network.retry("a", dependents=True, payload={"fixed": True})
    assert [payload((await network.info(name)).payload) for name in "ab"] == [b'{"fixed":true}', b"2"]
    await fail(network, worker, "a")
    await network.retry("a", payload=None)
    assert payload((await network.info("a")).payload) == b"null"


async def test_jobs_that_run_again_take_a_token_of_their_key_again(network: Network) -> None:
    worker = await network.worker()
    key = {"concurrency": {"key": "k", "limit": 1}}
    await network.batch({"job_id": "a"} | key, {"job_id": "b", "depends_on": ["a"]} | key, {"job_id": "c"} | key)
    await network.settle()
    await fail(network, worker, "a")
    assert await network.standing("b", "c") == [("cancelled", "parent_failed"), ("queued", None)]
    assert await network.retry("a", dependents=True) == "queued"
    await network.settle()
    assert await network.standing("a", "b") == [("queued", "limit"), ("blocked", "dependency")]
    assert [await network.run(worker) for _ in range(4)] == [["c"], ["a"], ["b"], []]


async def test_what_follows_a_retry_does_not_wait_for_a_poll(network: Network) -> None:
    """A parent that ended just before gives its end to the dependents at once."""
    worker = await network.worker()
    await network.batch({"job_id": "a", "priority": 9}, {"job_id": "z"}, {"job_id": "b", "depends_on": ["a", "z"]})
    assert await network.run(worker, "fatal_failure", count=1) == ["a"]
    job = await network.take_one(worker)
    await network.report(worker, job, "success")  # its end is not carried on yet
    await network.retry("a", dependents=True)
    assert [await network.run(worker), await network.run(worker)] == [["a"], ["b"]]


async def test_dependents_of_which_the_end_was_not_carried_on_yet_wait_for_the_next(network: Network) -> None:
    worker = await network.worker()
    await network.batch({"job_id": "a"}, {"job_id": "b", "depends_on": ["a"]}, {"job_id": "c", "depends_on": ["b"]})
    await network.report(worker, await network.take_one(worker), "fatal_failure")
    await network.retry("a", dependents=True)
    await network.settle()
    assert await network.statuses("b", "c") == ["blocked", "blocked"]
    assert [await network.run(worker) for _ in range(4)] == [["a"], ["b"], ["c"], []]


async def test_a_dependent_that_somebody_else_runs_again_meanwhile_is_left_to_them(network: Network) -> None:
    worker = await network.worker()
    await network.batch({"job_id": "a"}, {"job_id": "b", "depends_on": ["a"]}, {"job_id": "c", "depends_on": ["b"]})
    await fail(network, worker, "a")
    network.store.before("save", lambda: network.retry("b"))
    assert await network.retry("a", dependents=True) == "queued"
    assert await network.statuses("a", "b", "c") == ["queued", "queued", "blocked"]
    assert set(await network.run(worker)) == {"a", "b"}
    assert [await network.run(worker), await network.run(worker)] == [["c"], []]


async def test_a_job_that_somebody_else_runs_again_meanwhile_is_refused(network: Network) -> None:
    worker = await network.worker()
    await network.batch({"job_id": "a"}, {"job_id": "b", "depends_on": ["a"]})
    await fail(network, worker, "a")
    for dependents in (False, True):
        network.store.before("save", lambda: network.retry("a"))
        with pytest.raises(Conflict, match="'a' is queued and can not be retried"):
            await network.retry("a", dependents=dependents)
        await fail(network, worker, "a")


@pytest.mark.parametrize("dependents", [False, True])
async def test_a_retry_whose_answer_was_lost_runs_each_job_once(network: Network, dependents: bool) -> None:
    worker = await network.worker()
    await network.batch({"job_id": "a"}, {"job_id": "b", "depends_on": ["a"]})
    await fail(network, worker, "a")
    network.store.after("save", failing(LOST))
    with pytest.raises(Conflict, match="'a' is queued"):  # so that whoever asked knows what became of it
        await network.retry("a", dependents=dependents)
    await network.services.dispatch.look()  # the hint was lost with the answer
    assert [await network.run(worker) for _ in range(3)] == [["a"], ["b"] if dependents else [], []]


async def test_a_job_that_never_stands_still_is_given_up(network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_module, "ROUNDS", 2)
    worker = await network.worker()
    await network.submit(job_id="a")
    await fail(network, worker, "a")

    async def again() -> None:
        await network.retry("a")
        await fail(network, worker, "a")

    for dependents in (False, True):
        network.store.before("save", again, again)
        with pytest.raises(Conflict, match="try again"):
            await network.retry("a", dependents=dependents)


async def test_many_run_again_with_another_payload(network: Network) -> None:
    worker = await network.worker()
    key = {"concurrency": {"key": "k", "limit": 1}}
    await network.batch({"job_id": "a", "payload": 1}, {"job_id": "b"} | key, {"job_id": "ok", "priority": 0})
    await network.settle()
    await network.run(worker, "fatal_failure", count=2)
    await network.run(worker)
    body = RetryManyBody(filter=FilterBody(), payload=Raw(b"[5]"))
    assert await network.services.control.many("retry", body, ADMIN) == ManyChanged(matched=3, changed=2)
    await network.settle()
    assert [payload((await network.info(name)).payload) for name in ("a", "b", "ok")] == [b"[5]", b"[5]", b"{}"]
    assert (await network.limit("k")).holders == ["b"]
    assert set(await network.run(worker)) == {"a", "b"}


async def test_many_run_again_as_they_were(network: Network) -> None:
    worker = await network.worker()
    await network.batch({"job_id": "a", "payload": 1}, {"job_id": "b", "depends_on": ["a"]})
    await network.run(worker, result=1)
    await fail(network, worker, "b")
    body = RetryManyBody(filter=FilterBody(status="failed"))
    assert await network.services.control.many("retry", body, ADMIN) == ManyChanged(matched=1, changed=1)
    job = await network.take_one(worker)
    assert (job.job_id, set(job.upstream)) == ("b", {"a"})
