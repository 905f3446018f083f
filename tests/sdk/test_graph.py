"""Graphs: built in a block, handed in at its end in one request, run in order, results handed on."""

import asyncio
from itertools import pairwise
from typing import Any

import pytest

from foliot import Fatal, Foliot, JobCancelled, JobContext, JobFailed
from foliot.sdk.failures import BadInput
from foliot.sdk.graph import Graph
from foliot.sdk.node import Node
from tests.sdk.served_node import KEY, ServedNode

BATCH, SINGLE = "POST /api/v1/jobs/batch", "POST /api/v1/jobs"
WAIT = 15


def define(app: Foliot) -> None:
    @app.job
    async def number(n: int) -> int:
        return n

    @app.job
    async def add(numbers: list[int]) -> int:
        return sum(numbers)

    @app.job
    async def seen(context: JobContext) -> dict[str, Any]:
        return dict(context.upstream)

    @app.job
    async def refuse() -> None:
        raise Fatal("no", code="refused")


@pytest.fixture(params=["http", "embedded"])
def working(request: pytest.FixtureRequest) -> Foliot:
    """An app with jobs and a worker that runs them."""
    app: Foliot = request.getfixturevalue("app" if request.param == "http" else "embedded")
    define(app)
    if request.param == "http":
        request.getfixturevalue("node").run_worker(app.handlers)
    return app


def edges(app: Foliot, node: Node[Any]) -> set[tuple[str, str, str]]:
    """What the node is told to depend on what, by the names behind the graph's id."""
    found = app.client.graph(node.job_id)
    return {(edge.parent.split(":")[1], edge.child.split(":")[1], edge.on) for edge in found.edges}


def waiting(graph: Graph, *types: str) -> list[Node[Any]]:
    """Nodes that no worker runs."""
    return [graph.add(name, {}) for name in types]


def test_a_graph_runs_in_order_and_hands_results_on(working: Foliot) -> None:
    with working.graph() as graph:
        first = graph.add("number", {"n": 1})
        second, third = graph.add("number", {"n": 2}), graph.add("number", {"n": 3})
        last = graph.add("seen")
        first >> [second, third] >> last
    assert last.result(WAIT) == {
        second.job_id: {"status": "completed", "result": 2},
        third.job_id: {"status": "completed", "result": 3},
    }
    ends = {node: node.info() for node in graph.nodes}
    assert all(info.status == "completed" for info in ends.values())
    assert ends[first].end_time <= min(ends[second].start_time, ends[third].start_time)  # type: ignore[operator,type-var]


def test_a_node_among_the_arguments_is_its_result(app: Foliot, node: ServedNode) -> None:
    @app.job
    def double(n: int, *, note: str = "") -> int:
        return 2 * n

    @app.job
    async def total(numbers: list[int], more: dict[str, int]) -> int:
        return sum(numbers) + sum(more.values())

    node.run_worker(app.handlers)
    with app.graph() as graph:
        one = graph.add(double, 1)
        two = graph.add(double, one, note="of one")
        last = graph.add(total, [one, two, 100], more={"x": two})
    assert last.result(WAIT) == 2 + 4 + 100 + 4
    assert edges(app, last) == {
        ("double", "double.2", "success"),
        ("double", "total", "success"),
        ("double.2", "total", "success"),
    }


def test_a_job_that_was_handed_in_may_be_an_argument_too(app: Foliot, node: ServedNode) -> None:
    @app.job
    async def double(n: int) -> int:
        return 2 * n

    node.run_worker(app.handlers)
    first = double.submit(4)
    assert double.submit(first).result(WAIT) == 16
    assert [job.result(WAIT) for job in double.submit_many([(first,), {"n": 1}])] == [16, 2]


def test_a_result_of_the_wrong_type_is_a_fatal_failure_that_names_the_argument(app: Foliot, node: ServedNode) -> None:
    @app.job
    async def word() -> str:
        return "one"

    @app.job
    async def double(n: int) -> int:
        return 2 * n

    node.run_worker(app.handlers)
    with pytest.raises(JobFailed, match="argument 'n': Expected int, got str") as caught:
        double.submit(word.submit()).result(WAIT)
    assert caught.value.reason == "bad_arguments"


def test_a_result_that_is_too_long_to_be_handed_on_is_told(app: Foliot, node: ServedNode) -> None:
    @app.job
    async def long() -> str:
        return "x" * 70_000

    @app.job
    async def length(text: str) -> int:
        return len(text)

    node.run_worker(app.handlers)
    with pytest.raises(JobFailed, match="too long to be handed on"):
        length.submit(long.submit()).result(WAIT)


def test_a_node_that_does_not_fit_leaves_the_other_arguments_checked(app: Foliot, node: ServedNode) -> None:
    @app.job
    def add(a: int, b: int) -> int:
        return a + b

    with app.graph() as graph:
        first = graph.add(add, 1, 2)
        with pytest.raises(TypeError, match="argument 'b': Expected int, got str"):
            graph.add(add, first, "two")
        with pytest.raises(TypeError, match="missing a required argument: 'b'"):
            graph.add(add, first)
        with pytest.raises(TypeError, match=r"argument 'b' can not be sent as JSON"):
            graph.add(add, first, object())
    assert graph.nodes == [first]


def test_a_parent_that_fails_cancels_what_waits_for_its_success(working: Foliot) -> None:
    with working.graph() as graph:
        bad, child, grandchild = graph.add("refuse"), graph.add("seen"), graph.add("seen")
        bad >> child >> grandchild
    with pytest.raises(JobCancelled) as caught:
        child.result(WAIT)
    assert caught.value.info.reason == "parent_failed"
    assert grandchild.wait(WAIT).reason == "parent_cancelled"


def test_a_clean_up_runs_on_failure_and_a_report_however_it_ends(working: Foliot) -> None:
    with working.graph() as graph:
        bad, clean_up, report, never = (graph.add(name) for name in ("refuse", "seen", "seen", "seen"))
        bad.on_failure >> clean_up
        bad.on_any >> report
        clean_up.on_failure >> never
    assert clean_up.result(WAIT) == {bad.job_id: {"status": "failed", "result": None}}
    assert report.result(WAIT)[bad.job_id]["status"] == "failed"
    assert never.wait(WAIT).reason == "parent_completed"


def test_a_failed_graph_is_run_again_with_what_was_cancelled(app: Foliot, node: ServedNode) -> None:
    @app.job
    async def flip(good: bool) -> str:
        if not good:
            raise Fatal("no")
        return "done"

    @app.job
    async def tell(word: str) -> str:
        return word

    node.run_worker(app.handlers)
    with app.graph() as graph:
        first = graph.add(flip, good=False)
        last = graph.add(tell, first)
    assert last.wait(WAIT).status == "cancelled"
    first.retry({"good": True}, dependents=True)
    assert last.result(WAIT) == "done"


async def test_a_graph_is_built_in_an_async_block(app: Foliot, node: ServedNode) -> None:
    define(app)
    await asyncio.to_thread(node.run_worker, app.handlers)
    async with app.graph() as graph:
        first = graph.add("number", {"n": 5})
        last = graph.add("add", {"numbers": []}).after(first)
    assert await last.aio.result(WAIT) == 0
    assert await first.aio.status() == "completed"
    with pytest.raises(RuntimeError, match=r"async with app\.graph\(\)"), app.graph():
        pass


def test_a_graph_goes_in_one_request(app: Foliot, node: ServedNode) -> None:
    with app.graph() as graph:
        a, b, c, d, e, f = waiting(graph, *"abcdef")
        a >> [b, c] >> d
        [c.on_failure, d.on_any] >> e
        a >> [b, c] >> f
        assert node.requests == []
    assert (node.count(BATCH), node.count(SINGLE), len(node.requests)) == (1, 0, 1)
    assert edges(app, d) == {
        ("a", "b", "success"),
        ("a", "c", "success"),
        ("b", "d", "success"),
        ("c", "d", "success"),
        ("c", "e", "failure"),
        ("d", "e", "any"),
        ("b", "f", "success"),
        ("c", "f", "success"),
    }
    assert {node.status() for node in graph.nodes} == {"queued", "blocked"}
    assert isinstance(a, Node)


def test_many_go_on_to_many(app: Foliot) -> None:
    with app.graph() as graph:
        a, b, c, d, e = waiting(graph, *"abcde")
        a >> [b, c] >> [d, e]
    assert edges(app, a) >= {(parent, child, "success") for parent in "bc" for child in "de"}


def test_a_node_waits_for_jobs_that_were_handed_in_earlier(app: Foliot) -> None:
    first, second = app.submit("note"), app.submit("note", job_id="mine")
    with app.graph() as graph:
        a, b, c = waiting(graph, *"abc")
        first >> a
        [first, second, b] >> c
        "mine" >> b
    assert [each.job_id for each in a.info().depends_on] == [first.job_id]
    assert {each.job_id for each in c.info().depends_on} == {first.job_id, "mine", b.job_id}
    assert b.info().depends_on[0].job_id == "mine"


def test_options_of_a_node_are_those_of_a_submit(app: Foliot) -> None:
    @app.job
    def load(day: str) -> None: ...

    with app.graph() as graph:
        first = graph.add(load, "mon", queue="loads", job_id="first")
        last = graph.add(load.options(priority="high"), day="tue")
        other = graph.add("elsewhere", {"a": 1}, depends_on=[(first, "any"), last], tags=["x"])
    assert (first.job_id, first.info().queue, last.info().priority) == ("first", "loads", "high")
    assert {(each.job_id, each.on) for each in other.info().depends_on} == {("first", "any"), (last.job_id, "success")}


def test_the_same_graph_under_the_same_id_is_handed_in_once(app: Foliot) -> None:
    def build() -> list[str]:
        with app.graph("import-42") as graph:
            a, b = waiting(graph, "extract", "load")
            a >> b
        return [node.job_id for node in graph.nodes]

    assert build() == build() == ["import-42:extract", "import-42:load"]
    assert len(list(app.client.list())) == 2


def test_long_names_still_make_ids(app: Foliot) -> None:
    with app.graph("g" * 100) as graph:
        one, two = waiting(graph, "t" * 128, "t" * 128)
    assert one.job_id != two.job_id
    assert {one.status(), two.status()} == {"queued"}


def test_a_circle_is_refused_by_name_before_anything_is_sent(app: Foliot, node: ServedNode) -> None:
    nodes: list[Node[Any]] = []

    def build(names: str) -> None:
        with app.graph("g") as graph:
            nodes[:] = waiting(graph, *names)
            for parent, child in pairwise([*nodes, nodes[-1 if len(names) == 1 else 1]]):
                parent >> child

    with pytest.raises(ValueError, match=r"a circle") as caught:
        build("abcd")
    assert str(caught.value).split(": ", 1)[1] in (
        "g:b >> g:c >> g:d >> g:b",
        "g:c >> g:d >> g:b >> g:c",
        "g:d >> g:b >> g:c >> g:d",
    )
    with pytest.raises(ValueError, match="g:a >> g:a"):
        build("a")
    assert node.requests == []
    with pytest.raises(RuntimeError, match="its graph was not handed in"):
        nodes[0].status()


def test_an_exception_in_the_block_sends_nothing(app: Foliot, node: ServedNode) -> None:
    nodes: list[Node[Any]] = []

    def build() -> None:
        with app.graph() as graph:
            nodes.extend(waiting(graph, "a"))
            raise LookupError

    async def build_async() -> None:
        async with app.graph() as graph:
            nodes.extend(waiting(graph, "a"))
            raise LookupError

    with pytest.raises(LookupError):
        build()
    with pytest.raises(LookupError):
        asyncio.run(build_async())
    assert node.requests == []
    for each in nodes:
        with pytest.raises(RuntimeError, match="its graph was not handed in"):
            each.wait()


@pytest.mark.parametrize(
    ("count", "letters", "message"),
    [
        (10_001, 1, "a graph has at most 10,000 jobs"),
        (140, 250_000, r"the jobs have 35,.* bytes; one request can hold 33,554,432"),
    ],
)
def test_more_than_a_request_can_hold_is_refused(
    app: Foliot, node: ServedNode, count: int, letters: int, message: str
) -> None:
    def build() -> None:
        with app.graph() as graph:
            for _ in range(count):
                graph.add("note", {"text": "x" * letters})

    with pytest.raises(ValueError, match=message):
        build()
    assert node.requests == []


def test_a_graph_that_the_node_refuses_is_not_there(app: Foliot) -> None:
    nodes: list[Node[Any]] = []

    def build() -> None:
        with app.graph() as graph:
            nodes.append(graph.add("a").after("nobody"))

    with pytest.raises(BadInput, match="nobody"):
        build()
    with pytest.raises(RuntimeError, match="its graph was not handed in"):
        nodes[0].status()
    assert list(app.client.list()) == []


def test_an_empty_graph_sends_nothing(app: Foliot, node: ServedNode) -> None:
    with app.graph() as graph:
        pass
    assert (graph.nodes, node.requests) == ([], [])


def test_a_node_is_no_job_before_the_end_of_its_block(app: Foliot) -> None:
    with app.graph() as graph:
        (a,) = waiting(graph, "a")
        assert a.job_id == f"{graph.graph_id}:a"
        with pytest.raises(RuntimeError, match="is not there yet"):
            a.status()
    assert a.status() == "queued"


def test_a_graph_is_built_only_in_its_block(app: Foliot) -> None:
    graph = app.graph()
    with pytest.raises(RuntimeError, match="built in its block"):
        graph.add("note")
    with graph:
        a, b = waiting(graph, "a", "b")
    for late in (lambda: graph.add("note"), lambda: a >> b):
        with pytest.raises(RuntimeError, match="block has ended"):
            late()
    with pytest.raises(RuntimeError, match="has one block"), graph:
        pass


def test_what_can_not_be_joined_is_refused(app: Foliot) -> None:
    @app.job
    def plain() -> None: ...

    with app.graph() as one, app.graph() as other:
        a, b = waiting(one, "a", "b")
        (c,) = waiting(other, "c")
        with pytest.raises(ValueError, match="is of another graph"):
            a >> c
        with pytest.raises(ValueError, match="is of another graph"):
            c.on_any >> a
        with pytest.raises(TypeError, match="is not a node of a graph"):
            a >> [b, plain]  # type: ignore[list-item]
        with pytest.raises(TypeError, match="neither a job nor an id"):
            b.after(plain)  # type: ignore[arg-type]
        a >> b
        a >> b
        with pytest.raises(ValueError, match="depended on twice, for success and for failure"):
            a.on_failure >> b
        with pytest.raises(ValueError, match=r"has a job .*:a already"):
            one.add("note", job_id=a.job_id)
    assert edges(app, b) == {("a", "b", "success")}


def test_a_job_of_another_app_is_refused(app: Foliot, node: ServedNode) -> None:
    with Foliot(node.url, KEY) as other:

        @other.job
        def theirs() -> None: ...

        with app.graph() as graph:
            for job in (theirs, theirs.options(queue="x")):
                with pytest.raises(ValueError, match="another app"):
                    graph.add(job)


def test_a_unique_job_of_a_graph_may_be_one_that_waits_already(app: Foliot, node: ServedNode) -> None:
    earlier = app.submit("report", unique_key="daily")
    with app.graph() as graph:
        a, report, c = graph.add("a"), graph.add("report", unique_key="daily"), graph.add("c")
        a >> report >> c
    assert (report.job_id, report.duplicate, a.duplicate) == (earlier.job_id, True, False)
    assert [each.job_id for each in c.info().depends_on] == [earlier.job_id]
    assert (report.status(), c.status()) == ("queued", "blocked")


def test_a_unique_job_is_no_argument_in_its_graph(app: Foliot, node: ServedNode) -> None:
    @app.job(unique_key="daily")
    def count() -> int:
        return 1

    @app.job
    def tell(n: int) -> None: ...

    def build() -> None:
        with app.graph() as graph:
            graph.add(tell, graph.add(count))

    with pytest.raises(ValueError, match="has a unique_key and may turn out to be an earlier job"):
        build()
    assert node.requests == []


def half(n: int) -> int:
    return n // 2


def test_a_plain_function_is_added_as_it_is_where_the_app_is_embedded(embedded: Foliot, app: Foliot) -> None:
    with embedded.graph() as graph:
        last = graph.add(half, graph.add(half, 12))
    assert last.result(WAIT) == 3
    with app.graph() as graph, pytest.raises(TypeError, match=r"put @app\.job above it"):
        graph.add(half, 12)
