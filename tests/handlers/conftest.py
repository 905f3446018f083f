"""Runs the built-in handlers as a worker does."""

from collections.abc import AsyncIterator

import pytest

from foliot.handlers import load_handlers
from tests.worker.lone_runner import LoneRunner


@pytest.fixture
async def lone() -> AsyncIterator[LoneRunner]:
    lone = LoneRunner(load_handlers(allow_commands=True))
    yield lone
    await lone.close()
