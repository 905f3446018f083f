"""How to chain and limit jobs: every line of the page is typed, and does what it says."""

from tests.docs.pages import blocks
from tests.docs.shell import Reader

PAGE = "docs/how-to/chain-and-limit-jobs.md"


def test_every_command_of_the_page_does_what_it_says(reader: Reader) -> None:
    chain, limit, unique, needs, why = blocks(PAGE, "sh")
    at_node = f"export FOLIOT_URL={reader.url}\n"
    with reader.client() as client:
        drawn = reader.type(at_node + chain)
        assert all(name in drawn for name in ("extract", "load", "tidy"))
        assert client.wait("tidy", timeout=10).status == "completed"
        graph = client.graph("extract")
        assert {(edge.parent, edge.child, edge.on) for edge in graph.edges} == {
            ("extract", "load", "success"),
            ("load", "tidy", "any"),
        }
        reader.type(at_node + limit)
        (key,) = client.limits()
        assert (key.key, key.limit) == ("account-42", 5)
        first, second = reader.type(at_node + unique).strip().splitlines()
        assert first in second
        reader.type(at_node + needs)
        told = reader.type(at_node + why)
        assert "zone" in told
        assert "Completed after 1 attempt" in told
        assert [each.reason for each in client.why("big").reasons] == ["no_worker"]
