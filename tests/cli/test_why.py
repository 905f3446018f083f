"""Why a job does not run yet, or how it ended, against a real node."""

import json
import re
from collections.abc import Callable

from click.testing import Result

from foliot.cli.why import sentence
from tests.cli.conftest import ServedNode
from tests.cli.test_jobs import api, submitted
from tests.cli.test_terminal import terminal

Run = Callable[..., Result]


def told(foliot: Run, job_id: str) -> list[str]:
    shown = foliot("why", job_id)
    assert shown.exit_code == 0, shown.stderr
    return [line.strip() for line in shown.stdout.splitlines()]


def test_each_reason_is_told_with_who_is_behind_it(foliot: Run) -> None:
    parent = submitted(foliot, "none", "--id", "why-parent")
    summary, empty, head, first, second = told(foliot, submitted(foliot, "none", "--depends-on", parent))
    assert summary.startswith("Waits for why-parent")
    assert summary.endswith(".")
    assert (empty, head.split()) == ("", ["REASON", "DETAIL", "BY"])
    assert re.split(r"\s{2,}", first)[::2] == ["dependency", "why-parent"]
    assert second.startswith("no_worker ")


def test_the_expected_start_is_told_where_only_the_time_is_missing(foliot: Run) -> None:
    lines = told(foliot, submitted(foliot, "echo", "--delay", "1h"))
    assert re.fullmatch(r"time .* \d{4}-\d\d-\d\d \d\d:\d\d:\d\d \(in (59m \d+s|1h)\)", lines[3])
    assert re.fullmatch(r"Expected start: \S+ \S+ \(in (59m \d+s|1h)\)", lines[5])


def test_a_job_that_waits_for_a_token_names_the_one_that_has_it(foliot: Run) -> None:
    holder, waiter = (submitted(foliot, "none", "--concurrency", "why-key=1") for _ in range(2))
    (line,) = [line for line in told(foliot, waiter) if line.startswith("limit ")]
    assert holder in line
    assert "why-key" in line


def test_an_ended_job_tells_its_story_and_each_attempt(foliot: Run) -> None:
    job_id = submitted(foliot, "echo", '{"fail": 5}', "--max-attempts", "1")
    assert foliot("jobs", "watch", job_id).exit_code == 1
    summary, _, head, attempt = told(foliot, job_id)
    assert summary.startswith("Failed (asked_to_fail) after 1 attempt")
    assert head.split()[:2] == ["ATTEMPT", "STATUS"]
    assert attempt.split()[:2] == ["1", "retriable_failure"]
    assert "attempt 1 of 5" in attempt


def test_it_is_found_beside_the_other_commands_on_jobs_and_json_is_exactly_the_apis(
    foliot: Run, node: ServedNode
) -> None:
    job_id = submitted(foliot, "none", "--concurrency", "why-json=1")
    assert foliot("jobs", "why", job_id).stdout == foliot("why", job_id).stdout
    found = json.loads(foliot("why", job_id, "--json").stdout)
    assert [each["reason"] for each in found["reasons"]] == ["no_worker"]
    assert found == api(node, f"/jobs/{job_id}/why")


def test_a_narrow_terminal_tells_a_reason_in_full(node: ServedNode, foliot: Run) -> None:
    job_id = submitted(foliot, "none", "--require", "planet=mars")
    with terminal(node, "why", job_id, columns=40) as screen:
        _, _, reasons = screen.read_until(None).partition("DETAIL")
    assert "…" not in reasons
    assert "planet" in re.sub(r"\s", "", reasons)


def test_a_jobs_own_words_can_not_drive_the_terminal() -> None:
    assert sentence("failed: \x1b[31mred\x1b[0m\x07\nalert!") == "Failed: red\\x07 alert!"
