"""HTTP itself: methods, request ids, sizes, broken connections, and errors of ours."""

import asyncio
import logging
from pathlib import Path

import pytest

from foliot.api import create_app
from foliot.api.call import Answer
from foliot.api.connection import while_connected
from foliot.api.errors import ClientGone, problem
from foliot.domain.errors import Unavailable
from foliot.main import open_node
from foliot.node.node import Node
from foliot.settings import Settings
from foliot.wire import BODY_LIMIT, PAYLOAD_LIMIT, Problem
from tests.api.client import KEY, AsgiClient

JOBS = "/api/v1/jobs"


@pytest.mark.parametrize(
    ("method", "target", "allow"),
    [
        ("PATCH", JOBS, "GET, HEAD, OPTIONS, POST"),
        ("DELETE", JOBS, "GET, HEAD, OPTIONS, POST"),
        ("POST", f"{JOBS}/a", "DELETE, GET, HEAD, OPTIONS, PUT"),
        ("GET", f"{JOBS}/a/pause", "OPTIONS, POST"),
        ("PATCH", f"{JOBS}/cancel", "DELETE, GET, HEAD, OPTIONS, POST, PUT"),
        ("POST", "/healthz", "GET, HEAD, OPTIONS"),
        ("get", JOBS, "GET, HEAD, OPTIONS, POST"),
    ],
)
async def test_a_wrong_method_is_told_the_right_ones(bare: AsgiClient, method: str, target: str, allow: str) -> None:
    answer = await bare.request(method, target)
    assert (answer.status, answer.headers["allow"]) == (405, allow)
    assert answer.json()["type"] == "urn:foliot:problem:method-not-allowed"


async def test_options_tells_the_methods(bare: AsgiClient) -> None:
    answer = await bare.request("OPTIONS", f"{JOBS}/a")
    assert (answer.status, answer.headers["allow"], answer.body) == (204, "DELETE, GET, HEAD, OPTIONS, PUT", b"")
    assert "content-length" not in answer.headers


async def test_head_answers_as_get_does_without_the_body(bare: AsgiClient) -> None:
    get, head = await bare.get("/openapi.json"), await bare.request("HEAD", "/openapi.json")
    assert (head.status, head.body) == (200, b"")
    assert head.headers["content-length"] == get.headers["content-length"] == str(len(get.body))


@pytest.mark.parametrize(
    "target", ["/api/v1/job", "/api/v2/jobs", f"{JOBS}/", f"{JOBS}/a/", f"{JOBS}/a/b/c", f"{JOBS}/%00", f"{JOBS}/a%20b"]
)
async def test_a_path_that_is_not_there_is_404(bare: AsgiClient, target: str) -> None:
    answer = await bare.get(target)
    assert (answer.status, answer.headers["content-type"]) == (404, "application/problem+json")
    assert answer.json()["title"] == "Not found"


async def test_a_job_may_be_named_like_a_call(client: AsgiClient) -> None:
    assert (await client.post(JOBS, {"job_type": "echo", "job_id": "cancel"})).status == 201
    assert (await client.get(f"{JOBS}/cancel")).json()["job_id"] == "cancel"


@pytest.mark.parametrize("given", ["x", "a request of mine", "~" * 128])
async def test_the_callers_request_id_comes_back(bare: AsgiClient, given: str) -> None:
    answer = await bare.get("/api/v1/nothing", headers={"x-request-id": given})
    assert answer.headers["x-request-id"] == answer.json()["request_id"] == given


@pytest.mark.parametrize("given", ["", "~" * 129, "é", "a\nb", "\x7f"])
async def test_a_request_id_that_can_not_be_shown_is_replaced(bare: AsgiClient, given: str) -> None:
    first, second = [await bare.get("/healthz", headers={"x-request-id": given}) for _ in range(2)]
    assert first.headers["x-request-id"] not in ("", given, second.headers["x-request-id"])


@pytest.mark.parametrize("content_type", ["text/html", "text/plain", "multipart/form-data; boundary=x", "json"])
async def test_a_body_of_another_type_is_415(bare: AsgiClient, content_type: str) -> None:
    answer = await bare.post(JOBS, {"job_type": "echo"}, headers={"content-type": content_type})
    assert answer.status == 415
    assert "Content-Type: application/json" in answer.json()["detail"]


@pytest.mark.parametrize(
    "content_type",
    [
        "application/json",
        "Application/JSON; charset=utf-8",
        "application/ld+json",
        "application/x-www-form-urlencoded",
        "(none)",
    ],
)
async def test_json_by_any_name_or_none_or_as_curl_names_it_is_taken(client: AsgiClient, content_type: str) -> None:
    answer = await client.post(JOBS, {"job_type": "echo"}, headers={"content-type": content_type})
    assert answer.status == 201


async def test_a_packed_body_is_415(bare: AsgiClient) -> None:
    answer = await bare.post(JOBS, content=b"\x1f\x8b", headers={"content-encoding": "gzip"})
    assert answer.status == 415


async def test_a_body_announced_as_too_large_is_refused_unread(bare: AsgiClient) -> None:
    headers = {"content-length": str(BODY_LIMIT + 1)}
    answer = await bare.post(JOBS, content=[b"{"], headers=headers, whole=False)
    assert (answer.status, answer.json()["type"]) == (413, "urn:foliot:problem:too-large")


async def test_a_body_that_grows_too_large_is_refused_while_it_is_read(bare: AsgiClient) -> None:
    chunks = [b" " * (8 << 20)] * 4 + [b" "]
    answer = await bare.post(JOBS, content=chunks, whole=False)
    assert answer.status == 413


async def test_one_chunk_may_be_too_large_too(bare: AsgiClient) -> None:
    assert (await bare.post(JOBS, content=[b" " * (BODY_LIMIT + 1)])).status == 413


async def test_a_body_in_pieces_is_put_together(client: AsgiClient) -> None:
    answer = await client.post(JOBS, content=[b'{"job_', b'type":', b'"echo"}'])
    assert answer.status == 201


async def test_a_body_cut_off_by_the_client_hands_nothing_in(client: AsgiClient) -> None:
    request = client.start("POST", JOBS, content=b'{"job_type":"echo"}', whole=False)
    request.hang_up()
    await request.task
    assert request.messages.empty()
    assert (await client.get(JOBS)).json() == []


async def test_the_largest_payload_is_kept_and_one_byte_more_is_refused(client: AsgiClient) -> None:
    largest = "x" * (PAYLOAD_LIMIT - 2)
    kept = await client.post(JOBS, {"job_type": "echo", "payload": largest, "job_id": "a"})
    assert kept.status == 201
    assert (await client.get(f"{JOBS}/a")).json()["payload"] == largest
    for call in (
        client.post(JOBS, {"job_type": "echo", "payload": largest + "x"}),
        client.request("PUT", f"{JOBS}/a", {"payload": largest + "x"}),
        client.post(f"{JOBS}/a/retry", {"payload": largest + "x"}),
    ):
        refused = await call
        assert refused.status == 413
        assert refused.json()["errors"][0]["field"] == "payload"


async def test_an_error_of_ours_is_a_problem_without_a_trace(
    bare: AsgiClient, caplog: pytest.LogCaptureFixture
) -> None:
    answer = await bare.get(JOBS, headers={"x-request-id": "find-me"})
    assert (answer.status, answer.headers["content-type"]) == (500, "application/problem+json")
    assert b"Traceback" not in answer.body
    assert b"NoneType" not in answer.body
    (record,) = [each for each in caplog.records if each.name == "foliot.api"]
    assert record.levelno == logging.ERROR
    assert "find-me" in record.getMessage()
    assert record.exc_info is not None


async def test_what_can_not_be_done_now_says_when_to_come_back() -> None:
    answer = problem(Unavailable("the store does not answer", retry_after=7), "r")
    assert (answer.status, dict(answer.headers)) == (503, {b"retry-after": b"7"})
    assert isinstance(answer, Answer)
    assert isinstance(answer.value, Problem)
    assert (answer.value.detail, answer.value.request_id) == ("the store does not answer", "r")


async def test_a_node_is_ready_while_its_store_answers(node: Node, client: AsgiClient) -> None:
    assert (await client.get("/healthz")).json() == {"status": "ok"}
    ready = (await client.get("/readyz")).json()
    assert ready["status"] == "ready"
    assert [(check["name"], check["status"]) for check in ready["checks"]] == [
        ("store", "ok"),
        ("schema", "ok"),
        ("clock", "ok"),
    ]


async def test_a_node_without_its_store_is_alive_and_says_when_to_come_back(tmp_path: Path) -> None:
    node = await open_node(Settings(data_dir=str(tmp_path), worker=False, admin_key=KEY))
    client = AsgiClient(create_app(node.services, admin_key=KEY))
    await node.stop()
    assert (await client.get("/healthz")).status == 200
    answer = await client.get(JOBS)
    assert (answer.status, answer.headers["content-type"]) == (503, "application/problem+json")
    assert int(answer.headers["retry-after"]) >= 1
    ready = await client.get("/readyz", headers={"x-request-id": "find-me"})
    assert (ready.status, ready.headers["content-type"]) == (503, "application/problem+json")
    assert int(ready.headers["retry-after"]) >= 1
    told = ready.json()
    assert (told["type"], told["request_id"]) == ("urn:foliot:problem:unavailable", "find-me")
    assert [(check["name"], check["status"]) for check in told["checks"]] == [("store", "failed")]
    assert str(tmp_path) not in ready.body.decode(), "it is for everybody to see"


async def test_the_answer_of_a_call_is_never_cached(bare: AsgiClient) -> None:
    answer = await bare.get("/healthz")
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-content-type-options"] == "nosniff"


async def test_work_ends_when_its_client_has_gone() -> None:
    begun, ended, gone = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def work() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def receive() -> dict[str, str]:
        await gone.wait()
        return {"type": "http.disconnect"}

    waiting = asyncio.create_task(while_connected(receive, work()))
    await begun.wait()
    gone.set()
    with pytest.raises(ClientGone):
        await waiting
    assert ended.is_set()


async def test_what_work_raises_comes_through() -> None:
    async def work() -> None:
        raise Unavailable("no")

    async def receive() -> dict[str, str]:
        await asyncio.Event().wait()
        return {}

    with pytest.raises(Unavailable):
        await while_connected(receive, work())


async def test_the_lifespan_of_a_server_is_acknowledged(bare: AsgiClient) -> None:
    received = iter(["lifespan.startup", "lifespan.shutdown"])
    sent: list[str] = []

    async def receive() -> dict[str, str]:
        return {"type": next(received)}

    async def send(message: dict[str, str]) -> None:
        sent.append(message["type"])

    await bare.app({"type": "lifespan"}, receive, send)
    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]


async def test_a_websocket_is_refused(bare: AsgiClient) -> None:
    sent: list[str] = []

    async def receive() -> dict[str, str]:
        return {"type": "websocket.connect"}

    async def send(message: dict[str, str]) -> None:
        sent.append(message["type"])

    await bare.app({"type": "websocket", "path": "/"}, receive, send)
    assert sent == ["websocket.close"]
