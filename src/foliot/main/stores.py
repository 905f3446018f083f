"""Which store is behind an address; a driver is imported only where it is used."""

from pathlib import Path

from foliot.settings import SettingsError
from foliot.store.base import Store


def make_store(url: str, *, recording: bool = True) -> Store:
    """With `recording` off no record of what happens is kept."""
    if url.startswith("sqlite:"):
        from foliot.store.sqlite import SqliteStore

        return SqliteStore(sqlite_path(url), recording=recording)
    from foliot.store.postgres import PostgresStore

    return PostgresStore(url, recording=recording)


async def migrate_store(url: str) -> list[str]:
    """Opening a store takes the steps that its schema lacks; the names of those taken."""
    from foliot.main.schema import read_schema

    _, missing = await read_schema(url)
    store = make_store(url)
    await store.open()
    await store.close()
    return [step.name for step in missing]


def sqlite_path(url: str) -> str:
    """The file that a `sqlite:///` address names, its folder made where it is missing."""
    path = url.removeprefix("sqlite:").removeprefix("///")
    if not path:
        raise SettingsError(f"{url!r} names no file; use sqlite:///path or sqlite:///:memory:")
    if path != ":memory:":
        try:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SettingsError(f"the folder of {path} can not be made: {error.strerror}") from None
    return path
