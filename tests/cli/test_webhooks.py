"""Webhooks on the command line, against a real node and a real receiver."""

import json
from collections.abc import Callable
from typing import Any, get_args

import pytest
from click.testing import CliRunner, Result

from foliot.cli import main, webhooks
from foliot.wire.webhooks import DeliveryState
from tests.cli.test_alerts import Receiver, open_node, receiver, told
from tests.processes import eventually

__all__ = ["open_node", "receiver", "told"]

Run = Callable[..., Result]


def read(foliot: Run, *words: str) -> Any:
    return json.loads(foliot(*words, "--json").stdout)


def test_a_webhook_is_added_tested_and_its_messages_are_seen_and_sent_again(told: Run, receiver: Receiver) -> None:
    added = told("webhooks", "add", f"http://{receiver.address}/hook", "--event", "job.failed", "--queue", "h-queue")
    assert added.exit_code == 0, added.stderr
    secret = added.stdout.strip().splitlines()[-1]
    assert secret.startswith("whsec_")
    assert "shown only this once" in added.stderr
    name = added.stdout.split()[1]
    assert told("webhooks", "test", name).stdout.startswith("sent;")
    assert receiver.came.get(timeout=15)["type"] == "foliot.webhook.test"
    eventually(
        lambda: [each["state"] for each in read(told, "webhooks", "deliveries", name)] == ["delivered"], "it", 15
    )
    listed = told("webhooks", "deliveries", name, "--state", "delivered").stdout
    delivery = listed.splitlines()[1].split()[0]
    assert told("webhooks", "redeliver", name, delivery).exit_code == 0
    assert receiver.came.get(timeout=15)["type"] == "foliot.webhook.test"
    assert told("webhooks", "redeliver", name, "--since", "-1h").stdout == "0 messages on the way again\n"
    assert secret not in told("webhooks", "show", name).output + told("webhooks", "--json").output
    rotated = told("webhooks", "rotate", name, "--quiet")
    assert rotated.stdout.startswith("whsec_")
    assert rotated.stdout.strip() != secret
    assert told("webhooks", "remove", name).stdout == f"{name} removed\n"
    assert told("webhooks", "show", name).exit_code == 4


def test_a_webhook_is_changed_in_part_and_switched_off_and_on(told: Run) -> None:
    made = read(told, "webhooks", "add", "https://example.com/hook", "--event", "job.*", "--queue", "a")
    name = made["webhook_id"]
    words = ["--target", "https://example.com/new", "--tag", "nightly", "--give-up-after", "12h"]
    assert told("webhooks", "change", name, *words).exit_code == 0
    there = read(told, "webhooks", "show", name)
    assert (there["url"], there["give_up_after"]) == ("https://example.com/new", 43200.0)
    assert {key: value for key, value in there["match"].items() if value} == {"queue": "a", "tag": "nightly"}
    assert told("webhooks", "change", name, "--all-jobs", "--event", "*").exit_code == 0
    assert "all jobs" in told("webhooks", "show", name).stdout
    assert told("webhooks", "disable", name).stdout == f"{name} off\n"
    (listed,) = [line for line in told("webhooks").stdout.splitlines() if line.startswith(name)]
    assert listed.split()[1] == "off"
    assert told("webhooks", "test", name).exit_code == 1
    assert told("webhooks", "enable", name).stdout == f"{name} active\n"
    assert told("webhooks", "deliveries", name).stderr == "nothing was sent to it yet\n"
    assert told("webhooks", "remove", name).exit_code == 0


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["add", "https://example.com"], "Missing option '--event'"),
        (["add", "https://example.com", "--event", "*", "--quiet", "--json"], "--quiet or --json"),
        (["change", "wh_1"], "change what?"),
        (["change", "wh_1", "--queue", "a", "--all-jobs"], "not both"),
        (["redeliver", "wh_1", "d_1", "--since", "-1h"], "not both"),
        (["deliveries", "wh_1", "--state", "lost"], "Invalid value for '--state'"),
    ],
)
def test_wrong_use_is_told(words: list[str], error: str) -> None:
    shown = CliRunner().invoke(main, ["webhooks", *words])
    assert shown.exit_code == 2
    assert error in shown.stderr


def test_the_words_are_the_apis() -> None:
    assert get_args(DeliveryState) == webhooks.STATES
