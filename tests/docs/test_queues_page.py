"""How to share and limit queues: every line of the page is typed, and does what it says."""

from typing import Any

from foliot import Client, Foliot
from foliot.wire import FilterBody, SubmitBody
from tests.docs.pages import blocks
from tests.docs.shell import Reader

PAGE = "docs/how-to/share-and-limit-queues.md"


def order_of_starts(client: Client, queue: str, count: int) -> str:
    jobs = [client.wait(job.job_id, timeout=10) for job in client.list(FilterBody(queue=queue))]
    assert len(jobs) == count
    return " ".join(job.job_id for job in sorted(jobs, key=lambda job: job.start_time))  # type: ignore[arg-type,return-value]


def test_jobs_of_a_fair_queue_start_in_the_order_that_the_page_shows(reader: Reader) -> None:
    _, _, in_turn, by_share, *_ = blocks(PAGE, "sh")
    even, weighted = (text.strip() for text in blocks(PAGE, "text"))
    at_node = f"export FOLIOT_URL={reader.url}\n"
    with reader.client() as client:
        reader.type(at_node + in_turn)
        assert order_of_starts(client, "tenants", 9) == even
        assert "a=2" in reader.type(at_node + by_share)
        client.set_queue("again", policy="fair", max_concurrency=1, weights=client.queue("tenants").weights)
        client.pause_queue("again")
        client.submit_many(
            SubmitBody(job_type="echo", queue="again", fair_key=key, job_id=f"again-{key}-{number}")
            for key, most in (("a", 6), ("b", 3))
            for number in range(1, most + 1)
        )
        client.resume_queue("again")
        assert order_of_starts(client, "again", 9).replace("again-", "") == weighted


def test_every_other_command_of_the_page_does_what_it_says(reader: Reader) -> None:
    look, policies, _, _, weight, limits, reset, hold, let_go = blocks(PAGE, "sh")
    at_node = f"export FOLIOT_URL={reader.url}\n"
    with reader.client() as client:
        assert "mail" in reader.type(at_node + look)
        reader.type(at_node + policies)
        assert client.queue("reports").aging == 600
        assert client.queue("imports").policy == "fifo"
        reader.type(at_node + weight)
        assert client.queue("mail").weight == 3
        assert "10 at once; 100 per 1s, burst 20" in reader.type(at_node + limits)
        reader.type(at_node + reset)
        assert (client.queue("mail").max_concurrency, client.queue("mail").rate_limit) == (None, None)
        told = reader.type(at_node + hold)
        assert "the queue mail is paused" in told
        assert "the job type echo is paused" in told
        assert client.get("held").status == "queued"
        assert "echo" in reader.type(at_node + let_go)
        assert client.wait("held", timeout=10).status == "completed"


def test_the_pages_python_hands_in_a_job_under_its_key(reader: Reader) -> None:
    (program,) = blocks(PAGE, "python")
    app = Foliot(reader.url, reader.key)
    names: dict[str, Any] = {"app": app}
    try:
        exec(program, names)
        (job,) = app.client.list(FilterBody(job_type="charge"))
        assert (job.queue, job.fair_key) == ("tenants", "c")
        queue = app.client.queue("tenants")
        assert (queue.policy, queue.weights, queue.waiting) == ("fair", {"a": 2.0, "c": 0.5}, 1)
    finally:
        app.close()
