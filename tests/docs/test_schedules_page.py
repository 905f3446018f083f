"""How to run a job on a schedule: every line of the page is typed, and does what it says."""

import json
import tomllib

from foliot.wire import FilterBody
from tests.docs.pages import blocks
from tests.docs.shell import Reader
from tests.processes import Process, eventually

PAGE = "docs/how-to/run-on-a-schedule.md"


def at_node(reader: Reader, lines: str) -> str:
    """The page's node is at the usual address."""
    return f"export FOLIOT_URL={reader.url}\n{lines}"


def test_the_commands_make_look_at_and_change_schedules(reader: Reader) -> None:
    create, look, *_ = blocks(PAGE, "sh")
    made = reader.type(at_node(reader, create))
    for words in ("every-beat", "weekdays", "pay-out", "last-friday", "At 09:00 on the last day of the month"):
        assert words in made
    with reader.client() as client:
        eventually(lambda: len(client.runs("every-beat")) >= 2, "two runs of the beat", seconds=10)
        *_, job = client.list(FilterBody(schedule_id="every-beat"))
        assert client.wait(job.job_id, timeout=10).status == "completed"
        reader.type(at_node(reader, look))
        left = {each.schedule_id: each for each in client.schedules()}
    assert left.keys() == {"weekdays", "pay-out", "last-friday"}
    assert (left["pay-out"].overlap, left["pay-out"].catch_up_window) == ("queue", 3 * 86400)


def test_the_file_is_applied_as_the_page_says(reader: Reader) -> None:
    (file,) = blocks(PAGE, "toml")
    (reader.folder / "schedules.toml").write_text(file)
    (lines,) = [text for text in blocks(PAGE, "sh") if "foliot apply" in text]
    dry, make, prune = lines.splitlines()
    wanted = {each["schedule_id"] for each in tomllib.loads(file)["schedule"]}
    with reader.client() as client:
        assert all(name in reader.type(at_node(reader, dry)) for name in wanted)
        assert client.schedules() == []
        reader.type(at_node(reader, make))
        assert {each.schedule_id for each in client.schedules()} == wanted
        reader.type(at_node(reader, "foliot schedules create echo --id billing.old --every 1h\n" + prune))
        assert {each.schedule_id for each in client.schedules()} == wanted


def test_the_programs_schedules_are_made_by_its_worker(reader: Reader) -> None:
    (program,) = blocks(PAGE, "python")
    (reader.folder / "greetings.py").write_text(reader.at_home(program))
    worker = Process(reader.folder, "worker", "worker", "greetings:app", FOLIOT_ADMIN_KEY="")
    try:
        with reader.client() as client:
            eventually(lambda: {each.schedule_id for each in client.schedules()} == {"greet", "often"}, "schedules")
            eventually(lambda: bool(client.runs("often")), "a run", seconds=10)
            job_id = client.runs("often")[-1].job_id
            assert job_id is not None
            assert client.wait(job_id, timeout=10).status == "completed"
            assert client.result(job_id) == "Good morning, Grace!"
    finally:
        worker.stop()


def test_the_calls_make_a_schedule_and_list_its_jobs(reader: Reader) -> None:
    (calls,) = [text for text in blocks(PAGE, "sh") if "curl" in text]
    decoder = json.JSONDecoder()
    printed = reader.type(calls)
    made, end = decoder.raw_decode(printed)
    assert (made["status"], made["schedule_id"]) == ("created", "hourly")
    assert decoder.raw_decode(printed[end:].strip())[0] == []
