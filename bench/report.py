"""Findings as people read them: one table a store, with histograms. What is shown is Markdown and can be saved."""

import statistics
from collections.abc import Iterable, Sequence

import msgspec

from bench.machine import Machine
from bench.marks import BY_KEY, MARKS, Findings, Reading

HEADER = ("figure", "measured", "bare limit", "share", "first mark", "goal", "verdict")
NOTES = (
    "The bare limit is the least that a durable job takes in this store, straight on the driver, moments before.",
    "It works in batches of the same size; beside a latency it is one insert and one claim.",
    "Drain runs from the first handler's start to the last committed end.",
    "Marks and goals are for two cores.",
)
EDGES = (0.5, 1, 1.5, 2, 3, 4, 6, 8, 10, 12, 16, 25, 50, 100, 200, 500, 1000, 5000)  # milliseconds
EIGHTHS = " ▏▎▍▌▋▊▉"
BAR_WIDTH = 40


class StoreReport(msgspec.Struct, frozen=True, kw_only=True):
    store: str
    title: str
    readings: list[Reading]
    spreads: dict[str, list[float]]
    notes: list[str]

    def text(self) -> str:
        parts = [f"## {self.title}", table(self.readings)]
        parts += [f"{title}\n\n```\n{histogram(values)}\n```" for title, values in self.spreads.items()]
        parts += [f"- {note}" for note in self.notes]
        return "\n\n".join(parts)


def merge(store: str, title: str, rounds: Iterable[Findings]) -> StoreReport:
    """The median of each figure over all rounds, its bare limit likewise; the spreads together."""
    readings: dict[str, list[Reading]] = {}
    spreads: dict[str, list[float]] = {}
    notes: dict[str, None] = {}
    for findings in rounds:
        for reading in findings.readings:
            readings.setdefault(reading.key, []).append(reading)
        for name, values in findings.spreads.items():
            spreads.setdefault(name, []).extend(values)
        notes |= dict.fromkeys(findings.notes)
    return StoreReport(
        store=store,
        title=title,
        readings=[_median(readings[mark.key]) for mark in MARKS if mark.key in readings],
        spreads=spreads,
        notes=list(notes),
    )


def _median(readings: Sequence[Reading]) -> Reading:
    bare = [reading.bare for reading in readings if reading.bare is not None]
    return Reading(
        readings[0].key,
        statistics.median(reading.value for reading in readings),
        statistics.median(bare) if bare else None,
    )


def number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def table(readings: Sequence[Reading]) -> str:
    rows = [HEADER]
    for reading in readings:
        mark, share = BY_KEY[reading.key], reading.share
        rows.append(
            (
                mark.label,
                f"{number(reading.value)} {mark.unit}",
                number(reading.bare),
                "-" if share is None else f"{share:.0%}",
                number(mark.mark),
                number(mark.goal),
                mark.verdict(reading.value),
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADER))]
    lines = [_line(row, widths) for row in rows]
    rule = ["-" * width if column == 0 else "-" * (width - 1) + ":" for column, width in enumerate(widths)]
    return "\n".join([lines[0], _line(rule, widths), *lines[1:]])


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = [
        text.ljust(width) if column == 0 else text.rjust(width)
        for column, (text, width) in enumerate(zip(row, widths, strict=True))
    ]
    return f"| {' | '.join(cells)} |"


def histogram(values: Sequence[float]) -> str:
    """How many fell between two edges, from the first that holds any to the last."""
    counts = [0] * (len(EDGES) + 1)
    for value in values:
        counts[next((place for place, edge in enumerate(EDGES) if value < edge), len(EDGES))] += 1
    used = [place for place, count in enumerate(counts) if count]
    if not used:
        return "nothing measured"
    most = max(counts)
    lines = []
    for place in range(used[0], used[-1] + 1):
        label = f"< {EDGES[place]:g} ms" if place < len(EDGES) else f"≥ {EDGES[-1]:g} ms"
        lines.append(f"{label:>9} {bar(counts[place] / most):<{BAR_WIDTH}} {counts[place]:,}")
    return "\n".join(lines)


def bar(share: float) -> str:
    eighths = round(share * BAR_WIDTH * 8)
    if share and not eighths:
        eighths = 1
    full, rest = divmod(eighths, 8)
    return "█" * full + (EIGHTHS[rest] if rest else "")


def page(machine: Machine, command: str, date: str, stores: Sequence[StoreReport]) -> str:
    """The whole result, as it is kept."""
    head = "\n".join(f"- {line}" for line in (*machine.lines(), date, f"`{command}`"))
    notes = "\n".join(f"- {note}" for note in NOTES)
    return "\n\n".join(["# Benchmark results", head, *(store.text() for store in stores), "## Notes", notes]) + "\n"
