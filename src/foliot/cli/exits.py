"""What an exit code means, and which error ends in which."""

import click

OK = 0
FAILED = 1
WRONG_USE = 2
CANCELLED = 3
NOT_FOUND = 4
NO_NODE = 5
INTERRUPTED = 130

MEANINGS = {
    OK: "it worked, and a job that was waited for completed",
    FAILED: "the job failed, or what was asked could not be done",
    WRONG_USE: "wrong use: an option, a setting or the input is not valid",
    CANCELLED: "the job was cancelled",
    NOT_FOUND: "what was named is not there: no such job, schedule, queue, worker, key, rule, webhook or result",
    NO_NODE: "the node is not reachable, not able to answer, or refuses the key",
    INTERRUPTED: "stopped by Ctrl-C",
}


class Failed(click.ClickException):
    exit_code = FAILED


class WrongUse(click.ClickException):
    """Wrong in a way that the usage line would not explain: a bad value, a bad file."""

    exit_code = WRONG_USE


class NotFound(click.ClickException):
    exit_code = NOT_FOUND


class NoNode(click.ClickException):
    exit_code = NO_NODE


# By an error's code: the SDK's errors and the domain's share them.
_KINDS: dict[str, type[click.ClickException]] = {
    "bad-input": WrongUse,
    "too-large": WrongUse,
    "not-found": NotFound,
    "not-authenticated": NoNode,
    "forbidden": NoNode,
    "unavailable": NoNode,
    "unreachable": NoNode,
}


def failure_of(error: Exception) -> click.ClickException | None:
    """How an expected error is told; None for one that nobody expected."""
    from foliot.domain.errors import FoliotError
    from foliot.settings import SettingsError

    match error:
        case SettingsError():
            return WrongUse(str(error))
        case FoliotError(code="not-authenticated"):
            return NoNode(
                f"{error.detail.rstrip('.')}. Give a key with --key or FOLIOT_KEY, or name the node's --data-dir"
            )
        case FoliotError(code="forbidden"):
            return NoNode(f"{error.detail.rstrip('.')}. 'foliot whoami' tells what the key may do")
        case FoliotError():
            return _KINDS.get(error.code, Failed)(error.detail)
        case _:
            return None


def code_of_status(status: str) -> int:
    """The exit code of a job's end."""
    return {"completed": OK, "cancelled": CANCELLED}.get(status, FAILED)
