"""Apps to put under a virtual clock. Their address leads nowhere: nothing of them may reach for it."""

import pytest

from foliot import Foliot
from foliot.testing.plugin import foliot_time  # noqa: F401  # as the installed plugin gives it


@pytest.fixture
def app() -> Foliot:
    return Foliot("http://127.0.0.1:1", patience=0)
