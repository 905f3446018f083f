"""Which failures of a job function are tried again, and when: decided where the exception is, by what `@app.job` says.

An error of `fatal_for` never is; where `retry_for` is given, only those are; of what is left `retry_when` decides, and
without it the job's policy. However it is decided, a job has no more attempts than its policy gives it.
"""

import math
from collections.abc import Callable, Sequence, Set
from datetime import timedelta
from typing import Any

from foliot.sdk.errors import Fatal, Judged, Released, Retry

Kind = type[Exception] | str
Kinds = Kind | Sequence[Kind] | Set[Kind]
Verdict = float | timedelta | bool | None
RetryWhen = Callable[[Exception, int], Verdict]


class RetryRules:
    """A kind is a class of exceptions, or the `code` that one carries. `retry_when` is given the error and the number
    of the attempt, 1 for the first; it returns the seconds to wait, True to wait as the policy has it, or False or
    None where trying again can not help."""

    def __init__(
        self, name: str, *, retry_for: Kinds | None, fatal_for: Kinds | None, retry_when: RetryWhen | None
    ) -> None:
        self._retry_for = None if retry_for is None else _Kinds(name, "retry_for", retry_for)
        self._fatal_for = None if fatal_for is None else _Kinds(name, "fatal_for", fatal_for)
        if retry_when is not None and not callable(retry_when):
            raise TypeError(f"{name}: retry_when is a function of the error and the attempt, not {retry_when!r}")
        self._retry_when = retry_when

    def judge(self, error: Exception, attempt: int) -> Judged | None:
        """What is to be done about it; None where it stands as it was raised. What a function says itself stands: Fatal
        and Released always, Retry unless its code is fatal, and its `after`."""
        if isinstance(error, Fatal | Released):
            return None
        asked = isinstance(error, Retry)
        if self._fatal_for is not None and error in self._fatal_for:
            return Judged(error, fatal=True)
        if self._retry_for is not None and error not in self._retry_for and not asked:
            return Judged(error, fatal=True)
        if self._retry_when is None or (isinstance(error, Retry) and error.after is not None):
            return None
        try:
            return _judged(error, self._retry_when(error, attempt))
        except Exception as mistake:
            error.add_note(f"retry_when could not tell what to do: {type(mistake).__name__}: {mistake}")
            return None


class _Kinds:
    def __init__(self, name: str, option: str, given: Kinds) -> None:
        listed: list[Any] = list(given) if isinstance(given, list | tuple | set | frozenset) else [given]
        for each in listed:
            if not isinstance(each, str) and not (isinstance(each, type) and issubclass(each, Exception)):
                raise TypeError(f"{name}: {option} lists classes of exceptions and error codes; {each!r} is neither")
        self._classes = tuple(each for each in listed if isinstance(each, type))
        self._codes = frozenset(each for each in listed if isinstance(each, str))

    def __contains__(self, error: Exception) -> bool:
        if isinstance(error, self._classes):
            return True
        code = getattr(error, "code", None)
        return isinstance(code, str) and code in self._codes


def _judged(error: Exception, verdict: Any) -> Judged | None:
    if verdict is True:
        return None
    if verdict is False or verdict is None:
        return Judged(error, fatal=True)
    seconds = verdict.total_seconds() if isinstance(verdict, timedelta) else verdict
    if not isinstance(seconds, int | float) or not 0 <= seconds < math.inf:
        raise ValueError(f"it returned {verdict!r}; it must be a number of seconds, True, False or None")
    return Judged(error, after=seconds)
