"""Which worker gets what, where jobs hold more than a slot."""

from collections import Counter
from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from foliot.domain.ids import WorkerKey
from foliot.domain.job import Lane
from foliot.domain.needs import UNIT, how_many, parse_needs, read_needs, show_needs
from foliot.domain.placement import Demand, Order, fits, most, plan
from tests.domain.test_placement import make_worker

ASKED: list[tuple[dict[str, float | str], dict[str, str]]] = [
    ({}, {}),
    ({"cpu": 1}, {}),
    ({"cpu": 3}, {}),
    ({"cpu": 0.5, "gpu": 1}, {}),
    ({"slot": 2}, {}),
    ({"slot": 0, "gpu": 1}, {}),
    ({"slot": 0}, {}),
    ({"cpu": 1}, {"zone": "eu"}),
]
LANES = {
    number: Lane("default", queue, f"type{kind}", show_needs(parse_needs(*asked)))
    for number, (queue, (kind, asked)) in enumerate((q, k) for q in ("mail", "bills") for k in enumerate(ASKED))
}
IN_ONE_QUEUE = [number for number, lane in LANES.items() if lane.queue == "mail"]
OFFER: dict[str, float] = {"slot": 8, "cpu": 4, "gpu": 2}


@st.composite
def demands(draw: st.DrawFn) -> list[Demand]:
    """Up to four workers, and what each has free of what it offers; in halves, so that nothing comes out even."""
    found = []
    for number in range(draw(st.integers(0, 4))):
        offer = {name: amount for name, amount in OFFER.items() if name == "slot" or draw(st.booleans())}
        labels = draw(st.sampled_from([{}, {"zone": "eu"}, {"zone": "us"}]))
        free = {name: draw(st.integers(0, int(amount * 2))) * UNIT // 2 for name, amount in offer.items()}
        found.append(Demand(make_worker(number, resources=offer, labels=labels), free))
    return found


def heads(lanes: list[int]) -> st.SearchStrategy[dict[int, list[int]]]:
    ranks = st.lists(st.integers(0, 30), max_size=6).map(sorted)
    return st.dictionaries(st.sampled_from(lanes), ranks, max_size=len(lanes))


def rooms_after(demands: list[Demand], orders: list[Order]) -> dict[WorkerKey, Counter[str]]:
    rooms = {demand.worker.id: Counter(demand.free) for demand in demands}
    for order in orders:
        for name, amount in read_needs(LANES[order.lane_id].needs).amounts:
            rooms[order.worker][name] -= amount * order.count
    return rooms


def taken(orders: list[Order]) -> Counter[int]:
    counts: Counter[int] = Counter()
    for order in orders:
        counts[order.lane_id] += order.count
    return counts


@given(demands=demands(), heads=heads(sorted(LANES)))
def test_no_worker_is_given_more_than_it_has_free_of_anything(
    demands: list[Demand], heads: dict[int, list[int]]
) -> None:
    orders = plan(demands, LANES, heads)
    assert [room for room in rooms_after(demands, orders).values() if min(room.values()) < 0] == []
    assert all(0 < count <= len(heads[lane]) for lane, count in taken(orders).items())
    assert len({(order.lane_id, order.worker) for order in orders}) == len(orders)
    workers = {demand.worker.id: demand.worker for demand in demands}
    assert all(workers[order.worker].serves(LANES[order.lane_id]) for order in orders)


@given(demands=demands(), heads=heads(sorted(LANES)))
def test_nothing_is_left_that_would_still_fit(demands: list[Demand], heads: dict[int, list[int]]) -> None:
    orders = plan(demands, LANES, heads)
    counts, rooms = taken(orders), rooms_after(demands, orders)
    left = [LANES[lane] for lane, ranks in heads.items() if len(ranks) > counts[lane]]
    after = [Demand(demand.worker, rooms[demand.worker.id]) for demand in demands]
    assert [(demand, lane) for demand in after for lane in left if fits(demand, lane)] == []


@given(demands=demands(), heads=heads(IN_ONE_QUEUE))
def test_within_a_queue_each_job_in_turn_gets_a_place_if_it_fits_by_then(
    demands: list[Demand], heads: dict[int, list[int]]
) -> None:
    """As if one job after the other were placed by rank, each with the worker that could take the most of its kind."""
    expected: Counter[tuple[int, WorkerKey]] = Counter()
    rooms: Mapping[WorkerKey, Counter[str]] = {demand.worker.id: Counter(demand.free) for demand in demands}
    for _, lane_id in sorted((rank, lane_id) for lane_id, ranks in heads.items() for rank in ranks):
        now = [Demand(demand.worker, rooms[demand.worker.id]) for demand in demands]
        amounts = read_needs(LANES[lane_id].needs).amounts
        able = [demand for demand in now if fits(demand, LANES[lane_id])]
        if able:
            chosen = max(able, key=lambda demand: how_many(demand.free, amounts) or 0).worker.id
            expected[lane_id, chosen] += 1
            rooms[chosen].subtract(dict(amounts))
    orders = plan(demands, LANES, heads)
    assert {(order.lane_id, order.worker): order.count for order in orders} == expected


@given(demands=demands(), lane=st.sampled_from(sorted(LANES)))
def test_the_most_that_fit_are_as_many_as_are_placed(demands: list[Demand], lane: int) -> None:
    serving = [demand for demand in demands if demand.worker.serves(LANES[lane])]
    count = most(serving, read_needs(LANES[lane].needs).amounts, 20)
    assert sum(order.count for order in plan(serving, LANES, {lane: range(20)})) == min(count, 20)


def test_a_big_job_that_fits_nobody_stands_in_no_ones_way() -> None:
    worker = make_worker(1, resources=OFFER)
    orders = plan([Demand(worker, {"slot": 3 * UNIT, "cpu": 2 * UNIT})], LANES, {2: [1, 2], 1: [3, 4, 5], 0: [9]})
    assert {(order.lane_id, order.count) for order in orders} == {(1, 2), (0, 1)}


def test_a_job_that_asks_for_what_nobody_offers_is_left_alone() -> None:
    orders = plan([Demand(make_worker(1, resources={"slot": 4}), {"slot": 4 * UNIT})], LANES, {3: [1], 7: [1], 0: [2]})
    assert [(order.lane_id, order.count) for order in orders] == [(0, 1)]
