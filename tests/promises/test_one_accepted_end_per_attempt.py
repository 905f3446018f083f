"""Promise 3: a report that is sent again is answered as the first was, and a job succeeds once."""

import asyncio

import asyncpg

from foliot.domain.job import State
from tests.processes import Programs
from tests.promises.speaker import report, speakers

SOON = {"backoff": "fixed", "initial": "20ms", "jitter": 0}


async def test_a_report_sent_again_through_any_node_is_answered_as_the_first(
    programs: Programs, database_url: str
) -> None:
    urls = [programs.serve(f"node{n}", "--no-worker", "--database", database_url)[1] for n in (1, 2)]
    async with speakers(*urls) as (near, far):
        worker = await near.register("task")
        job_id = await near.submit("task", retry=SOON)
        (first,) = await near.take(worker)
        failed = {"reports": [report(first, "retriable_failure", error="no luck")]}
        answer = await near.exchange(worker, **failed)
        assert answer == {"jobs": [], "stop": [], "rejected": [], "drain": False}
        assert await near.exchange(worker, **failed) == answer
        assert await far.exchange(worker, **failed) == answer

        (second,) = await far.take(worker)
        assert second["attempt"] == 2
        assert second["idempotency_key"] == first["idempotency_key"]
        assert second["token"] != first["token"]
        assert await near.exchange(worker, **failed) == answer, "taken before, so not refused now"
        assert (await far.get(f"/jobs/{job_id}"))["status"] == "running", "and it ends the second attempt in no way"

        done = {"reports": [report(second, "success", result={"times": 1})]}
        assert await far.exchange(worker, **done) == answer
        ended = await near.get(f"/jobs/{job_id}")
        otherwise = {"reports": [report(second, "success", result={"times": 2})]}
        for speaker in (near, far):
            assert await speaker.exchange(worker, **done) == answer
            assert await speaker.exchange(worker, **otherwise) == answer
            assert await speaker.exchange(worker, **failed) == answer
            for status in ("retriable_failure", "fatal_failure", "timed_out", "cancelled", "released"):
                (refused,) = (await speaker.exchange(worker, reports=[report(second, status)]))["rejected"]
                assert refused == {"job_id": job_id, "attempt": 2, "reason": "the attempt ended as success before"}
        assert await far.get(f"/jobs/{job_id}") == ended
        assert await far.get(f"/jobs/{job_id}/result") == {"times": 1}
        executions = await near.get(f"/jobs/{job_id}/executions")
        assert [one["status"] for one in executions] == ["retriable_failure", "success"]


async def test_of_ends_told_at_the_same_time_one_counts(programs: Programs, database_url: str) -> None:
    urls = [programs.serve(f"node{n}", "--no-worker", "--database", database_url)[1] for n in (1, 2)]
    async with speakers(*urls) as both:
        near = both[0]
        worker = await near.register("task")
        await near.ask("POST", "/jobs/batch", {"jobs": [{"job_type": "task"}] * 20})
        jobs = await near.take(worker, 20)
        sent = [
            (job, status, both[n % 2].exchange(worker, reports=[report(job, status)]))
            for job in jobs
            for n, status in enumerate(["success", "fatal_failure", "success", "fatal_failure"])
        ]
        answers = await asyncio.gather(*(call for _, _, call in sent))
        accepted: dict[str, set[str]] = {}
        for (job, status, _), answer in zip(sent, answers, strict=True):
            if not answer["rejected"]:
                accepted.setdefault(job["job_id"], set()).add(status)
        assert len(accepted) == 20
        assert all(len(ends) == 1 for ends in accepted.values()), accepted
        for job_id, (status,) in accepted.items():
            shown = "completed" if status == "success" else "failed"
            assert (await near.get(f"/jobs/{job_id}"))["status"] == shown
        database = await asyncpg.connect(database_url)
        try:
            rows = await database.fetch("select id, state from history")
        finally:
            await database.close()
        assert len(rows) == len({row["id"] for row in rows}) == 20
        assert {State(row["state"]) for row in rows} <= {State.COMPLETED, State.FAILED}
