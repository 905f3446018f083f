"""Results as arguments: a job among the arguments of another stands for what it will have returned.

In the payload it is `{"$result_of": "<job id>"}`, at any depth; the worker puts in what the node hands on of the
parents.
"""

import re
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Raw

from foliot.sdk.job import AsyncJob, Job

MARK = "$result_of"
_QUOTED = msgspec.json.encode(MARK)
_MARKED = re.compile(rb'\{"\$result_of":"([^"]+)"\}')


class MissingResult(LookupError):
    """A result that was not handed on; the message says whose and why."""


def mark(value: Any) -> tuple[Raw, list[str]]:
    """The value as JSON, and the ids of the jobs in it. TypeError or ValueError where it can not be JSON."""
    found: list[str] = []

    def stand_in(other: Any) -> Any:
        if not isinstance(other, Job | AsyncJob):
            raise NotImplementedError(f"Encoding objects of type {type(other).__name__} is unsupported")
        found.append(other.job_id)
        return {MARK: other.job_id}

    try:
        return Raw(msgspec.json.encode(value, enc_hook=stand_in)), found
    except NotImplementedError as error:
        raise TypeError(str(error)) from None


def results_in(payload: bytes) -> list[str]:
    """The jobs whose results it waits for."""
    return [found.decode() for found in _MARKED.findall(payload)] if _QUOTED in payload else []


def put_in(payload: bytes, upstream: Mapping[str, Any]) -> bytes:
    """The payload with the results in place."""
    if _QUOTED not in payload:
        return payload
    fields = msgspec.json.decode(payload, type=dict[str, Raw])
    return msgspec.json.encode(
        {
            name: _filled(msgspec.json.decode(value), upstream) if _QUOTED in bytes(value) else value
            for name, value in fields.items()
        }
    )


def _filled(value: Any, upstream: Mapping[str, Any]) -> Any:
    if isinstance(value, list):
        return [_filled(each, upstream) for each in value]
    if not isinstance(value, dict):
        return value
    job_id = value.get(MARK)
    if len(value) != 1 or not isinstance(job_id, str):
        return {name: _filled(each, upstream) for name, each in value.items()}
    parent = upstream.get(job_id)
    if parent is None:
        raise MissingResult(f"the result of {job_id} was not handed on: the job does not depend on it")
    if parent.get("status") != "completed":
        raise MissingResult(f"{job_id} has no result: it is {parent.get('status')}")
    if "note" in parent:
        raise MissingResult(f"the result of {job_id} is too long to be handed on; fetch it with its id")
    return parent.get("result")
