"""Which worker gets how many of which lane."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from foliot.domain.ids import WorkerKey
from foliot.domain.job import Lane
from foliot.domain.needs import UNIT
from foliot.domain.placement import Demand, Order, Turns, plan
from foliot.domain.worker import Worker
from tests.domain.rows import NOW

LANES = {
    number: Lane("default", queue, job_type)
    for number, (queue, job_type) in enumerate((q, t) for q in ("mail", "bills", "night") for t in ("echo", "http"))
}
HEADS = st.dictionaries(
    st.sampled_from(sorted(LANES)), st.lists(st.integers(0, 20), max_size=6).map(sorted), max_size=len(LANES)
)


def make_worker(
    number: int,
    *,
    queues: tuple[str, ...] = (),
    job_types: tuple[str, ...] = (),
    resources: dict[str, float] | None = None,
    labels: dict[str, str] | None = None,
) -> Worker:
    return Worker(
        id=WorkerKey(number),
        namespace="default",
        name=f"worker {number}",
        queues=queues,
        job_types=job_types,
        resources=resources or {},
        labels=labels or {},
        since=NOW,
        seen=NOW,
        until=NOW,
    )


def slots(count: int) -> dict[str, int]:
    return {"slot": count * UNIT}


def demands(*, picky: bool) -> st.SearchStrategy[list[Demand]]:
    """Up to four workers, and how much each can take."""
    queues = st.sampled_from([(), ("mail",), ("mail", "bills"), ("night",)]) if picky else st.just(())
    job_types = st.sampled_from([(), ("echo",), ("http",), ("other",)]) if picky else st.just(())
    one = st.tuples(queues, job_types, st.integers(-1, 8))
    return st.lists(one, max_size=4).map(
        lambda many: [
            Demand(make_worker(number, queues=queues, job_types=job_types), slots(free))
            for number, (queues, job_types, free) in enumerate(many)
        ]
    )


def taken_by_lane(orders: list[Order]) -> Counter[int]:
    taken: Counter[int] = Counter()
    for order in orders:
        taken[order.lane_id] += order.count
    return taken


def taken_by_worker(orders: list[Order]) -> Counter[int]:
    taken: Counter[int] = Counter()
    for order in orders:
        taken[order.worker] += order.count
    return taken


@given(demands=demands(picky=True), heads=HEADS)
def test_nobody_gets_more_than_it_has_free_or_than_there_is(demands: list[Demand], heads: dict[int, list[int]]) -> None:
    orders = plan(demands, LANES, heads)
    assert all(order.count > 0 for order in orders)
    assert len({(order.lane_id, order.worker) for order in orders}) == len(orders)
    free = {demand.worker.id: max(0, demand.free["slot"] // UNIT) for demand in demands}
    assert all(count <= free[WorkerKey(worker)] for worker, count in taken_by_worker(orders).items())
    assert all(count <= len(heads[lane]) for lane, count in taken_by_lane(orders).items())


@given(demands=demands(picky=True), heads=HEADS)
def test_a_worker_gets_only_of_lanes_that_it_serves(demands: list[Demand], heads: dict[int, list[int]]) -> None:
    workers = {demand.worker.id: demand.worker for demand in demands}
    assert all(workers[order.worker].serves(LANES[order.lane_id]) for order in plan(demands, LANES, heads))


@given(demands=demands(picky=True), heads=HEADS)
def test_no_worker_stays_idle_beside_a_job_that_it_could_take(
    demands: list[Demand], heads: dict[int, list[int]]
) -> None:
    orders = plan(demands, LANES, heads)
    by_worker, by_lane = taken_by_worker(orders), taken_by_lane(orders)
    idle = [demand.worker for demand in demands if demand.free["slot"] // UNIT > by_worker[demand.worker.id]]
    left = [LANES[lane] for lane, ranks in heads.items() if len(ranks) > by_lane[lane]]
    assert not [(worker, lane) for worker in idle for lane in left if worker.serves(lane)]


@given(demands=demands(picky=False), heads=HEADS)
def test_within_a_queue_the_smallest_ranks_go_first(demands: list[Demand], heads: dict[int, list[int]]) -> None:
    taken = taken_by_lane(plan(demands, LANES, heads))
    for queue in {lane.queue for lane in LANES.values()}:
        lanes = [lane for lane in heads if LANES[lane].queue == queue]
        went = [rank for lane in lanes for rank in heads[lane][: taken[lane]]]
        stayed = [rank for lane in lanes for rank in heads[lane][taken[lane] :]]
        assert not went or not stayed or max(went) <= min(stayed)


@given(demands=demands(picky=False), heads=HEADS)
def test_queues_take_turns(demands: list[Demand], heads: dict[int, list[int]]) -> None:
    taken = taken_by_lane(plan(demands, LANES, heads))
    by_queue: Counter[str] = Counter()
    has_more: set[str] = set()
    for lane, ranks in heads.items():
        by_queue[LANES[lane].queue] += taken[lane]
        if len(ranks) > taken[lane]:
            has_more.add(LANES[lane].queue)
    most = max(by_queue.values(), default=0)
    assert all(by_queue[queue] >= most - 1 for queue in has_more)


@given(demands=demands(picky=False), heads=HEADS)
def test_the_worker_with_the_most_room_goes_first(demands: list[Demand], heads: dict[int, list[int]]) -> None:
    taken = taken_by_worker(plan(demands, LANES, heads))
    room = {demand.worker.id: max(0, demand.free["slot"] // UNIT) - taken[demand.worker.id] for demand in demands}
    assert all(room[WorkerKey(worker)] + 1 >= max(room.values()) for worker in taken)


def test_a_plan_counts_jobs_of_a_lane_together() -> None:
    orders = plan([Demand(make_worker(1), slots(5))], LANES, {0: [1, 4], 1: [2, 3], 2: [9]})
    assert sorted((order.lane_id, order.count) for order in orders) == [(0, 2), (1, 2), (2, 1)]


def test_a_lane_that_nobody_has_room_for_holds_up_no_other() -> None:
    demands = [
        Demand(make_worker(1, job_types=("echo",)), slots(1)),
        Demand(make_worker(2, job_types=("http",)), slots(2)),
    ]
    orders = plan(demands, LANES, {0: [1, 2, 3], 1: [8, 9]})
    assert {(order.lane_id, order.worker, order.count) for order in orders} == {(0, 1, 1), (1, 2, 2)}


def test_without_room_or_work_there_is_nothing_to_order() -> None:
    assert plan([], LANES, {0: [1]}) == []
    assert plan([Demand(make_worker(1), slots(0))], LANES, {0: [1]}) == []
    assert plan([Demand(make_worker(1), slots(3))], LANES, {0: []}) == []


@given(demands(picky=True), HEADS, st.dictionaries(st.sampled_from(["mail", "bills", "night"]), st.integers(0, 3)))
def test_a_queue_with_limits_gets_no_more_than_they_leave(
    asking: list[Demand], heads: dict[int, list[int]], rooms: dict[str, int]
) -> None:
    limited = {("default", queue): room for queue, room in rooms.items()}
    orders = plan(asking, LANES, heads, rooms=limited)
    given_: Counter[tuple[str, str]] = Counter()
    for order in orders:
        line = LANES[order.lane_id].line
        given_[line] += order.count
        assert order.limited == (line in limited)
        assert order.count > 0
    assert all(given_[line] <= room for line, room in limited.items())
    free = plan(asking, LANES, heads)
    if not any(room < sum(o.count for o in free if LANES[o.lane_id].line == line) for line, room in limited.items()):
        assert sum(order.count for order in orders) == sum(order.count for order in free)


def test_weights_hold_from_plan_to_plan_and_nothing_is_saved_up() -> None:
    weights = {"mail": 2.0, "bills": 1.0}
    turns = Turns(lambda line: weights[line[1]])
    lanes = {number: LANES[number] for number in (0, 2)}
    one = [Demand(make_worker(1), slots(1))]
    for _ in range(50):  # one of them is alone for a while
        plan(one, lanes, {2: [1]}, turns=turns)
    taken: Counter[int] = Counter()
    for _ in range(30):
        (order,) = plan(one, lanes, {0: [1, 1], 2: [1, 1]}, turns=turns)
        taken[order.lane_id] += order.count
    assert taken == {0: 20, 2: 10}


def test_who_shares_a_worker_is_not_disturbed_by_what_others_run() -> None:
    """Nothing of `night`, which has a worker of its own, counts between `mail` and `bills`."""
    for weights, shares in (({"mail": 1.0}, {0: 15, 2: 15, 4: 60}), ({"mail": 2.0}, {0: 20, 2: 10, 4: 60})):
        turns = Turns(lambda line, weights=weights: weights.get(line[1], 1.0))  # type: ignore[misc]
        asking = [
            Demand(make_worker(1, queues=("mail", "bills")), slots(1)),
            Demand(make_worker(2, queues=("night",)), slots(2)),
        ]
        taken: Counter[int] = Counter()
        for _ in range(30):
            taken += taken_by_lane(plan(asking, LANES, {0: [1], 2: [1], 4: [1, 2]}, turns=turns))
        assert taken == shares


def test_jobs_are_spread_over_workers_that_serve_different_queues_too() -> None:
    asking = [Demand(make_worker(number, queues=("mail", f"host-{number}")), slots(10)) for number in range(5)]
    taken = taken_by_worker(plan(asking, LANES, {0: [1] * 10}))
    assert taken == dict.fromkeys(range(5), 2)


@given(demands(picky=False), HEADS, st.integers(1, 4))
def test_with_heads_that_were_cut_what_is_ordered_goes_before_all_that_is_left(
    asking: list[Demand], heads: dict[int, list[int]], cut: int
) -> None:
    known = {lane_id: ranks[:cut] for lane_id, ranks in heads.items()}
    ordered: Counter[int] = Counter()
    for order in plan(asking, LANES, known, cut=cut):
        ordered[order.lane_id] += order.count
    for lane_id, count in ordered.items():
        last = heads[lane_id][count - 1]
        for other, ranks in heads.items():
            if LANES[other].line == LANES[lane_id].line and len(ranks) > ordered[other]:
                assert last <= ranks[ordered[other]]
    assert bool(ordered) == bool(plan(asking, LANES, heads))


def test_nothing_is_ordered_behind_a_head_that_was_cut() -> None:
    asking = [Demand(make_worker(1), slots(10))]
    heads = {0: [1, 2], 1: [3, 4], 2: [5]}  # of the queues mail, mail and bills
    orders = {order.lane_id: order.count for order in plan(asking, LANES, heads, cut=2)}
    assert orders == {0: 2, 2: 1}
    assert {order.lane_id: order.count for order in plan(asking, LANES, heads)} == {0: 2, 1: 2, 2: 1}


def test_a_queue_with_limits_and_two_lanes_gets_what_is_left_of_its_room() -> None:
    asking = [Demand(make_worker(1), slots(10))]
    orders = plan(asking, LANES, {0: [1, 3], 1: [2, 4]}, rooms={("default", "mail"): 3})
    assert {order.lane_id: order.count for order in orders} == {0: 2, 1: 1}
