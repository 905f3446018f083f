from tests.worker.lone_runner import LoneRunner, assigned, error_of, result_of


async def test_echo_logs_and_returns_its_message(lone: LoneRunner) -> None:
    report, lines = await lone.run(assigned("echo", {"message": "100% hello"}))
    assert report.status == "success"
    assert result_of(report) == "100% hello"
    assert lines == ["100% hello"]


async def test_echo_fails_as_many_attempts_as_asked(lone: LoneRunner) -> None:
    statuses = []
    for attempt in (1, 2, 3):
        report, _ = await lone.run(assigned("echo", {"fail": 2}, attempt=attempt, number=attempt))
        statuses.append(report.status)
    assert statuses == ["retriable_failure", "retriable_failure", "success"]


async def test_echo_waits_and_can_be_stopped(lone: LoneRunner) -> None:
    lone.begin(assigned("echo", {"message": "begun", "seconds": 3600}))
    await lone.said("begun")
    lone.runner.cancel("t1")
    report, _ = await lone.ended()
    assert report.status == "cancelled"


async def test_a_wrong_field_is_named(lone: LoneRunner) -> None:
    report, _ = await lone.run(assigned("echo", {"seconds": "soon"}))
    assert report.status == "fatal_failure"
    assert error_of(report).code == "bad_payload"
    assert error_of(report).message.startswith("payload.seconds: ")


async def test_an_unknown_field_is_named(lone: LoneRunner) -> None:
    report, _ = await lone.run(assigned("echo", {"text": "hi"}))
    assert report.status == "fatal_failure"
    assert "`text`" in error_of(report).message
