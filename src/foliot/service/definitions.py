"""What users define for those who watch: channels, alert rules, webhooks, what is to be told of a queue. All of it is
in memory on every node, learnt anew when somebody has changed it, and every few seconds."""

from collections.abc import Mapping, Sequence

from foliot.service.group import persist
from foliot.service.wake import Wake
from foliot.store.base import Definition, Kind, Store

Name = tuple[str, str]  # namespace and name


class Definitions:
    def __init__(self, store: Store, wake: Wake) -> None:
        self._store = store
        self._wake = wake
        self._known: Mapping[Kind, dict[Name, Definition]] = {}
        self.edition = 0  # grows whenever what is known has changed, so that what is made of it can be kept

    async def refresh(self) -> None:
        found: dict[Kind, dict[Name, Definition]] = {}
        for definition in await self._store.definitions():
            found.setdefault(definition.kind, {})[definition.namespace, definition.name] = definition
        if found != self._known:
            self._known = found
            self.edition += 1

    def of(self, kind: Kind, namespace: str | None = None) -> Sequence[Definition]:
        """By namespace and name."""
        known = self._known.get(kind, {})
        return [known[name] for name in sorted(known) if namespace is None or name[0] == namespace]

    def get(self, kind: Kind, namespace: str, name: str) -> Definition | None:
        return self._known.get(kind, {}).get((namespace, name))

    @property
    def any(self) -> bool:
        """Whether anybody has defined anything."""
        return bool(self._known)

    async def put(self, definition: Definition, *, expected: int | None = None) -> Definition | None:
        """As it is then, known here before the answer; None where it stands at another version than `expected`."""
        saved = await persist(lambda _again: self._store.put_definition(definition, expected=expected))
        if saved is not None:
            await self._changed()
        return saved

    async def remove(self, kind: Kind, namespace: str, name: str) -> bool:
        removed = await persist(lambda _again: self._store.remove_definition(kind, namespace, name))
        if removed:
            await self._changed()
        return removed

    async def _changed(self) -> None:
        await self.refresh()
        self._wake.rules()
