"""An HTTP gateway before a node, as many have one: it turns calls away when there are too many."""

from typing import Self

from aiohttp import ClientSession, ClientTimeout, web

TOO_MANY = 429


class Gateway:
    """Turns away as many calls that end in a path as `turn_away` says; carries all others. `seen` are the paths of all
    calls, in order, and what became of them."""

    def __init__(self, node: str, *, retry_after: str) -> None:
        self._node = node
        self._retry_after = retry_after
        self._left: dict[str, int] = {}
        self.seen: list[tuple[str, int]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    def turn_away(self, ending: str, times: int) -> None:
        self._left[ending] = times

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=1 << 30)
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._session = ClientSession(self._node, timeout=ClientTimeout(total=None))
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()
        await self._session.close()

    async def _answer(self, request: web.Request) -> web.Response:
        body = await request.read()
        for ending, left in self._left.items():
            if left and request.path.endswith(ending):
                self._left[ending] -= 1
                self.seen.append((request.path, TOO_MANY))
                return web.Response(status=TOO_MANY, headers={"Retry-After": self._retry_after})
        kept = {name: request.headers[name] for name in ("Authorization", "Content-Type") if name in request.headers}
        async with self._session.request(request.method, request.path_qs, data=body, headers=kept) as answer:
            text = await answer.read()
            self.seen.append((request.path, answer.status))
            return web.Response(status=answer.status, body=text, content_type="application/json")
