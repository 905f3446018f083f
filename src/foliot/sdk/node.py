"""A job of a graph: one that is to come, joined to others by `>>`; once the graph is handed in, a job like any other.

- `a >> b`: b starts once a has completed; if a ends otherwise, b is cancelled.
- `a >> [b, c] >> d`: b and c after a, d after both.
- `a.on_failure >> b`: b starts once a has failed or was cancelled; if a completes, b is cancelled.
- `a.on_any >> b`: b starts once a has ended, however.
- `b.after(a, c)`: the same as `[a, c] >> b`.
"""

from collections.abc import Sequence
from typing import Any, Protocol, Self, TypeVar, overload

from foliot.sdk.async_client import AsyncClient
from foliot.sdk.job import AsyncJob, Job
from foliot.sdk.loop_thread import LoopThread
from foliot.sdk.parents import OnWord, ParentLike, ParentsLike

R = TypeVar("R")


class Joining(Protocol):
    """The graph that a node is of."""

    @property
    def state(self) -> str:
        """`open`, `handed_in`, or `given_up` where nothing was sent."""
        ...

    def join(self, parents: ParentsLike, child: str) -> None: ...


class AsyncNode(AsyncJob[R]):
    """The awaitable side."""

    def __init__(self, graph: Joining, client: AsyncClient, job_id: str, kind: Any) -> None:
        super().__init__(client, job_id, kind)
        self._graph = graph

    @property
    def _client(self) -> AsyncClient:
        match self._graph.state:
            case "open":
                raise RuntimeError(f"{self.job_id} is not there yet: a graph is handed in at the end of its block")
            case "given_up":
                raise RuntimeError(f"{self.job_id} is not there: its graph was not handed in")
        return super()._client


class Node(Job[R]):
    """A job of a graph. Its id is known at once."""

    def __init__(self, graph: Joining, aio: AsyncNode[R], thread: LoopThread) -> None:
        super().__init__(aio, thread)
        self.graph_of = graph

    @property
    def on_failure(self) -> "End":
        """Its end other than by completing: it failed, or was cancelled."""
        return End(self, "failure")

    @property
    def on_any(self) -> "End":
        """Its end, whichever it is."""
        return End(self, "any")

    def after(self, *parents: ParentLike) -> Self:
        """It starts once all of these have ended as asked: nodes, jobs that were handed in earlier, or their ids."""
        self.graph_of.join(parents, self.job_id)
        return self

    @overload
    def __rshift__(self, then: "Node[Any]") -> "Node[Any]": ...

    @overload
    def __rshift__(self, then: "Sequence[Node[Any]]") -> "Nodes": ...

    def __rshift__(self, then: "Node[Any] | Sequence[Node[Any]]") -> "Node[Any] | Nodes":
        return _join([self], then)

    def __rrshift__(self, before: ParentsLike) -> Self:
        self.graph_of.join(before, self.job_id)
        return self


class End:
    """One end of a node, as that for which another one waits."""

    def __init__(self, node: Node[Any], on: OnWord) -> None:
        self.node = node
        self.on = on

    @property
    def job_id(self) -> str:
        return self.node.job_id

    @overload
    def __rshift__(self, then: Node[Any]) -> Node[Any]: ...

    @overload
    def __rshift__(self, then: Sequence[Node[Any]]) -> "Nodes": ...

    def __rshift__(self, then: Node[Any] | Sequence[Node[Any]]) -> "Node[Any] | Nodes":
        return _join([self], then)


class Nodes(tuple[Node[Any], ...]):
    """Several nodes, so that `>>` can go on from all of them."""

    __slots__ = ()

    @overload
    def __rshift__(self, then: Node[Any]) -> Node[Any]: ...

    @overload
    def __rshift__(self, then: Sequence[Node[Any]]) -> "Nodes": ...

    def __rshift__(self, then: Node[Any] | Sequence[Node[Any]]) -> "Node[Any] | Nodes":
        return _join(self, then)

    def __rrshift__(self, before: ParentsLike) -> "Nodes":
        for node in self:
            node.graph_of.join(before, node.job_id)
        return self


def _join(before: Sequence[ParentLike], then: Node[Any] | Sequence[Node[Any]]) -> Node[Any] | Nodes:
    if isinstance(then, Node):
        return then.after(*before)
    for node in then:
        if not isinstance(node, Node):
            raise TypeError(f"{node!r} is not a node of a graph; add it with graph.add(…)")
    return Nodes(node.after(*before) for node in then)
