"""Jobs that depend on jobs: they start once their parents have ended as was asked, and end where that can not be."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from foliot.domain.access import Caller
from foliot.domain.errors import BadInput, Conflict, NotFound, Unavailable
from foliot.domain.ids import ScheduleKey
from foliot.domain.job import Waiting
from foliot.service import graphs as graphs_module
from foliot.service.announce import announce_released
from foliot.store.base import Released
from foliot.wire import DependsOn
from tests.service.conftest import report
from tests.service.meddling import failing
from tests.service.network import Network, open_network

LOST = Unavailable("the answer was lost", fate_unknown=True)
STRANGER = Caller(name="stranger", namespace="elsewhere")


@pytest.fixture
async def network() -> AsyncIterator[Network]:
    async with open_network() as network:
        yield network


async def refused(network: Network, *jobs: dict[str, Any]) -> tuple[str, str]:
    """The field and the words with which a batch is refused; nothing of it is kept."""
    before = await network.known()
    with pytest.raises(BadInput) as caught:
        await network.batch(*jobs)
    assert await network.known() == before
    (error,) = caught.value.errors
    return error.field, error.message


async def test_a_child_waits_for_its_parent_by_the_clients_own_id(network: Network) -> None:
    worker = await network.worker()
    parent = await network.submit(job_id="extract")
    child = await network.submit(depends_on=["extract"])
    assert await network.standing(child) == [("blocked", "dependency")]
    assert await network.run(worker) == [parent]
    assert await network.run(worker) == [child]


async def test_a_child_waits_for_its_parent_by_a_generated_id(network: Network) -> None:
    worker = await network.worker()
    parent = await network.submit()
    child = await network.submit(depends_on=[parent])
    assert (await network.info(child)).depends_on == [DependsOn(job_id=parent, on="success")]
    assert [await network.run(worker) for _ in range(3)] == [[parent], [child], []]


async def test_a_batch_may_be_a_graph_in_any_order(network: Network) -> None:
    worker = await network.worker()
    (load, *_) = (
        await network.batch(
            {"job_id": "load", "depends_on": ["left", "right"]},
            {"job_id": "left", "depends_on": ["extract"]},
            {"job_id": "right", "depends_on": ["extract"]},
            {"job_id": "extract"},
        )
    ).job_ids
    assert await network.statuses("extract", "left", "right", "load") == ["queued", "blocked", "blocked", "blocked"]
    assert [set(await network.run(worker)) for _ in range(4)] == [{"extract"}, {"left", "right"}, {load}, set()]


async def test_in_a_batch_a_child_may_also_depend_on_a_job_from_before(network: Network) -> None:
    worker = await network.worker()
    old = await network.submit()
    await network.batch({"job_id": "new"}, {"job_id": "both", "depends_on": [old, "new"]})
    assert set(await network.run(worker)) == {old, "new"}
    assert await network.run(worker) == ["both"]


async def test_two_parents_that_end_in_one_call_count_as_two(network: Network) -> None:
    worker = await network.worker()
    parents = [await network.submit() for _ in range(2)]
    child = await network.submit(depends_on=parents)
    first, second = await network.take(worker)
    await network.exchange(worker, reports=[report(first, "success"), report(second, "success")])
    await network.settle()
    assert await network.run(worker) == [child]


async def test_a_parent_named_twice_counts_once(network: Network) -> None:
    worker = await network.worker()
    parent = await network.submit(job_id="a")
    child = await network.submit(depends_on=["a", {"job_id": "a"}, "a"])
    assert (await network.info(child)).depends_on == [DependsOn(job_id=parent)]
    await network.run(worker)
    assert await network.run(worker) == [child]


async def test_a_parent_is_found_by_either_of_its_ids(network: Network) -> None:
    worker = await network.worker()
    await network.submit(job_id="a")
    ours = (await network.take_one(worker)).idempotency_key
    child = await network.submit(depends_on=["a", ours])
    assert (await network.info(child)).depends_on == [DependsOn(job_id="a")]


@pytest.mark.parametrize("ended", ["success", "fatal_failure", "cancel"])
@pytest.mark.parametrize("on", ["success", "failure", "any"])
@pytest.mark.parametrize("late", [False, True])
async def test_a_child_starts_or_is_cancelled_by_how_its_parent_ended(
    network: Network, on: str, ended: str, late: bool
) -> None:
    worker = await network.worker()
    parent = await network.submit(job_id="parent")
    child = None if late else await network.submit(depends_on=[{"job_id": parent, "on": on}])
    if ended == "cancel":
        await network.cancel(parent)
        await network.settle()
    else:
        await network.run(worker, ended)
    if child is None:
        child = await network.submit(depends_on=[{"job_id": parent, "on": on}])
        await network.settle()
    holds = on == "any" or (on == "success") == (ended == "success")
    reason = {"success": "parent_completed", "fatal_failure": "parent_failed", "cancel": "parent_cancelled"}[ended]
    assert await network.standing(child) == [("queued", None) if holds else ("cancelled", reason)]


async def test_a_cancelled_job_takes_all_below_it_along(network: Network) -> None:
    await network.batch(
        {"job_id": "a"},
        {"job_id": "b", "depends_on": ["a"]},
        {"job_id": "c", "depends_on": ["b"]},
        {"job_id": "else", "depends_on": [{"job_id": "b", "on": "failure"}]},
    )
    await network.cancel("a")
    await network.settle()
    assert await network.standing("a", "b", "c", "else") == [
        ("cancelled", "cancelled_by"),
        ("cancelled", "parent_cancelled"),
        ("cancelled", "parent_cancelled"),
        ("queued", "no_worker"),
    ]


async def test_a_child_that_is_cancelled_itself_leaves_its_parent_alone(network: Network) -> None:
    worker = await network.worker()
    parent = await network.submit(job_id="a")
    await network.batch({"job_id": "b", "depends_on": ["a"]}, {"job_id": "c", "depends_on": ["a"]})
    assert await network.cancel("b") == "cancelled"
    assert await network.run(worker) == [parent]
    assert await network.standing("b", "c") == [("cancelled", "cancelled_by"), ("queued", None)]


async def test_a_parent_that_is_tried_again_has_not_ended(network: Network) -> None:
    worker = await network.worker()
    await network.submit(job_id="a", retry={"backoff": "fixed", "initial": 1, "jitter": 0})
    child = await network.submit(depends_on=["a"])
    assert await network.run(worker, "retriable_failure") == ["a"]
    assert await network.statuses("a", child) == ["retrying", "blocked"]
    network.clock.pass_seconds(1)
    await network.admit()
    assert [await network.run(worker), await network.run(worker)] == [["a"], [child]]


async def test_a_child_whose_time_has_not_come_waits_for_that_then(network: Network) -> None:
    heard: list[int] = []
    network.wake.on_due.append(lambda time, _key, _tell: heard.append(time - network.clock.now()))
    worker = await network.worker()
    await network.submit(job_id="a")
    child = await network.submit(depends_on=["a"], delay=20)
    assert heard == []
    await network.run(worker)
    assert (await network.standing(child), heard) == ([("scheduled", "time")], [20_000_000])
    network.clock.pass_seconds(20)
    await network.admit()
    assert await network.run(worker) == [child]


async def test_a_child_that_is_held_stays_so_when_its_parent_ends(network: Network) -> None:
    worker = await network.worker()
    await network.submit(job_id="a")
    child = await network.submit(depends_on=["a"])
    assert await network.pause(child) == "paused"
    await network.run(worker)
    assert await network.standing(child) == [("paused", "hold")]
    assert await network.resume(child) == "queued"


async def test_a_child_that_is_changed_still_waits_for_its_parent(network: Network) -> None:
    worker = await network.worker()
    await network.submit(job_id="a")
    child = await network.submit(depends_on=["a"])
    await network.change(child, priority="high", payload={"n": 1})
    assert await network.standing(child) == [("blocked", "dependency")]
    assert [await network.run(worker), await network.run(worker)] == [["a"], [child]]


async def test_a_child_that_comes_while_its_parent_runs_is_not_overlooked(network: Network) -> None:
    worker = await network.worker()
    parent = await network.submit()
    job = await network.take_one(worker)
    child = await network.submit(depends_on=[parent])
    await network.report(worker, job, "success")
    await network.settle()
    assert await network.run(worker) == [child]


async def test_a_child_is_told_how_its_parents_ended_and_what_they_returned(network: Network) -> None:
    worker = await network.worker()
    named, unnamed = await network.submit(job_id="a"), await network.submit()
    for job, result in zip(await network.take(worker, 2), [{"rows": 3}, None], strict=True):
        outcome = {"result": result} if result else {}
        await network.report(worker, job, "success" if result else "fatal_failure", **outcome)
    await network.submit(depends_on=[named, {"job_id": unnamed, "on": "any"}])
    await network.settle()
    job = await network.take_one(worker)
    told = {name: (each["status"], each["result"] and bytes(each["result"])) for name, each in job.upstream.items()}
    assert told == {named: ("completed", b'{"rows":3}'), unnamed: ("failed", None)}


@pytest.mark.parametrize("bound", ["UPSTREAM_LIMIT", "UPSTREAM_TOTAL"])
async def test_a_child_is_told_where_to_fetch_a_result_that_is_too_long(
    network: Network, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    monkeypatch.setattr(graphs_module, bound, 10)
    worker = await network.worker()
    await network.submit(job_id="a")
    await network.submit(depends_on=["a"])
    await network.run(worker, result="much too long")
    job = await network.take_one(worker)
    assert job.upstream == {"a": {"status": "completed", "result": None, "note": "too long: GET /jobs/a/result"}}
    assert await network.services.query.result("a", Caller(name="anybody")) == b'"much too long"'


async def test_what_a_child_is_told_is_sent_again_with_it(network: Network) -> None:
    worker = await network.worker()
    await network.submit(job_id="a")
    await network.submit(depends_on=["a"])
    await network.run(worker, result=1)
    lost = await network.take_one(worker)
    (again,) = (await network.exchange(worker, holds=[])).jobs
    assert (again.token, again.upstream) == (lost.token, lost.upstream)
    assert set(again.upstream) == {"a"}


async def test_jobs_without_parents_cost_no_look_at_any(network: Network) -> None:
    worker = await network.worker()
    await network.submit()
    assert (await network.take_one(worker)).upstream == {}
    assert network.store.calls["upstream"] == 0


@pytest.mark.parametrize("name", ["nobody", "j_0000000000000001"])
async def test_an_unknown_parent_is_named_by_its_place(network: Network, name: str) -> None:
    plain = [{}, {"job_id": "a"}, {}]
    assert await refused(network, *plain, {"depends_on": [name]}) == (
        "jobs[3].depends_on[0]",
        f"there is no job {name!r}; submit it first, or in the same batch",
    )
    assert (await refused(network, *plain, {"depends_on": ["a", {"job_id": name}]}))[0] == "jobs[3].depends_on[1]"
    with pytest.raises(BadInput) as caught:
        await network.submit(depends_on=[name])
    assert [error.field for error in caught.value.errors] == ["depends_on[0]"]


async def test_another_namespaces_job_is_unknown(network: Network) -> None:
    named = await network.submitted(caller=STRANGER, job_id="theirs")
    unnamed = await network.submitted(caller=STRANGER)
    for theirs in (named.job_id, unnamed.job_id):
        assert (await refused(network, {"depends_on": [theirs]}))[0] == "jobs[0].depends_on[0]"
        assert (await network.submitted(caller=STRANGER, depends_on=[theirs])).job_id


async def test_a_parent_whose_history_is_gone_is_unknown(network: Network) -> None:
    parent = await network.submit()
    await network.cancel(parent)
    network.clock.pass_seconds(1)
    await network.store.forget(network.clock.now(), 100)
    assert (await refused(network, {"depends_on": [parent]}))[0] == "jobs[0].depends_on[0]"


async def test_a_parent_that_goes_while_its_child_is_kept_leaves_no_orphan(network: Network) -> None:
    parent = await network.submit()
    await network.cancel(parent)
    network.clock.pass_seconds(1)
    network.store.before("insert_jobs", lambda: network.store.forget(network.clock.now(), 100))
    with pytest.raises(Conflict, match="depends_on has gone from history"):
        await network.submit(depends_on=[parent])
    assert await network.known() == 0


async def test_a_circle_is_named(network: Network) -> None:
    field, message = await refused(
        network,
        {"job_id": "start"},
        {"job_id": "a", "depends_on": ["start", "c"]},
        {"job_id": "b", "depends_on": ["a"]},
        {"job_id": "c", "depends_on": [{"job_id": "b", "on": "any"}]},
    )
    assert (field, message.rpartition(": ")[2]) == ("jobs[1].depends_on", "a → c → b → a")
    with pytest.raises(BadInput, match="mine → mine") as caught:
        await network.submit(job_id="mine", depends_on=["mine"])
    assert [error.field for error in caught.value.errors] == ["depends_on"]


async def test_a_parent_named_twice_with_different_words_is_refused(network: Network) -> None:
    field, message = await refused(
        network, {"job_id": "a"}, {"depends_on": ["a", {"job_id": "a", "on": "success"}, {"job_id": "a", "on": "any"}]}
    )
    assert field == "jobs[1].depends_on[2]"
    assert message == "job 'a' is named twice with different `on`; name it once"


async def test_a_name_twice_in_a_batch_is_one_parent(network: Network) -> None:
    worker = await network.worker()
    await network.batch({"job_id": "a"}, {"job_id": "a"}, {"job_id": "b", "depends_on": ["a"]})
    assert [await network.run(worker) for _ in range(3)] == [["a"], ["b"], []]


async def test_a_graph_submitted_again_is_the_same_graph(network: Network) -> None:
    worker = await network.worker()
    graph: list[dict[str, Any]] = [{"job_id": "a"}, {"job_id": "b", "depends_on": ["a"]}, {"depends_on": ["a"]}]
    first = await network.batch(*graph)
    again = await network.batch(*graph)  # its last job has no name and is another one: it depends on the first's parent
    assert await network.run(worker) == ["a"]
    assert set(await network.run(worker)) == {"b", first.job_ids[2], again.job_ids[2]}


async def test_a_graph_whose_answer_was_lost_is_kept_once(network: Network) -> None:
    worker = await network.worker()
    network.store.after("insert_jobs", failing(LOST))
    await network.batch({"job_id": "a"}, {"depends_on": ["a"]}, {"depends_on": ["a"]})
    assert network.store.calls["insert_jobs"] == 2
    assert (await network.known(), await network.run(worker)) == (3, ["a"])
    assert len(await network.run(worker)) == 2


async def test_a_release_whose_answer_was_lost_starts_nothing_twice(network: Network) -> None:
    worker = await network.worker()
    await network.batch({"job_id": "a"}, {"job_id": "b"}, {"job_id": "c", "depends_on": ["a", "b"]})
    network.store.after("release", failing(LOST))
    with pytest.raises(Unavailable):
        await network.run(worker, count=1)
    network.wake.release()
    await network.settle()
    assert await network.statuses("a", "b", "c") == ["completed", "queued", "blocked"]
    assert [await network.run(worker) for _ in range(3)] == [["b"], ["c"], []]


async def test_a_parent_that_its_dead_worker_took_along_breaks_its_child(network: Network) -> None:
    worker = await network.worker()
    await network.submit(job_id="a", retry={"on_lost": "fail"})
    child = await network.submit(depends_on=["a"])
    await network.take_one(worker)
    network.clock.pass_seconds(31)
    await network.services.recover.missed()
    await network.settle()
    assert await network.standing("a", child) == [("failed", "lost"), ("cancelled", "parent_failed")]


async def test_a_parent_past_its_deadline_breaks_its_child_which_may_have_one_too(network: Network) -> None:
    deadline = "2027-01-01T00:00:00Z"
    await network.submit(job_id="a", deadline=deadline)
    await network.submit(job_id="b", delay=10**9)
    children = [await network.submit(depends_on=["a"]), await network.submit(depends_on=["b"], deadline=deadline)]
    network.clock.time = 2_000_000_000_000_000
    await network.services.recover.expired()
    await network.settle()
    assert await network.standing(*children) == [("cancelled", "parent_failed"), ("failed", "expired")]


async def test_a_graph_is_shown_up_and_down(network: Network) -> None:
    worker = await network.worker()
    await network.batch(
        {"job_id": "a", "job_type": "make"},
        {"job_id": "b", "depends_on": ["a"]},
        {"job_id": "c", "depends_on": [{"job_id": "b", "on": "any"}]},
        {"job_id": "aside", "depends_on": [{"job_id": "a", "on": "failure"}]},
        {"job_id": "alone"},
    )
    assert sorted(await network.run(worker)) == ["a", "alone"]
    for start in ("a", "b", "c", "aside"):
        graph = await network.services.graphs.graph(start, Caller(name="anybody"))
        assert graph.nodes[0].job_id == start
        assert {(node.job_id, node.job_type, node.status) for node in graph.nodes} == {
            ("a", "make", "completed"),
            ("b", "echo", "queued"),
            ("c", "echo", "blocked"),
            ("aside", "echo", "cancelled"),
        }
        assert {(edge.parent, edge.child, edge.on) for edge in graph.edges} == {
            ("a", "b", "success"),
            ("b", "c", "any"),
            ("a", "aside", "failure"),
        }
        assert graph.complete
    alone = await network.services.graphs.graph("alone", Caller(name="anybody"))
    assert ([node.job_id for node in alone.nodes], alone.edges, alone.complete) == (["alone"], [], True)


async def test_of_a_graph_that_is_too_large_a_part_is_shown_and_said_so(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    await network.batch({"job_id": "a"}, *({"job_id": f"b{n}", "depends_on": ["a"]} for n in range(5)))
    monkeypatch.setattr(graphs_module, "NODES_SHOWN", 4)
    graph = await network.services.graphs.graph("a", Caller(name="anybody"))
    assert (len(graph.nodes), len(graph.edges), graph.complete) == (4, 3, False)
    monkeypatch.setattr(graphs_module, "NODES_SHOWN", 6)
    assert (await network.services.graphs.graph("a", Caller(name="anybody"))).complete
    monkeypatch.setattr(graphs_module, "EDGES_SHOWN", 3)
    graph = await network.services.graphs.graph("a", Caller(name="anybody"))
    assert (len(graph.nodes), len(graph.edges), graph.complete) == (4, 3, False)


async def test_a_graph_with_more_edges_than_fit_is_not_complete_though_all_its_jobs_are_shown(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graphs_module, "EDGES_SHOWN", 4)
    await network.batch(
        {"job_id": "a"},
        {"job_id": "b", "depends_on": ["a"]},
        {"job_id": "c", "depends_on": ["a", "b"]},
        {"job_id": "d", "depends_on": ["a", "b", "c"]},
    )
    graph = await network.services.graphs.graph("a", Caller(name="anybody"))
    assert (len(graph.nodes), len(graph.edges), graph.complete) == (4, 4, False)


async def test_a_graph_whose_past_is_gone_is_shown_as_far_as_it_is_there(network: Network) -> None:
    await network.submit(job_id="a")
    await network.cancel("a")
    network.clock.pass_seconds(1)
    child = await network.submit(depends_on=[{"job_id": "a", "on": "any"}], delay="1h")
    await network.settle()
    await network.store.forget(network.clock.now(), 100)
    graph = await network.services.graphs.graph(child, Caller(name="anybody"))
    assert ([node.job_id for node in graph.nodes], graph.edges, graph.complete) == ([child], [], True)
    assert (await network.info(child)).depends_on == []


async def test_another_namespaces_graph_is_not_found(network: Network) -> None:
    job_id = await network.submit()
    with pytest.raises(NotFound):
        await network.services.graphs.graph(job_id, STRANGER)


async def test_a_chain_of_thousands_is_taken_in(network: Network) -> None:
    chain = [{"job_id": f"n{n}", "depends_on": [f"n{n - 1}"] if n else []} for n in range(3000)]
    await network.batch(*reversed(chain))
    assert await network.statuses("n0", "n1", "n2999") == ["queued", "blocked", "blocked"]


async def test_the_row_of_a_child_counts_its_parents(network: Network) -> None:
    worker = await network.worker()
    parents = [await network.submit() for _ in range(3)]
    child = await network.submit(depends_on=parents)
    await network.run(worker, count=2)
    row = (await network.found(child)).row
    assert isinstance(row, Waiting)
    assert row.parents == 1


async def test_the_schedules_of_cancelled_children_are_told(network: Network) -> None:
    freed: list[set[ScheduleKey]] = []
    network.wake.on_freed.append(lambda keys: freed.append(set(keys)))
    announce_released(network.wake, Released(freed={ScheduleKey(5)}))
    assert freed == [{5}]
