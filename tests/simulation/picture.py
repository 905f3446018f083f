"""The run as one SVG: what each worker had in its slots, and how long the jobs of each queue waited. Drawn by hand, so
that it needs no library and the same run gives the same file, byte by byte."""

import math
from collections.abc import Iterable, Sequence
from itertools import count
from pathlib import Path

from tests.simulation.scenario import OFFERS, RULES, Offer
from tests.simulation.watch import Start

FILE = Path(__file__).resolve().parents[2] / "docs" / "explanation" / "simulation.svg"

WIDTH, LEFT, RIGHT = 960, 100, 800  # what is drawn over time lies between LEFT and RIGHT
SLOT, GAP = 6, 10
WAIT_HEIGHT = 34
COLOURS = dict(zip(RULES, ("#2f7fc1", "#d9822b", "#2e9d62", "#9466cf", "#cf4b57", "#5f8795"), strict=True))

STYLE = """\
text { font: 12px system-ui, sans-serif; fill: #24292f }
.head { font-weight: 600; font-size: 14px }
.small { font-size: 11px; fill: #57606a }
.end { text-anchor: end }
.middle { text-anchor: middle }
.paper { fill: #ffffff }
.rule { stroke: #d0d7de; fill: none }
.bars { fill: none; stroke-width: 5 }
.dots { fill: none; stroke-width: 3; stroke-linecap: round }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 }
.small { fill: #9da7b3 }
.paper { fill: #0d1117 }
.rule { stroke: #3d444d }
}"""


def draw(starts: Sequence[Start]) -> str:
    """The whole file."""
    end = max(start.time + start.task.lasts for start in starts)
    sheet = Sheet(end)
    _legend(sheet)
    sheet.heading(
        "What each worker ran: one line a slot, one bar a job, by queue; right: how much of the slots was used"
    )
    for offer in OFFERS:
        _worker(sheet, offer, [start for start in starts if start.worker == offer.name], end)
    sheet.axis()
    longest = math.ceil(max(start.wait for start in starts) / 10) * 10
    sheet.heading(f"How long each job had waited when it started: from 0 s to {longest} s in every row")
    for queue in RULES:
        found = [start for start in starts if start.task.queue == queue]
        for key in sorted({start.task.fair_key or "" for start in found}):
            title = f"{queue} {key}".strip()
            _waits(sheet, title, queue, [start for start in found if (start.task.fair_key or "") == key], longest)
    sheet.axis()
    return sheet.text()


class Sheet:
    """Rows from top to bottom over one span of time."""

    def __init__(self, end: float) -> None:
        self._last = math.ceil(end / 20) * 20
        self._parts: list[str] = []
        self._top = 0.0  # where the rows under a heading begin
        self.y = 24.0

    def x(self, time: float) -> float:
        return LEFT + (RIGHT - LEFT) * time / self._last

    def add(self, part: str) -> None:
        self._parts.append(part)

    def write(self, x: float, y: float, words: str, style: str = "") -> None:
        kind = f' class="{style}"' if style else ""
        self.add(f'<text x="{_number(x)}" y="{_number(y)}"{kind}>{words}</text>')

    def line(self, path: str) -> None:
        self.add(f'<path class="rule" d="{path}"/>')

    def heading(self, words: str) -> None:
        self.write(12, self.y, words, "head")
        self.y += 16
        self._top = self.y

    def axis(self) -> None:
        """Under the rows since the heading."""
        for time in range(0, self._last + 1, 20):
            x = _number(self.x(time))
            self.line(f"M{x},{_number(self._top)}V{_number(self.y)}")
            self.write(self.x(time), self.y + 14, f"{time} s", "small middle")
        self.y += 48

    def text(self) -> str:
        size = f'viewBox="0 0 {WIDTH} {_number(self.y - 24)}" width="{WIDTH}" height="{_number(self.y - 24)}"'
        words = "A thousand simulated jobs over ten workers: what each worker ran, and how long jobs waited, by queue"
        # What lies behind comes first: the paper, then rules, then the rest.
        rules = [part for part in self._parts if 'class="rule"' in part]
        others = [part for part in self._parts if 'class="rule"' not in part]
        lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{words}">',
            f"<title>{words}</title>",
            f"<style>\n{STYLE}\n</style>",
            '<rect class="paper" width="100%" height="100%"/>',
            *rules,
            *others,
            "</svg>",
        ]
        return "\n".join(lines) + "\n"


def _legend(sheet: Sheet) -> None:
    for place, (queue, colour) in enumerate(COLOURS.items()):
        x = 12 + place * 110
        sheet.add(f'<rect x="{x}" y="{_number(sheet.y - 10)}" width="12" height="12" rx="2" fill="{colour}"/>')
        sheet.write(x + 18, sheet.y, queue)
    sheet.y += 30


def _worker(sheet: Sheet, offer: Offer, starts: Sequence[Start], end: float) -> None:
    slots = round(offer.resources["slot"])
    free_from = [0.0] * slots
    bars: dict[str, list[str]] = {}
    for start in sorted(starts, key=lambda start: (start.time, start.task.number)):
        slot = next(place for place in count() if free_from[place] <= start.time)
        free_from[slot] = round(start.time + start.task.lasts, 6)
        x, width = sheet.x(start.time), sheet.x(free_from[slot]) - sheet.x(start.time)
        y = sheet.y + slot * SLOT + SLOT / 2
        bars.setdefault(start.task.queue, []).append(f"M{_number(x)},{_number(y)}h{_number(max(width - 0.7, 0.7))}")
    middle = sheet.y + slots * SLOT / 2 + 4
    sheet.write(LEFT - 10, middle, offer.name, "end")
    for queue, paths in bars.items():
        sheet.add(f'<path class="bars" stroke="{COLOURS[queue]}" d="{"".join(paths)}"/>')
    used = sum(start.task.lasts for start in starts) / (slots * end)
    sheet.write(RIGHT + 12, middle, f"{used:.0%} of {slots}")
    sheet.y += slots * SLOT + GAP


def _waits(sheet: Sheet, title: str, queue: str, starts: Sequence[Start], longest: float) -> None:
    bottom = sheet.y + WAIT_HEIGHT
    dots = "".join(
        f"M{_number(sheet.x(start.time))},{_number(bottom - 2 - (WAIT_HEIGHT - 4) * start.wait / longest)}h0"
        for start in starts
    )
    sheet.line(f"M{LEFT},{_number(bottom)}H{RIGHT}")
    sheet.write(LEFT - 10, bottom - 6, title, "end")
    sheet.add(f'<path class="dots" stroke="{COLOURS[queue]}" d="{dots}"/>')
    middle, most = _seconds(_share(starts, 0.5)), _seconds(_share(starts, 1))
    sheet.write(RIGHT + 12, bottom - 18, f"{len(starts)} jobs")
    sheet.write(RIGHT + 12, bottom - 4, f"p50 {middle}, most {most}", "small")
    sheet.y = bottom + GAP


def _share(starts: Iterable[Start], share: float) -> float:
    waits = sorted(start.wait for start in starts)
    return waits[min(len(waits) - 1, int(len(waits) * share))]


def _seconds(value: float) -> str:
    return f"{value:.1f} s" if value < 10 else f"{value:.0f} s"


def _number(value: float) -> str:
    """As short as a tenth of a point allows."""
    return f"{value:.1f}".removesuffix(".0")
