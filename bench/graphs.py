"""How soon a job starts that waits for others: the end of the last parent's handler to the start of the child's."""

import statistics
from typing import Final

from bench.databases import Databases
from bench.load import PARENTS
from bench.marks import Findings, Reading
from bench.measure import Progress, Scale, all_ended, all_started, once, percentile
from bench.site import Site

PER_SECOND: Final = 25
WARM_UPS: Final = 10


def graphs(databases: Databases, scale: Scale, progress: Progress) -> Findings:
    """Small graphs, one at a time: two parents and a child that waits for both."""
    count = scale.graphs
    jobs = (count + WARM_UPS) * (1 + PARENTS)
    with Site.open(databases, capacity=jobs) as site:
        site.start_worker()
        site.load("graphs", WARM_UPS, rate=100)
        all_started(site, WARM_UPS * (1 + PARENTS), progress)
        progress.tell(f"{count} graphs, one at a time")
        first = WARM_UPS * (1 + PARENTS)
        site.load("graphs", count, first=first, rate=PER_SECOND)
        all_started(site, jobs, progress)
        all_ended(site)
        delays = site.sheet.delays(first, count)
        notes = once(site, jobs)
    return Findings(
        readings=[
            Reading("graphs_p50", statistics.median(delays)),
            Reading("graphs_p99", percentile(delays, 0.99)),
            Reading("graphs_most", max(delays)),
        ],
        spreads={"end of the last parent → start of its child": delays},
        notes=notes,
    )
