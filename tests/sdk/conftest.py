"""A node over HTTP, and apps that speak to it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from foliot import Foliot
from tests.sdk.cutting_proxy import CuttingProxy
from tests.sdk.served_node import KEY, ServedNode


@pytest.fixture
def node(tmp_path: Path) -> Iterator[ServedNode]:
    served = ServedNode(tmp_path)
    served.start()
    yield served
    served.stop()


@pytest.fixture
def app(node: ServedNode) -> Iterator[Foliot]:
    app = Foliot(node.url, KEY)
    yield app
    app.close()


@pytest.fixture
def proxy(node: ServedNode) -> Iterator[CuttingProxy]:
    proxy = CuttingProxy(node.port)
    proxy.start()
    yield proxy
    proxy.stop()


@pytest.fixture
def embedded() -> Iterator[Foliot]:
    app = Foliot("sqlite:///:memory:")
    yield app
    app.close()
