"""What runs a job type: made by an app's `@app.job`, by the built-in handlers, or by hand; run by the worker."""

from collections.abc import Awaitable, Callable
from typing import Any, Literal

import msgspec

from foliot.sdk.context import JobContext

Isolation = Literal["async", "thread", "process"]


class Handler(msgspec.Struct, frozen=True, kw_only=True):
    """A function and how it is kept apart from the others.

    `function` is called with the payload's JSON text as bytes, then the JobContext where `pass_context` is true. What
    it returns must be JSON; how it ends otherwise is told by the exceptions of `foliot.sdk.errors`.

    - `async`: a coroutine function on the worker's own loop. Ended by cancelling it.
    - `thread`: a plain function in a thread. Ended only by itself, when it looks at `context.cancelled`.
    - `process`: in a process of its own that can be killed. `origin` ("module:attribute") tells that process where to
      find it: a Handler, an object whose `handlers` maps names to Handlers, or a plain function like `function`.
      Without it the function's own module and name are used.
    """

    name: str
    function: Callable[..., Any]
    isolation: Isolation = "async"
    pass_context: bool = True
    origin: str | None = None
    close: Callable[[], Awaitable[None]] | None = None  # called when the worker ends

    def call(self, payload: bytes, context: JobContext) -> Any:
        return self.function(payload, context) if self.pass_context else self.function(payload)
