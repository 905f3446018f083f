"""What users define is known on every node, as it was last changed."""

from foliot.service.definitions import Definitions
from foliot.service.wake import Wake
from foliot.store.base import Definition
from tests.service.conftest import World


def a_webhook(body: str = "{}", namespace: str = "default") -> Definition:
    return Definition(kind="webhook", namespace=namespace, name="w", body=body, created=1)


async def test_what_is_put_is_known_here_at_once_and_elsewhere_after_a_look(world: World) -> None:
    here, there = Definitions(world.store, Wake()), Definitions(world.store, Wake())
    assert here.any is False
    saved = await here.put(a_webhook())
    assert here.of("webhook") == [saved]
    assert here.get("webhook", "default", "w") == saved
    assert there.get("webhook", "default", "w") is None
    edition = there.edition
    await there.refresh()
    assert there.of("webhook") == [saved]
    assert there.edition == edition + 1
    await there.refresh()
    assert there.edition == edition + 1, "nothing has changed"


async def test_a_change_of_another_version_is_not_made(world: World) -> None:
    definitions = Definitions(world.store, Wake())
    saved = await definitions.put(a_webhook(), expected=0)
    assert await definitions.put(a_webhook('{"x":1}'), expected=0) is None
    assert definitions.of("webhook", "default") == [saved]
    assert definitions.of("webhook", "other") == []


async def test_what_is_removed_is_gone(world: World) -> None:
    definitions = Definitions(world.store, Wake())
    await definitions.put(a_webhook())
    assert definitions.any
    assert await definitions.remove("webhook", "default", "w")
    assert not await definitions.remove("webhook", "default", "w")
    assert definitions.of("webhook") == []
