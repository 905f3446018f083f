"""The application over real services and a real SQLite store."""

from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from foliot.api import create_app
from foliot.clock import OffsetClock
from foliot.main import open_node
from foliot.node.node import Node
from foliot.service import Services
from foliot.service.access import Access
from foliot.settings import Settings
from foliot.store.base import AccessStore
from tests.api.client import KEY, AsgiClient


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    node = await open_node(Settings(data_dir=str(tmp_path), worker=False, admin_key=KEY))
    yield node
    await node.stop()


@pytest.fixture
def client(node: Node) -> AsgiClient:
    return AsgiClient(create_app(node.services, admin_key=KEY))


@pytest.fixture
def bare_app() -> Any:
    """The application without anything behind it: whoever gets past it fails."""
    access = Access(cast(AccessStore, None), OffsetClock())
    return create_app(cast(Services, SimpleNamespace(access=access)), admin_key=KEY)


@pytest.fixture
def bare(bare_app: Any) -> AsgiClient:
    return AsgiClient(bare_app)


@pytest.fixture
def stranger(bare_app: Any) -> AsgiClient:
    """A client without a key."""
    return AsgiClient(bare_app, key=None)
