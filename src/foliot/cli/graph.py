"""`foliot jobs graph`: a job with all that it depends on and all that depends on it."""

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from foliot.cli.connection import with_client
from foliot.cli.show import console, count_text, json_option, print_json
from foliot.cli.tree import Command

if TYPE_CHECKING:
    from foliot.sdk.client import Client
    from foliot.wire import GraphInfo

# Names of X11, which Graphviz knows.
FILLS = {
    "scheduled": "lightcyan",
    "blocked": "plum",
    "queued": "lightblue",
    "running": "khaki",
    "retrying": "gold",
    "paused": "thistle",
    "completed": "palegreen",
    "failed": "lightcoral",
    "cancelled": "lightgrey",
}


@click.command(
    cls=Command,
    examples="""
    foliot jobs graph j_2x9k4
    foliot jobs graph nightly-report --dot | dot -Tsvg > graph.svg
    """,
)
@click.argument("job_id")
@click.option("--dot", is_flag=True, help="Print it as text for Graphviz instead.")
@json_option
@with_client
def graph(client: "Client", job_id: str, dot: bool, as_json: bool) -> None:
    """Show a job with all that it depends on and all that depends on it.

    A small graph is drawn as a tree, in which a job with several parents is shown once and named under the others; a
    larger one is listed level by level. The job that was asked for is marked.
    """
    if dot and as_json:
        raise click.UsageError("--dot and --json are two ways to print it; give one of them")
    found = client.graph(job_id)
    if as_json:
        print_json(found)
    elif dot:
        click.echo(dot_text(found))
    else:
        from foliot.cli.graph_drawing import draw

        console().print(draw(found, job_id))
        click.echo(f"\n{headline(found)}")
    if not found.complete:
        click.echo(f"there are more than these {count_text(len(found.nodes))}", err=True)


def headline(found: "GraphInfo") -> str:
    """How many jobs, and how they stand."""
    if not found.edges:
        return "It depends on no job, and none depends on it."
    return f"{count_text(len(found.nodes))}: {count_statuses(node.status for node in found.nodes)}"


def count_statuses(statuses: Iterable[str]) -> str:
    return ", ".join(f"{number:,} {status}" for status, number in Counter(statuses).most_common())


def dot_text(found: "GraphInfo") -> str:
    """Ids and job types have no character that would have to be escaped."""
    lines = ["digraph foliot {", "  rankdir=LR;", '  node [shape=box, style="rounded,filled", fillcolor=white];']
    for node in found.nodes:
        label = rf"{node.job_id}\n{node.job_type}\n{node.status}"
        lines.append(f'  "{node.job_id}" [label="{label}", fillcolor={FILLS.get(node.status, "white")}];')
    for edge in found.edges:
        label = "" if edge.on == "success" else f' [label="{edge.on}", style=dashed]'
        lines.append(f'  "{edge.parent}" -> "{edge.child}"{label};')
    return "\n".join([*lines, "}"])
