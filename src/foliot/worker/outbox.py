"""What the node has to be told and has not acknowledged yet: ends of attempts, log lines, progress.

A call takes a `Batch`; its answer acknowledges it, its failure puts it back. Only what was acknowledged is forgotten.
The end of an attempt leaves with the last of its lines or after them, never before: the node refuses lines of an
attempt that has ended.
"""

import asyncio
from collections import deque
from collections.abc import Callable

import msgspec

from foliot.wire import ErrorInfo, LogBody, ProgressInfo, Report, to_time
from foliot.worker.attempt import Attempt
from foliot.worker.attempt_log import Line

FLUSH_SECONDS = 0.25
REPORTS_PER_CALL = 1000
LINES_PER_CALL = 2000
CHARACTERS_PER_CALL = 1024 * 1024
RESULTS_PER_CALL = 8 * 1024 * 1024  # bytes


class Ended(msgspec.Struct, frozen=True):
    attempt: Attempt
    report: Report


class Batch(msgspec.Struct):
    """What one call carries."""

    ended: list[Ended] = []
    lines: list[tuple[Attempt, list[Line]]] = []
    progress: list[tuple[Attempt, ProgressInfo]] = []

    def __bool__(self) -> bool:
        return bool(self.ended or self.lines or self.progress)

    @property
    def size(self) -> int:
        return len(self.ended) + len(self.progress) + sum(len(lines) for _, lines in self.lines)

    def reports(self) -> list[Report]:
        reports = [attempt.progress_report(progress) for attempt, progress in self.progress]
        reports.extend([ended.report for ended in self.ended])
        return reports

    def logs(self) -> list[LogBody]:
        return [
            LogBody(
                job_id=attempt.job.job_id,
                attempt=attempt.job.attempt,
                token=attempt.job.token,
                log_time=to_time(time),
                log_level=level,
                log_message=message,
            )
            for attempt, lines in self.lines
            for time, level, message in lines
        ]


class Outbox:
    """`on_ready` is called when something should leave now."""

    def __init__(self, loop: asyncio.AbstractEventLoop, on_ready: Callable[[], None]) -> None:
        self._loop = loop
        self._on_ready = on_ready
        self._ended: deque[Ended] = deque()
        self._talking: dict[str, Attempt] = {}
        self._unacknowledged: dict[str, Attempt] = {}
        self._flush_due = False
        self._timer: asyncio.TimerHandle | None = None
        self._limit = REPORTS_PER_CALL

    @property
    def tokens(self) -> dict[str, Attempt]:
        """Attempts that have ended here and whose end no node has acknowledged."""
        return self._unacknowledged

    @property
    def is_empty(self) -> bool:
        return not self._unacknowledged

    def end(self, attempt: Attempt, report: Report) -> None:
        token = report.token
        self._talking.pop(token, None)
        self._unacknowledged[token] = attempt
        self._ended.append(Ended(attempt, report))
        self._on_ready()

    def changed(self, attempt: Attempt) -> None:
        """The attempt has written lines or made progress; it leaves with the next flush."""
        if attempt.ended:
            return
        self._talking[attempt.job.token] = attempt
        if self._timer is None and not self._flush_due:
            self._timer = self._loop.call_later(FLUSH_SECONDS, self._flush)

    def forget(self, attempt: Attempt) -> None:
        """Nothing of it is to be told any more: its lease is gone."""
        self._talking.pop(attempt.job.token, None)

    def take(self, *, whole: bool) -> Batch:
        """What can leave in one call. With `whole` false only ends and their lines, for a call that may be answered
        late: lines under way would hold up the end of an attempt that still runs."""
        batch = Batch([], [], [])
        if self._ended:
            self._take_ended(batch)
        if whole and self._flush_due:
            self._take_talk(batch)
        return batch

    def acknowledge(self, batch: Batch) -> None:
        for attempt, _ in batch.lines:
            attempt.lines_under_way -= 1
        for ended in batch.ended:
            self._unacknowledged.pop(ended.report.token, None)
        self._limit = min(REPORTS_PER_CALL, self._limit * 2)
        if self._ended and batch.lines:
            self._on_ready()

    def put_back(self, batch: Batch) -> None:
        for attempt, lines in reversed(batch.lines):
            attempt.lines_under_way -= 1
            attempt.log.put_back(lines)
            if not attempt.ended:
                self._talking[attempt.job.token] = attempt
                self._flush_due = True
        for attempt, progress in batch.progress:
            if attempt.progress is None and not attempt.ended:
                attempt.progress = progress
                self._talking[attempt.job.token] = attempt
                self._flush_due = True
        self._ended.extendleft(reversed(batch.ended))

    def refuse(self, batch: Batch, why: str) -> Batch | None:
        """The node can not take the batch as it is. Halve what is sent until the bad part is alone; that is returned,
        and given up. An end that was refused is replaced by a failure that says so, once."""
        if batch.size > 1:
            self.put_back(batch)
            self._limit = max(1, batch.size // 2)
            return None
        self.acknowledge(batch)
        for ended in batch.ended:
            if ended.report.error is None or _code(ended.report) != "report_refused":
                error = ErrorInfo(code="report_refused", message=f"the node did not take the attempt's report: {why}")
                report = Report(
                    job_id=ended.report.job_id,
                    attempt=ended.report.attempt,
                    token=ended.report.token,
                    status="fatal_failure",
                    error=error,
                )
                self.end(ended.attempt, report)
        return batch

    def _flush(self) -> None:
        self._timer = None
        self._flush_due = bool(self._talking)
        if self._flush_due:
            self._on_ready()

    def _take_ended(self, batch: Batch) -> None:
        room, characters, results = self._limit, CHARACTERS_PER_CALL, RESULTS_PER_CALL
        held_up: list[Ended] = []
        while self._ended and room > 0 and results > 0:
            ended = self._ended.popleft()
            attempt = ended.attempt
            log = attempt.written_log
            if log is not None:
                if log.pending and room > 1 and characters > 0:
                    lines = log.take(min(room - 1, LINES_PER_CALL), characters)
                    attempt.lines_under_way += 1
                    batch.lines.append((attempt, lines))
                    room -= len(lines)
                    characters -= sum(len(line[2]) for line in lines)
                    only_these = 1
                elif log.pending and room == 1 and not batch:
                    attempt.lines_under_way += 1
                    batch.lines.append((attempt, log.take(1, 1)))
                    held_up.append(ended)
                    break
                else:
                    only_these = 0
                if log.pending or attempt.lines_under_way > only_these:
                    held_up.append(ended)
                    continue
            batch.ended.append(ended)
            room -= 1
            if isinstance(ended.report.result, msgspec.Raw):
                results -= len(memoryview(ended.report.result))
        self._ended.extendleft(reversed(held_up))

    def _take_talk(self, batch: Batch) -> None:
        room, characters = min(LINES_PER_CALL, self._limit - batch.size), CHARACTERS_PER_CALL
        left: dict[str, Attempt] = {}
        for token, attempt in self._talking.items():
            if room <= 0 or characters <= 0:
                left[token] = attempt
                continue
            progress, attempt.progress = attempt.progress, None
            if progress is not None:
                batch.progress.append((attempt, progress))
                room -= 1
            log = attempt.written_log
            if log is not None and log.pending and room > 0:
                lines = log.take(room, characters)
                attempt.lines_under_way += 1
                batch.lines.append((attempt, lines))
                room -= len(lines)
                characters -= sum(len(line[2]) for line in lines)
            if log is not None and log.pending:
                left[token] = attempt
        self._talking = left
        self._flush_due = bool(left)


def _code(report: Report) -> str | None:
    return report.error.code if isinstance(report.error, ErrorInfo) else None
