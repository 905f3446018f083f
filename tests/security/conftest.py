"""A site for each test."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from foliot.main import open_node
from foliot.node.node import Node
from foliot.settings import Settings
from tests.api.client import KEY
from tests.security.site import Site
from tests.service.meddling import Meddling


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    store = Meddling(":memory:")
    await store.open()
    site = Site(store)
    await site.open()
    yield site
    await site.world.services.drain()
    await store.close()


@pytest.fixture
async def furnished(site: Site) -> Site:
    await site.furnish()
    return site


@pytest.fixture
async def nodes(database_url: str, tmp_path: Path) -> AsyncIterator[list[Node]]:
    """Two nodes over one PostgreSQL."""
    settings = Settings(database=database_url, data_dir=str(tmp_path), worker=False, admin_key=KEY)
    opened = [await open_node(settings) for _ in range(2)]
    yield opened
    for node in opened:
        await node.stop()
