"""The command line: which measures, on which stores, how much, and where the result goes."""

import argparse
import shlex
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import msgspec

from bench import machine, report
from bench.databases import StoreName, open_databases
from bench.marks import Findings
from bench.measure import LONG, QUICK, Scale
from bench.measures import GROUPS, LONG_ONES, MEASURES
from bench.progress import Progress
from bench.site import Broken

RESULTS = Path(__file__).parent / "RESULTS.md"
EXAMPLES = """examples:
  python -m bench                                   all but the long ones, on both stores (about eleven minutes)
  python -m bench --quick --store sqlite            a first look (under a minute)
  python -m bench --only drain,late --repeat 3      medians of three rounds
  python -m bench --only queues,graphs              what rules cost, and how soon dependents start
  python -m bench --only watch,events               what being watched costs, and how soon it tells
  python -m bench --only time --long                all about time: a million jobs waiting, 100,000 due in a minute
  python -m bench --only late --waiting 1000000     lateness beside a million waiting jobs, and what those cost
  python -m bench --long --save                     everything; keep the result in bench/RESULTS.md
"""
GROUPS_TOLD = "; ".join(f"{group} is {', '.join(names)}" for group, names in GROUPS.items())


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Measure Foliot on this machine, beside what the machine can do at all.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--store", choices=[*get_args(StoreName), "both"], default="both", help="default: both")
    parser.add_argument("--only", type=measures, metavar="A,B", help=f"some of: {', '.join(MEASURES)}; {GROUPS_TOLD}")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="a tenth of everything; the figures are rough")
    size.add_argument(
        "--long",
        action="store_true",
        help=f"a million jobs waiting, longer looks, and {', '.join(LONG_ONES)} too (five to ten minutes more)",
    )
    parser.add_argument(
        "--repeat", type=above_zero, default=1, metavar="N", help="rounds; medians are shown (default: 1)"
    )
    parser.add_argument(
        "--jobs", type=above_zero, metavar="N", help="jobs of a backlog and of a submit (default: 50,000)"
    )
    parser.add_argument(
        "--waiting",
        type=int,
        metavar="N",
        help="far-future jobs beside the due ones (default: 100,000; with --long a million)",
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument("--save", action="store_true", help=f"write the tables to {RESULTS.parent.name}/{RESULTS.name}")
    return parser.parse_args(arguments)


def measures(text: str) -> list[str]:
    found: dict[str, None] = {}
    for name in text.split(","):
        if name not in MEASURES and name not in GROUPS:
            raise argparse.ArgumentTypeError(
                f"there is no measure {name!r}; there are {', '.join(MEASURES)}; {GROUPS_TOLD}"
            )
        found |= dict.fromkeys(GROUPS.get(name, (name,)))
    return list(found)


def chosen(options: argparse.Namespace) -> list[str]:
    return options.only or [name for name in MEASURES if options.long or name not in LONG_ONES]


def above_zero(text: str) -> int:
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above zero")
    return int(text)


def scale_of(options: argparse.Namespace) -> Scale:
    changes: dict[str, Any] = {}
    if options.jobs:
        changes |= {"jobs": options.jobs, "singles": options.jobs, "claims": options.jobs}
    if options.waiting is not None:
        changes["waiting"] = options.waiting
    return msgspec.structs.replace(QUICK if options.quick else LONG if options.long else Scale(), **changes)


def measure_store(name: StoreName, options: argparse.Namespace, progress: Progress) -> report.StoreReport:
    with open_databases(name) as databases:
        rounds = []
        withheld = machine.Withheld()
        for turn in range(options.repeat):
            for each in chosen(options):
                of = f", round {turn + 1} of {options.repeat}" if options.repeat > 1 else ""
                progress.begin(f"{name}: {each}{of}")
                rounds.append(MEASURES[each](databases, scale_of(options), progress))
                progress.end()
        told = f"The host withheld {withheld.share:.0%} of the processor time that was wanted during this run."
        rounds.append(Findings(notes=[told]))
        return report.merge(name, databases.title, rounds)


def main() -> int:
    options = parse(sys.argv[1:])
    # Unwinding stops what was started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    progress = Progress()
    found = machine.look()
    names: tuple[StoreName, ...] = get_args(StoreName) if options.store == "both" else (options.store,)
    try:
        stores = [measure_store(name, options, progress) for name in names]
    except Broken as error:
        progress.end()
        print(f"bench: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        progress.end()
        return 130
    command = shlex.join(["python", "-m", "bench", *sys.argv[1:]])
    date = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    text = report.page(found, command, date, stores)
    if options.save:
        RESULTS.write_text(text, "utf-8")
    if options.json:
        result = {"machine": found, "command": command, "date": date, "stores": stores}
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(result)).decode() + "\n")
    else:
        sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
