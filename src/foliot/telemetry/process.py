"""What the system knows of this process."""

from prometheus_client import ProcessCollector

from foliot.telemetry.families import FAMILIES, Reading, Sample

_COLLECTOR = ProcessCollector(registry=None)


def process_readings() -> list[Reading]:
    """Those that the system tells; elsewhere than on Linux there may be none."""
    return [
        Reading(FAMILIES[metric.name], [Sample((), metric.samples[0].value)])
        for metric in _COLLECTOR.collect()
        if metric.name in FAMILIES
    ]
