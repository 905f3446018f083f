"""Jobs that depend on jobs: what a parent's end brings its children."""

import asyncio

import pytest

from foliot.domain import events
from foliot.domain.changes import Requeue
from foliot.domain.duration import DAY, SECOND
from foliot.domain.graph import BROKEN_BY, HOLDS, Edge, On
from foliot.domain.ids import JobKey
from foliot.domain.job import ENDED_STATES, Ended, Lease, Ready, State, Ties, Waiting
from foliot.domain.retry import Retry
from foliot.domain.states import transition
from foliot.store.base import Accepted, Due, Orphan, Parent, Released, Upstream
from tests.store.builders import Scene, shown


async def end(scene: Scene, lease: Lease, state: State = State.COMPLETED) -> None:
    """How a worker ends a job; a graph's children are not yet told."""
    match state:
        case State.COMPLETED:
            event: events.Event = events.Succeed(result="7")
        case State.FAILED:
            event = events.FailFatal()
        case _:
            await scene.happen(lease.id, events.Cancel())
            event = events.Stopped()
    change = scene.decide(await scene.record(lease.id), event)
    saved = await scene.store.save([change], scene.now)
    assert saved.done == {lease.id}
    assert saved.parents_ended


async def test_a_child_counts_its_parents_and_is_blocked(scene: Scene) -> None:
    parents = [(await scene.submitted()).id, (await scene.running(job_type="running")).id]
    parents.append((await scene.submitted(due=scene.later(60))).id)
    child = await scene.child(*parents)
    row = await scene.row(child.id)
    assert isinstance(row, Waiting)
    assert (row.parents, row.ties) == (3, Ties.PARENTS)
    assert [(await scene.row(key)).ties for key in parents] == [Ties.CHILDREN] * 3
    edges = await scene.store.edges([child.id], 10)
    assert set(edges) == {Edge(parent, child.id, On.SUCCESS) for parent in parents}
    assert await scene.release() == Released()


async def test_a_parent_keeps_its_version_when_it_gets_a_child(scene: Scene) -> None:
    """So that a claim, a report or a pause that is under way does not lose."""
    lease = await scene.running()
    report = scene.decide(await scene.record(lease.id), events.Succeed())
    child = await scene.child(lease.id)
    saved = await scene.store.save([report], scene.now)
    assert (saved.done, saved.parents_ended) == ({lease.id}, True)
    await scene.release()
    assert isinstance(await scene.row(child.id), Ready)


@pytest.mark.parametrize("event", [events.Pause(), events.FailRetriable()], ids=["pause", "retry"])
async def test_a_change_decided_before_the_child_came_does_not_overlook_it(scene: Scene, event: events.Event) -> None:
    if isinstance(event, events.Pause):
        key = (await scene.submitted(job_type="parent")).id
    else:
        key = (await scene.running(job_type="parent")).id
    change = scene.decide(await scene.record(key), event)
    child = await scene.child(key)
    assert await scene.save([change]) == {key}
    assert (await scene.row(key)).ties & Ties.CHILDREN
    await scene.happen(key, events.Cancel())
    await scene.release()
    assert isinstance(await scene.row(child.id), Ended)


@pytest.mark.parametrize("state", ENDED_STATES, ids=lambda state: state.name.lower())
@pytest.mark.parametrize("on", On, ids=lambda on: on.name.lower())
async def test_an_edge_holds_or_breaks_with_the_parents_end(scene: Scene, on: On, state: State) -> None:
    lease = await scene.running(job_type="parent")
    child = await scene.child(lease.id, on=on)
    before = await scene.row(child.id)
    assert isinstance(before, Waiting)
    await end(scene, lease, state)
    assert await scene.row(child.id) == before
    released = await scene.release()
    row = await scene.row(child.id)
    if state in HOLDS[on]:
        expected = transition(before, events.ParentsDone(), scene.now, retry=child.retry)
        assert isinstance(expected, Requeue)
        assert row == expected.row
        assert isinstance(row, Ready)
        assert released == Released(lanes={child.lane_id})
    else:
        assert isinstance(row, Ended)
        assert (row.state, row.reason, row.last) == (State.CANCELLED, BROKEN_BY[state], None)
        assert (row.ended, row.version) == (scene.now, before.version + 1)
        assert released == Released(cancelled={child.id})


async def test_a_child_waits_for_the_last_of_its_parents(scene: Scene) -> None:
    leases = [await scene.running(job_type="parent") for _ in range(3)]
    child = await scene.child(*(lease.id for lease in leases))
    versions = []
    for left, lease in ((2, leases[1]), (1, leases[0])):
        await end(scene, lease)
        assert await scene.release() == Released()
        row = await scene.row(child.id)
        assert isinstance(row, Waiting)
        assert row.parents == left
        versions.append(row.version)
    assert versions[0] < versions[1]
    await end(scene, leases[2])
    assert await scene.release() == Released(lanes={child.lane_id})
    assert isinstance(await scene.row(child.id), Ready)


async def test_a_change_decided_before_a_parent_was_counted_off_loses(scene: Scene) -> None:
    leases = [await scene.running(job_type="parent") for _ in range(2)]
    child = await scene.child(*(lease.id for lease in leases))
    pause = scene.decide(await scene.record(child.id), events.Pause())
    await end(scene, leases[0])
    await scene.release()
    assert await scene.save([pause]) == set()
    await scene.happen(child.id, events.Pause())
    await end(scene, leases[1])
    await scene.release()
    row = await scene.row(child.id)
    assert isinstance(row, Waiting)
    assert (row.hold, row.parents) == (True, 0)


async def test_two_parents_in_one_batch_count_twice(scene: Scene) -> None:
    leases = [await scene.running(job_type="parent") for _ in range(2)]
    child = await scene.child(*(lease.id for lease in leases))
    ends = [scene.decide(await scene.record(lease.id), events.Succeed()) for lease in leases]
    assert (await scene.store.save(ends, scene.now)).parents_ended
    assert await scene.release() == Released(lanes={child.lane_id})
    assert isinstance(await scene.row(child.id), Ready)


async def test_of_two_parents_in_one_batch_one_that_fails_cancels(scene: Scene) -> None:
    leases = [await scene.running(job_type="parent") for _ in range(2)]
    child = await scene.child(*(lease.id for lease in leases))
    ends = [
        scene.decide(await scene.record(leases[0].id), events.Succeed()),
        scene.decide(await scene.record(leases[1].id), events.FailFatal()),
    ]
    await scene.store.save(ends, scene.now)
    assert await scene.release() == Released(cancelled={child.id})


async def test_the_ends_of_jobs_without_children_leave_nothing_to_release(scene: Scene) -> None:
    lease = await scene.running()
    waiting = await scene.submitted(due=scene.later(60))
    ends = [scene.decide(await scene.record(lease.id), events.Succeed())]
    ends.append(scene.decide(await scene.record(waiting.id), events.Cancel()))
    assert not (await scene.store.save(ends, scene.now)).parents_ended
    assert await scene.release() == Released()


@pytest.mark.parametrize("place", ["waiting", "ready", "held"])
async def test_a_parent_that_is_cancelled_before_it_ran_cancels_its_children(scene: Scene, place: str) -> None:
    parent = await scene.submitted(due=scene.now if place == "ready" else scene.later(60))
    if place == "held":
        await scene.happen(parent.id, events.Pause())
    child, other = await scene.child(parent.id), await scene.child(parent.id, on=On.ANY)
    change = scene.decide(await scene.record(parent.id), events.Cancel())
    assert (await scene.store.save([change], scene.now)).parents_ended
    assert await scene.release() == Released(cancelled={child.id}, lanes={other.lane_id})
    row = await scene.row(child.id)
    assert isinstance(row, Ended)
    assert row.reason == "parent_cancelled"


async def test_a_cancellation_goes_down_a_chain(scene: Scene) -> None:
    lease = await scene.running(job_type="parent")
    chain = [lease.id]
    for _ in range(5):
        chain.append((await scene.child(chain[-1])).id)
    rescue = await scene.child(chain[-1], on=On.FAILURE)
    await end(scene, lease, State.FAILED)
    released = await scene.release()
    assert released.cancelled == set(chain[1:])
    rows = [(await scene.record(key)).row for key in chain[1:]]
    assert [row.reason for row in rows if isinstance(row, Ended)] == ["parent_failed", *["parent_cancelled"] * 4]
    assert isinstance(await scene.row(rescue.id), Ready)


async def test_a_held_child_stays_held(scene: Scene) -> None:
    lease = await scene.running(job_type="parent")
    child = await scene.child(lease.id)
    await scene.happen(child.id, events.Pause())
    await end(scene, lease)
    assert await scene.release() == Released()
    row = await scene.row(child.id)
    assert isinstance(row, Waiting)
    assert (row.hold, row.parents) == (True, 0)
    assert isinstance((await scene.happen(child.id, events.Resume())).row, Ready)


async def test_a_child_that_is_due_later_waits_for_its_time(scene: Scene) -> None:
    lease = await scene.running(job_type="parent")
    child = await scene.child(lease.id, due=scene.later(60))
    assert await scene.store.peek_due(scene.later(90), 5) == []
    await end(scene, lease)
    due = Due(child.due, child.id)
    assert await scene.release() == Released(due=(due,))
    assert await scene.store.peek_due(scene.later(90), 5) == [due]


async def test_a_child_with_a_key_waits_for_its_token(scene: Scene) -> None:
    number = await scene.limit("door", 1)
    lease = await scene.running(job_type="parent")
    child = await scene.child(lease.id, limit_key="door")
    assert await scene.store.crowded_limits(5) == []
    await end(scene, lease)
    assert await scene.release() == Released(limits={number})
    row = await scene.row(child.id)
    assert isinstance(row, Waiting)
    assert row.for_key
    assert await scene.store.give_tokens([number], scene.now) == [(child.id, child.lane_id)]


async def test_a_parent_that_has_ended_already_is_left_to_release(scene: Scene) -> None:
    failed = (await scene.ended(State.FAILED, job_type="failed")).job.id
    completed = (await scene.ended(job_type="completed")).job.id
    live = await scene.running(job_type="live")
    good, bad, both = [await scene.job() for _ in range(3)]
    answers = await scene.insert(
        scene.request(scene.new(good, Parent(completed, On.SUCCESS))),
        scene.request(scene.new(bad, Parent(failed, On.SUCCESS))),
        scene.request(scene.new(both, Parent(failed, On.FAILURE), Parent(live.id, On.SUCCESS))),
        scene.request(scene.new(await scene.job(job_type="child"), Parent(live.id, On.SUCCESS))),
        scene.request(scene.new(await scene.job(job_type="plain"))),
    )
    assert [isinstance(answer, Accepted) and answer.parents_ended for answer in answers] == [
        *[True] * 3,
        False,
        False,
    ]
    for job in (good, bad):
        row = await scene.row(job.id)
        assert isinstance(row, Waiting)
        assert row.parents == 1
    released = await scene.release()
    assert (released.lanes, released.cancelled) == ({good.lane_id}, {bad.id})
    assert isinstance(await scene.row(good.id), Ready)
    row = await scene.row(both.id)
    assert isinstance(row, Waiting)
    assert row.parents == 1


async def test_a_child_of_an_unknown_job_is_refused_with_all_of_its_request(scene: Scene) -> None:
    parent = await scene.submitted()
    before, sibling, orphan, after = [await scene.job(job_type="new") for _ in range(4)]
    unknown = JobKey(scene.new_id())
    answers = await scene.insert(
        scene.request(scene.new(before, Parent(parent.id, On.SUCCESS))),
        scene.request(
            scene.new(sibling), scene.new(orphan, Parent(parent.id, On.SUCCESS), Parent(unknown, On.SUCCESS))
        ),
        scene.request(scene.new(after, Parent(parent.id, On.ANY))),
    )
    assert answers[1] == Orphan(unknown)
    assert [isinstance(answer, Accepted) for answer in answers] == [True, False, True]
    assert set(await scene.store.load([before.id, sibling.id, orphan.id, after.id])) == {before.id, after.id}
    assert {edge.child for edge in await scene.store.edges([parent.id, orphan.id], 10)} == {before.id, after.id}


async def test_a_refused_graph_ties_nothing_to_the_jobs_that_are_there(scene: Scene) -> None:
    parent = await scene.submitted()
    child = await scene.job()
    refused = scene.new(child, Parent(parent.id, On.SUCCESS), Parent(JobKey(5), On.SUCCESS))
    assert await scene.insert(scene.request(refused, request_key="once")) == [Orphan(JobKey(5))]
    assert await scene.store.edges([parent.id, child.id], 10) == []
    (answer,) = await scene.insert(scene.request(scene.new(child, Parent(parent.id, On.SUCCESS)), request_key="once"))
    assert isinstance(answer, Accepted)
    assert list(answer.new) == [child.id]


async def test_a_whole_graph_comes_in_one_request(scene: Scene) -> None:
    top, left, right, bottom = [await scene.job(job_type=name) for name in ("top", "left", "right", "bottom")]
    (answer,) = await scene.insert(
        scene.request(
            scene.new(bottom, Parent(left.id, On.SUCCESS), Parent(right.id, On.ANY)),
            scene.new(right, Parent(top.id, On.SUCCESS)),
            scene.new(left, Parent(top.id, On.SUCCESS)),
            scene.new(top),
        )
    )
    assert isinstance(answer, Accepted)
    assert list(answer.ids) == [shown(job) for job in (bottom, right, left, top)]
    assert not answer.parents_ended
    rows = {job.lane.job_type: await scene.row(job.id) for job in (top, left, right, bottom)}
    assert {name: row.ties for name, row in rows.items()} == {
        "top": Ties.CHILDREN,
        "left": Ties.CHILDREN | Ties.PARENTS,
        "right": Ties.CHILDREN | Ties.PARENTS,
        "bottom": Ties.PARENTS,
    }
    worker = await scene.worker()
    order = []
    for _ in range(3):
        for job in (top, left, right, bottom):
            for claimed in await scene.claim(worker, job):
                order.append(claimed.job.lane.job_type)
                await scene.happen(job.id, events.Succeed())
        await scene.release()
    assert order == ["top", "left", "right", "bottom"]


async def test_a_parent_of_an_earlier_request_in_the_same_call_is_found(scene: Scene) -> None:
    parent, child = await scene.job(job_type="parent"), await scene.job()
    answers = await scene.insert(
        scene.request(scene.new(parent)), scene.request(scene.new(child, Parent(parent.id, On.SUCCESS)))
    )
    assert all(isinstance(answer, Accepted) for answer in answers)
    (claimed,) = await scene.claim(await scene.worker(), parent)
    await end(scene, claimed.lease)
    await scene.release()
    assert isinstance(await scene.row(child.id), Ready)


async def test_a_graph_that_is_sent_again_is_accepted_and_changes_nothing(scene: Scene) -> None:
    parent, child = await scene.job(job_type="parent", name="up"), await scene.job(name="down")
    graph = scene.request(scene.new(parent), scene.new(child, Parent(parent.id, On.SUCCESS)))
    await scene.insert(graph)
    before = await scene.store.load([parent.id, child.id])
    (answer,) = await scene.insert(graph)
    assert isinstance(answer, Accepted)
    assert (list(answer.ids), list(answer.new)) == (["up", "down"], [])
    assert await scene.store.load([parent.id, child.id]) == before
    assert len(await scene.store.edges([child.id], 10)) == 1


async def test_a_child_of_a_job_that_is_known_by_name_depends_on_the_known_one(scene: Scene) -> None:
    known = await scene.running(job_type="parent", name="up")
    again, child = await scene.job(job_type="parent", name="up"), await scene.job()
    (answer,) = await scene.insert(scene.request(scene.new(again), scene.new(child, Parent(again.id, On.SUCCESS))))
    assert isinstance(answer, Accepted)
    assert (list(answer.ids), list(answer.new)) == (["up", shown(child)], [child.id])
    assert await scene.store.edges([child.id], 5) == [Edge(known.id, child.id, On.SUCCESS)]
    await end(scene, known)
    await scene.release()
    assert isinstance(await scene.row(child.id), Ready)


async def test_a_child_of_a_job_whose_unique_key_is_taken_depends_on_the_one_that_has_it(scene: Scene) -> None:
    holder = await scene.submitted(job_type="parent", unique_key="one")
    again, child = await scene.job(job_type="parent", unique_key="one"), await scene.job()
    (answer,) = await scene.insert(scene.request(scene.new(again), scene.new(child, Parent(again.id, On.SUCCESS))))
    assert isinstance(answer, Accepted)
    assert (list(answer.ids), list(answer.duplicates)) == ([shown(holder), shown(child)], [0])
    assert await scene.store.edges([child.id], 5) == [Edge(holder.id, child.id, On.SUCCESS)]


async def test_a_fan_out_is_released_in_chunks(scene: Scene) -> None:
    lease = await scene.running(job_type="parent")
    children = await scene.jobs(25)
    await scene.insert(scene.request(*(scene.new(child, Parent(lease.id, On.SUCCESS)) for child in children)))
    await end(scene, lease)
    first = await scene.store.release(10, scene.now)
    assert first.more
    rows = await scene.store.load([child.id for child in children])
    assert 0 < sum(isinstance(record.row, Ready) for record in rows.values()) < 25
    assert (await scene.store.release(10, scene.now)).more
    await scene.release(10)
    rows = await scene.store.load([child.id for child in children])
    assert all(isinstance(record.row, Ready) for record in rows.values())


async def test_a_fan_in_of_many_counts_every_parent_once(scene: Scene) -> None:
    parents = await scene.jobs(60, job_type="parent")
    await scene.submit(*parents)
    child = await scene.child(*(parent.id for parent in parents))
    claimed = await scene.claim(await scene.worker(), parents[0], 60)
    ends = [scene.decide(await scene.record(one.lease.id), events.Succeed()) for one in claimed]
    for start in range(0, 60, 20):
        assert isinstance(await scene.row(child.id), Waiting)
        await scene.save(ends[start : start + 20])
        await asyncio.gather(*(scene.store.release(7, scene.now) for _ in range(6)))
    await scene.release()
    assert isinstance(await scene.row(child.id), Ready)


async def test_a_release_is_safe_to_repeat_and_others_may_do_it_at_the_same_time(scene: Scene) -> None:
    leases = [await scene.running(job_type="parent") for _ in range(4)]
    children = [await scene.child(lease.id, leases[0].id) if lease is not leases[0] else None for lease in leases]
    joined = await scene.child(*(lease.id for lease in leases))
    ends = [scene.decide(await scene.record(lease.id), events.Succeed()) for lease in leases]
    await scene.save(ends)
    answers = await asyncio.gather(*(scene.store.release(3, scene.now) for _ in range(8)))
    assert not any(answer.cancelled for answer in answers)
    await scene.release()
    for child in (*children, joined):
        if child is not None:
            assert isinstance(await scene.row(child.id), Ready)
    before = await scene.row(joined.id)
    assert await scene.release() == Released()
    assert await scene.row(joined.id) == before


async def test_children_that_came_while_their_parent_ended_are_never_overlooked(scene: Scene) -> None:
    worker = await scene.worker()
    for turn in range(15):
        lease = await scene.running(worker, job_type=f"parent {turn}")
        report = scene.decide(await scene.record(lease.id), events.Succeed())
        child, saved = await asyncio.gather(
            scene.child(lease.id, job_type=f"child {turn}"), scene.store.save([report], scene.now)
        )
        assert saved.done == {lease.id}
        await scene.release()
        assert isinstance(await scene.row(child.id), Ready)


async def test_a_child_that_was_cancelled_meanwhile_stays_as_it_is(scene: Scene) -> None:
    lease = await scene.running(job_type="parent")
    child = await scene.child(lease.id)
    ended = await scene.happen(child.id, events.Cancel())
    await end(scene, lease)
    assert await scene.release() == Released()
    assert await scene.record(child.id) == ended


async def test_a_child_is_run_again_once_its_reopened_parents_have_ended(scene: Scene) -> None:
    parent = await scene.running(job_type="parent")
    child = await scene.child(parent.id)
    await end(scene, parent, State.FAILED)
    await scene.release()
    again, down = await scene.record(parent.id), await scene.record(child.id)
    changes = [
        scene.decide(again, events.Redrive(job=again.job, ties=Ties.CHILDREN)),
        scene.decide(down, events.Redrive(job=down.job, ties=Ties.PARENTS, reopened=[parent.id])),
    ]
    assert await scene.save(changes) == {parent.id, child.id}
    row = await scene.row(child.id)
    assert isinstance(row, Waiting)
    assert (row.parents, row.ties) == (1, Ties.PARENTS)
    assert await scene.release() == Released()
    (claimed,) = await scene.claim(await scene.worker(), again.job)
    await end(scene, claimed.lease)
    assert await scene.release() == Released(lanes={child.lane_id})
    assert isinstance(await scene.row(child.id), Ready)


async def test_a_reopened_parent_knows_of_its_child_though_nobody_said_so(scene: Scene) -> None:
    parent = await scene.running(job_type="parent")
    child = await scene.child(parent.id)
    await end(scene, parent, State.FAILED)
    await scene.release()
    await scene.happen(parent.id, events.Redrive(job=(await scene.record(parent.id)).job))
    down = await scene.record(child.id)
    await scene.happen(child.id, events.Redrive(job=down.job, ties=Ties.PARENTS, reopened=[parent.id]))
    assert (await scene.row(parent.id)).ties == Ties.CHILDREN


async def test_a_reopened_parent_that_has_ended_is_told_again(scene: Scene) -> None:
    parent = await scene.running(job_type="parent")
    child = await scene.child(parent.id, on=On.FAILURE)
    await end(scene, parent, State.FAILED)
    await scene.release()
    await scene.happen(child.id, events.Cancel())
    down = await scene.record(child.id)
    change = scene.decide(down, events.Redrive(job=down.job, ties=Ties.PARENTS, reopened=[parent.id]))
    assert (await scene.store.save([change], scene.now)).parents_ended
    await scene.release()
    assert isinstance(await scene.row(child.id), Ready)


async def test_a_redriven_child_waits_for_its_reopened_parents_only(scene: Scene) -> None:
    failing, other = [await scene.running(job_type="parent") for _ in range(2)]
    child = await scene.child(failing.id, other.id)
    await end(scene, failing, State.FAILED)
    await scene.release()
    again, down = await scene.record(failing.id), await scene.record(child.id)
    await scene.happen(failing.id, events.Redrive(job=again.job, ties=Ties.CHILDREN))
    await scene.happen(child.id, events.Redrive(job=down.job, ties=Ties.PARENTS, reopened=[failing.id]))
    await end(scene, other)
    await scene.release()
    row = await scene.row(child.id)
    assert isinstance(row, Waiting)
    assert row.parents == 1


async def test_children_of_a_parent_that_is_run_again_before_they_were_told_wait_for_its_next_end(
    scene: Scene,
) -> None:
    parent = await scene.running(job_type="parent")
    child = await scene.child(parent.id)
    await end(scene, parent, State.FAILED)
    again = await scene.happen(parent.id, events.Redrive(job=(await scene.record(parent.id)).job))
    assert isinstance(again.row, Ready)
    assert again.row.ties == Ties.CHILDREN
    assert await scene.release() == Released()
    assert isinstance(await scene.row(child.id), Waiting)
    (claimed,) = await scene.claim(await scene.worker(), again.job)
    await end(scene, claimed.lease)
    await scene.release()
    assert isinstance(await scene.row(child.id), Ready)


async def test_ties_go_with_a_job_through_all_its_places(scene: Scene) -> None:
    worker = await scene.worker()
    number = await scene.limit("door", 3)
    parent = await scene.child((await scene.ended(job_type="top")).job.id, retry=Retry(delays=(0,)), limit_key="door")
    await scene.child(parent.id, job_type="child")
    both = Ties.CHILDREN | Ties.PARENTS
    seen = []
    await scene.release()
    for _ in range(2):
        seen.append(await scene.row(parent.id))
        await scene.store.give_tokens([number], scene.now)
        seen.append(await scene.row(parent.id))
        await scene.claim(worker, parent)
        seen.append(await scene.row(parent.id))
        await scene.happen(parent.id, events.FailRetriable())
    assert [type(row) for row in seen] == [Waiting, Ready, Lease] * 2
    assert {(row.ties, row.limit_id) for row in seen} == {(both, number)}


async def test_a_child_is_told_how_its_parents_ended_and_what_they_returned(scene: Scene) -> None:
    long, short, failed, live = [
        await scene.running(job_type=name, name=name if name != "short" else None)
        for name in ("long", "short", "failed", "live")
    ]
    child = await scene.child(long.id, short.id, failed.id, live.id, on=On.ANY)
    plain = await scene.submitted()
    await scene.happen(long.id, events.Succeed(result='"' + "x" * 99 + '"'))
    await scene.happen(short.id, events.Succeed(result='{"n":1}'))
    await scene.happen(failed.id, events.FailFatal(code="broken"))
    told = await scene.store.upstream([child.id, plain.id], 100)
    assert set(told) == {child.id}
    assert {one.name: one for one in told[child.id]} == {
        "long": Upstream(id=long.id, name="long", state=State.COMPLETED, result=None, too_long=True),
        shown((await scene.record(short.id)).job): Upstream(
            id=short.id, name=shown((await scene.record(short.id)).job), state=State.COMPLETED, result='{"n":1}'
        ),
        "failed": Upstream(id=failed.id, name="failed", state=State.FAILED, result=None),
    }
    told = await scene.store.upstream([child.id], 101)
    assert {one.result for one in told[child.id] if one.name == "long"} == {'"' + "x" * 99 + '"'}


async def test_edges_are_told_both_ways_and_no_more_than_asked_for(scene: Scene) -> None:
    top = await scene.submitted()
    middle = await scene.child(top.id)
    bottoms = [await scene.child(middle.id, on=On.ANY) for _ in range(3)]
    await scene.child(top.id)
    edges = await scene.store.edges([middle.id], 10)
    assert len(edges) == 4
    assert set(edges) == {
        Edge(top.id, middle.id, On.SUCCESS),
        *(Edge(middle.id, bottom.id, On.ANY) for bottom in bottoms),
    }
    await scene.happen(top.id, events.Cancel())
    await scene.release()
    assert {edge.child for edge in await scene.store.edges([top.id, middle.id], 10) if not edge.done} == set()
    assert len(await scene.store.edges([middle.id], 2)) == 2
    assert len(await scene.store.edges([middle.id, top.id], 10)) == 5
    assert await scene.store.edges([JobKey(5)], 10) == []
    assert await scene.store.edges([], 10) == []


async def test_edges_go_with_the_day_of_their_child(scene: Scene) -> None:
    now = scene.now
    scene.now -= 40 * DAY
    await scene.store.prepare_days(scene.now)
    old = await scene.running(job_type="parent")
    gone = await scene.child(old.id, job_type="gone")
    await end(scene, old)
    await scene.release()
    scene.now += SECOND
    (claimed,) = await scene.claim(await scene.worker(), gone)
    await scene.happen(claimed.lease.id, events.Succeed())
    scene.now = now
    kept = await scene.child(old.id)
    await scene.release()
    while await scene.store.forget(now - 30 * DAY, 100):
        pass
    assert set(await scene.store.load([old.id, gone.id, kept.id])) == {kept.id}
    assert gone.id not in {edge.child for edge in await scene.store.edges([old.id, gone.id], 10)}
    assert isinstance(await scene.row(kept.id), Ready)
    assert await scene.store.upstream([kept.id], 10) in ({}, {kept.id: []})
    assert await scene.insert(scene.request(scene.new(await scene.job(), Parent(old.id, On.SUCCESS)))) == [
        Orphan(old.id)
    ]
