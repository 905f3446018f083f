"""Whatever is wrong is refused by name, with a word on what would be right."""

from typing import Any

import pytest

from foliot.wire import BATCH_LIMIT, JobId, JobType, QueueName
from tests.api.client import AsgiClient, Response

JOBS = "/api/v1/jobs"


def refusal(answer: Response, status: int = 400) -> dict[str, Any]:
    assert answer.status == status, answer.body
    assert answer.headers["content-type"] == "application/problem+json"
    told: dict[str, Any] = answer.json()
    assert told["status"] == status
    assert told["request_id"] == answer.headers["x-request-id"]
    return told


def only_field(answer: Response, status: int = 400) -> tuple[str, str]:
    (error,) = refusal(answer, status)["errors"]
    return error["field"], error["message"]


def right(type_: Any) -> str:
    """What a pattern's refusal says: the words of the type, never the pattern."""
    return f"must be {type_.__metadata__[0].description}"


WRONG_FIELDS: list[tuple[dict[str, Any], str, str]] = [
    ({"priorities": "high"}, "priorities", "there is no such field; did you mean priority?"),
    ({"zzz": 1}, "zzz", "there is no such field"),
    ({"retry": {"max_attempt": 3}}, "retry.max_attempt", "there is no such field; did you mean max_attempts?"),
    ({"retry": {"depends_on": 3}}, "retry.depends_on", "there is no such field"),
    ({"retry": {"max_attempts": "3"}}, "retry.max_attempts", "must be a whole number, not text"),
    ({"retry": {"max_attempts": 0}}, "retry.max_attempts", "must be at least 1"),
    ({"retry": {"jitter": 1.5}}, "retry.jitter", "must be at most 1"),
    ({"retry": {"backoff": "slow"}}, "retry.backoff", "must be one of exponential, fixed, linear"),
    ({"retry": {"initial": "soon"}}, "retry.initial", "is not a duration"),
    ({"retry": {"delays": [1, []]}}, "retry.delays[1]", "must be a number or text, not a list"),
    ({"retry": []}, "retry", "must be an object or null, not a list"),
    ({"job_type": 5}, "job_type", "must be text, not a whole number"),
    ({"job_type": "a b"}, "job_type", right(JobType)),
    ({"job_type": "a\n"}, "job_type", right(JobType)),
    ({"job_type": ""}, "job_type", right(JobType)),
    ({"job_id": "a/b"}, "job_id", right(JobId)),
    ({"job_id": "x" * 129}, "job_id", right(JobId)),
    ({"job_id": "j_mine"}, "job_id", "the prefix j_ is for generated ids"),
    ({"queue": "a:b"}, "queue", right(QueueName)),
    ({"schedule_time": "2027-01-01T00:00:00"}, "schedule_time", "a time needs its offset"),
    ({"schedule_time": "tomorrow"}, "schedule_time", "is not a time; use RFC 3339"),
    ({"schedule_time": 1700000000}, "schedule_time", "must be a time"),
    ({"schedule_time": "2027-01-01T00:00:00Z", "delay": 5}, "delay", "not both"),
    ({"delay": -1}, "delay", "zero or more"),
    ({"priority": 11}, "priority", '"high", "medium", "low", or 0 to 9'),
    ({"priority": "urgent"}, "priority", '"high", "medium", "low", or 0 to 9'),
    ({"priority": 1.5}, "priority", "must be a whole number or text or null, not a number"),
    ({"timeout": 0}, "timeout", "above zero"),
    ({"tags": ["a", 1]}, "tags[1]", "must be text"),
    ({"tags": [""]}, "tags[0]", "must have at least 1 character"),
    ({"tags": ["a"] * 65}, "tags", "must have at most 64 entries"),
    ({"tags": ["a\x00"]}, "tags[0]", "without control characters"),
    ({"owner": "a\x00"}, "owner", "without control characters"),
]


@pytest.mark.parametrize(("wrong", "field", "message"), WRONG_FIELDS, ids=[str(each[0])[:50] for each in WRONG_FIELDS])
async def test_a_wrong_field_is_named(client: AsgiClient, wrong: dict[str, Any], field: str, message: str) -> None:
    told_field, told = only_field(await client.post(JOBS, {"job_type": "echo"} | wrong))
    assert told_field == field
    assert message in told
    assert (await client.get(JOBS)).json() == []


@pytest.mark.parametrize(("wrong", "field", "message"), WRONG_FIELDS, ids=[str(each[0])[:50] for each in WRONG_FIELDS])
async def test_in_a_batch_a_wrong_field_is_named_with_its_job(
    client: AsgiClient, wrong: dict[str, Any], field: str, message: str
) -> None:
    jobs = [{"job_type": "echo"}] * 3 + [{"job_type": "echo"} | wrong]
    told_field, told = only_field(await client.post(f"{JOBS}/batch", {"jobs": jobs}))
    assert told_field == f"jobs[3].{field}"
    assert message in told
    assert (await client.get(JOBS)).json() == []


async def test_the_one_required_field_is_asked_for(client: AsgiClient) -> None:
    assert only_field(await client.post(JOBS, {})) == ("job_type", "is required")
    assert only_field(await client.post(f"{JOBS}/batch", {"jobs": [{}]})) == ("jobs[0].job_type", "is required")


@pytest.mark.parametrize(
    ("content", "detail"),
    [
        (b"", "A JSON body is needed"),
        (b"   ", "ends too early"),
        (b"{", "ends too early"),
        (b'{"job_type":"echo"', "ends too early"),
        (b"job_type=echo", "not valid JSON"),
        (b'{"job_type":"echo"} {}', "trailing characters"),
        (b'{"job_type":"echo","payload":NaN}', "not valid JSON"),
        (b'{"job_type":"echo","payload":-Infinity}', "not valid JSON"),
        (b'{"job_type":"echo","payload":{"a":01}}', "not valid JSON"),
        (b'{"job_type":"echo","payload":"\x00"}', "not valid JSON"),
        (b'{"job_type":"echo","payload":"\xff"}', "not UTF-8"),
        (b'{"job_type":"\xff"}', "not UTF-8"),
        (b'{"job_type":"echo","payload":"\xed\xa0\x80"}', "not UTF-8"),
        (b'{"job_type":"echo","payload":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deeply"),
        (b"[" * 100_000, "must be an object, not a list"),
        (b"[]", "must be an object, not a list"),
        (b"null", "must be an object, not null"),
        (b"\xef\xbb\xbf{}", "not valid JSON"),
    ],
    ids=lambda value: value[:40] if isinstance(value, bytes) else None,
)
async def test_a_body_that_is_no_json_object_is_refused(client: AsgiClient, content: bytes, detail: str) -> None:
    for target in (JOBS, f"{JOBS}/batch"):
        told = refusal(await client.post(target, content=content))
        if target == JOBS:
            assert detail in told["detail"]


async def test_an_escaped_nul_in_a_payload_is_kept(client: AsgiClient) -> None:
    content = b'{"job_type":"echo","job_id":"a","payload":{"text":"\\u0000","big":1e400000}}'
    assert (await client.post(JOBS, content=content)).status == 201
    assert b'{"text":"\\u0000","big":1e400000}' in (await client.get(f"{JOBS}/a")).body


async def test_a_batch_is_neither_empty_nor_too_long(client: AsgiClient) -> None:
    empty = await client.post(f"{JOBS}/batch", {"jobs": []})
    assert only_field(empty) == ("jobs", "must have at least 1 entry")
    long = await client.post(f"{JOBS}/batch", {"jobs": [{"job_type": "echo"}] * (BATCH_LIMIT + 1)})
    assert only_field(long) == ("jobs", "must have at most 10000 entries")


@pytest.mark.parametrize(
    ("query", "field", "message"),
    [
        ("limit=0", "limit", "must be at least 1"),
        ("limit=99999999999999999999999999", "limit", "must be at most 1000"),
        ("limit=1001", "limit", "must be at most 1000"),
        ("limit=-5", "limit", "must be at least 1"),
        ("limit=ten", "limit", "must be a whole number, not text"),
        ("limit=1e2", "limit", "must be a whole number, not text"),
        ("limit=", "limit", "is empty"),
        ("limit=5&limit=5", "limit", "may be given only once"),
        ("job_type=a&job_type=b", "job_type", "may be given only once"),
        ("job_type=a%20b", "job_type", right(JobType)),
        ("job_type=%00", "job_type", right(JobType)),
        ("owner=%00", "owner", "without control characters"),
        ("cursor=nonsense", "cursor", "not one of ours"),
        ("cursor=", "cursor", "is empty"),
        ("status=done", "status", "is no status"),
        ("status=queued&status=done", "status", "is no status"),
        ("start_time=2024-12-17", "start_time", "is not a time"),
        ("start_time=2024-12-17T00:00:00", "start_time", "a time needs its offset"),
        ("end_time=1700000000", "end_time", "is not a time"),
        ("statuses=queued", "statuses", "there is no such query parameter; there are cursor, "),
        ("a%20b=1", "a b", "there is no such query parameter"),
    ],
)
async def test_a_wrong_query_parameter_is_named(client: AsgiClient, query: str, field: str, message: str) -> None:
    told_field, told = only_field(await client.get(f"{JOBS}?{query}"))
    assert told_field == field
    assert message in told


@pytest.mark.parametrize("query", ["status=%ff", "&".join(["tag=a"] * 1001)])
async def test_a_query_that_can_not_be_read_is_refused(client: AsgiClient, query: str) -> None:
    assert "percent-encoded" in refusal(await client.get(f"{JOBS}?{query}"))["detail"]


async def test_a_call_without_parameters_takes_none(client: AsgiClient) -> None:
    for method, target in (("GET", f"{JOBS}/a"), ("POST", JOBS), ("GET", "/api/v1/workers")):
        field, message = only_field(await client.request(method, f"{target}?verbose=1"))
        assert (field, message) == ("verbose", "there is no such query parameter")


@pytest.mark.parametrize("value", ["3", 'W/"3"', '"x"', '"-1"', '"03"', '"1", "2"', '""', '"' + "9" * 30 + '"'])
async def test_an_if_match_that_is_no_etag_of_ours_is_refused(client: AsgiClient, value: str) -> None:
    answer = await client.request("PUT", f"{JOBS}/a", {"priority": 1}, headers={"if-match": value})
    assert only_field(answer)[0] == "If-Match"


@pytest.mark.parametrize("value", ["", "x" * 256, "é", "a\tb"])
async def test_an_idempotency_key_that_can_not_be_kept_is_refused(client: AsgiClient, value: str) -> None:
    answer = await client.post(JOBS, {"job_type": "echo"}, headers={"idempotency-key": value})
    assert only_field(answer)[0] == "Idempotency-Key"


async def test_consistency_is_strict_or_eventual(client: AsgiClient) -> None:
    for value in ("strict", "eventual"):
        assert (await client.get(JOBS, headers={"consistency": value})).status == 200
    assert only_field(await client.get(JOBS, headers={"consistency": "casual"}))[0] == "Consistency"


async def test_a_call_that_takes_no_fields_says_so(client: AsgiClient) -> None:
    answer = await client.post(f"{JOBS}/a/pause", {"until": "tomorrow"})
    assert only_field(answer) == ("until", "there is no such field")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "filter"),
        ({"filter": {"statuses": "queued"}}, "filter.statuses"),
        ({"filter": {"start_time": "2027-01-01T00:00:00"}}, "filter.start_time"),
        ({"filter": {}, "dry_run": "yes"}, "dry_run"),
    ],
)
async def test_a_wrong_filter_changes_nothing(client: AsgiClient, body: dict[str, Any], field: str) -> None:
    await client.post(JOBS, {"job_type": "echo", "job_id": "a"})
    assert only_field(await client.post(f"{JOBS}/cancel", body))[0] == field
    assert (await client.get(f"{JOBS}/a")).json()["status"] == "queued"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "name"),
        ({"name": ""}, "name"),
        ({"name": "w", "resources": {"slot": [8]}}, "resources[...]"),
        ({"name": "w", "resources": {"slot": "eight"}}, "resources.slot"),
        ({"name": "w", "resources": {"gpu": -1}}, "resources.gpu"),
        ({"name": "w", "resources": {"memory": 1e300}}, "resources.memory"),
        ({"name": "w", "resources": {"a b": 1}}, "resources.a b"),
        ({"name": "w", "labels": {"zone": 1}}, "labels[...]"),
        ({"name": "w", "queues": ["a b"]}, "queues[0]"),
    ],
)
async def test_a_wrong_worker_is_refused(client: AsgiClient, body: dict[str, Any], field: str) -> None:
    assert only_field(await client.post("/api/v1/workers", body))[0] == field
    assert (await client.get("/api/v1/workers")).json() == []
