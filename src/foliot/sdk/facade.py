"""A blocking object made of an asynchronous one, so that nothing is written twice.

    class Client(Facade[AsyncClient]):
        get = blocking(AsyncClient.get)

`client.get(…)` has the signature, types and docstring of `AsyncClient.get` and waits for it; `client.aio` is the other.
"""

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from functools import update_wrapper
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from foliot.sdk.loop_thread import LoopThread

Core = TypeVar("Core")
P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")


class Facade(Generic[Core]):
    """The blocking side: `aio` is the awaitable side, with the same names."""

    def __init__(self, aio: Core, thread: LoopThread) -> None:
        self.aio = aio
        self.thread = thread


class Made(Generic[P, R]):
    """A method that is carried out by another: `call` is given the facade, then the caller's arguments."""

    def __init__(self, function: Callable[..., Any], call: Callable[Concatenate[Any, P], R]) -> None:
        self._call = call
        self._function = function
        self.__doc__ = function.__doc__

    def __get__(self, facade: Any, owner: type | None = None) -> Callable[P, R]:
        def method(*args: P.args, **kwargs: P.kwargs) -> R:
            return self._call(facade, *args, **kwargs)

        return update_wrapper(method, self._function)


def blocking(function: Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]) -> Made[P, R]:
    """Waits for the coroutine of that name."""

    def call(facade: Facade[Any], /, *args: P.args, **kwargs: P.kwargs) -> R:
        return facade.thread.run(lambda: function(facade.aio, *args, **kwargs))

    return Made(function, call)


def blocking_iterator(function: Callable[Concatenate[Any, P], AsyncIterator[R]]) -> Made[P, Iterator[R]]:
    """Iterates, waiting for each item."""

    def call(facade: Facade[Any], /, *args: P.args, **kwargs: P.kwargs) -> Iterator[R]:
        return facade.thread.iterate(lambda: function(facade.aio, *args, **kwargs))

    return Made(function, call)
