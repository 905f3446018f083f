"""What a handler may raise to say how its attempt ended. Any other exception is a failure that is tried again."""

import math
from datetime import timedelta


class HandlerEnd(Exception):
    """Base of all. `code` becomes the job's `reason`; `exit_code` is kept with the attempt."""

    def __init__(self, message: str = "", *, code: str | None = None, exit_code: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.exit_code = exit_code


class Retry(HandlerEnd):
    """The attempt failed and may be tried again, `after` so many seconds where given, else as the job's policy has
    it."""

    def __init__(
        self,
        message: str = "",
        after: float | timedelta | None = None,
        code: str | None = None,
        exit_code: int | None = None,
    ) -> None:
        super().__init__(message, code=code, exit_code=exit_code)
        seconds = after.total_seconds() if isinstance(after, timedelta) else after
        if seconds is not None and not 0 <= seconds < math.inf:
            raise ValueError(f"after is {seconds}; it must be a number of seconds, zero or more")
        self.after = seconds


class Fatal(HandlerEnd):
    """The attempt failed and trying again can not help: the job ends as failed."""

    def __init__(self, message: str = "", code: str | None = None, exit_code: int | None = None) -> None:
        super().__init__(message, code=code, exit_code=exit_code)


class Released(HandlerEnd):
    """The handler did not do the work and gives the job back: another worker gets it, and no try is used up."""


class Judged(HandlerEnd):
    """An exception of a job function, and what its rules made of it: never raised by handlers themselves."""

    def __init__(self, error: Exception, *, fatal: bool = False, after: float | None = None) -> None:
        super().__init__(str(error))
        self.error = error
        self.fatal = fatal
        self.after = after
