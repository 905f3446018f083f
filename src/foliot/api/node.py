"""The calls about the node and the cluster: is it well, who is there, how much goes on, and what it can be asked."""

from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from foliot.api.call import Answer, Call
from foliot.api.errors import problem
from foliot.domain.errors import Unavailable
from foliot.telemetry import logs
from foliot.wire import Problem


class Health(Struct, frozen=True, kw_only=True):
    status: Literal["ok"]


async def healthz(call: Call[None, None]) -> Answer:
    """Whether the process answers at all; it asks nothing of the store."""
    return Answer(Health(status="ok"))


async def readyz(call: Call[None, None]) -> Answer:
    """What stands between this node and its work, if anything does."""
    found = await call.services.health.readiness()
    if found.status == "ready":
        return Answer(found)
    wrong = "; ".join(f"{each.name} {each.detail}" for each in found.checks if each.status == "failed")
    answer = problem(Unavailable(f"This node is not ready: {wrong}."), logs.REQUEST.get() or "")
    assert isinstance(answer.value, Problem)
    answer.value = replace(answer.value, checks=found.checks)
    return answer


async def list_nodes(call: Call[None, None]) -> Answer:
    return Answer(await call.services.query.nodes())


async def read_stats(call: Call[None, None]) -> Answer:
    return Answer(await call.services.query.stats(call.caller))


async def read_store(call: Call[None, None]) -> Answer:
    return Answer(await call.services.health.facts(call.caller))


async def read_forecast(call: Call[None, None]) -> Answer:
    return Answer(await call.services.forecasts.next_day(call.caller))


async def openapi_document(call: Call[None, None]) -> Answer:
    return Answer(call.pages().document)


async def docs(call: Call[None, None]) -> Answer:
    # The page is plain HTML with its own style: nothing else may be loaded or run.
    policy = (
        b"default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return Answer(
        call.pages().page,
        content_type=b"text/html; charset=utf-8",
        headers=((b"content-security-policy", policy),),
    )


async def home(call: Call[None, None]) -> Answer:
    return Answer(None, headers=((b"location", b"/docs"),))
