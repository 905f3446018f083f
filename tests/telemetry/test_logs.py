"""Every line stays one line, says what it is about, and tells no secret; in both forms."""

import io
import json
import logging
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from foliot.main.telemetry import secrets_of
from foliot.sdk.async_client import AsyncClient
from foliot.settings import Settings
from foliot.telemetry import logs
from foliot.wire import SubmitBody
from tests.processes import KEY, REGISTERED, Programs
from tests.security.corpus import TEXTS

TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
TEXT_LINE = re.compile(rf"{TIME} (DEBUG|INFO|WARNING|ERROR) [\w.]+: [^\x00-\x1f\x7f-\x9f\u2028\u2029]*")
Log = Callable[..., tuple[logging.Logger, io.StringIO]]


@pytest.fixture
def log() -> Iterator[Log]:
    """Sets up a form, and gives a logger and where its lines go."""
    root = logging.getLogger()
    before, level = root.handlers[:], root.level

    def make(form: str, **given: Any) -> tuple[logging.Logger, io.StringIO]:
        out = io.StringIO()
        logs.set_up("debug", form, stream=out, **given)
        return logging.getLogger("foliot.test"), out

    yield make
    root.handlers[:] = before
    root.setLevel(level)


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("form", ["text", "json"])
def test_no_message_breaks_its_line(log: Log, form: str, text: str) -> None:
    logger, out = log(form)
    logger.warning("before %s after", text)
    (line,) = out.getvalue().splitlines()
    assert out.getvalue().count("\n") == 1
    if form == "json":
        assert line.isascii()
        assert line.isprintable()
        assert json.loads(line)["message"].startswith("before ")
    else:
        assert TEXT_LINE.fullmatch(line)


@given(st.text(), st.text())
def test_whatever_is_logged_is_read_again_from_json(message: str, name: str) -> None:
    record = logging.LogRecord(name or "x", logging.INFO, "", 0, "%s", (message,), None)
    line = logs.JsonLines().format(record)
    assert line.isascii()
    assert line.isprintable()
    assert json.loads(line)["level"] == "info"


@pytest.mark.parametrize("form", ["text", "json"])
def test_an_error_forges_no_line_by_its_message(log: Log, form: str) -> None:
    logger, out = log(form)
    try:
        raise ValueError("bad\n2026-01-01T00:00:00.000Z INFO foliot: forged")
    except ValueError:
        logger.exception("it failed")
    first, *rest = out.getvalue().splitlines()
    if form == "json":
        assert rest == []
        assert "forged" in json.loads(first)["exception"]
    else:
        assert first.endswith("ERROR foliot.test: it failed")
        assert all(line.startswith(logs.INDENT) for line in rest)
        assert "forged" in rest[-1]


def test_a_line_says_which_request_it_is_about(log: Log) -> None:
    logger, out = log("json")
    known = logs.REQUEST.set("r-1")
    logger.info("within")
    logs.REQUEST.reset(known)
    logger.info("without")
    within, without = map(json.loads, out.getvalue().splitlines())
    assert within["request_id"] == "r-1"
    assert "request_id" not in without
    assert re.fullmatch(TIME, within["time"])
    assert (within["level"], within["logger"], within["message"]) == ("info", "foliot.test", "within")


def test_arguments_that_do_not_fit_lose_no_line() -> None:
    record = logging.LogRecord("x", logging.INFO, "", 0, "%d jobs", ("many",), None)
    assert "many" in json.loads(logs.JsonLines().format(record))["message"]


def test_a_log_that_can_not_be_written_stops_nobody(log: Log) -> None:
    logger, out = log("text")
    out.close()
    logger.error("to nowhere")


def test_setting_up_again_replaces_what_was(log: Log) -> None:
    _, first = log("text")
    logger, second = log("json")
    logger.info("once")
    assert first.getvalue() == ""
    assert len(second.getvalue().splitlines()) == 1


SECRETS = Settings(
    admin_key="the-admin-key-of-this-node",
    oidc_client_secret="a client's secret",
    encryption_keys="a:" + "QUJD" * 10 + "QUI=",
    database="postgresql://me:p%40ss:word@db/foliot?password=other-pass",
    otlp_endpoint="https://otel:collect0r@collector",
)
VALUES = (
    "the-admin-key-of-this-node",
    "a client's secret",
    "QUJD" * 10 + "QUI=",
    "p%40ss:word",
    "p@ss:word",
    "other-pass",
    "collect0r",
)


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize("value", VALUES)
def test_no_setting_that_is_secret_is_shown(log: Log, form: str, value: str) -> None:
    logger, out = log(form, secrets=secrets_of(SECRETS))
    logger.info("connecting with %s now", value)
    logger.info("settings %r", value)
    try:
        raise ConnectionError(f"refused {value}")
    except ConnectionError:
        logger.exception("could not")
    assert value not in out.getvalue()
    assert "connecting with *** now" in out.getvalue()


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize(
    "told",
    [
        "Authorization: Bearer SECRETSECRETSECRET",
        "authorization: Basic SECRETSECRETSECRET==",
        "{'Authorization': 'Bearer SECRETSECRETSECRET'}",
        "[(b'authorization', b'Bearer SECRETSECRETSECRET')]",
        "sent with Bearer SECRETSECRETSECRET to the node",
        "Cookie: foliot_session=SECRETSECRETSECRET; other=SECRET",
        "X-CSRF-Token: SECRETSECRETSECRET",
        "postgresql://me:SECRET@db/foliot",
        "postgresql://db/foliot?user=me&password=SECRET&x=1",
        "redis://:SECRET@cache:6379/0",
        'could not log in, password="SECRET"',
        "client_secret=SECRET",
        "a key fk_SECRETSECRETSECRET was refused",
        "signed with whsec_SECRETSECRETSECRET",
        "a token eyJhbGciOiJub25lIn0.SECRETSECRET.SECRET was refused",
    ],
)
def test_what_looks_like_a_secret_is_not_shown(log: Log, form: str, told: str) -> None:
    logger, out = log(form)
    logger.info("%s", told)
    assert "SECRET" not in out.getvalue()
    assert logs.HIDDEN in out.getvalue()


@pytest.mark.parametrize(
    "told",
    [
        "the basic settings are read",
        "job j_06e1f96a9d800000 of type secret-santa ended",
        "registered as w_06e1f96a9d800000 at http://127.0.0.1:7070",
        "the password was changed",
        "3 bearer bonds: sold",
    ],
)
def test_what_is_no_secret_is_shown(log: Log, told: str) -> None:
    logger, out = log("json")
    logger.info("%s", told)
    assert json.loads(out.getvalue())["message"] == told


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("form", "out", "begin"),
    [
        ("auto", Terminal(), "20"),
        ("auto", io.StringIO(), "{"),
        ("text", io.StringIO(), "20"),
        ("json", Terminal(), "{"),
    ],
)
def test_the_form_follows_from_where_lines_go_unless_it_is_said(
    log: Log, form: str, out: io.StringIO, begin: str
) -> None:
    logger, _ = log(form)
    logs.set_up("info", form, stream=out)
    logger.warning("hello")
    assert out.getvalue().startswith(begin)
    assert ("\x1b[33mWARNING\x1b[0m" in out.getvalue()) == (out.isatty() and begin == "20")


async def test_a_node_and_its_worker_log_what_a_line_is_about(programs: Programs) -> None:
    node, url = programs.serve("node", FOLIOT_LOG_LEVEL="debug")
    worker = programs.start("worker", "worker", "tests.telemetry.logging_app:app", FOLIOT_URL=url)
    worker.wait_for(REGISTERED)
    async with AsyncClient(url, KEY) as client:
        await client.request("GET", "/jobs?job_type=hidden", None, {"X-Request-Id": "find-me"})
        fields = {"message": "hello", "card": "4111111111111111"}
        body = SubmitBody(job_id="told", job_type="tell", payload=_raw(fields), secret_fields=["card"])
        await client.submit(body)
        assert (await client.wait("told")).status == "completed"
    assert (worker.stop(), node.stop()) == (0, 0)

    access = [line for line in _lines(node.said) if line.get("request_id") == "find-me"]
    assert [(line["logger"], line["level"]) for line in access] == [("foliot.access", "debug")]
    assert re.fullmatch(r"GET '/api/v1/jobs' 200 in \d+\.\d ms", access[0]["message"])
    (told,) = [line for line in _lines(worker.said) if line["logger"] == "app"]
    assert (told["message"], told["job_id"], told["attempt"]) == ("hello ***", "told", 1)
    assert "4111" not in worker.said
    assert KEY not in node.said + worker.said


def _lines(said: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in said.splitlines() if line.startswith("{")]


def _raw(value: object) -> Raw:
    return Raw(json.dumps(value).encode())
