from collections.abc import Iterator

import pytest

from tests.alerts.receiver import Receiver


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.close()
