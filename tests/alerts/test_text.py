"""The words of a notice."""

import pytest

from foliot.alerts import test_words as words_of_a_test
from foliot.alerts import words_of
from foliot.domain.alert import KINDS, Kind, Trouble
from foliot.domain.duration import HOUR, SECOND
from tests.docs.pages import understand

NOW = 1_800_000_000 * SECOND  # 2027-01-15 08:00:00 UTC


def trouble(kind: Kind = "failed", **fields: object) -> Trouble:
    given = {"group": "mail/send", "first": NOW, "last": NOW, "jobs": ("j_1", "j_2"), "count": 2, **fields}
    return Trouble(kind=kind, **given)  # type: ignore[arg-type]


def words(what: Trouble, notice: str = "opened") -> tuple[str, str, str]:
    made = words_of(what, notice, namespace="default", rule="r", incident_id="i_1")  # type: ignore[arg-type]
    return made.title, made.body, made.tone


def test_an_opening_says_what_since_when_how_often_which_and_what_to_do() -> None:
    title, body, tone = words(trouble(detail="The last one: j_2, boom."))
    assert title == "Jobs of mail/send fail"
    assert body.splitlines() == [
        "The last one: j_2, boom.",
        "Since 2027-01-15 08:00:00 UTC, 2 times.",
        "Jobs: j_1, j_2",
        "Why: foliot why j_1",
        "Look: foliot jobs failed",
        "Namespace default, rule r, incident i_1.",
    ]
    assert tone == "failure"


def test_what_goes_on_says_how_many_more_there_are() -> None:
    title, body, _ = words(trouble(count=40, told=NOW, told_count=2), "ongoing")
    assert title == "[still] Jobs of mail/send fail"
    assert "38 more since 2027-01-15 08:00:00 UTC; 40 in all." in body
    assert "Jobs: j_1, j_2, …" in body


def test_an_end_says_since_when_and_who_says_so() -> None:
    title, body, tone = words(trouble(over=NOW + HOUR, count=1), "recovered")
    assert title == "[over] Jobs of mail/send fail"
    assert "over since 2027-01-15 09:00:00 UTC, by itself" in body
    assert "once in all" in body
    assert "foliot" not in body
    assert tone == "success"
    assert "says ann" in words(trouble(over=NOW, ended_by="ann"), "recovered")[1]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_its_words(kind: Kind) -> None:
    title, body, _ = words(trouble(kind, jobs=()))
    assert "mail/send" in title
    assert "Jobs:" not in body
    (look,) = [line.removeprefix("Look: foliot ") for line in body.splitlines() if line.startswith("Look: ")]
    understand(look.split())  # there is such a command


def test_jobs_that_say_nothing_of_a_kind_have_no_why() -> None:
    assert "foliot why" not in words(trouble("missed"))[1]


def test_a_test_says_that_it_is_one() -> None:
    made = words_of_a_test("ops", "default", "ann")
    assert made.title == "A test from Foliot"
    assert "ann tries the channel ops" in made.body
