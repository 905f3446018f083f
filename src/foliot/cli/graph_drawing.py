"""Jobs that depend on jobs, drawn: a tree where that can be read, else a table of levels."""

from typing import TYPE_CHECKING, Any

from rich.text import Text
from rich.tree import Tree

from foliot.cli.graph import count_statuses
from foliot.cli.show import some, status_text, table

if TYPE_CHECKING:
    from foliot.wire import GraphEdge, GraphInfo, GraphNode

TREE_LINES = 60
TREE_DEPTH = 12
LEVEL_SHOWN = 20
PARENTS_SHOWN = 3


def draw(found: "GraphInfo", asked: str) -> Any:
    drawing = _Drawing(found, asked)
    levels = drawing.levels()
    # Each edge is a line of the tree, and so is each job without parents.
    readable = len(levels) <= TREE_DEPTH and len(found.edges) + len(levels[0]) <= TREE_LINES
    return drawing.tree(levels[0]) if readable else drawing.table(levels)


class _Drawing:
    def __init__(self, found: "GraphInfo", asked: str) -> None:
        self._asked = asked
        self._nodes = {node.job_id: node for node in found.nodes}
        self._above: dict[str, list[GraphEdge]] = {name: [] for name in self._nodes}
        self._below: dict[str, list[GraphEdge]] = {name: [] for name in self._nodes}
        for edge in found.edges:
            self._above[edge.child].append(edge)
            self._below[edge.parent].append(edge)

    def levels(self) -> list[list[str]]:
        """The jobs, each one level below the lowest of its parents."""
        left = {name: len(edges) for name, edges in self._above.items()}
        level = [name for name, count in left.items() if not count]
        found: list[list[str]] = []
        while level:
            found.append(level)
            level = []
            for name in found[-1]:
                for edge in self._below[name]:
                    left[edge.child] -= 1
                    if not left[edge.child]:
                        level.append(edge.child)
        return found

    def tree(self, roots: list[str]) -> Tree:
        whole = Tree("", hide_root=True, guide_style="dim")
        drawn: set[str] = set()
        for name in roots:
            self._grow(whole, name, "", drawn)
        return whole

    def _grow(self, place: Tree, name: str, on: str, drawn: set[str]) -> None:
        """A job and what is below it; where it was drawn before, only its name."""
        node = self._nodes[name]
        if name in drawn:
            place.add(Text.assemble(_name(name, self._asked), (f"{on}  see above", "dim")))
            return
        drawn.add(name)
        line = Text.assemble(_name(name, self._asked), (f"{on}  {node.job_type}  ", "dim"), status_text(node.status))
        branch = place.add(line)
        for edge in self._below[name]:
            self._grow(branch, edge.child, "" if edge.on == "success" else f" (on {edge.on})", drawn)

    def table(self, levels: list[list[str]]) -> Any:
        rows: list[tuple[Any, ...]] = []
        for number, level in enumerate(levels, 1):
            # What has yet to be done or went wrong is looked for; the rest is counted.
            order = sorted(level, key=lambda name: (name != self._asked, self._nodes[name].status == "completed"))
            shown = order if len(order) <= LEVEL_SHOWN else order[: LEVEL_SHOWN - 1]
            rows += (self._row(number, self._nodes[name]) for name in shown)
            if rest := order[len(shown) :]:
                counts = count_statuses(self._nodes[name].status for name in rest)
                rows.append((f"… {len(rest):,} more", str(number), "", counts, ""))
        return table(("JOB", "LEVEL", "TYPE", "STATUS", "AFTER"), rows)

    def _row(self, level: int, node: "GraphNode") -> tuple[Any, ...]:
        after = [
            edge.parent if edge.on == "success" else f"{edge.parent} (on {edge.on})"
            for edge in self._above[node.job_id]
        ]
        return (
            _name(node.job_id, self._asked),
            str(level),
            node.job_type,
            status_text(node.status),
            some(after, PARENTS_SHOWN),
        )


def _name(name: str, asked: str) -> Text:
    return Text(f"▶ {name}" if name == asked else name, "bold" if name == asked else "")
