"""The reference page of the metrics, made from the table of families:

python -m foliot.telemetry.reference > docs/reference/metrics.md
"""

from foliot.telemetry.families import FAMILIES, Family

HEAD = """# Metrics

Made from the table of metrics by `python -m foliot.telemetry.reference`; a test fails when it is stale.
[How to scrape them](../how-to/scrape-metrics.md).

A counter's series ends in `_total`, a histogram has `_bucket`, `_count` and `_sum`, an info ends in `_info`. At most
500 queues, and 500 pairs of queue and job type, have series of their own; the rest is `other`.
"""
GROUPS = (
    ("Jobs and workers", "To every key, of the jobs that it reaches; to the node's admin key of all namespaces."),
    ("The cluster and this node", "To every key."),
    ("The process and the store", "To the node's admin key."),
)


def render() -> str:
    return HEAD + "".join(
        f"\n## {title}\n\n{about}\n\n| metric | kind | labels | what it tells |\n|---|---|---|---|\n"
        + "".join(_row(family) for family in FAMILIES.values() if _group(family) == place)
        for place, (title, about) in enumerate(GROUPS)
    )


def _group(family: Family) -> int:
    return 0 if family.scope == "namespace" else 1 if family.open else 2


def _row(family: Family) -> str:
    labels = ", ".join(f"`{label}`" for label in family.labels)
    return f"| `{family.name}` | {family.kind} | {labels} | {family.about} |\n"


if __name__ == "__main__":
    print(render(), end="")  # noqa: T201
