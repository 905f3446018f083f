"""The client's calls for figures, against a real node."""

from datetime import timedelta

from foliot import Client, Foliot
from foliot.cli.times import read_clock
from foliot.wire import SubmitBody
from tests.sdk.served_node import KEY, ServedNode


def test_a_client_reads_how_late_jobs_were_and_how_full_a_queue_is(node: ServedNode, app: Foliot) -> None:
    @app.job(name="send")
    def send() -> None:
        """Nothing."""

    node.run_worker(app.handlers)
    with Client(node.url, KEY) as client:
        client.wait(client.submit(SubmitBody(job_type="send", queue="mail")), timeout=10)
        client.submit(SubmitBody(job_type="nobody.runs.this", queue="mail"))
        (found,) = client.lateness(queue="mail", job_type="send")
        assert (found.queue, found.job_type, found.jobs) == ("mail", "send", 1)
        now = read_clock()
        (by_type,) = client.lateness(
            queue="mail", since=now - timedelta(minutes=5), until=now + timedelta(minutes=1), by="job_type"
        )
        assert (by_type.queue, by_type.job_type) == (None, "send")
        depth = client.depth("mail")
        assert (depth.queue, depth.waiting, depth.running) == ("mail", 1, 0)
