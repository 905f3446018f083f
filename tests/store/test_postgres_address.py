"""An address that does not work is told without its password."""

import pytest

from foliot.domain.errors import Unavailable
from foliot.store.postgres.address import reach


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://user:hunter2@127.0.0.1:1/foliot",
        "postgresql://user:hunter2/12@127.0.0.1:1/foliot",
        "postgresql://user:12/hunter2@127.0.0.1:1/foliot",
        "postgresql://user:1/2@hunter2@127.0.0.1:1/foliot",
        "postgresql://user:a@hunter2@127.0.0.1:1/foliot",
        "postgresql://user@127.0.0.1:1/foliot?password=hunter2",
        "postgresql://user@127.0.0.1:x/foliot?password=hunter2",
    ],
)
async def test_no_part_of_the_password_is_shown(url: str) -> None:
    with pytest.raises(Unavailable) as caught:
        await reach(url)
    assert "hunter" not in caught.value.detail
    assert "user:1" not in caught.value.detail
