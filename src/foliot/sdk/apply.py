"""Schedules as they are declared, made true on the node: what differs, and how to carry it out.

`plan` compares and changes nothing; `carry_out` does what a plan says. They serve `@app.schedule` when a worker or an
embedded app starts, and `foliot apply`. Compared is what is meant, not how it is written: `"60s"` is `60`, a time is an
instant, what is left out is its default. Two things are not: `paused`, where it is left out, is whatever it is on the
node, so that a start does not let go what somebody holds; and values of secret fields, which no read shows, count as
changed each time, so that a new one is never left out (the node knows better, and leaves what is the same as it is).

Nothing is deleted unless `prune` asks for it. Then those go that are not declared and whose id begins with `prefix`;
without a prefix, all of the namespace. A file with a prefix can only declare ids that begin with it, so that two files
with prefixes of their own never touch each other's schedules. What a schedule is after several programs declared it in
several ways is what the last one said.

Safe to do again and from many programs at once: a change is bound to the version that was compared, and who comes
second compares anew.
"""

import contextlib
import logging
from collections.abc import Iterable, Sequence
from typing import Any, Literal, assert_never

import msgspec

from foliot.domain.access import MATRIX, ROLES
from foliot.domain.errors import BadInput, FoliotError
from foliot.sdk.failures import Conflict, Forbidden, NotFound, Stale
from foliot.sdk.normal_form import alike, hides_values, normal_declared, normal_existing, usual
from foliot.sdk.schedule_calls import ScheduleCalls
from foliot.wire import ScheduleBody, ScheduleInfo, ScheduleUpdateBody

Action = Literal["create", "change", "delete", "same"]
ROUNDS = 10

_log = logging.getLogger("foliot.schedules")


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """What to do about one schedule. `fields` are those that differ, each with its old and new value in normal form
    (seconds, UTC), those of the job as `job.queue`; of a new schedule those that are not at their default. `body` is
    the declaration, None for a delete; `version` is that of the schedule that was compared."""

    action: Action
    schedule_id: str
    fields: dict[str, tuple[Any, Any]] = {}
    body: ScheduleBody | None = None
    version: int | None = None


def plan(
    declared: Sequence[ScheduleBody], existing: Iterable[ScheduleInfo], *, prune: bool = False, prefix: str = ""
) -> list[Difference]:
    """What makes the node as declared: an entry for each declared schedule in the order given, then the deletes. Raises
    BadInput, naming schedule and field, for a declaration that can not be meant."""
    found = {each.schedule_id: each for each in existing}
    names = [_check_id(body, prefix) for body in declared]
    if again := {name for name in names if names.count(name) > 1}:
        raise BadInput.at("schedule_id", f"declared more than once: {', '.join(sorted(again))}; each needs its own")
    differences = [compare(body, found.get(name)) for name, body in zip(names, declared, strict=True)]
    if prune:
        differences += [
            Difference(action="delete", schedule_id=name, version=found[name].version)
            for name in sorted(found.keys() - names)
            if name.startswith(prefix)
        ]
    return differences


def compare(body: ScheduleBody, existing: ScheduleInfo | None) -> Difference:
    """What to do about one declared schedule."""
    name = body.schedule_id or ""
    try:
        new = normal_declared(body)
    except BadInput as error:
        raise BadInput(f"{name}: {error.detail}", error.errors) from None
    if existing is None:
        fields = {field: (None, value) for field, value in new.items() if not alike(value, usual().get(field))}
        return Difference(action="create", schedule_id=name, fields=fields, body=body)
    old = normal_existing(existing)
    if body.paused is None:
        new["paused"] = old["paused"]
    fields = {
        field: (old.get(field), new.get(field)) for field in {**new, **old} if not alike(old.get(field), new.get(field))
    }
    if hides_values(body):
        fields.setdefault("job.payload", (old["job.payload"], new["job.payload"]))
    return Difference(
        action="change" if fields else "same",
        schedule_id=name,
        fields=fields,
        body=body,
        version=existing.version,
    )


async def find_existing(
    client: ScheduleCalls, declared: Sequence[ScheduleBody], *, prune: bool = False
) -> list[ScheduleInfo]:
    """What a plan needs to know: the declared schedules that there are; all, where others may be deleted."""
    if prune:
        return [each async for each in client.all_schedules()]
    found = [await _find(client, body.schedule_id) for body in declared if body.schedule_id]
    return [each for each in found if each is not None]


async def carry_out(client: ScheduleCalls, differences: Iterable[Difference]) -> list[Difference]:
    """Does what a plan says, in its order, and gives back what was done: where somebody else changed a schedule in the
    meantime it is compared anew, so that this may differ from the plan. Only a delete is given up then, as Stale: what
    is to go is not what was looked at."""
    return [await _carry_out(client, difference) for difference in differences]


async def apply_at_start(client: ScheduleCalls, declared: Sequence[ScheduleBody]) -> None:
    """Makes what an app declares, one by one. What is refused (a schedule whose end has passed, a key without the
    right) is told in the log and keeps neither the others nor the app from going on. A worker's key has no right to
    declare: that is told once, for all, with the roles that have."""
    forbidden: dict[str, list[str]] = {}
    for body in declared:
        try:
            [done] = await carry_out(client, plan([body], await find_existing(client, [body])))
        except Forbidden as error:
            forbidden.setdefault(error.detail.rstrip("."), []).append(body.schedule_id or "")
            continue
        except FoliotError as error:
            _log.error("schedule %s could not be applied: %s", body.schedule_id, error)
            continue
        match done.action:
            case "create":
                _log.info("schedule %s was created", done.schedule_id)
            case "change":
                _log.info("schedule %s was changed: %s", done.schedule_id, ", ".join(done.fields))
    able = " or ".join(role for role in ROLES if "control" in MATRIX[role])
    for why, names in forbidden.items():
        _log.warning(
            "these schedules were not declared: %s (%s). A key of the role %s that reaches them can declare them, here "
            "or with 'foliot apply'; all else goes on",
            ", ".join(names),
            why,
            able,
        )


async def _carry_out(client: ScheduleCalls, difference: Difference) -> Difference:
    for last in (False,) * (ROUNDS - 1) + (True,):
        try:
            await _do(client, difference)
            return difference
        except (Conflict, NotFound, Stale):
            if last or difference.body is None:
                raise
            difference = compare(difference.body, await _find(client, difference.schedule_id))
    raise AssertionError("the last round returns or raises")


async def _do(client: ScheduleCalls, difference: Difference) -> None:
    name, body = difference.schedule_id, difference.body
    match difference.action:
        case "same":
            pass
        case "create" if body is not None:
            await client.create_schedule(body)
        case "change" if body is not None:
            await client.change_schedule(name, _update(body, difference.fields), if_match=difference.version)
        case "delete":
            with contextlib.suppress(NotFound):
                await client.delete_schedule(name, if_match=difference.version)
        case "create" | "change":
            raise ValueError(f"the difference of {name} has no body to {difference.action} it by")
        case _:
            assert_never(difference.action)


def _update(body: ScheduleBody, fields: Iterable[str]) -> ScheduleUpdateBody:
    """The job is changed as a whole, whatever differs in it."""
    names = {"job" if name.startswith("job.") else name for name in fields}
    return ScheduleUpdateBody(**{name: getattr(body, name) for name in names})


async def _find(client: ScheduleCalls, schedule_id: str) -> ScheduleInfo | None:
    try:
        return await client.schedule(schedule_id)
    except NotFound:
        return None


def _check_id(body: ScheduleBody, prefix: str) -> str:
    name = body.schedule_id
    if not name:
        raise BadInput.at("schedule_id", "is needed, so that the schedule is found again the next time")
    if not name.startswith(prefix):
        raise BadInput.at("schedule_id", f"{name!r} does not begin with the prefix {prefix!r}")
    return name
