"""Alert rules, incidents and channels on the command line, against a real node."""

import json
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any, get_args

import pytest
from click.testing import CliRunner, Result

from foliot.cli import alerts, main, notify_options
from foliot.cli.match_options import MATCH_FIELDS
from foliot.wire import QueueBody
from foliot.wire.alerts import AlertWord, MatchBody, NotifyWord, RuleFields
from foliot.wire.webhooks import WebhookMatch
from tests.cli.conftest import ServedNode, serve, stop

Run = Callable[..., Result]


class Receiver:
    """An address that notices are sent to, and what came."""

    def __init__(self) -> None:
        came: Queue[dict[str, Any]] = Queue()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                came.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None: ...

        self.came = came
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self._server.server_port}"
        self._thread = Thread(target=self._server.serve_forever)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.close()


@pytest.fixture(scope="module")
def open_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedNode]:
    """A node that may speak to this machine."""
    served = serve(tmp_path_factory.mktemp("alerts"), "--http-allow", "127.0.0.0/8")
    yield served
    stop(served)


@pytest.fixture
def told(open_node: ServedNode, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(open_node.directory)

    def invoke(*words: str, stdin: str | None = None) -> Result:
        return CliRunner().invoke(main, list(words), input=stdin, env={"FOLIOT_URL": open_node.url})

    return invoke


def read(foliot: Run, *words: str) -> Any:
    return json.loads(foliot(*words, "--json").stdout)


def test_a_rule_is_made_changed_in_part_shown_and_removed(foliot: Run) -> None:
    assert foliot("channels", "set", "a-ops", "-", stdin="json://example.com/notify\n").exit_code == 0
    words = ["--on", "failed", "--on", "late", "--after", "30s", "--queue", "mail", "--channel", "a-ops"]
    made = foliot("alerts", "set", "a-mail", *words)
    assert made.exit_code == 0, made.stderr
    assert " ".join(made.stdout.split()).startswith(
        "rule a-mail on failed, late of queue mail after 30s channels a-ops"
    )
    assert foliot("alerts", "set", "a-mail", "--tag", "nightly", "--throttle", "1h").exit_code == 0
    rule = read(foliot, "alerts", "show", "a-mail")
    assert (rule["match"], rule["throttle"], rule["on"]) == (
        {"queue": "mail", "tag": "nightly"},
        3600.0,
        ["failed", "late"],
    )
    assert foliot("alerts", "set", "a-mail", "--reset", "match", "--reset", "throttle").exit_code == 0
    (listed,) = [line for line in foliot("alerts").stdout.splitlines() if line.startswith("a-mail")]
    assert listed.split() == ["a-mail", "failed,", "late", "30s", "a-ops", "5m"]
    assert read(foliot, "alerts")[0]["name"] == "a-mail"
    assert foliot("alerts", "remove", "a-mail").stdout == "a-mail removed\n"
    assert foliot("alerts", "show", "a-mail").exit_code == 4
    assert foliot("channels", "remove", "a-ops").stdout == "a-ops removed\n"


def test_a_channels_address_is_never_shown(foliot: Run, tmp_path: Path) -> None:
    file = tmp_path / "ops.url"
    file.write_text("json://user:hush@example.com/notify\n")
    shown = foliot("channels", "set", "c-ops", "--url-file", str(file))
    assert shown.exit_code == 0, shown.stderr
    assert foliot("channels", "set", "c-ops", "xml://user:hush@example.com/other").exit_code == 0
    listed = foliot("channels")
    assert "xml://" in listed.stdout
    assert "hush" not in shown.output + listed.output + foliot("channels", "--json").output
    assert foliot("channels", "remove", "c-ops").exit_code == 0


def test_an_incident_is_told_listed_acknowledged_silenced_and_resolved(told: Run, receiver: Receiver) -> None:
    assert told("channels", "set", "ops", f"json://{receiver.address}/").exit_code == 0
    tested = told("channels", "test", "ops")
    assert (tested.exit_code, tested.stdout) == (0, "ops was told\n"), tested.stderr
    assert "Nothing has happened" in receiver.came.get(timeout=10)["message"]
    assert told("alerts", "set", "i-fails", "--on", "failed", "--queue", "i-queue", "--channel", "ops").exit_code == 0
    failing = ["submit", "echo", '{"fail": 9}', "--max-attempts", "1", "--queue", "i-queue", "--wait"]
    assert told(*failing).exit_code == 1
    assert "i-queue" in json.dumps(receiver.came.get(timeout=15))
    (incident,) = read(told, "incidents", "list", "--open")
    name = incident["incident_id"]
    assert (incident["rule"], incident["kind"], incident["count"]) == ("i-fails", "failed", 1)
    assert name in told("incidents").stdout
    shown = " ".join(told("incidents", "show", name).stdout.split())
    assert "status open rule i-fails what failed" in shown
    assert told("incidents", "silence", name, "--for", "2h").stdout.startswith(f"{name} silenced")
    assert told("incidents", "ack", name).exit_code == 0
    assert read(told, "incidents", "show", name)["acknowledged_by"]
    assert told("incidents", "resolve", name).stdout.startswith(f"{name} resolved")
    assert read(told, "incidents", "list", "--open") == []
    assert [each["incident_id"] for each in read(told, "incidents", "list")] == [name]
    assert told("incidents", "resolve", name).exit_code == 1


def test_a_queue_and_a_job_say_whom_to_tell(told: Run, receiver: Receiver) -> None:
    assert told("channels", "set", "crew", f"json://{receiver.address}/").exit_code == 0
    first = ["--notify-on", "failed", "--notify-on", "late", "--late-after", "30s", "--channel", "crew"]
    assert "tells of failed, late after 30s; to crew" in told("queues", "set", "n-queue", *first).stdout
    assert told("queues", "set", "n-queue", "--late-after", "1m").exit_code == 0
    assert told("queues", "set", "n-queue", "--objective", "99.9% within 500ms over 7d").exit_code == 0
    shown = " ".join(told("queues", "show", "n-queue").stdout.split())
    assert "notify failed, late after 1m; to crew objective 99.9% within 500ms over 7d" in shown
    job_id = told("submit", "echo", "--notify-on", "failed", "--channel", "crew", "--delay", "1h").stdout.strip()
    assert "failed; to crew" in told("jobs", "get", job_id).stdout
    assert read(told, "jobs", "get", job_id)["notify"]["on"] == ["failed"]
    quiet = told("submit", "echo", "--notify-on", "none", "--delay", "1h").stdout.strip()
    assert read(told, "jobs", "get", quiet)["notify"]["on"] == []
    assert told("queues", "set", "n-queue", "--reset", "notify", "--reset", "objective").exit_code == 0
    there = read(told, "queues", "show", "n-queue")
    assert (there["notify"], there["objective"]) == (None, None)


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["alerts", "set", "x"], "set what?"),
        (["alerts", "set", "x", "--on", "boredom"], "Invalid value for '--on'"),
        (["alerts", "set", "x", "--after", "1m", "--reset", "after"], "after can not be given and reset at once"),
        (["channels", "set", "x"], "give the address as URL"),
        (["channels", "set", "x", "json://a", "--url-file", "f"], "give the address as URL"),
        (["channels", "set", "x", "--url-file", "there-is-no-such-file"], "can not be read"),
        (["submit", "echo", "--late-after", "30s", "--notify-on", "failed"], "--late-after goes with --notify-on late"),
        (["submit", "echo", "--channel", "ops"], "tell of what?"),
        (["submit", "echo", "--notify-on", "none", "--channel", "ops"], "goes with nothing else"),
        (["queues", "set", "q", "--objective", "soon"], '"99% within 1s over 7d"'),
        (["queues", "set", "q", "--objective", "20% within 1s"], "50 to 99.999 %"),
        (["queues", "set", "q", "--objective", "99% within long"], "is no duration"),
    ],
)
def test_wrong_use_is_told(words: list[str], error: str) -> None:
    shown = CliRunner().invoke(main, words)
    assert shown.exit_code == 2
    assert error in shown.stderr


def test_a_new_rule_needs_to_say_when_and_whom(foliot: Run) -> None:
    shown = foliot("alerts", "set", "not-there", "--throttle", "1h")
    assert shown.exit_code == 2
    assert "give --on and --channel" in shown.stderr


def test_the_words_are_the_apis() -> None:
    assert get_args(AlertWord) == alerts.KINDS
    assert get_args(NotifyWord) == notify_options.NOTIFY_WORDS
    assert set(MatchBody.__struct_fields__) == set(WebhookMatch.__struct_fields__) == set(MATCH_FIELDS)
    assert set(alerts.RESETTABLE) == set(RuleFields.__struct_fields__) - {"on", "channels"}
    assert {"notify", "objective"} <= set(QueueBody.__struct_fields__)
