"""How long a failed attempt waits for the next."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.domain.duration import DAY, HOUR, LONGEST, SECOND
from foliot.domain.retry import Backoff, Retry, wait_before_retry

POLICIES = st.builds(
    Retry,
    backoff=st.sampled_from(["exponential", "linear", "fixed"]),
    initial=st.integers(0, LONGEST),
    max=st.integers(0, LONGEST),
    jitter=st.floats(0, 1),
)
FAILURES = st.integers(1, 1000)
SEEDS = st.integers(0, 2**63 - 1)


def plain(retry: Retry, failures: int) -> int:
    """The backoff without its jitter."""
    return wait_before_retry(
        Retry(backoff=retry.backoff, initial=retry.initial, max=retry.max, jitter=0), failures=failures, seed=0
    )


@pytest.mark.parametrize(
    ("backoff", "waits"),
    [("fixed", [2, 2, 2, 2]), ("linear", [2, 4, 6, 8]), ("exponential", [2, 4, 8, 16])],
)
def test_a_backoff_grows_as_its_name_says(backoff: Backoff, waits: list[int]) -> None:
    retry = Retry(backoff=backoff, initial=2 * SECOND, jitter=0)
    assert [wait_before_retry(retry, failures=n, seed=1) for n in (1, 2, 3, 4)] == [wait * SECOND for wait in waits]


@pytest.mark.parametrize("backoff", ["linear", "exponential"])
def test_a_backoff_stops_growing_at_its_cap(backoff: Backoff) -> None:
    retry = Retry(backoff=backoff, initial=SECOND, max=HOUR, jitter=0)
    assert wait_before_retry(retry, failures=4000, seed=1) == HOUR
    assert wait_before_retry(Retry(initial=DAY, max=HOUR, jitter=0), failures=1, seed=1) == HOUR


@given(retry=POLICIES, failures=FAILURES, seed=SEEDS)
def test_jitter_stays_within_its_share_of_the_capped_backoff(retry: Retry, failures: int, seed: int) -> None:
    base = plain(retry, failures)
    assert base <= retry.max
    wait = wait_before_retry(retry, failures=failures, seed=seed)
    assert wait >= 0
    assert abs(wait - base) <= base * retry.jitter + 1


@given(retry=POLICIES, failures=FAILURES, seed=SEEDS)
def test_the_same_failure_waits_the_same_on_every_node(retry: Retry, failures: int, seed: int) -> None:
    assert wait_before_retry(retry, failures=failures, seed=seed) == wait_before_retry(
        retry, failures=failures, seed=seed
    )


def test_the_jitter_of_a_job_is_not_changed_by_a_new_release() -> None:
    retry = Retry(initial=SECOND, jitter=0.2)
    assert [wait_before_retry(retry, failures=n, seed=42) for n in (1, 2, 3)] == [1140258, 1698158, 3259760]


def test_jobs_that_failed_together_come_back_apart() -> None:
    retry = Retry(initial=HOUR, jitter=0.5)
    waits = [wait_before_retry(retry, failures=1, seed=seed) for seed in range(100)]
    assert len(set(waits)) == 100
    assert min(waits) < 0.6 * HOUR < 1.4 * HOUR < max(waits)


def test_delays_stand_instead_of_the_backoff_and_the_last_repeats() -> None:
    retry = Retry(delays=(0, SECOND, DAY), max=HOUR, jitter=1)
    assert [wait_before_retry(retry, failures=n, seed=1) for n in (1, 2, 3, 4, 99)] == [0, SECOND, DAY, DAY, DAY]
