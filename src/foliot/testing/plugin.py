"""The pytest plugin: the fixture `foliot_time`, there wherever Foliot is installed. Costs nothing until it is used."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import datetime
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from foliot import Foliot
    from foliot.testing import VirtualTime


@pytest.fixture
def foliot_time() -> "Iterator[Callable[..., VirtualTime]]":
    """Puts an app under a virtual clock for the rest of the test: `time = foliot_time(app, start=datetime(…))`."""
    with ExitStack() as opened:

        def put_under(app: "Foliot", *, start: datetime) -> "VirtualTime":
            from foliot.testing.virtual_time import virtual

            return opened.enter_context(virtual(app, start=start))

        yield put_under
