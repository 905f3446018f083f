"""Runs the built-in handlers as a worker does."""

from collections.abc import AsyncIterator

import pytest

from foliot.handlers import load_handlers
from foliot.handlers.command_rules import CommandRules
from foliot.handlers.permissions import Permissions
from foliot.outbound import AllowList
from tests.worker.lone_runner import LoneRunner

ANY_PROGRAM = CommandRules()


@pytest.fixture
async def lone() -> AsyncIterator[LoneRunner]:
    """It may run any program, and call the servers that tests start."""
    lone = LoneRunner(load_handlers(Permissions(addresses=AllowList.parse("127.0.0.1"), commands=ANY_PROGRAM)))
    yield lone
    await lone.close()
