"""A thousand jobs over ten workers: what must hold at every moment does, and the picture in the docs is of this run."""

import asyncio
import re
from collections import Counter
from xml.etree import ElementTree as ET

import pytest

from tests.simulation import picture
from tests.simulation.cluster import Cluster
from tests.simulation.scenario import JOBS, KEY, OFFERS, RULES
from tests.simulation.watch import RATES, limits, most_in, unfairness

PICTURE_BYTES = 100_000


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    made = Cluster()
    asyncio.run(made.run())
    return made


def test_every_job_runs_once_and_completes(cluster: Cluster) -> None:
    assert Counter(cluster.statuses) == {"completed": JOBS}
    assert len({start.task.job_id for start in cluster.watch.starts}) == len(cluster.watch.starts) == JOBS


def test_limits_and_offers_are_used_and_never_exceeded(cluster: Cluster) -> None:
    most, allowed = cluster.watch.most, limits()
    assert {name: most[name] for name in allowed if most[name] > allowed[name]} == {}
    used_in_full = {name for name in allowed if most[name] == allowed[name]}
    assert used_in_full >= {KEY, "database", *(f"{offer.name} slot" for offer in OFFERS)}
    assert used_in_full >= {"gpu-1 gpu", "gpu-2 gpu", "reports-1 cpu"}


def test_the_rate_is_used_and_never_exceeded_in_any_stretch_of_time(cluster: Cluster) -> None:
    (queue, rate), *_ = RATES.items()
    starts = [start.time for start in cluster.watch.starts if start.task.queue == queue]
    assert most_in(starts, rate.per / 1e6) == rate.limit + rate.burst


def test_no_worker_stands_idle_while_a_job_waits_that_it_could_run(cluster: Cluster) -> None:
    assert cluster.watch.idle == []


def test_jobs_of_one_kind_start_in_the_order_that_their_queue_asks_for(cluster: Cluster) -> None:
    assert cluster.watch.out_of_order == []


def test_tenants_that_wait_get_their_shares_at_every_moment(cluster: Cluster) -> None:
    weights = {"tenant a": 2.0, "tenant b": 1.0, "tenant c": 1.0}
    assert_fair(cluster, weights)
    few = [start for start in cluster.watch.starts if start.task.fair_key == "b"]
    rest = [start for start in cluster.watch.starts if start.task.fair_key == "a" and start.time > few[-1].time]
    assert len(rest) > 30, "b came later, with few, and was through long before a"


def test_queues_that_wait_for_the_same_workers_get_their_weights_at_every_moment(cluster: Cluster) -> None:
    assert_fair(cluster, {name: RULES[name].get("weight", 1.0) for name in ("mail", "tenants", "default")})


def assert_fair(cluster: Cluster, weights: dict[str, float]) -> None:
    """As start-time fair queueing promises: nobody is ever ahead by more than one job of each."""
    found = unfairness(cluster.watch.sights, weights)
    assert len(found) == 3
    assert {pair: most for pair, most in found.items() if most > sum(1 / weights[name] for name in pair)} == {}


def test_nothing_is_left_taken_at_the_end(cluster: Cluster) -> None:
    assert {queue.queue: (queue.waiting, queue.running) for queue in cluster.queues} == dict.fromkeys(RULES, (0, 0))
    assert [(limit.key, limit.held, limit.waiting) for limit in cluster.limits] == [(KEY, 0, 0)]


def test_the_picture_in_the_docs_shows_this_run(cluster: Cluster) -> None:
    drawn = picture.draw(cluster.watch.starts)
    assert drawn == picture.FILE.read_text("utf-8"), "`python -m tests.simulation` draws it anew"
    assert len(drawn.encode()) < PICTURE_BYTES
    ET.fromstring(drawn)
    assert re.findall(r"https?://[^\"' <]+", drawn) == ["http://www.w3.org/2000/svg"]
