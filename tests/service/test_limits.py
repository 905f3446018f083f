"""Concurrency keys: never more than the limit are ready or leased, waiters are let in by rank, nothing leaks."""

import random
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from foliot.domain.access import ADMIN, Caller
from foliot.domain.errors import BadInput, Conflict, NotFound, Unavailable
from foliot.service import limits as limits_module
from foliot.wire import AssignedJob, ConcurrencyInfo, FilterBody, ManyBody, ScheduleBody, ScheduleUpdateBody
from tests.service.conftest import report
from tests.service.meddling import failing
from tests.service.network import Network, open_network

LOST = Unavailable("the answer was lost", fate_unknown=True)
ANYBODY = Caller(name="anybody")


@pytest.fixture
async def network() -> AsyncIterator[Network]:
    async with open_network() as network:
        yield network


def of(key: str, limit: int = 1, **fields: Any) -> dict[str, Any]:
    return {"concurrency": {"key": key, "limit": limit}, **fields}


async def submit(network: Network, *names: str, limit: int = 1, **fields: Any) -> None:
    """Jobs of the key `k`; who can have a token has it then."""
    for name in names:
        await network.submit(**of("k", limit, job_id=name, **fields))
    await network.settle()


async def crowd(network: Network, key: str = "k") -> tuple[list[str], list[str]]:
    """Who holds a token (in no order) and who waits for one; the counts agree."""
    found = await network.limit(key)
    assert (found.held, found.waiting) == (len(found.holders), len(found.waiters))
    return sorted(found.holders), list(found.waiters)


async def test_no_more_than_the_limit_start_and_the_next_follows_each_end(network: Network) -> None:
    worker = await network.worker()
    await submit(network, "a", "b", "c", "d", limit=2)
    assert await crowd(network) == (["a", "b"], ["c", "d"])
    first, second = await network.take(worker)
    assert await network.take(worker) == []
    assert await network.standing("a", "c") == [("running", None), ("queued", "limit")]
    await network.report(worker, first, "success")
    await network.settle()
    (third,) = await network.take(worker)
    assert third.job_id == "c"
    await network.exchange(worker, reports=[report(second, "fatal_failure"), report(third, "success")])
    await network.settle()
    assert [await network.run(worker), await network.run(worker)] == [["d"], []]
    assert await crowd(network) == ([], [])


async def test_waiters_are_let_in_by_rank(network: Network) -> None:
    worker = await network.worker()
    await submit(network, "holder")
    await submit(network, "low", priority="low")
    await submit(network, "first")
    network.clock.pass_seconds(1)
    await submit(network, "second")
    await submit(network, "high", priority="high")
    assert await crowd(network) == (["holder"], ["high", "first", "second", "low"])
    ran = [await network.run(worker) for _ in range(6)]
    assert ran == [["holder"], ["high"], ["first"], ["second"], ["low"], []]


async def test_keys_do_not_stand_in_each_others_way(network: Network) -> None:
    worker = await network.worker()
    await network.batch(of("x", job_id="x1"), of("x", job_id="x2"), of("y", job_id="y1"), {"job_id": "free"})
    await network.settle()
    assert set(await network.run(worker)) == {"x1", "y1", "free"}
    assert await network.run(worker) == ["x2"]


async def test_the_same_key_in_another_namespace_is_another_key(network: Network) -> None:
    stranger = Caller(name="stranger", namespace="elsewhere")
    await submit(network, "mine", limit=1)
    await network.submitted(caller=stranger, **of("k", 5, job_id="theirs"))
    await network.settle()
    assert await crowd(network) == (["mine"], [])
    theirs = await network.services.limits.read("k", stranger)
    assert (theirs.limit, theirs.holders) == (5, ["theirs"])


async def test_never_more_than_the_limit_are_leased_whatever_the_workers_do(network: Network) -> None:
    """Counted from what workers were given and have not handed back."""
    dice = random.Random(5)
    limits = {"a": 1, "b": 2, "c": 5}
    names = [f"{key}{number}" for number in range(40) for key in limits]
    retry = {"max_attempts": 1000, "max_lost": 1000, "delays": [0]}
    for name in names:
        await network.submit(**of(name[0], limits[name[0]], job_id=name, retry=retry))
    await network.settle()
    workers = [await network.worker() for _ in range(4)]
    held: dict[str, list[AssignedJob]] = {worker: [] for worker in workers}
    succeeded: Counter[str] = Counter()
    while sum(succeeded.values()) < len(names):
        worker = dice.choice(workers)
        ended = dice.sample(held[worker], dice.randint(0, len(held[worker])))
        words = [dice.choice(["success", "success", "retriable_failure", "released"]) for _ in ended]
        succeeded.update(job.job_id for job, word in zip(ended, words, strict=True) if word == "success")
        answer = await network.exchange(
            worker,
            reports=[report(job, word) for job, word in zip(ended, words, strict=True)],
            free={"slot": dice.randint(0, 4)},
        )
        assert answer.rejected == []
        held[worker] = [job for job in held[worker] if job not in ended] + list(answer.jobs)
        running = Counter(job.job_id[0] for jobs in held.values() for job in jobs)
        assert all(running[key] <= limit for key, limit in limits.items()), running
        if dice.random() < 0.1:  # without a word: what it held comes back when its lease is over
            held.pop(worker)
            workers.remove(worker)
            await network.services.workers.leave(worker, ADMIN)
            workers.append(await network.worker())
            held[workers[-1]] = []
        await network.admit()
    assert set(succeeded.values()) == {1}
    assert [await crowd(network, key) for key in limits] == [([], [])] * 3


async def test_a_job_that_is_to_be_tried_again_gives_its_token_up(network: Network) -> None:
    worker = await network.worker()
    await submit(network, "a", "b", retry={"backoff": "fixed", "initial": 5, "jitter": 0})
    assert await network.run(worker, "retriable_failure") == ["a"]
    assert await network.standing("a", "b") == [("retrying", "time"), ("queued", None)]
    network.clock.pass_seconds(5)
    await network.admit()
    assert await network.standing("a", "b") == [("queued", "limit"), ("queued", None)]
    assert [await network.run(worker), await network.run(worker)] == [["b"], ["a"]]


async def test_a_job_that_is_handed_back_stands_in_line_again(network: Network) -> None:
    worker = await network.worker()
    await submit(network, "a")
    await submit(network, "b", priority="high")
    assert await network.run(worker, "released") == ["a"]
    assert [await network.run(worker), await network.run(worker)] == [["b"], ["a"]]


@pytest.mark.parametrize("state", ["ready", "leased"])
async def test_a_cancel_gives_the_token_on(network: Network, state: str) -> None:
    worker = await network.worker()
    await submit(network, "a", "b")
    held = await network.take(worker) if state == "leased" else []
    assert await network.cancel("a") == ("cancelling" if held else "cancelled")
    await network.settle()
    for job in held:
        assert await network.status("b") == "queued"
        assert await network.take(worker) == [], "its handler may still run"
        await network.report(worker, job, "cancelled")
        await network.settle()
    assert await network.run(worker) == ["b"]


async def test_a_pause_gives_the_token_on_and_a_resume_takes_one_again(network: Network) -> None:
    await submit(network, "a", "b")
    assert await network.pause("a") == "paused"
    await network.settle()
    assert await crowd(network) == (["b"], [])
    assert await network.resume("a") == "queued"
    await network.settle()
    assert await crowd(network) == (["b"], ["a"])


async def test_a_dead_workers_tokens_come_back(network: Network) -> None:
    worker = await network.worker()
    await submit(network, "a", "b", retry={"backoff": "fixed", "initial": 5, "jitter": 0})
    await network.take(worker)
    network.clock.pass_seconds(31)
    assert await network.services.recover.missed() == 1
    await network.settle()
    assert await crowd(network) == (["b"], [])


async def test_a_job_that_is_past_its_deadline_gives_its_token_on(network: Network) -> None:
    await submit(network, "a", deadline="2027-01-01T00:00:00Z")
    await submit(network, "b")
    network.clock.time = 2_000_000_000_000_000
    assert await network.services.recover.expired() == 1
    await network.settle()
    assert await crowd(network) == (["b"], [])


async def test_a_scheduled_job_stands_in_line_when_its_time_has_come(network: Network) -> None:
    await submit(network, "now")
    await submit(network, "later", delay=20)
    assert await crowd(network) == (["now"], [])
    assert await network.standing("later") == [("scheduled", "time")]
    network.clock.pass_seconds(20)
    await network.admit()
    assert await crowd(network) == (["now"], ["later"])


async def test_a_child_stands_in_line_when_its_parent_has_ended(network: Network) -> None:
    worker = await network.worker(job_types=["parent"])
    await submit(network, "holder")
    await network.submit("parent", job_id="parent")
    await submit(network, "child", depends_on=["parent"])
    assert await crowd(network) == (["holder"], [])
    await network.run(worker)
    assert await crowd(network) == (["holder"], ["child"])


async def test_the_newest_limit_applies(network: Network) -> None:
    await submit(network, "a", "b", "c", limit=1)
    await submit(network, "d", limit=3)
    assert await crowd(network) == (["a", "b", "c"], ["d"])
    await network.batch(of("k", 7, job_id="e"), of("k", 2, job_id="f"))
    await network.settle()
    assert (await network.limit("k")).limit == 2
    assert await crowd(network) == (["a", "b", "c"], ["d", "e", "f"])
    assert (await network.info("a")).concurrency == ConcurrencyInfo(key="k", limit=2)


async def test_a_raised_limit_lets_in_at_once(network: Network) -> None:
    worker = await network.worker()
    await submit(network, "a", "b", "c")
    changed = await network.set_limit("k", 2)
    assert (changed.limit, changed.held, changed.holders, changed.waiters) == (2, 2, changed.holders, ["c"])
    assert set(await network.run(worker)) == {"a", "b"}


async def test_a_lowered_limit_throws_nobody_out(network: Network) -> None:
    worker = await network.worker()
    await submit(network, "a", "b", "c", "d", limit=3)
    jobs = await network.take(worker)
    await network.set_limit("k", 1)
    for job in jobs[:2]:
        await network.report(worker, job, "success")
        await network.settle()
        assert await network.take(worker) == []
    await network.report(worker, jobs[2], "success")
    await network.settle()
    assert await network.run(worker) == ["d"]


async def test_a_key_may_be_set_before_its_first_job(network: Network) -> None:
    with pytest.raises(NotFound, match="there is no concurrency key 'k'"):
        await network.limit("k")
    made = await network.set_limit("k", 4)
    assert (made.key, made.limit, made.held, made.waiting) == ("k", 4, 0, 0)


async def test_a_change_takes_a_key_changes_it_and_takes_it_away(network: Network) -> None:
    await submit(network, "holder")
    await network.submit(**of("other", job_id="other"))
    await network.settle()
    await network.submit(job_id="a")
    await network.change("a", **of("k"))
    await network.settle()
    assert await network.standing("a") == [("queued", "limit")]
    await network.change("a", priority="high")
    await network.settle()
    assert (await crowd(network), await network.standing("a")) == ((["holder"], ["a"]), [("queued", "limit")])
    await network.change("a", **of("other"))
    await network.settle()
    assert (await crowd(network), await crowd(network, "other")) == ((["holder"], []), (["other"], ["a"]))
    assert (await network.info("a")).concurrency == ConcurrencyInfo(key="other", limit=1)
    await network.change("a", concurrency=None)
    assert await network.standing("a") == [("queued", "no_worker")]
    assert (await network.info("a")).concurrency is None
    await network.change("holder", concurrency=None)
    await submit(network, "next")
    assert await crowd(network) == (["next"], [])


async def test_a_change_of_a_holders_key_gives_the_old_token_on(network: Network) -> None:
    await submit(network, "a", "b")
    await network.change("a", **of("other"))
    await network.settle()
    assert (await crowd(network), await crowd(network, "other")) == ((["b"], []), (["a"], []))


async def test_run_now_keeps_the_key(network: Network) -> None:
    await submit(network, "holder")
    await submit(network, "later", delay="1h")
    await network.services.control.run("later", if_match=None, caller=ADMIN)
    await network.settle()
    assert await crowd(network) == (["holder"], ["later"])
    worker = await network.worker()
    await network.run(worker)
    with pytest.raises(Conflict):
        await network.services.control.run("holder", if_match=None, caller=ADMIN)


async def test_what_is_refused_sets_no_limit(network: Network) -> None:
    worker = await network.worker()
    await submit(network, "a", limit=3)
    with pytest.raises(BadInput, match="not both"):
        await network.submit(**of("k", 9, schedule_time="2027-01-01T00:00:00Z", delay=1))
    with pytest.raises(BadInput):
        await network.batch(of("k", 9), {"timeout": 0})
    with pytest.raises(BadInput):
        await network.submit(**of("k", 9, depends_on=["nobody"]))
    with pytest.raises(BadInput):
        await network.change("a", priority=99, **of("k", 9))
    await network.run(worker)
    with pytest.raises(Conflict):
        await network.change("a", **of("k", 9))
    assert (await network.limit("k")).limit == 3


async def test_all_waiting_jobs_are_cancelled_at_once_with_their_places_in_line(network: Network) -> None:
    await submit(network, "a", "b", "c")
    await network.services.control.many("cancel", ManyBody(filter=FilterBody(status="queued")), ADMIN)
    await network.settle()
    assert await crowd(network) == ([], [])


async def test_keys_are_listed_by_name_page_by_page(network: Network) -> None:
    for name in ("beta", "alpha", "gamma", "élan"):
        await network.submit(**of(name, 2))
    await network.settle()
    page, cursor = await network.services.limits.page(limit=2, cursor=None, caller=ANYBODY)
    assert ([each.key for each in page], cursor) == (["alpha", "beta"], "beta")
    rest, end = await network.services.limits.page(limit=2, cursor=cursor, caller=ANYBODY)
    assert ([(each.key, each.limit, each.held) for each in rest], end) == ([("gamma", 2, 1), ("élan", 2, 1)], None)
    nothing = await network.services.limits.page(limit=2, cursor=None, caller=Caller(name="x", namespace="empty"))
    assert nothing == ([], None)


async def test_of_many_who_hold_and_wait_the_first_are_named(network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits_module, "NAMES_SHOWN", 2)
    await submit(network, *"abcdefg", limit=3)
    found = await network.limit("k")
    assert (found.held, found.waiting, len(found.holders), found.waiters) == (3, 4, 2, ["d", "e"])


async def test_a_job_that_is_gone_before_it_is_named_is_left_out(network: Network) -> None:
    worker = await network.worker()
    await submit(network, "a", "b")

    async def end_and_forget() -> None:
        await network.run(worker)
        network.clock.pass_seconds(1)
        await network.store.forget(network.clock.now(), 100)

    network.store.before("load", end_and_forget)
    found = await network.limit("k")
    assert (found.holders, found.waiters) == ([], ["b"])


async def test_tokens_whose_answer_was_lost_are_given_once(network: Network) -> None:
    worker = await network.worker()
    network.store.after("give_tokens", failing(LOST))
    await submit(network, "a", "b", "c", limit=2)
    assert await crowd(network) == (["a", "b"], ["c"])
    await network.services.dispatch.look()  # the hint was lost with the answer
    assert set(await network.run(worker)) == {"a", "b"}
    assert await network.run(worker) == ["c"]


async def test_a_report_whose_answer_was_lost_gives_one_token_back(network: Network) -> None:
    worker = await network.worker()
    await submit(network, "a", "b", "c")
    (job,) = await network.take(worker)
    network.store.after("save", failing(LOST))
    await network.report(worker, job, "success")
    await network.services.limits.give_forgotten()
    assert await crowd(network) == (["b"], ["c"])


async def test_those_that_wait_are_found_without_a_hint(network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits_module, "CROWDED_CHUNK", 2)
    for key in "vwxyz":
        await network.submit(**of(key))
        await network.submit(**of(key))
    await network.services.limits.give_forgotten()
    assert [(await network.limit(key)).held for key in "vwxyz"] == [1] * 5


async def test_runs_of_a_schedule_take_tokens_and_a_change_of_it_changes_their_key(network: Network) -> None:
    body = {"schedule_id": "beat", "every": "1h", "overlap": "allow", "max_concurrency": 9}
    job = {"job_type": "echo"} | of("k", 1)
    await network.services.schedules.create(msgspec.convert(body | {"job": job}, ScheduleBody), ADMIN)
    for _ in range(3):
        await network.services.schedules.trigger("beat", ADMIN)
    network.clock.pass_seconds(1)
    await network.admit()
    found = await network.limit("k")
    assert (found.limit, found.held, found.waiting) == (1, 1, 2)
    change = msgspec.convert({"job": {"job_type": "echo"} | of("other", 2)}, ScheduleUpdateBody)
    await network.services.schedules.update("beat", change, if_match=None, caller=ADMIN)
    await network.settle()
    assert (await crowd(network), (await network.limit("other")).held) == (([], []), 2)


async def test_a_jobs_list_shows_the_limit_that_applies(network: Network) -> None:
    await submit(network, "a", limit=1)
    await network.submit(job_id="free")
    await network.set_limit("k", 8)
    jobs, _ = await network.services.query.jobs(FilterBody(), limit=10, cursor=None, caller=ADMIN)
    assert {job.job_id: job.concurrency for job in jobs} == {"a": ConcurrencyInfo(key="k", limit=8), "free": None}
