"""A job's graph: drawn, as JSON, for Graphviz."""

import json
from collections.abc import Callable
from io import StringIO

from click.testing import Result
from rich.console import Console

from foliot.cli.graph import FILLS
from foliot.cli.graph_drawing import draw
from foliot.domain import status
from foliot.wire import GraphEdge, GraphInfo, GraphNode
from tests.cli.conftest import ServedNode
from tests.cli.test_jobs import api, submitted
from tests.cli.test_terminal import terminal

Run = Callable[..., Result]


def drawn(edges: list[tuple[str, str]], asked: str, *, failed: str = "") -> list[str]:
    names = dict.fromkeys(name for edge in edges for name in edge)
    info = GraphInfo(
        nodes=[
            GraphNode(job_id=name, job_type="t", status="failed" if name == failed else "completed") for name in names
        ],
        edges=[GraphEdge(parent=parent, child=child, on="success") for parent, child in edges],
    )
    screen = Console(file=StringIO(), width=120)
    screen.print(draw(info, asked))
    assert isinstance(screen.file, StringIO)
    return [line.rstrip() for line in screen.file.getvalue().splitlines()]


def test_a_diamond_is_a_tree_that_shows_each_job_once(foliot: Run, node: ServedNode) -> None:
    submitted(foliot, "none", "--id", "top")
    submitted(foliot, "none", "--id", "left", "--depends-on", "top")
    submitted(foliot, "none", "--id", "right", "--depends-on", "top:any")
    submitted(foliot, "none", "--id", "bottom", "--depends-on", "left", "--depends-on", "right:failure")
    shown = foliot("jobs", "graph", "left")
    assert shown.exit_code == 0, shown.stderr
    assert [line.rstrip() for line in shown.stdout.splitlines()] == [
        "top  none  queued",
        "├── ▶ left  none  blocked",
        "│   └── bottom  none  blocked",
        "└── right (on any)  none  blocked",
        "    └── bottom (on failure)  see above",
        "",
        "4 jobs: 3 blocked, 1 queued",
    ]
    assert json.loads(foliot("jobs", "graph", "left", "--json").stdout) == api(node, "/jobs/left/graph")
    dot = foliot("jobs", "graph", "left", "--dot").stdout.splitlines()
    assert (dot[0], dot[-1]) == ("digraph foliot {", "}")
    assert r'  "top" [label="top\nnone\nqueued", fillcolor=lightblue];' in dot
    assert '  "top" -> "left";' in dot
    assert '  "right" -> "bottom" [label="failure", style=dashed];' in dot


def test_a_job_alone_is_its_own_graph(foliot: Run) -> None:
    job_id = submitted(foliot, "none")
    assert foliot("jobs", "graph", job_id).stdout == (
        f"▶ {job_id}  none  queued\n\nIt depends on no job, and none depends on it.\n"
    )


def test_a_status_has_its_colour_on_a_terminal(foliot: Run, node: ServedNode) -> None:
    job_id = submitted(foliot, "none")
    with terminal(node, "jobs", "graph", job_id) as screen:
        assert "\x1b[34mqueued" in screen.read_until(None)


def test_a_wide_graph_is_listed_by_level_with_what_is_folded_counted() -> None:
    fan = [("start", f"leaf-{number}") for number in range(10_000)] + [
        (f"leaf-{number}", "end") for number in range(10_000)
    ]
    head, first, *leaves, more, last = drawn(fan, "leaf-5000", failed="leaf-7000")
    assert head.split() == ["JOB", "LEVEL", "TYPE", "STATUS", "AFTER"]
    assert first.split() == ["start", "1", "t", "completed"]
    assert [line.split()[:2] for line in leaves[:2]] == [["▶", "leaf-5000"], ["leaf-7000", "2"]]
    assert len(leaves) == 19
    assert more.split("  ")[0] == "… 9,981 more"
    assert more.endswith("9,981 completed")
    assert last.endswith("leaf-0, leaf-1, leaf-2 and 9,997 more")


def test_a_long_chain_is_listed_by_level() -> None:
    chain = [(f"c-{number}", f"c-{number + 1}") for number in range(5000)]
    lines = drawn(chain, "c-3")
    assert len(lines) == 5002
    assert lines[-1].split() == ["c-5000", "5001", "t", "completed", "c-4999"]


def test_every_status_has_its_fill() -> None:
    assert {*FILLS} == {*status.STATUSES}
