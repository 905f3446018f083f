"""Readings become text that others read back as it was meant."""

from prometheus_client import REGISTRY
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_plain

from foliot.telemetry.exposition import OPENMETRICS, PLAIN, render
from foliot.telemetry.families import FAMILIES, Buckets, Example, Family, Reading, Sample
from foliot.telemetry.label_sets import LabelSets
from foliot.telemetry.process import process_readings

PROMETHEUS = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.2,*/*;q=0.1"
NASTY = 'a "queue"\\ with\nall of it, {too}'

LATE = Buckets(
    at_most=[(0.5, 2, None), (1.0, 3, Example("j_1", 0.75, 1_800_000_000.5))],
    beyond=Example("j_2", 7.0, 1_800_000_001.0),
    sum=9.5,
    count=4,
)
READINGS = [
    Reading(FAMILIES["foliot_jobs"], [Sample(("default", NASTY, "queued"), 3)]),
    Reading(FAMILIES["foliot_jobs_started"], [Sample(("default", "mail"), 5)]),
    Reading(FAMILIES["foliot_start_lateness_seconds"], [Sample(("default", "mail", "send"), LATE)]),
    Reading(FAMILIES["foliot_node"], [Sample(("n_1", "0.1.0", "sqlite"), 1)]),
    Reading(FAMILIES["foliot_events"], []),
]


def families(text: bytes) -> dict[str, Metric]:
    return {family.name: family for family in read_openmetrics(text.decode())}


def test_openmetrics_is_for_who_takes_it_and_for_who_does_not_say() -> None:
    for accept in ("", "*/*", PROMETHEUS, "application/openmetrics-text"):
        text, kind = render(READINGS, accept)
        assert kind == OPENMETRICS
        assert text.endswith(b"# EOF\n")
    text, kind = render(READINGS, "text/plain")
    assert kind == PLAIN
    assert b"# EOF" not in text


def test_what_is_read_back_is_what_was_meant() -> None:
    found = families(render(READINGS, PROMETHEUS)[0])
    assert [found[name].type for name in ("foliot_jobs", "foliot_jobs_started", "foliot_node")] == [
        "gauge",
        "counter",
        "info",
    ]
    (jobs,) = found["foliot_jobs"].samples
    assert (jobs.labels["queue"], jobs.value) == (NASTY, 3)
    assert found["foliot_jobs_started"].samples[0].name == "foliot_jobs_started_total"
    assert found["foliot_node"].samples[0].labels == {"node_id": "n_1", "version": "0.1.0", "store": "sqlite"}
    assert found["foliot_events"].samples == []
    assert found["foliot_start_lateness_seconds"].unit == "seconds"


def test_buckets_carry_their_examples() -> None:
    late = families(render(READINGS, PROMETHEUS)[0])["foliot_start_lateness_seconds"]
    buckets = {sample.labels["le"]: sample for sample in late.samples if sample.name.endswith("_bucket")}
    assert {bound: sample.value for bound, sample in buckets.items()} == {"0.5": 2, "1.0": 3, "+Inf": 4}
    assert buckets["0.5"].exemplar is None
    example = buckets["1.0"].exemplar
    assert example is not None
    assert (example.labels, example.value, float(example.timestamp or 0)) == ({"job_id": "j_1"}, 0.75, 1_800_000_000.5)
    assert buckets["+Inf"].exemplar is not None


def test_plain_text_says_the_same_without_examples() -> None:
    found = {family.name: family for family in read_plain(render(READINGS, "text/plain")[0].decode())}
    assert found["foliot_jobs"].samples[0].labels["queue"] == NASTY
    assert not any(sample.exemplar for family in found.values() for sample in family.samples)


def test_the_system_tells_of_the_process() -> None:
    told = {reading.family.name: reading.samples[0].value for reading in process_readings()}
    assert set(told) == {name for name in FAMILIES if name.startswith("process_")}
    memory = told["process_resident_memory_bytes"]
    assert isinstance(memory, float)
    assert memory > 1_000_000


def test_the_registry_of_the_library_itself_is_left_alone() -> None:
    before = {metric.name for metric in REGISTRY.collect()}
    render(READINGS, "")
    assert {metric.name for metric in REGISTRY.collect()} == before
    assert not any(name.startswith("foliot") for name in before)


def test_so_many_sets_of_labels_are_told_apart_for_good() -> None:
    sets = LabelSets(2)
    assert [sets.holds(*labels) for labels in (("a",), ("b", "c"), ("d",), ("a",), ("d",))] == [
        True,
        True,
        False,
        True,
        False,
    ]


def test_every_family_has_a_name_as_prometheus_wants_it() -> None:
    for name, family in FAMILIES.items():
        assert isinstance(family, Family)
        assert name == family.name
        assert not name.endswith(("_total", "_info", "_bucket", "_count", "_sum"))
        assert family.about.endswith(".")
