"""Take in what workers tell of their attempts: ends, progress, log lines. Fenced by the token: what an outdated attempt
says changes nothing and is named in the answer."""

from collections.abc import Sequence
from typing import assert_never

import msgspec
from msgspec import UNSET

from foliot.clock import Clock
from foliot.domain import events as e
from foliot.domain.changes import Change, Held, Mark, Refusal
from foliot.domain.duration import Micros, parse_duration
from foliot.domain.errors import BadInput, Unavailable
from foliot.domain.ids import IdMaker, JobKey, parse_token
from foliot.domain.job import AttemptStatus, Lease, Record
from foliot.domain.retry import DEFAULT as ANY_RETRY
from foliot.domain.states import RULES, transition
from foliot.service.announce import announce
from foliot.service.group import Group
from foliot.service.rates import Rate
from foliot.service.sealing import Sealer
from foliot.service.wake import Wake
from foliot.store.base import NOTHING_SAVED, Fenced, JobStore, LogLine
from foliot.wire import (
    LOG_LEVELS,
    LOG_LINE_LIMIT,
    RESULT_LIMIT,
    ErrorInfo,
    LogBody,
    Rejected,
    Report,
    encode,
    to_micros,
)

OLD_TOKEN = "the token is not that of the current attempt"
ROUNDS = 20


class Reports:
    def __init__(self, store: JobStore, clock: Clock, ids: IdMaker, wake: Wake, rate: Rate, sealer: Sealer) -> None:
        self._store = store
        self._sealer = sealer
        self._clock = clock
        self._ids = ids
        self._wake = wake
        self._rate = rate
        self.ends: Group[Sequence[Report], list[Rejected]] = Group(self._take, size=len)
        self.lines: Group[Sequence[tuple[int, LogBody]], list[Rejected]] = Group(self._append, size=len)

    async def log(self, bodies: Sequence[LogBody]) -> list[Rejected]:
        """Keep log lines. They are numbered before they are written, so that a repeated write keeps none twice."""
        numbers = self._ids.take(len(bodies), self._clock.now())
        return await self.lines.add(list(zip(numbers, bodies, strict=True)))

    async def _take(self, calls: Sequence[Sequence[Report]]) -> list[list[Rejected]]:
        """The reports of several calls. Of a job named more than once the reports are taken one after another."""
        now = self._clock.now()
        rejected: list[list[Rejected]] = [[] for _ in calls]
        rest = [(index, report) for index, reports in enumerate(calls) for report in reports]
        while rest:
            round_: dict[JobKey, tuple[int, Report, int]] = {}
            later: list[tuple[int, Report]] = []
            for index, report in rest:
                proof = parse_token(report.token)
                if proof is None:
                    rejected[index].append(_reject(report, "the token is not one of ours"))
                elif JobKey(proof[0]) in round_:
                    later.append((index, report))
                else:
                    round_[JobKey(proof[0])] = (index, report, proof[1])
            for index, report, reason in await self._settle(round_, now):
                rejected[index].append(_reject(report, reason))
            rest = later
        return rejected

    async def _settle(
        self, reports: dict[JobKey, tuple[int, Report, int]], now: Micros
    ) -> list[tuple[int, Report, str]]:
        """Carry out at most one report a job; those that changed nothing come back with the reason."""
        refused: list[tuple[int, Report, str]] = []
        open_ = reports
        for _ in range(ROUNDS):
            changes, lost = await self._decide(open_, now)
            saved = await self._store.save(changes, now) if changes else NOTHING_SAVED
            self._rate.add(sum(change.id in saved.done and not isinstance(change, Mark) for change in changes))
            announce(self._wake, changes, saved)
            missed = {change.id for change in changes if change.id not in saved.done}
            again, late = await self._sort_out({key: open_[key] for key in missed | lost})
            refused += late
            if not again:
                return refused
            open_ = again
        raise Unavailable("jobs change faster than their reports can be taken in; send them again")

    async def _decide(
        self, reports: dict[JobKey, tuple[int, Report, int]], now: Micros
    ) -> tuple[list[Change], set[JobKey]]:
        """The changes that reports make, and the jobs whose lease is not there (any more)."""
        changes: list[Change] = []
        to_load: list[JobKey] = []
        for key, (_, report, nonce) in reports.items():
            event = self._sealed(_event(report), key)
            if isinstance(event, e.Succeed | e.FailFatal | e.Progress):
                decided = transition(Held(id=key, nonce=nonce), event, now, retry=ANY_RETRY)
                assert not isinstance(decided, Refusal)
                changes.append(decided)
            else:
                to_load.append(key)
        records = await self._store.load(to_load) if to_load else {}
        lost = {key for key in to_load if key not in records}
        for key, record in records.items():
            _, report, nonce = reports[key]
            made = _of_lease(record, nonce, self._sealed(_event(report), key), now)
            if made is None:
                lost.add(key)
            else:
                changes.append(made)
        return changes, lost

    def _sealed(self, event: e.Event, key: JobKey) -> e.Event:
        """The event with what the handler said as it is kept."""
        if not self._sealer.on:
            return event
        match event:
            case e.Succeed(result=str(result)):
                return msgspec.structs.replace(event, result=self._sealer.seal(result, key, "result"))
            case e.Progress(progress=str(progress)):
                return msgspec.structs.replace(event, progress=self._sealer.seal(progress, key, "progress"))
            case (
                e.FailRetriable(error=str(error))
                | e.FailFatal(error=str(error))
                | e.TimeOut(error=str(error))
                | e.Stopped(error=str(error))
            ):
                return msgspec.structs.replace(event, error=self._sealer.seal(error, key, "error"))
        return event

    async def _sort_out(
        self, reports: dict[JobKey, tuple[int, Report, int]]
    ) -> tuple[dict[JobKey, tuple[int, Report, int]], list[tuple[int, Report, str]]]:
        """Of reports that found no lease as they expected it: which to try again, and which are refused. One that was
        taken before is neither."""
        if not reports:
            return {}, []
        outcomes = await self._store.outcomes([(key, nonce) for key, (_, _, nonce) in reports.items()])
        still = await self._store.load([key for key, (_, _, nonce) in reports.items() if (key, nonce) not in outcomes])
        again: dict[JobKey, tuple[int, Report, int]] = {}
        refused: list[tuple[int, Report, str]] = []
        for key, (index, report, nonce) in reports.items():
            outcome = outcomes.get((key, nonce))
            record = still.get(key)
            if outcome is not None:
                if not _agrees(report, outcome):
                    refused.append((index, report, f"the attempt ended as {outcome.name.lower()} before"))
            elif record is not None and isinstance(record.row, Lease) and record.row.nonce == nonce:
                again[key] = (index, report, nonce)
            else:
                refused.append((index, report, OLD_TOKEN))
        return again, refused

    async def _append(self, calls: Sequence[Sequence[tuple[int, LogBody]]]) -> list[list[Rejected]]:
        rejected: list[list[Rejected]] = [[] for _ in calls]
        lines: list[Fenced] = []
        sent: dict[int, tuple[int, LogBody]] = {}
        for index, bodies in enumerate(calls):
            for log_id, body in bodies:
                proof = parse_token(body.token)
                if proof is None:
                    rejected[index].append(_reject(body, "the token is not one of ours"))
                    continue
                sent[log_id] = index, body
                lines.append(_fenced(body, log_id, JobKey(proof[0]), proof[1]))
        refused = await self._store.append_logs(lines) if lines else set()
        for log_id in sorted(refused):
            index, body = sent[log_id]
            rejected[index].append(_reject(body, OLD_TOKEN))
        self._wake.logged({fenced.line.id for fenced in lines})
        return rejected


def _agrees(report: Report, outcome: AttemptStatus) -> bool:
    """Whether an attempt that ended so may have ended by this very report, or after it."""
    match report.status:
        case "processing":
            return outcome is not AttemptStatus.LOST
        case "cancelled":
            return outcome in (AttemptStatus.CANCELLED, AttemptStatus.RETRIABLE_FAILURE)
        case _:
            return outcome is RULES[type(_event(report))].attempt


def _of_lease(record: Record, nonce: int, event: e.Event, now: Micros) -> Change | None:
    if not isinstance(record.row, Lease) or record.row.nonce != nonce:
        return None
    decided = transition(record.row, event, now, retry=record.job.retry)
    if isinstance(decided, Refusal):
        stopped = e.FailRetriable(
            started=getattr(event, "started", None), error=_error("stopped by its worker without being asked")
        )
        decided = transition(record.row, stopped, now, retry=record.job.retry)
        assert not isinstance(decided, Refusal)
    return decided


def _event(report: Report) -> e.Event:
    started = None if report.started is None else to_micros(report.started)
    error, code = _error(report.error), _code(report.error)
    match report.status:
        case "success":
            result = b"" if report.result is UNSET else bytes(report.result)
            if len(result) > RESULT_LIMIT:
                text = f"the result has {len(result):,} bytes; at most {RESULT_LIMIT:,} are kept"
                return e.FailFatal(
                    started=started,
                    error=_error(ErrorInfo(message=text, code="result_too_large")),
                    code="result_too_large",
                )
            return e.Succeed(started=started, result=_text(result) or None)
        case "processing":
            progress = None if report.progress is None else _text(encode(report.progress))
            return e.Progress(started=started, progress=progress)
        case "retriable_failure":
            after = None if report.retry_after is None else parse_duration(report.retry_after, "retry_after")
            return e.FailRetriable(
                started=started, error=error, exit_code=report.exit_code, code=code, retry_after=after
            )
        case "fatal_failure":
            return e.FailFatal(started=started, error=error, exit_code=report.exit_code, code=code)
        case "timed_out":
            return e.TimeOut(started=started, error=error, exit_code=report.exit_code, code=code)
        case "cancelled":
            return e.Stopped(started=started, error=error)
        case "released":
            return e.Release(started=started)
        case _:
            assert_never(report.status)


def check_reports(reports: Sequence[Report]) -> None:
    """What can be wrong with reports in themselves, before any of them is taken."""
    for index, report in enumerate(reports):
        if report.retry_after is not None:
            parse_duration(report.retry_after, f"reports[{index}].retry_after")
        if report.result is not UNSET:
            try:
                bytes(report.result).decode()
            except UnicodeDecodeError:
                raise BadInput.at(f"reports[{index}].result", "not valid UTF-8") from None


def _error(error: ErrorInfo | str | None) -> str | None:
    return None if error is None else _text(encode(error))


def _text(json: bytes) -> str:
    return json.decode()


def _code(error: ErrorInfo | str | None) -> str | None:
    """The handler's own word, as the job's reason: short, and of printable characters."""
    code = error.code if isinstance(error, ErrorInfo) else None
    return None if not code else "".join(c if c.isprintable() else "_" for c in code[:128])


def _fenced(body: LogBody, log_id: int, key: JobKey, nonce: int) -> Fenced:
    message = body.log_message.replace("\x00", "�")
    if len(message) > LOG_LINE_LIMIT:
        message = f"{message[:LOG_LINE_LIMIT]}… ({len(message) - LOG_LINE_LIMIT:,} characters cut)"
    return Fenced(
        nonce,
        LogLine(
            log_id=log_id,
            id=key,
            attempt=body.attempt,
            time=to_micros(body.log_time),
            level=LOG_LEVELS[body.log_level],
            message=message,
        ),
    )


def _reject(body: Report | LogBody, reason: str) -> Rejected:
    return Rejected(job_id=body.job_id, attempt=body.attempt, reason=reason)
