"""What becomes of due times. First rule by rule; then any plan through any story, against a ledger that is counted one
due time at a time."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foliot.domain import firing
from foliot.domain.duration import DAY, HOUR, MINUTE, SECOND
from foliot.domain.firing import STEP, Outcome, Start, backfill, fire, pause, resume, settle, to_replace, trigger
from foliot.domain.ids import JobKey, ScheduleKey
from foliot.domain.schedule import STANDING_LIMIT, WITH_JOB, CatchUp, Overlap, Plan, Run, Schedule, Standing, Verdict
from foliot.domain.timetable.due_times import due_times, jitter_of, next_after
from foliot.domain.timetable.timetable import Timetable
from tests.domain.timetable.timetables import NOW, at, table

BEAT = table(every="10m", start_time=NOW)  # due at NOW and every ten minutes after it
PULSE = table(every="1s", start_time=NOW)
YEARS = 100 * 365 * DAY
RAN, SKIPPED, CAUGHT_UP = Verdict.RAN, Verdict.SKIPPED, Verdict.CAUGHT_UP
BACKFILLED, MISSED, EXPIRED = Verdict.BACKFILLED, Verdict.MISSED, Verdict.EXPIRED
PLAN_FIELDS = ("overlap", "max_concurrency", "catch_up", "catch_up_window")


def make(timetable: Timetable = BEAT, **fields: Any) -> Schedule:
    """A schedule that has fired nothing yet; `fields` are those of its plan and of itself."""
    plan = Plan(timetable=timetable, **{name: fields.pop(name) for name in PLAN_FIELDS if name in fields})
    schedule = Schedule(
        id=ScheduleKey(1),
        namespace="default",
        name="nightly",
        definition="{}",
        plan=plan,
        owner="ana",
        created=NOW,
        changed=NOW,
        next_due=next_after(timetable, NOW - 1),
    )
    return msgspec.structs.replace(schedule, **fields)


def stand(schedule: Schedule, under_way: int = 0, waiting: Sequence[Run] = (), backfilling: int = 0) -> Standing:
    keys = [JobKey(100 + number) for number in range(under_way)]
    return Standing(schedule=schedule, under_way=keys, waiting=waiting, backfilling=backfilling)


def waits(due: int, promised: Verdict = RAN) -> Run:
    return Run(due=due, until=due, verdict=None, promised=promised, decided=due)


def decided(outcome: Outcome | None) -> Outcome:
    assert outcome is not None
    return outcome


def shape(outcome: Outcome, unit: int = MINUTE) -> list[tuple[Any, ...]]:
    """The rows of the ledger in order of time, short: since NOW, until and count where it is a range, verdict or what
    is promised, reason."""
    return [
        (
            (row.due - NOW) / unit,
            *([] if row.due == row.until else [(row.until - NOW) / unit, row.count]),
            ("waits", row.promised) if row.verdict is None else row.verdict,
            *([] if row.reason is None else [row.reason]),
        )
        for row in sorted(outcome.runs, key=lambda row: row.due)
    ]


def started(outcome: Outcome, unit: int = MINUTE) -> list[float]:
    return [(start.due - NOW) / unit for start in outcome.starts]


# One due time


def test_a_due_time_becomes_a_run_and_the_next_one_is_set() -> None:
    outcome = decided(fire(stand(make()), NOW + 5))
    assert outcome.schedule == make(next_due=NOW + 10 * MINUTE, runs=1, version=2)
    assert outcome.runs == [Run(due=NOW, until=NOW, verdict=RAN, promised=RAN, decided=NOW + 5)]
    assert outcome.starts == [Start(NOW, NOW)]
    assert not outcome.tight


@pytest.mark.parametrize("changes", [{"next_due": NOW + 1}, {"next_due": None}, {"paused": True}], ids=str)
def test_nothing_fires_early_after_the_end_or_in_a_pause(changes: dict[str, Any]) -> None:
    assert fire(stand(make(**changes)), NOW) is None


@pytest.mark.parametrize("overlap", get_args(Overlap))
@pytest.mark.parametrize(("under_way", "most"), [(0, 1), (2, 3)])
def test_with_room_every_rule_starts_the_due_time(overlap: Overlap, under_way: int, most: int) -> None:
    outcome = decided(fire(stand(make(overlap=overlap, max_concurrency=most), under_way), NOW))
    assert (shape(outcome), started(outcome), outcome.schedule.runs) == ([(0, RAN)], [0], 1)
    assert not outcome.tight


@pytest.mark.parametrize(
    ("overlap", "rows", "runs"),
    [
        ("skip", [(0, SKIPPED, "overlap")], 0),
        ("queue", [(0, ("waits", RAN))], 1),
        ("replace", [(0, ("waits", RAN))], 1),
        ("allow", [(0, RAN)], 1),
    ],
)
@pytest.mark.parametrize(("under_way", "most"), [(1, 1), (3, 3), (4, 3)])
def test_without_room_the_rule_for_overlaps_decides(
    overlap: Overlap, rows: list[Any], runs: int, under_way: int, most: int
) -> None:
    outcome = decided(fire(stand(make(overlap=overlap, max_concurrency=most), under_way), NOW))
    assert (shape(outcome), outcome.schedule.runs) == (rows, runs)
    assert outcome.schedule.next_due == NOW + 10 * MINUTE
    assert (len(outcome.starts), outcome.tight) == ((1, False) if overlap == "allow" else (0, True))


def test_due_times_of_one_decision_fill_the_room_there_is() -> None:
    outcome = decided(fire(stand(make(PULSE, max_concurrency=3), 1), NOW + 3 * SECOND))
    assert shape(outcome, SECOND) == [(0, RAN), (1, RAN), (2, SKIPPED, "overlap"), (3, SKIPPED, "overlap")]
    assert outcome.schedule.runs == 2


# Queue and replace


def test_in_a_queue_one_waits_and_the_others_are_skipped() -> None:
    outcome = decided(fire(stand(make(PULSE, overlap="queue"), 1), NOW + 2 * SECOND))
    assert shape(outcome, SECOND) == [(0, ("waits", RAN)), (1, SKIPPED, "overlap"), (2, SKIPPED, "overlap")]
    later = decided(fire(stand(make(overlap="queue", next_due=NOW + 10 * MINUTE), 1, [waits(NOW)]), NOW + 10 * MINUTE))
    assert shape(later) == [(10, SKIPPED, "overlap")]


def test_what_waited_starts_before_what_is_due_now() -> None:
    schedule = make(overlap="queue", next_due=NOW + 10 * MINUTE, runs=1)
    outcome = decided(fire(stand(schedule, 0, [waits(NOW)]), NOW + 10 * MINUTE))
    assert shape(outcome) == [(0, RAN), (10, ("waits", RAN))]
    assert started(outcome) == [0]
    assert outcome.schedule.runs == 2


def test_with_replace_only_the_newest_waits() -> None:
    schedule = make(PULSE, overlap="replace", next_due=NOW + SECOND, runs=1)
    outcome = decided(fire(stand(schedule, 1, [waits(NOW)]), NOW + 3 * SECOND))
    replaced = [(second, SKIPPED, "replaced") for second in range(3)]
    assert shape(outcome, SECOND) == [*replaced, (3, ("waits", RAN))]
    assert outcome.schedule.runs == 1
    assert outcome.tight


def test_with_replace_a_newer_due_time_takes_the_place_of_a_caught_up_one() -> None:
    schedule = make(overlap="replace", next_due=NOW + 10 * MINUTE, runs=1)
    outcome = decided(fire(stand(schedule, 1, [waits(NOW, CAUGHT_UP)]), NOW + 10 * MINUTE))
    assert shape(outcome) == [(0, SKIPPED, "replaced"), (10, ("waits", RAN))]
    assert outcome.schedule.runs == 1


def test_with_replace_a_backfill_and_those_to_catch_up_one_by_one_keep_their_turn() -> None:
    schedule = make(overlap="replace", catch_up="all", next_due=NOW + 20 * MINUTE, runs=2, backfill_limit=1)
    waiting = [waits(NOW, CAUGHT_UP), waits(NOW + 10 * MINUTE), waits(NOW - DAY, BACKFILLED)]
    outcome = decided(fire(stand(schedule, 1, waiting, backfilling=1), NOW + 20 * MINUTE))
    assert shape(outcome) == [(10, SKIPPED, "replaced"), (20, ("waits", RAN))]
    assert outcome.schedule.runs == 2


@pytest.mark.parametrize(
    ("under_way", "most", "named"), [(0, 1, []), (1, 1, [100]), (2, 3, []), (3, 3, [100]), (5, 3, [100, 101, 102])]
)
def test_the_oldest_runs_under_way_make_room(under_way: int, most: int, named: list[int]) -> None:
    schedule = make(overlap="replace", max_concurrency=most)
    assert list(to_replace(stand(schedule, under_way, [waits(NOW)]))) == named


def test_no_run_makes_room_unless_a_due_time_is_to_replace_it() -> None:
    assert to_replace(stand(make(overlap="replace"), 1)) == ()
    assert to_replace(stand(make(overlap="queue"), 1, [waits(NOW)])) == ()
    assert to_replace(stand(make(overlap="replace"), 1, [waits(NOW, BACKFILLED)])) == ()
    assert to_replace(stand(make(overlap="replace", paused=True), 1, [waits(NOW)])) == ()


def test_one_to_catch_up_replaces_where_it_is_the_latest_and_waits_its_turn_where_all_are() -> None:
    waiting = [waits(NOW, CAUGHT_UP), waits(NOW + 10 * MINUTE)]
    assert list(to_replace(stand(make(overlap="replace"), 1, waiting[:1]))) == [100]
    assert to_replace(stand(make(overlap="replace", catch_up="all"), 1, waiting[:1])) == ()
    # the one that replaces comes after it: a run ended for it would make room for one that waits its turn
    assert to_replace(stand(make(overlap="replace", catch_up="all"), 1, waiting)) == ()
    assert list(to_replace(stand(make(overlap="replace", catch_up="all"), 1, waiting[1:]))) == [100]


# Settling


def test_a_run_that_ends_lets_the_next_start() -> None:
    schedule = make(overlap="queue", max_concurrency=2, runs=3, next_due=NOW + HOUR)
    waiting = [waits(NOW), waits(NOW + 10 * MINUTE, CAUGHT_UP)]
    outcome = decided(settle(stand(schedule, 1, waiting), NOW + 12 * MINUTE))
    assert outcome.runs == [Run(due=NOW, until=NOW, verdict=RAN, promised=RAN, decided=NOW + 12 * MINUTE)]
    assert outcome.schedule == msgspec.structs.replace(schedule, version=2)
    both = decided(settle(stand(schedule, 0, waiting), NOW + 12 * MINUTE))
    assert shape(both) == [(0, RAN), (10, CAUGHT_UP)]


def test_nothing_settles_without_room_without_one_that_waits_or_in_a_pause() -> None:
    assert settle(stand(make(overlap="queue"), 1, [waits(NOW)]), NOW) is None
    assert settle(stand(make(overlap="queue")), NOW) is None
    assert settle(stand(make(overlap="queue", paused=True), 0, [waits(NOW)]), NOW) is None


# Bounds and jitter


def test_after_max_runs_nothing_is_due() -> None:
    timetable = table(every="1s", start_time=NOW, max_runs=3)
    outcome = decided(fire(stand(make(timetable, overlap="allow")), NOW + 30 * SECOND))
    assert started(outcome, SECOND) == [0, 1, 2]
    assert (outcome.schedule.next_due, outcome.schedule.runs) == (None, 3)


def test_what_was_skipped_is_not_one_of_max_runs() -> None:
    schedule = make(table(every="1s", start_time=NOW, max_runs=1))
    skipped = decided(fire(stand(schedule, 1), NOW + 4 * SECOND)).schedule
    assert (skipped.runs, skipped.next_due) == (0, NOW + 5 * SECOND)
    outcome = decided(fire(stand(skipped), NOW + 9 * SECOND))
    assert started(outcome, SECOND) == [5]
    assert (outcome.schedule.runs, outcome.schedule.next_due) == (1, None)


@pytest.mark.parametrize("overlap", ["queue", "replace"])
def test_one_that_waits_is_one_of_max_runs(overlap: Overlap) -> None:
    schedule = make(table(every="1s", start_time=NOW, max_runs=1), overlap=overlap)
    outcome = decided(fire(stand(schedule, 1), NOW + 4 * SECOND))
    assert shape(outcome, SECOND) == [(0, ("waits", RAN))]
    assert (outcome.schedule.runs, outcome.schedule.next_due) == (1, None)
    assert decided(settle(stand(outcome.schedule, 0, outcome.runs), NOW + HOUR)).schedule.runs == 1


def test_what_was_missed_is_not_one_of_max_runs() -> None:
    timetable = table(every="10m", start_time=NOW, max_runs=1)
    outcome = decided(fire(stand(make(timetable, catch_up="none")), NOW + 35 * MINUTE))
    assert shape(outcome) == [(0, 30, 4, MISSED)]
    assert (outcome.schedule.next_due, outcome.schedule.runs) == (NOW + 40 * MINUTE, 0)


def test_max_runs_ends_catching_up() -> None:
    timetable = table(every="10m", start_time=NOW, max_runs=3)
    schedule = make(timetable, catch_up="all", overlap="allow", runs=1)
    outcome = decided(fire(stand(schedule), NOW + 55 * MINUTE))
    assert shape(outcome) == [(0, CAUGHT_UP), (10, CAUGHT_UP)]
    assert outcome.schedule.next_due is None


@pytest.mark.parametrize("catch_up", get_args(CatchUp))
def test_the_end_time_is_the_last_due_time(catch_up: CatchUp) -> None:
    timetable = table(every="10m", start_time=NOW, end_time=NOW + 20 * MINUTE)
    outcome = decided(fire(stand(make(timetable, catch_up=catch_up, overlap="allow")), NOW + 50 * MINUTE))
    assert (
        shape(outcome)
        == {
            "none": [(0, 20, 3, MISSED)],
            "latest": [(0, 10, 2, MISSED, "latest"), (20, CAUGHT_UP)],
            "all": [(0, CAUGHT_UP), (10, CAUGHT_UP), (20, CAUGHT_UP)],
        }[catch_up]
    )
    assert outcome.schedule.next_due is None


def test_jitter_moves_the_start_by_the_same_each_time_and_never_the_due_time() -> None:
    timetable = table(every="1s", start_time=NOW, jitter="30s")
    starts = decided(fire(stand(make(timetable, overlap="allow")), NOW + 40 * SECOND)).starts
    assert [start.due for start in starts] == [NOW + second * SECOND for second in range(41)]
    moved = [start.at - start.due for start in starts]
    assert moved == [jitter_of(timetable, "nightly", start.due) for start in starts]
    assert 0 <= min(moved) < max(moved) <= 30 * SECOND
    queued = decided(settle(stand(make(timetable, overlap="queue"), 0, [waits(NOW + SECOND)]), NOW + HOUR))
    assert queued.starts == [starts[1]]


# Catching up


@pytest.mark.parametrize("catch_up", get_args(CatchUp))
def test_less_than_a_minute_late_is_not_missed(catch_up: CatchUp) -> None:
    schedule = make(catch_up=catch_up, catch_up_window=0)
    assert shape(decided(fire(stand(schedule), NOW + MINUTE - 1))) == [(0, RAN)]
    late = (0, MISSED) if catch_up == "none" else (0, EXPIRED, "catch_up_window")
    assert shape(decided(fire(stand(schedule), NOW + MINUTE))) == [late]
    wide = {"none": MISSED, "latest": CAUGHT_UP, "all": CAUGHT_UP}[catch_up]
    assert shape(decided(fire(stand(make(catch_up=catch_up)), NOW + MINUTE))) == [(0, wide)]


@pytest.mark.parametrize(
    ("catch_up", "window", "rows"),
    [
        ("none", YEARS, [(0, 30, 4, MISSED)]),
        ("latest", YEARS, [(0, 20, 3, MISSED, "latest"), (30, CAUGHT_UP)]),
        ("all", YEARS, [(0, CAUGHT_UP), (10, CAUGHT_UP), (20, CAUGHT_UP), (30, CAUGHT_UP)]),
        ("none", 0, [(0, 30, 4, MISSED)]),
        ("latest", 0, [(0, 30, 4, EXPIRED, "catch_up_window")]),
        ("all", 0, [(0, 30, 4, EXPIRED, "catch_up_window")]),
        ("latest", 15 * MINUTE, [(0, 10, 2, EXPIRED, "catch_up_window"), (20, MISSED, "latest"), (30, CAUGHT_UP)]),
        ("all", 15 * MINUTE, [(0, 10, 2, EXPIRED, "catch_up_window"), (20, CAUGHT_UP), (30, CAUGHT_UP)]),
        ("latest", 5 * MINUTE, [(0, 20, 3, EXPIRED, "catch_up_window"), (30, CAUGHT_UP)]),
        ("all", 5 * MINUTE, [(0, 20, 3, EXPIRED, "catch_up_window"), (30, CAUGHT_UP)]),
    ],
)
@pytest.mark.parametrize("overlap", ["allow", "skip"])
def test_what_was_missed_is_caught_up_within_the_window(
    catch_up: CatchUp, window: int, rows: list[Any], overlap: Overlap
) -> None:
    schedule = make(overlap=overlap, max_concurrency=9, catch_up=catch_up, catch_up_window=window)
    outcome = decided(fire(stand(schedule), NOW + 35 * MINUTE))
    assert shape(outcome) == rows
    assert started(outcome) == [row[0] for row in rows if row[1] is CAUGHT_UP]
    assert outcome.schedule.next_due == NOW + 40 * MINUTE
    assert outcome.schedule.runs == len(outcome.starts)


def test_a_window_reaches_to_the_due_time_at_its_very_edge() -> None:
    schedule = make(catch_up="all", overlap="allow", catch_up_window=25 * MINUTE)
    assert started(decided(fire(stand(schedule), NOW + 25 * MINUTE))) == [0, 10, 20]
    late = decided(fire(stand(schedule), NOW + 25 * MINUTE + 1))
    assert shape(late)[0] == (0, EXPIRED, "catch_up_window")
    assert started(late) == [10, 20]


@pytest.mark.parametrize("late", [0, 59 * SECOND])
def test_the_latest_is_not_caught_up_where_a_newer_one_runs_anyway(late: int) -> None:
    outcome = decided(fire(stand(make()), NOW + 30 * MINUTE + late))
    assert shape(outcome) == [(0, 20, 3, MISSED, "latest"), (30, RAN)]
    assert outcome.schedule.runs == 1


@pytest.mark.parametrize("overlap", get_args(Overlap))
def test_all_to_catch_up_wait_for_their_run_whatever_the_rule_for_overlaps(overlap: Overlap) -> None:
    schedule = make(overlap=overlap, max_concurrency=2, catch_up="all")
    outcome = decided(fire(stand(schedule), NOW + 35 * MINUTE))
    late = CAUGHT_UP if overlap == "allow" else ("waits", CAUGHT_UP)
    assert shape(outcome) == [(0, CAUGHT_UP), (10, CAUGHT_UP), (20, late), (30, late)]
    assert outcome.tight == (overlap != "allow")
    assert outcome.schedule.runs == 4


@pytest.mark.parametrize("overlap", get_args(Overlap))
def test_the_latest_to_catch_up_obeys_the_rule_for_overlaps(overlap: Overlap) -> None:
    outcome = decided(fire(stand(make(overlap=overlap), 1), NOW + 15 * MINUTE))
    last = {"skip": (10, SKIPPED, "overlap"), "allow": (10, CAUGHT_UP)}.get(overlap, (10, ("waits", CAUGHT_UP)))
    assert shape(outcome) == [(0, MISSED, "latest"), last]


def test_more_than_a_step_of_due_times_is_decided_in_several() -> None:
    schedule = make(PULSE, catch_up="all", overlap="allow")
    now = NOW + 2500 * SECOND
    dues, counts = [], []
    while (outcome := fire(stand(schedule), now)) is not None:
        schedule = outcome.schedule
        dues += [start.due for start in outcome.starts]
        counts.append(len(outcome.starts))
    assert dues == [NOW + second * SECOND for second in range(2501)]
    assert counts == [STEP, STEP, 501]
    assert (schedule.next_due, schedule.version) == (now + SECOND, 4)


def test_a_step_ends_among_those_that_were_not_missed_too() -> None:
    schedule = make(table(every="100ms", start_time=NOW), catch_up="all", overlap="allow")
    now = NOW + 2 * MINUTE - 50_000
    verdicts: Counter[Verdict | None] = Counter()
    sizes = []
    while (outcome := fire(stand(schedule), now)) is not None:
        schedule = outcome.schedule
        verdicts.update(row.verdict for row in outcome.runs)
        sizes.append(len(outcome.runs))
    assert sizes == [STEP, 200]
    assert verdicts == {CAUGHT_UP: 600, RAN: 600}


@pytest.mark.parametrize(
    ("fields", "short"),
    [
        ({"catch_up": "none"}, 70 * SECOND),
        ({"catch_up": "latest", "catch_up_window": YEARS}, 70 * SECOND),
        ({"catch_up": "latest"}, 2 * HOUR),
        ({"catch_up": "all", "overlap": "allow"}, 2 * HOUR),
    ],
    ids=str,
)
@pytest.mark.parametrize("trigger_fields", [{"every": "10s", "start_time": NOW}, {"cron": "*/10 * * * * *"}], ids=str)
def test_a_year_away_costs_what_a_moment_costs(
    fields: dict[str, Any], short: int, trigger_fields: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: Counter[str] = Counter()
    for name in ("next_after", "previous_at_or_before", "tally"):
        monkeypatch.setattr(firing, name, _counted(looks, name))
    costs = []
    for away in (short, 365 * DAY):
        looks.clear()
        outcome = decided(fire(stand(make(table(**trigger_fields), **fields)), NOW + away))
        costs.append((dict(looks), len(outcome.runs), len(outcome.starts)))
        assert sum(row.count for row in outcome.runs) == away // (10 * SECOND) + 1
    assert costs[0] == costs[1]


def _counted(looks: Counter[str], name: str) -> Any:
    real = getattr(firing, name)

    def look(*arguments: Any, **options: Any) -> Any:
        looks[name] += 1
        return real(*arguments, **options)

    return look


def test_what_can_only_be_counted_one_by_one_is_at_least_so_many() -> None:
    rule = table(rrule="FREQ=MINUTELY", start_time=NOW)
    row = decided(fire(stand(make(rule, catch_up="none")), at("2028-01-01"))).runs[0]
    assert (row.due, row.until, row.count, row.exact) == (NOW, at("2028-01-01") - MINUTE, 10_000, False)


# Pause, resume, trigger, backfill


def test_what_was_due_in_a_pause_is_one_row() -> None:
    paused = pause(make(runs=7, backfill_limit=2), NOW - 5 * MINUTE)
    assert paused == Outcome(schedule=make(runs=7, backfill_limit=2, paused=True, version=2), runs=[], starts=[])
    resumed = resume(paused.schedule, NOW + 25 * MINUTE)
    assert shape(resumed) == [(0, 20, 3, SKIPPED, "paused")]
    assert resumed.starts == []
    assert resumed.schedule == make(runs=7, backfill_limit=2, next_due=NOW + 30 * MINUTE, version=3)


@pytest.mark.parametrize("next_due", [NOW + 10 * MINUTE, None])
def test_a_pause_in_which_nothing_was_due_leaves_no_row(next_due: int | None) -> None:
    resumed = resume(make(paused=True, next_due=next_due), NOW + 9 * MINUTE)
    assert (resumed.runs, resumed.schedule) == ([], make(next_due=next_due, version=2))


def test_a_due_time_at_the_instant_of_resume_was_skipped() -> None:
    resumed = resume(make(paused=True), NOW)
    assert shape(resumed) == [(0, SKIPPED, "paused")]
    assert resumed.schedule.next_due == NOW + 10 * MINUTE


@pytest.mark.parametrize("paused", [False, True])
def test_a_trigger_runs_at_once_and_counts_for_nothing(paused: bool) -> None:
    schedule = make(table(every="10m", start_time=NOW, max_runs=1), next_due=None, runs=1, paused=paused)
    outcome = trigger(schedule, NOW + 7)
    assert outcome.runs == [
        Run(due=NOW + 7, until=NOW + 7, verdict=RAN, promised=RAN, reason="triggered", decided=NOW + 7)
    ]
    assert outcome.starts == [Start(NOW + 7, NOW + 7)]
    assert outcome.schedule == msgspec.structs.replace(schedule, version=2)


def test_a_trigger_at_a_due_time_leaves_that_its_own_run() -> None:
    outcome = trigger(make(), NOW + 10 * MINUTE)
    assert [start.due for start in outcome.starts] == [NOW + 10 * MINUTE + 1]
    fired = decided(fire(stand(msgspec.structs.replace(outcome.schedule, next_due=NOW + 10 * MINUTE)), NOW + HOUR))
    assert not {start.due for start in outcome.starts} & {start.due for start in fired.starts}


def test_a_backfill_runs_so_many_at_once_and_ends_with_its_last() -> None:
    dues = [NOW - days * DAY for days in (5, 4, 3, 2, 1)]
    begun = backfill(make(), dues, 2, NOW - 1)
    assert begun.schedule == make(backfill_limit=2, version=2)
    assert begun.starts == ()
    assert [(row.due, row.verdict, row.promised) for row in begun.runs] == [(due, None, BACKFILLED) for due in dues]
    schedule, waiting = begun.schedule, list(begun.runs)
    for under_way, done, limit in ((0, [0, 1], 2), (1, [2], 2), (0, [3, 4], 0)):
        outcome = decided(settle(stand(schedule, 1, waiting, backfilling=under_way), NOW - 1))
        assert [start.due for start in outcome.starts] == [dues[number] for number in done]
        assert {row.verdict for row in outcome.runs} == {BACKFILLED}
        schedule, waiting = outcome.schedule, waiting[len(done) :]
        assert (schedule.backfill_limit, schedule.runs, schedule.next_due) == (limit, 0, NOW)
        assert settle(stand(schedule, 1, waiting, backfilling=2), NOW - 1) is None
    assert waiting == []


def test_a_backfill_and_the_schedules_own_runs_do_not_take_each_others_room() -> None:
    schedule = make(overlap="queue", backfill_limit=1)
    waiting = [waits(NOW - DAY, BACKFILLED), waits(NOW - HOUR, BACKFILLED)]
    outcome = decided(fire(stand(schedule, 0, waiting), NOW))
    assert shape(outcome, HOUR) == [(-24, BACKFILLED), (0, RAN)]
    full = decided(fire(stand(schedule, 1, waiting, backfilling=1), NOW))
    assert shape(full) == [(0, ("waits", RAN))]
    assert full.schedule.backfill_limit == 1


def test_a_backfill_is_not_over_while_some_that_wait_are_not_shown() -> None:
    shown = [waits(NOW - number * DAY, BACKFILLED) for number in range(STANDING_LIMIT, 0, -1)]
    schedule = make(backfill_limit=STANDING_LIMIT)
    assert decided(settle(stand(schedule, 0, shown), NOW)).schedule.backfill_limit == STANDING_LIMIT
    assert decided(settle(stand(schedule, 0, shown[1:]), NOW)).schedule.backfill_limit == 0


def test_a_backfill_gives_no_second_run_to_a_due_time_that_is_about_to_fire() -> None:
    dues = [NOW, NOW + 10 * MINUTE]
    begun = backfill(make(next_due=NOW + 10 * MINUTE), dues, 2, NOW + 10 * MINUTE)
    outcome = decided(fire(stand(begun.schedule, 0, begun.runs), NOW + 10 * MINUTE))
    assert shape(outcome) == [(0, BACKFILLED), (10, RAN)]
    assert started(outcome) == [0, 10]


@pytest.mark.parametrize("changes", [{"next_due": None}, {"next_due": NOW, "paused": True}], ids=str)
def test_a_backfill_takes_all_it_is_given_where_nothing_else_will_run_them(changes: dict[str, Any]) -> None:
    dues = [NOW, NOW + 10 * MINUTE]
    assert [row.due for row in backfill(make(**changes), dues, 2, NOW + 10 * MINUTE).runs] == dues


def test_a_backfill_whose_end_was_not_seen_is_over_with_the_next_look() -> None:
    """With a full page of those that wait all started, it was not known whether there are more."""
    schedule = make(backfill_limit=STANDING_LIMIT, next_due=None)
    outcome = decided(settle(stand(schedule, backfilling=999), NOW))
    assert (outcome.schedule.backfill_limit, outcome.runs, outcome.starts) == (0, [], [])
    assert settle(stand(outcome.schedule, backfilling=998), NOW) is None


def test_a_backfill_of_nothing_changes_no_limit() -> None:
    assert backfill(make(), [], 3, NOW).schedule.backfill_limit == 0
    assert backfill(make(backfill_limit=1), [], 3, NOW).schedule.backfill_limit == 1


# Any plan through any story

TABLES: list[dict[str, Any]] = [
    {"every": "10s"},
    {"every": "55s", "start_time": NOW, "jitter": "20s"},
    {"every": "17m"},
    {"every": "30s", "max_runs": 12},
    {"every": "2m", "end_time": NOW + 5 * HOUR},
    {"cron": "*/20 * * * * *"},
    {"cron": "*/3 * * * *", "timezone": "Europe/Madrid", "max_runs": 5},
    {"cron": "0 8-18/2 * * 1-5", "calendar": {"country": "ES"}, "on_holiday": "next", "timezone": "Europe/Madrid"},
]
PLANS = st.fixed_dictionaries(
    {
        "catch_up_window": st.sampled_from([0, 30 * SECOND, 4 * MINUTE, HOUR, YEARS]),
        "max_concurrency": st.integers(1, 3),
    }
)
STORIES = st.lists(
    st.one_of(
        st.tuples(st.just("passes"), st.floats(0, 4)),
        st.tuples(st.just("away"), st.floats(0, 40)),
        st.tuples(st.just("away to a due time"), st.floats(0, 8)),
        st.tuples(st.just("ends"), st.integers(0, 5)),
        st.sampled_from([("paused", 0), ("resumed", 0), ("triggered", 0), ("made room", 0)]),
    ),
    min_size=8,
    max_size=24,
)


class World:
    """A store and a node as plain lists: due times are fired when they come, or all at once after an absence."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.timetable = schedule.plan.timetable
        self.now = NOW
        self.ledger: dict[int, Run] = {}  # by due time, or by the first of a range
        self.under_way: dict[JobKey, Start] = {}  # oldest first
        self.triggered: set[int] = set()
        self.started: list[int] = []
        self.dues: list[int] = []  # all that were due up to now
        unbounded = msgspec.structs.replace(self.timetable, max_runs=None)
        self._coming: Iterator[int] = due_times(unbounded, NOW - 1)
        self.ahead = next(self._coming, None)
        first, second = islice(due_times(unbounded, NOW), 2)
        self.beat = second - first

    def standing(self) -> Standing:
        waiting = sorted((run for run in self.ledger.values() if run.verdict is None), key=lambda run: run.due)
        assert len(waiting) < STANDING_LIMIT  # a story is too short to tell of more
        return Standing(schedule=self.schedule, under_way=list(self.under_way), waiting=waiting)

    def go_to(self, time: int) -> None:
        self.now = time
        while self.ahead is not None and self.ahead <= time:
            self.dues.append(self.ahead)
            self.ahead = next(self._coming, None)

    def apply(self, outcome: Outcome | None) -> None:
        if outcome is None:
            return
        assert outcome.schedule.version == self.schedule.version + 1
        assert len({row.due for row in outcome.runs}) == len(outcome.runs)
        for row in outcome.runs:
            before = self.ledger.get(row.due)
            assert before is None or (before.verdict is None and row.verdict is not None and row.until == row.due)
            assert row.decided == self.now
            if before is None:
                self._check_fate(row)
            self.ledger[row.due] = row
        with_job = [row.due for row in outcome.runs if row.verdict in WITH_JOB]
        assert sorted(start.due for start in outcome.starts) == sorted(with_job)
        for start in outcome.starts:
            assert start.due <= self.now or start.due in self.triggered
            assert start.due <= start.at <= start.due + self.timetable.jitter
            self.under_way[JobKey(len(self.started))] = start
            self.started.append(start.due)
        self.schedule = outcome.schedule

    def fire(self) -> None:
        while (outcome := fire(self.standing(), self.now)) is not None:
            assert outcome.schedule.next_due != self.schedule.next_due
            self.apply(outcome)

    def _check_fate(self, row: Run) -> None:
        """The verdicts that the time allows, worked out from how late each due time was."""
        if row.due in self.triggered or row.reason == "paused":
            return
        plan = self.schedule.plan
        youngest, oldest = self.now - row.until, self.now - row.due
        match row.promised:
            case Verdict.RAN:
                assert oldest < MINUTE
            case Verdict.SKIPPED:
                assert row.reason in ("overlap", "replaced")
                assert oldest < MINUTE or (plan.catch_up == "latest" and oldest <= plan.catch_up_window)
            case Verdict.CAUGHT_UP:
                assert plan.catch_up != "none"
                assert MINUTE <= oldest <= plan.catch_up_window
                assert plan.catch_up == "all" or row.due == self.dues[-1]
            case Verdict.MISSED:
                assert plan.catch_up != "all"
                assert youngest >= MINUTE
                assert plan.catch_up == "none" or oldest <= plan.catch_up_window
            case Verdict.EXPIRED:
                assert plan.catch_up != "none"
                assert youngest >= MINUTE
                assert youngest > plan.catch_up_window
            case Verdict.BACKFILLED:
                pytest.fail("nobody asked for a backfill")

    def check(self) -> None:
        plan, standing = self.schedule.plan, self.standing()
        assert len(set(self.started)) == len(self.started)
        own = [start for start in self.under_way.values() if start.due not in self.triggered]
        assert plan.overlap == "allow" or len(own) <= plan.max_concurrency
        out_of_turn = [run for run in standing.waiting if run.promised is RAN or plan.catch_up != "all"]
        assert len(out_of_turn) <= (1 if plan.overlap in ("queue", "replace") else 0)
        if not self.schedule.paused and len(self.under_way) < plan.max_concurrency:
            assert not standing.waiting
        if plan.overlap == "replace":
            replaced = [row.due for row in self.ledger.values() if row.reason == "replaced"]
            assert all(run.due > max(replaced, default=0) for run in standing.waiting if run.promised is RAN)

    def check_every_due_time_has_one_verdict(self) -> None:
        """The rows in order of time lie on the due times without a hole, and none on top of another."""
        rows = [row for row in self.ledger.values() if row.due not in self.triggered]
        covered = 0
        for row in sorted(rows, key=lambda row: row.due):
            inside = self.dues[covered : covered + row.count]
            assert (len(inside), inside[0], inside[-1], row.exact) == (row.count, row.due, row.until, True)
            covered += row.count
        became_runs = sum(row.count for row in rows if row.verdict is None or row.verdict in WITH_JOB)
        assert self.schedule.runs == became_runs
        if became_runs == self.timetable.max_runs:
            assert self.schedule.next_due is None
        else:
            assert self.schedule.next_due == (self.dues[covered] if covered < len(self.dues) else self.ahead)
            assert self.schedule.paused or covered == len(self.dues)


def tell(world: World, word: str, amount: float) -> None:
    """One step of a story."""
    paused = world.schedule.paused
    match word:
        case "passes":
            until = world.now + int(amount * world.beat)
            while not paused and (due := world.schedule.next_due or until) < until:
                world.go_to(due)
                world.fire()
                world.check()
                assert world.schedule.next_due != due
            world.go_to(until)
            world.fire()
        case "away":
            world.go_to(world.now + int(amount * world.beat))
            world.fire()
        case "away to a due time":
            world.go_to(world.now + int(amount * world.beat))
            world.go_to(world.ahead or world.now)
            world.fire()
        case "ends" if world.under_way:
            del world.under_way[list(world.under_way)[int(amount) % len(world.under_way)]]
            world.apply(settle(world.standing(), world.now))
        case "made room":
            for job in to_replace(world.standing()):
                del world.under_way[job]
            world.apply(settle(world.standing(), world.now))
        case "paused" if not paused:
            world.apply(pause(world.schedule, world.now))
        case "resumed" if paused:
            world.apply(resume(world.schedule, world.now))
            world.apply(settle(world.standing(), world.now))
        case "triggered":
            outcome = trigger(world.schedule, world.now)
            world.triggered.update(start.due for start in outcome.starts)
            world.apply(outcome)
            world.go_to(world.now + 2)  # where the next one does not meet it
            world.fire()


@pytest.mark.parametrize("catch_up", get_args(CatchUp))
@pytest.mark.parametrize("overlap", get_args(Overlap))
@settings(max_examples=100)
@given(fields=st.sampled_from(TABLES), plan=PLANS, story=STORIES)
def test_every_due_time_ends_with_one_verdict_whatever_happens(
    overlap: Overlap, catch_up: CatchUp, fields: dict[str, Any], plan: dict[str, Any], story: list[tuple[str, float]]
) -> None:
    world = World(make(table(**fields), overlap=overlap, catch_up=catch_up, **plan))
    world.go_to(NOW)
    world.fire()
    for word, amount in story:
        tell(world, word, amount)
        world.check()
        world.check_every_due_time_has_one_verdict()
