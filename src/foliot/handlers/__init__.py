"""Job types that come built in: `echo` to try things out, `http` to call a service, `command` to run a program.

Others come from installed packages: an entry point of the group `foliot.handlers` is a Handler, or a function like
one's (`async def name(payload: bytes, context: JobContext)`, or a plain one, which runs in a thread). Its name is the
job type.

A worker that was told nothing lets `http` call public addresses only, and `command` run nothing (`permissions`).
"""

import inspect
import logging
from importlib.metadata import entry_points

from foliot.handlers.command import command_handler
from foliot.handlers.echo import echo_handler
from foliot.handlers.http import http_handler
from foliot.handlers.permissions import Permissions
from foliot.sdk.handler import Handler, Isolation

GROUP = "foliot.handlers"

_log = logging.getLogger("foliot.handlers")


def load_handlers(permissions: Permissions | None = None) -> dict[str, Handler]:
    """The built-in handlers and those of installed packages, by job type. One that can not be loaded is left out,
    with a word in the log: it must not keep the others from running."""
    permitted = permissions or Permissions()
    permitted.tell()
    built_in = (echo_handler(), http_handler(permitted.addresses), command_handler(permitted.commands))
    handlers = {handler.name: handler for handler in built_in}
    for entry in entry_points(group=GROUP):
        try:
            loaded = entry.load()
        except Exception:
            _log.exception("the handler %s (%s) can not be loaded and is left out", entry.name, entry.value)
            continue
        if isinstance(loaded, Handler):
            handlers[loaded.name] = loaded
        elif callable(loaded):
            isolation: Isolation = "async" if inspect.iscoroutinefunction(loaded) else "thread"
            handlers[entry.name] = Handler(name=entry.name, function=loaded, isolation=isolation, origin=entry.value)
        else:
            _log.error("the handler %s (%s) is neither a Handler nor a function; left out", entry.name, entry.value)
    return handlers
