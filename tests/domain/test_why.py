"""What keeps a worker from a job is named exactly where it does not serve it; long lists are cut."""

from hypothesis import given
from hypothesis import strategies as st

from foliot.domain.graph import On
from foliot.domain.ids import JobKey, WorkerKey
from foliot.domain.job import Lane, Ready, Waiting
from foliot.domain.needs import parse_needs, show_needs
from foliot.domain.placement import Demand
from foliot.domain.why import Key, OpenParent, missing, reasons
from foliot.domain.worker import Worker

WORDS = st.sampled_from(["a", "b"])
SOME = st.lists(WORDS, max_size=2, unique=True).map(tuple)
AMOUNTS = st.dictionaries(st.sampled_from(["slot", "cpu"]), st.integers(0, 3), max_size=2)
LABELS = st.dictionaries(WORDS, WORDS, max_size=2)


def lane(namespace: str = "a", resources: object = None, labels: object = None) -> Lane:
    return Lane(namespace, "a", "a", show_needs(parse_needs(resources, labels)))  # type: ignore[arg-type]


def worker(**fields: object) -> Worker:
    given_ = {"id": WorkerKey(1), "namespace": "a", "name": "w", "since": 0, "seen": 0, "until": 10, **fields}
    return Worker(**given_)  # type: ignore[arg-type]


@given(WORDS, SOME, SOME, AMOUNTS, LABELS, WORDS, AMOUNTS, LABELS)
def test_something_is_missing_exactly_where_a_worker_does_not_serve_the_lane(
    namespace: str,
    queues: tuple[str, ...],
    job_types: tuple[str, ...],
    offers: dict[str, int],
    labels: dict[str, str],
    asked_in: str,
    asked: dict[str, int],
    required: dict[str, str],
) -> None:
    one = worker(namespace=namespace, queues=queues, job_types=job_types, resources=offers, labels=labels)
    other = lane(asked_in, asked, required)
    assert one.serves(other) == (not missing(one, other))


def narrow(kind: type[Waiting] | type[Ready], **fields: object) -> Waiting | Ready:
    base = dict.fromkeys(("priority", "due", "attempt", "counted", "tries_left", "lost", "version", "since"), 0)
    return kind(id=JobKey(1), lane_id=1, deadline=None, **base, **fields)  # type: ignore[arg-type]


def test_a_ready_job_is_held_back_by_nothing_but_workers() -> None:
    free = Demand(worker(), {"slot": 1000})
    assert reasons(narrow(Ready, rank=0), lane(), 0, demands=[free]) == []
    assert [each.reason for each in reasons(narrow(Ready, rank=0), lane(), 0)] == ["no_worker"]


def test_many_workers_without_room_are_named_by_three() -> None:
    full = [Demand(worker(name=f"w{n}"), {"slot": 0}) for n in range(5)]
    (reason,) = reasons(narrow(Ready, rank=0), lane(), 0, demands=full)
    assert reason.detail == "no worker has room for it; it is served by w0, w1, w2 and 2 more"
    assert len(reason.by) == 5


def test_workers_of_another_namespace_are_not_named() -> None:
    (reason,) = reasons(narrow(Ready, rank=0), lane(), 0, demands=[Demand(worker(namespace="b", name="secret"), {})])
    assert reason.detail == "no worker is there; start one"


def test_a_key_that_is_full_holds_back_a_job_whose_time_has_not_come() -> None:
    key = Key(key="k", most=1, held=1, holders=("x",), before=0)
    free = Demand(worker(), {"slot": 1000})
    row = narrow(Waiting, limit_id=1, parents=1)
    parent = OpenParent(name="p", status="running", on=On.SUCCESS)
    found = reasons(row, lane(), -1, parents=[parent], key=key, demands=[free])
    assert [each.reason for each in found] == ["dependency", "time", "limit"]
    roomy = Key(key="k", most=2, held=1, holders=("x",), before=0)
    assert [each.reason for each in reasons(row, lane(), 0, key=roomy, demands=[free])] == ["dependency"]


def test_a_worker_of_another_namespace_lacks_that_and_no_label_that_it_has() -> None:
    one = worker(namespace="b", labels={"zone": "eu"})
    assert missing(one, lane("a", labels={"zone": "eu"})) == ["works for another namespace"]
