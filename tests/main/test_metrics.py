"""A real node, read by those who would read it: promtool, Prometheus itself, and another OpenMetrics parser."""

import json
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from foliot import Client
from foliot.telemetry.families import FAMILIES
from foliot.wire import SubmitBody
from tests.docs.pages import ROOT
from tests.postgres_server import free_port
from tests.processes import KEY, Programs, eventually, programs
from tests.prometheus import program

__all__ = ["programs"]

pytestmark = pytest.mark.timeout(120)  # the package may have to be fetched first

STORES = ("sqlite", "postgres")


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest, programs: Programs) -> str:
    """A node on each kind of store that has run a job and has one waiting."""
    database = () if request.param == "sqlite" else ("--database", request.getfixturevalue("database_url"))
    _, url = programs.serve("node", *database)
    with Client(url, KEY) as client:
        done = client.submit(SubmitBody(job_type="echo", queue="mail"))
        client.wait(done, timeout=15)
        client.submit(SubmitBody(job_type="nobody.runs.this", queue="lonely"))
    return url


def scrape(url: str, accept: str) -> str:
    request = urllib.request.Request(f"{url}/metrics", headers={"Authorization": f"Bearer {KEY}", "Accept": accept})
    with urllib.request.urlopen(request, timeout=10) as answer:
        text: bytes = answer.read()
    return text.decode()


def test_promtool_finds_nothing_wrong_and_every_family_is_told(url: str) -> None:
    text = scrape(url, "text/plain")
    checked = subprocess.run([program("promtool"), "check", "metrics"], input=text, capture_output=True, text=True)
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")
    families = {family.name: family for family in text_string_to_metric_families(scrape(url, "*/*"))}
    assert set(families) == set(FAMILIES)
    assert {name: family.type for name, family in families.items()} == {
        name: family.kind for name, family in FAMILIES.items()
    }
    for name, family in families.items():
        assert {tuple(sorted(set(each.labels) - {"le"})) for each in family.samples} <= {
            tuple(sorted(FAMILIES[name].labels))
        }
    jobs = {(each.labels["queue"], each.labels["status"]): each.value for each in families["foliot_jobs"].samples}
    assert jobs == {("mail", "completed"): 1, ("lonely", "queued"): 1}


@contextmanager
def prometheus(url: str, folder: Path) -> Iterator[str]:
    """A Prometheus that scrapes the node as the file in `deploy` says, with the rules from there; its address."""
    port = free_port()
    (folder / "foliot.key").write_text(KEY)
    wanted = (ROOT / "deploy" / "prometheus" / "scrape.yml").read_text()
    for theirs, ours in (
        ("/etc/prometheus/foliot.key", str(folder / "foliot.key")),
        ("127.0.0.1:7070", url.removeprefix("http://")),
        ("scrape_interval: 15s", "scrape_interval: 250ms"),
    ):
        assert theirs in wanted
        wanted = wanted.replace(theirs, ours)
    config = folder / "prometheus.yml"
    config.write_text(f"rule_files: ['{ROOT / 'deploy' / 'prometheus' / 'alerts.yml'}']\n{wanted}")
    address = f"127.0.0.1:{port}"
    with (folder / "prometheus.log").open("w") as log:
        process = psutil.Popen(
            [
                program("prometheus"),
                f"--config.file={config}",
                f"--storage.tsdb.path={folder / 'tsdb'}",
                f"--web.listen-address={address}",
                "--enable-feature=exemplar-storage",
            ],
            stdout=log,
            stderr=log,
        )
    try:
        yield f"http://{address}"
    finally:
        process.kill()
        process.wait()


def asked(address: str, path: str) -> object:
    try:
        with urllib.request.urlopen(f"{address}/api/v1/{path}", timeout=5) as answer:
            return json.loads(answer.read())["data"]
    except OSError:
        return None


def test_prometheus_scrapes_a_node_as_our_file_says(url: str, tmp_path: Path) -> None:
    with prometheus(url, tmp_path) as address:

        def queried(expression: str) -> str:
            command = [program("promtool"), "query", "instant", address, expression]
            return subprocess.run(command, capture_output=True, text=True, timeout=15).stdout

        eventually(lambda: "=> 1" in queried('up{job="foliot"}'), (tmp_path / "prometheus.log").read_text(), 30)
        assert "=> 1" in queried('foliot_jobs{queue="lonely",status="queued"}')
        assert "=> 1" in queried('foliot_start_lateness_seconds_count{job_type="echo"}')
        assert "=> 1" in queried("foliot_node_info")
        exemplars = asked(address, "query_exemplars?query=foliot_start_lateness_seconds_bucket&start=0&end=9999999999")
        assert isinstance(exemplars, list)
        assert exemplars[0]["exemplars"][0]["labels"]["job_id"].startswith("j_")
        rules = asked(address, "rules")
        assert isinstance(rules, dict)
        broken = [rule["name"] for group in rules["groups"] for rule in group["rules"] if rule["health"] == "err"]
        assert broken == []


def test_promtool_understands_the_rules_and_the_scrape_that_we_ship() -> None:
    for words in (("rules", "alerts.yml"), ("config", "--syntax-only", "scrape.yml")):
        *kind, name = words
        command = [program("promtool"), "check", *kind, str(ROOT / "deploy" / "prometheus" / name)]
        checked = subprocess.run(command, capture_output=True, text=True)
        assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize("key", ["", "wrong"])
def test_nobody_reads_metrics_without_a_key(programs: Programs, key: str) -> None:
    _, url = programs.serve("node")
    request = urllib.request.Request(f"{url}/metrics", headers={"Authorization": f"Bearer {key}"} if key else {})
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(request, timeout=10)
