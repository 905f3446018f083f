"""Server-sent events as they come over a connection: what a node streams."""

from collections.abc import AsyncIterator
from typing import NamedTuple


class Message(NamedTuple):
    """One of them. `id` is "" where it has none; one without `data` only tells how far the node has read."""

    id: str
    data: bytes | None


async def messages(chunks: AsyncIterator[bytes]) -> AsyncIterator[Message]:
    """Each as soon as it is whole, whatever way the bytes were cut. Comments keep the connection alive."""
    rest, found, data = b"", "", list[bytes]()
    async for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            line = line.removesuffix(b"\r")
            if line.startswith(b"data:"):
                data.append(line[5:].removeprefix(b" "))
            elif line.startswith(b"id:"):
                found = line[3:].strip().decode("ascii", "replace")
            elif not line and (data or found):
                yield Message(found, b"\n".join(data) if data else None)
                found, data = "", []
