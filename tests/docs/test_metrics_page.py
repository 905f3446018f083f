"""The pages about metrics, and what is in `deploy`, speak of metrics that there are."""

import json
import re
from pathlib import Path

import pytest

from foliot.service.lateness import MOST
from foliot.telemetry.families import FAMILIES
from foliot.telemetry.reference import render
from tests.docs.pages import ROOT, blocks
from tests.docs.shell import Reader

DEPLOY = ROOT / "deploy"
FILES = [
    DEPLOY / "grafana" / "foliot.json",
    DEPLOY / "prometheus" / "alerts.yml",
    ROOT / "docs" / "how-to" / "scrape-metrics.md",
    ROOT / "docs" / "explanation" / "lateness.md",
]
SUFFIXES = {
    "gauge": ("",),
    "counter": ("_total",),
    "histogram": ("_bucket", "_count", "_sum"),
    "info": ("_info",),
}
SERIES = {name + suffix for name, family in FAMILIES.items() for suffix in SUFFIXES[family.kind]}
LABELS = {label for family in FAMILIES.values() for label in family.labels} | {"le", "job", "instance"}


def named(path: Path) -> set[str]:
    """What looks like a metric of ours, but for the names of others."""
    found = re.findall(r"\b(?:foliot|process)_[a-z_]+", path.read_text())
    return set(found) - {"foliot_start_lateness_seconds"} if path.suffix == ".md" else set(found)


def test_the_page_of_metrics_is_what_the_table_says() -> None:
    page = ROOT / "docs" / "reference" / "metrics.md"
    assert page.read_text() == render(), "stale; run: python -m foliot.telemetry.reference > docs/reference/metrics.md"
    assert f"{MOST} queues" in page.read_text()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_metric_that_is_named_is_there(path: Path) -> None:
    assert named(path) - SERIES == set()


def test_the_dashboard_shows_every_family_of_jobs_workers_and_store() -> None:
    shown = named(DEPLOY / "grafana" / "foliot.json")
    wanted = {name for name in FAMILIES if name.startswith("foliot_")} - {"foliot_node"}
    assert {name for name in wanted if not any(each.startswith(name) for each in shown)} == set()


def test_every_label_that_is_asked_for_is_there() -> None:
    dashboard = json.loads((DEPLOY / "grafana" / "foliot.json").read_text())
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    asked.append((DEPLOY / "prometheus" / "alerts.yml").read_text())
    found = set()
    for text in asked:
        for labels in re.findall(r"(?:by|on) \(([a-z_, ]+)\)", text):
            found |= set(labels.split(", "))
        for matchers in re.findall(r"\{([^{}]*=[^{}]*)\}", text):
            found |= set(re.findall(r"([a-z_]+)(?:=~|!~|!=|=)", matchers))
    assert found - LABELS == set()


def test_the_dashboard_has_each_panel_once_and_none_over_another() -> None:
    panels = json.loads((DEPLOY / "grafana" / "foliot.json").read_text())["panels"]
    assert len({panel["id"] for panel in panels}) == len({panel["title"] for panel in panels}) == len(panels)
    squares = [
        (column, row)
        for place in (panel["gridPos"] for panel in panels)
        for column in range(place["x"], place["x"] + place["w"])
        for row in range(place["y"], place["y"] + place["h"])
    ]
    assert len(squares) == len(set(squares))
    assert max(column for column, _ in squares) < 24


def test_the_scaler_asks_for_what_the_node_tells() -> None:
    from foliot.api.routes import ROUTES
    from foliot.wire import DepthInfo

    text = (DEPLOY / "keda" / "scaledobject.yaml").read_text()
    (path,) = set(re.findall(r'url: "http://[^/]+(/[^"]+)"', text))
    assert path.replace("mail", "{queue}") in {route.path for route in ROUTES}
    assert (
        set(re.findall(r'valueLocation: "(\w+)"', text)) == {"waiting", "running"} <= set(DepthInfo.__struct_fields__)
    )


def test_the_commands_of_the_page_do_what_it_says(reader: Reader) -> None:
    page = "docs/how-to/scrape-metrics.md"
    make_key, scrape, depth = blocks(page, "sh")
    (told,) = blocks(page, "json")
    made = reader.type(f"export FOLIOT_URL={reader.url}\n{make_key}")
    key = re.search(r"fk_[\w-]+", made)
    assert key is not None
    with_key = f"export FOLIOT_KEY={key[0]}\n"
    assert "foliot_nodes" in reader.type(with_key + scrape)
    assert json.loads(reader.type(with_key + depth)) == json.loads(told)
