"""What a job depends on, as it may be written: ids, jobs, or either with the end that is asked for."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal, Protocol, TypeGuard, get_args, runtime_checkable

from foliot.wire import DependsOn

OnWord = Literal["success", "failure", "any"]
ON_WORDS: tuple[OnWord, ...] = get_args(OnWord)


@runtime_checkable
class Known(Protocol):
    """Anything that knows a job's id: a Job, a node of a graph. One with an `on` asks for that end."""

    @property
    def job_id(self) -> str: ...


ParentLike = str | Known | tuple[str | Known, OnWord]
ParentsLike = str | Known | Sequence[ParentLike]


def read_parents(given: ParentsLike, results_of: Iterable[str] = ()) -> dict[str, OnWord]:
    """The end that is asked for of each job; `results_of` are jobs that must have completed, because their results are
    arguments. TypeError or ValueError, naming the job, where it can not be meant."""
    found: dict[str, OnWord] = {}
    for item in [given] if isinstance(given, str | Known) else _listed(given):
        note_parent(found, *_read(item))
    for job_id in results_of:
        note_parent(found, job_id, "success")
    return found


def note_parent(found: dict[str, OnWord], job_id: str, on: OnWord) -> None:
    if found.setdefault(job_id, on) != on:
        raise ValueError(f"{job_id} is depended on twice, for {found[job_id]} and for {on}; say it once, or use any")


def show_parents(parents: dict[str, OnWord]) -> list[str | DependsOn]:
    """As they are sent; success is what an id alone means."""
    return [job_id if on == "success" else DependsOn(job_id=job_id, on=on) for job_id, on in parents.items()]


def _listed(given: Any) -> Iterable[Any]:
    if not isinstance(given, Iterable):
        raise TypeError(f"depends_on is a list of jobs or their ids, not {given!r}")
    return given


def _read(item: Any) -> tuple[str, OnWord]:
    if isinstance(item, tuple):
        if len(item) != 2 or not _is_on(item[1]):
            raise ValueError(f"{item!r} is no dependency; it is a job, or a pair of one and {' or '.join(ON_WORDS)}")
        return _id(item[0]), item[1]
    on = getattr(item, "on", "success")
    return _id(item), on if _is_on(on) else "success"


def _is_on(word: object) -> TypeGuard[OnWord]:
    return word in ON_WORDS


def _id(item: Any) -> str:
    job_id = item if isinstance(item, str) else getattr(item, "job_id", None)
    if not isinstance(job_id, str):
        raise TypeError(f"{item!r} is neither a job nor an id; a job function is submitted first")
    return job_id
