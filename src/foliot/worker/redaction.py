"""Keeps the values of a job's secret fields out of what its worker tells: log lines, errors, progress.

A value is found as it is, and as JSON, Python and URLs write it; of one with several lines also each line. Where text
was cut, what is left of a value at the cut goes too. Values shorter than `SHORTEST` are left: they would be found
everywhere.
"""

import json
import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote, quote_plus

import msgspec
from msgspec import UNSET

from foliot.domain.secret_fields import MASK, secrets_in
from foliot.wire import AssignedJob, ErrorInfo

SHORTEST = 4
CUT_MARK = " … (cut)"  # at the end of text that was cut there
CUT_BEFORE = "…"  # at the beginning of text that was cut there


class Redactor:
    """Replaces what must not be seen."""

    def __init__(self, secrets: Iterable[str]) -> None:
        forms = {form for secret in secrets for form in _forms(secret) if len(form) >= SHORTEST}
        self._forms = sorted(forms, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, self._forms)) or r"(?!)")

    def __call__(self, text: str) -> str:
        text = self._pattern.sub(MASK, text)
        if text.endswith(CUT_MARK):
            text = self.trimmed(text.removesuffix(CUT_MARK)) + CUT_MARK
        if text.startswith(CUT_BEFORE):
            text = CUT_BEFORE + self._without_rest(text.removeprefix(CUT_BEFORE))
        return text

    def trimmed(self, text: str) -> str:
        """Text that is to be cut here, without the beginning of a value that it ends with."""
        for form in self._forms:
            head = form[:SHORTEST]
            place = text.find(head, max(0, len(text) - len(form)))
            while place >= 0:
                if form.startswith(text[place:]):
                    return text[:place] + MASK
                place = text.find(head, place + 1)
        return text

    def _without_rest(self, text: str) -> str:
        """Without the end of a value that the text begins with."""
        for form in self._forms:
            tail, end = form[-SHORTEST:], len(form)
            place = text.rfind(tail, 0, end)
            while place >= 0:
                if form.endswith(text[: place + SHORTEST]):
                    return MASK + text[place + SHORTEST :]
                place = text.rfind(tail, 0, place + SHORTEST - 1)
        return text

    def error(self, error: ErrorInfo) -> ErrorInfo:
        return msgspec.structs.replace(
            error,
            message=self(error.message),
            code=None if error.code is None else self(error.code),
            stack=None if error.stack is None else self(error.stack),
        )


def redactor_of(job: AssignedJob) -> Redactor | None:
    """None where the job has no secret fields, as most have not."""
    if job.secret_fields is UNSET or not job.secret_fields:
        return None
    return Redactor(secrets_in(bytes(job.payload), job.secret_fields))


def _forms(secret: str) -> Iterator[str]:
    yield from (secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1], repr(secret)[1:-1])
    plain = secret.encode("utf-8", "replace").decode()
    yield from (quote(plain, safe=""), quote(plain), quote_plus(plain))
    if "\n" in secret:
        yield from (line.strip() for line in secret.splitlines())
