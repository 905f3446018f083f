"""Graphs and concurrency keys go by the clock that jumps too."""

from datetime import UTC, datetime

from foliot import Foliot
from foliot.testing import virtual

START = datetime(2027, 1, 1, tzinfo=UTC)


def test_a_graph_is_carried_on_and_a_key_is_kept_while_time_jumps() -> None:
    app = Foliot("http://the-node-is-not-asked")
    seen: list[str] = []

    @app.job
    def step(name: str) -> str:
        seen.append(name)
        return name

    @app.job(concurrency=("one", 1))
    def alone(name: str) -> None:
        seen.append(name)

    with virtual(app, start=START) as time:
        time.takes(alone, hours=1)
        with app.graph() as graph:
            first, second = graph.add(step, "first", delay="1h"), graph.add(step, "second")
            first >> second
        third, fourth = alone.submit("third"), alone.submit("fourth")
        time.advance(minutes=30)
        assert seen == ["third"]
        assert (third.info().status, fourth.info().status) == ("running", "queued")
        time.advance(hours=1)
        assert sorted(seen) == ["first", "fourth", "second", "third"]
        assert seen.index("first") < seen.index("second")
        assert (third.info().status, fourth.info().status) == ("completed", "running")
