"""Schemathesis over the whole schema: whatever is sent, an answer is one that the document tells of.

`make test` sends a few to every operation, the same ones each time. `FOLIOT_SCHEMA_CASES=50000` sends that many in all,
with a seed of its own, and takes as long as it takes.
"""

import asyncio
import os
from collections import Counter
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import hypothesis
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.core.transport import Response as Answered
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance

from foliot.api.openapi import make_document
from foliot.api.routes import ROUTES, Route
from tests.api.client import AsgiClient, Response
from tests.security.requests import title
from tests.security.site import Site
from tests.service.meddling import Meddling

CASES = int(os.environ.get("FOLIOT_SCHEMA_CASES", "0"))
EACH = CASES // len(ROUTES) + 1 if CASES else 10
DOCUMENT = make_document(ROUTES)
SCHEMA = schemathesis.openapi.from_dict(DOCUMENT)
SETTINGS = hypothesis.settings(
    max_examples=EACH,
    deadline=None,
    derandomize=not CASES,
    database=None,
    phases=[Phase.explicit, Phase.generate] if not CASES else [Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)
CHECKS: Any = [not_a_server_error, content_type_conformance, response_schema_conformance]
SENT: Counter[str] = Counter()


class Served:
    """A site that is furnished, on a loop of its own, for tests that are not coroutines."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._store = Meddling(":memory:")
        self.site = self._runner.run(self._open())
        self.client: AsgiClient = self.site.root

    async def _open(self) -> Site:
        await self._store.open()
        site = Site(self._store)
        await site.open()
        await site.furnish()
        return site

    def ask(self, case: Any) -> Response:
        target = case.formatted_path
        if case.query:
            target += f"?{urlencode(case.query, doseq=True)}"
        headers = {name: value for name, value in (case.headers or {}).items() if name.lower() != "authorization"}
        sent: dict[str, Any] = {"headers": headers}
        if not isinstance(case.body, schemathesis.core.NotSet):
            sent["json"] = _patient(case.body)
        return self._runner.run(self.client.request(case.method, target, **sent))

    def close(self) -> None:
        self._runner.run(self.site.world.services.drain())
        self._runner.run(self._store.close())
        self._runner.close()


def _patient(body: Any) -> Any:
    """Nobody waits for jobs here."""
    return body | {"wait": 0} if isinstance(body, dict) and isinstance(body.get("wait"), float | int) else body


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    served = Served()
    yield served
    served.close()
    if CASES:
        print(f"\n{SENT.total():,} cases: {dict(sorted(SENT.items()))}")


@pytest.mark.timeout(0 if CASES else 20)
@pytest.mark.parametrize("route", ROUTES, ids=title)
def test_every_answer_is_one_that_the_document_tells_of(served: Served, route: Route) -> None:
    operation: Any = SCHEMA[route.path][route.method]
    modes = st.sampled_from([GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
    documented = DOCUMENT["paths"][route.path][route.method.lower()]["responses"]

    @SETTINGS
    @hypothesis.given(data=st.data())
    def check(data: st.DataObject) -> None:
        case = data.draw(operation.as_strategy(generation_mode=data.draw(modes)))
        known = {name: served.site.names.get(name, "a") for name in case.path_parameters or {}}
        use_known: bool = data.draw(st.booleans())
        if known and use_known:
            case.path_parameters = known
        answer = served.ask(case)
        SENT[str(answer.status)] += 1
        assert str(answer.status) in documented, (answer.status, answer.body)
        request = requests.Request(case.method, "http://node" + operation.path).prepare()
        headers = {name: [value] for name, value in answer.headers.items()}
        told = Answered(answer.status, headers, answer.body, request, elapsed=0.0, verify=False)
        case.validate_response(told, checks=CHECKS)

    check()
