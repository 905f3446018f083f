"""A node as a reader of the pages starts it: `foliot serve` in a folder of his own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.shell import Reader, make_programs
from tests.processes import serve


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    make_programs(tmp_path)
    node, url = serve(tmp_path, "node", FOLIOT_ADMIN_KEY="")  # none: the node makes its own, as in the pages
    yield Reader(folder=tmp_path, node=node, url=url)
    node.stop()
