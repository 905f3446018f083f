from collections.abc import Iterator

import pytest

from tests.processes import programs
from tests.telemetry.collector import Collector

__all__ = ["programs"]


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector().open() as opened:
        yield opened
