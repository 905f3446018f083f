"""Jobs that depend on each other, collected in a block and handed in at its end, all of them or none."""

import secrets
from collections.abc import Callable
from typing import Any, Literal, ParamSpec, Self, TypeVar, Unpack, overload

import msgspec
from msgspec import UNSET, Raw

from foliot.domain.graph import find_cycle
from foliot.sdk.async_client import AsyncClient
from foliot.sdk.job_function import Call, JobFunction
from foliot.sdk.loop_thread import LoopThread, loop_runs_here
from foliot.sdk.node import AsyncNode, End, Node
from foliot.sdk.options import Options, submit_body
from foliot.sdk.parents import OnWord, ParentsLike, note_parent, read_parents, show_parents
from foliot.sdk.plain_jobs import PlainJobs
from foliot.sdk.results import results_in
from foliot.wire import BATCH_LIMIT, SubmitBody

P = ParamSpec("P")
R = TypeVar("R")
ID_LIMIT = 128


class Graph:
    """`with app.graph() as graph:`, or `async with`. `graph.add(…)` in the block gives the nodes; at its end they are
    sent in one request, which is kept whole or not at all. An exception in the block sends nothing.

    The ids of the jobs begin with `graph_id`, so that the same graph under the same id, handed in again, gives the jobs
    of the first time. Without one they are fresh."""

    def __init__(
        self, graph_id: str | None, *, client: AsyncClient, thread: LoopThread, jobs: PlainJobs, here: bool
    ) -> None:
        self.graph_id = graph_id or f"g{secrets.token_hex(8)}"
        self.nodes: list[Node[Any]] = []
        self.state: Literal["open", "handed_in", "given_up"] = "open"
        self._client = client
        self._thread = thread
        self._jobs = jobs
        self._here = here
        self._entered = False
        self._bodies: dict[str, SubmitBody] = {}
        self._parents: dict[str, dict[str, OnWord]] = {}
        self._of_type: dict[str, int] = {}

    def __repr__(self) -> str:
        return f"<Graph {self.graph_id}: {len(self.nodes)} jobs, {self.state.replace('_', ' ')}>"

    @overload
    def add(self, job: Call[R], /, *args: Any, **kwargs: Any) -> Node[R]: ...

    @overload
    def add(self, job: str, /, payload: object = None, **options: Unpack[Options]) -> Node[Any]: ...

    @overload
    def add(self, job: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Node[Any]: ...

    def add(self, job: str | Call[Any] | Callable[..., Any], /, *args: Any, **kwargs: Any) -> Node[Any]:
        """A node, given as to `app.submit`: a job function, or one with options, with its arguments, or the name of a
        type that lives elsewhere with a payload. A node among the arguments stands for its result: it is a parent, and
        what it returned is what the function is called with."""
        self._check_open()
        if len(self.nodes) == BATCH_LIMIT:
            raise ValueError(f"a graph has at most {BATCH_LIMIT:,} jobs; hand this one in and add the rest in another")
        kind: Any = Any
        if isinstance(job, str):
            body = _body(job, *args, **kwargs)
        else:
            call = job if isinstance(job, Call) and not isinstance(job, JobFunction) else self._job(job)
            if call.aio.client is not self._client:
                raise ValueError("the job is one of another app; a graph is of one app")
            body, kind = call.aio.body(*args, **kwargs), call.aio.result
        return self._add(body, kind)

    def join(self, parents: ParentsLike, child: str) -> None:
        """Draws edges to a node; what `>>` and `after` do."""
        self._check_open()
        for parent in parents if isinstance(parents, list | tuple) else [parents]:
            node = parent.node if isinstance(parent, End) else parent
            if isinstance(node, Node) and node.graph_of is not self and node.graph_of.state != "handed_in":
                raise ValueError(f"{node.job_id} is of another graph, which was not handed in yet; add it to this one")
        for job_id, on in read_parents(parents).items():
            note_parent(self._parents[child], job_id, on)

    def __enter__(self) -> Self:
        if loop_runs_here():
            raise RuntimeError("an event loop is running here: write async with app.graph()")
        return self._enter()

    def __exit__(self, kind: type[BaseException] | None, *raised: object) -> None:
        if kind is None:
            self._thread.run(self._hand_in)
        else:
            self.state = "given_up"

    async def __aenter__(self) -> Self:
        return self._enter()

    async def __aexit__(self, kind: type[BaseException] | None, *raised: object) -> None:
        if kind is None:
            await self._hand_in()
        else:
            self.state = "given_up"

    def _enter(self) -> Self:
        if self._entered:
            raise RuntimeError("a graph has one block; make another with app.graph()")
        self._entered = True
        return self

    async def _hand_in(self) -> None:
        bodies, self.state = self._whole(), "given_up"
        answers = await self._client.hand_in_many(bodies, whole=True)
        for node, answer in zip(self.nodes, answers, strict=True):
            node.aio.job_id, node.aio.duplicate = answer.job_id, answer.duplicate
        self.state = "handed_in"

    def _whole(self) -> list[SubmitBody]:
        """All jobs with their ids and edges; ValueError where they are no graph."""
        self.state = "given_up"
        circle = find_cycle({child: list(parents) for child, parents in self._parents.items()})
        if circle is not None:
            raise ValueError(f"a circle, so that none of them could start: {' >> '.join(reversed(circle))}")
        for body in self._bodies.values():
            for job_id in results_in(b"" if body.payload is UNSET else bytes(body.payload)):
                if job_id in self._bodies and self._bodies[job_id].unique_key:
                    raise ValueError(
                        f"{job_id} has a unique_key and may turn out to be an earlier job: "
                        f"its result can not be an argument of {body.job_type}; use >> and context.upstream"
                    )
        return [
            msgspec.structs.replace(body, job_id=job_id, depends_on=show_parents(self._parents[job_id]))
            for job_id, body in self._bodies.items()
        ]

    def _job(self, function: Callable[..., Any]) -> Call[Any]:
        return self._jobs.of(function, here=self._here)

    def _add(self, body: SubmitBody, kind: Any) -> Node[Any]:
        job_id = body.job_id or self._fresh_id(body.job_type)
        if job_id in self._bodies:
            raise ValueError(f"the graph has a job {job_id} already; give one of them another job_id")
        node: Node[Any] = Node(self, AsyncNode(self, self._client, job_id, kind), self._thread)
        self._parents[job_id] = {}
        self.join([(p, "success") if isinstance(p, str) else (p.job_id, p.on) for p in body.depends_on or ()], job_id)
        self._bodies[job_id] = body
        self.nodes.append(node)
        return node

    def _fresh_id(self, job_type: str) -> str:
        """Says what it is: `graph:extract`, `graph:load`, `graph:load.2`."""
        number = self._of_type[job_type] = self._of_type.get(job_type, 0) + 1
        end = "" if number == 1 else f".{number}"
        return f"{self.graph_id}:{job_type}"[: ID_LIMIT - len(end)] + end

    def _check_open(self) -> None:
        if not self._entered:
            raise RuntimeError("a graph is built in its block: with app.graph() as graph")
        if self.state != "open":
            raise RuntimeError("the graph's block has ended; make another with app.graph()")


def _body(job_type: str, payload: object = None, **options: Unpack[Options]) -> SubmitBody:
    return submit_body(job_type, Raw(msgspec.json.encode({} if payload is None else payload)), options)
