"""Readings as text that Prometheus and its kin take: OpenMetrics, or the older plain format for who asks for it.

A registry of its own is made for each answer: nothing is kept between two of them, and the library's global one is not
touched."""

from collections.abc import Iterable, Sequence

from prometheus_client import CollectorRegistry
from prometheus_client import exposition as plain
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.registry import Collector
from prometheus_client.samples import Exemplar

from foliot.telemetry.families import Buckets, Example, Family, Reading, Sample

OPENMETRICS = b"application/openmetrics-text; version=1.0.0; charset=utf-8"
PLAIN = b"text/plain; version=0.0.4; charset=utf-8"
UNITS = ("seconds", "bytes")


class _Readings(Collector):
    def __init__(self, readings: Sequence[Reading]) -> None:
        self._readings = readings

    def collect(self) -> Iterable[Metric]:
        return [_metric(reading.family, reading.samples) for reading in self._readings]

    def describe(self) -> Iterable[Metric]:
        """Nothing, so that registering does not collect."""
        return ()


def render(readings: Sequence[Reading], accept: str) -> tuple[bytes, bytes]:
    """The text and its content type."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Readings(readings))
    if "text/plain" in accept and "openmetrics" not in accept:
        return plain.generate_latest(registry), PLAIN
    text: bytes = openmetrics.generate_latest(registry)  # type: ignore[no-untyped-call]
    return text, OPENMETRICS


def _metric(family: Family, samples: Sequence[Sample]) -> Metric:
    made: Metric
    last = family.name.rpartition("_")[2]
    unit = last if last in UNITS else ""
    match family.kind:
        case "gauge":
            made = GaugeMetricFamily(family.name, family.about, labels=family.labels, unit=unit)
        case "counter":
            made = CounterMetricFamily(family.name, family.about, labels=family.labels, unit=unit)
        case "histogram":
            made = HistogramMetricFamily(family.name, family.about, labels=family.labels, unit=unit)
        case "info":
            made = InfoMetricFamily(family.name, family.about)
    for sample in samples:
        if isinstance(sample.value, Buckets):
            _add_buckets(made, family, sample.labels, sample.value)
        elif isinstance(made, InfoMetricFamily):
            made.add_metric([], dict(zip(family.labels, sample.labels, strict=True)))
        elif isinstance(made, GaugeMetricFamily | CounterMetricFamily):
            made.add_metric(list(sample.labels), sample.value)
    return made


def _add_buckets(metric: Metric, family: Family, labels: Sequence[str], value: Buckets) -> None:
    shown = dict(zip(family.labels, labels, strict=True))
    bounds = [(repr(bound), count, example) for bound, count, example in value.at_most]
    for bound, count, example in [*bounds, ("+Inf", value.count, value.beyond)]:
        metric.add_sample(f"{family.name}_bucket", {**shown, "le": bound}, count, exemplar=_exemplar(example))
    metric.add_sample(f"{family.name}_count", shown, value.count)
    metric.add_sample(f"{family.name}_sum", shown, value.sum)


def _exemplar(example: Example | None) -> Exemplar | None:
    return None if example is None else Exemplar({"job_id": example.job_id}, example.value, example.time)
