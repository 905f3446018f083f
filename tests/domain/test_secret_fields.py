"""Secret fields of a payload: hidden where it is shown, kept where `***` comes back, and never let out by a change."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.domain.errors import BadInput
from foliot.domain.secret_fields import MASK, MOST_NESTED, amend, exposed, mask, secrets_in

PAYLOAD = (
    '{"user": "u", "password": "p1", "db": {"host": "h", "password": "p2"}, "list": [{"key": "k1"}, {"key": "k2"}]}'
)


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        (["password"], {"password": MASK}),
        (["db.password"], {"db": {"host": "h", "password": MASK}}),
        (["db"], {"db": MASK}),
        (["db", "db.password"], {"db": MASK}),
        (["db.password", "db"], {"db": MASK}),
        (["list.key"], {"list": [{"key": MASK}, {"key": MASK}]}),
        (["missing", "user.deeper", "db.password.deeper"], {}),
    ],
)
def test_only_what_is_named_is_hidden(fields: list[str], shown: dict[str, object]) -> None:
    assert json.loads(mask(PAYLOAD, fields)) == json.loads(PAYLOAD) | shown


def test_what_is_beside_a_secret_is_as_it_was_written() -> None:
    assert mask('{"big":1e400000,"exact":1.10,"password":1}', ["password"]) == (
        '{"big":1e400000,"exact":1.10,"password":"***"}'
    )


def test_names_are_compared_as_they_are_meant() -> None:
    assert mask('{"p\\u0061ss": "x"}', ["pass"]) == '{"pass":"***"}'
    assert "first" not in mask('{"pass": "first", "pass": "second"}', ["pass"])


@pytest.mark.parametrize("payload", ['{"\\ud800": {"password": "p1"}}', "[" * 2000 + "1" + "]" * 2000])
def test_what_can_not_be_taken_apart_is_hidden_as_a_whole(payload: str) -> None:
    shown = mask(payload, ["password"])
    assert "p1" not in shown
    assert MASK in shown


def test_lists_in_lists_are_looked_through() -> None:
    for depth in (1, MOST_NESTED, MOST_NESTED + 1):
        assert "p1" not in mask("[" * depth + '{"password": "p1"}' + "]" * depth, ["password"])


@pytest.mark.parametrize("payload", ["3", '"text"', "null", "[]", "{}"])
def test_a_payload_without_such_places_is_shown_as_it_is(payload: str) -> None:
    assert json.loads(mask(payload, ["password"])) == json.loads(payload)


FIELDS = ["password", "db.password", "list.key"]
UNSOUND = '{"\\ud800": 1, "a": "secret"}'  # half of a character


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["password", "db", "list", "key", "x"]), inner),
    )
)
def test_what_was_shown_and_comes_back_changes_nothing(payload: object) -> None:
    text = json.dumps(payload)
    if MASK in text:
        return
    assert json.loads(amend(lambda: text, FIELDS, mask(text, FIELDS), FIELDS)) == payload


def test_a_new_value_takes_the_place_of_the_old_one() -> None:
    new = '{"password": "new", "db": {"password": "***"}}'
    assert json.loads(amend(lambda: PAYLOAD, FIELDS, new, FIELDS)) == {"password": "new", "db": {"password": "p2"}}


def test_the_old_payload_is_asked_for_only_where_something_is_kept() -> None:
    def old() -> str:
        raise AssertionError("nobody needs it")

    assert json.loads(amend(old, FIELDS, '{"password": "new"}', FIELDS)) == {"password": "new"}
    assert amend(old, (), '{"password": "***"}', ()) == '{"password": "***"}'


@pytest.mark.parametrize(
    ("new", "place"),
    [
        ('{"password": "***"}', "payload.password"),
        ('{"list": [{"key": "k"}, {"key": "***"}]}', "payload.list.1.key"),
        ('{"list": {"key": "***"}}', "payload.list.key"),
    ],
)
def test_without_a_value_to_keep_the_mask_is_refused(new: str, place: str) -> None:
    with pytest.raises(BadInput) as caught:
        amend(lambda: '{"list": [{"key": "k1"}]}', FIELDS, new, FIELDS)
    assert caught.value.errors[0].field == place


def test_what_is_secret_no_more_can_not_be_kept() -> None:
    assert exposed(FIELDS, ["db", "list.key"]) == ["password"]
    with pytest.raises(BadInput):
        amend(lambda: PAYLOAD, FIELDS, '{"password": "***"}', ["db"])
    new = '{"password": "new", "db": {"password": "***"}}'
    assert json.loads(amend(lambda: PAYLOAD, FIELDS, new, ["db"]))["db"] == {"password": "p2"}


def test_a_name_that_only_begins_alike_covers_nothing() -> None:
    assert exposed(["password"], ["pass"]) == ["password"]


def test_the_texts_to_hide_are_all_strings_and_numbers_of_the_fields() -> None:
    payload = b'{"a": {"b": ["one", {"c": 12.5}], "d": true, "e": null}, "f": "other", "g": 7}'
    assert sorted(secrets_in(payload, ["a", "g"])) == ["12.5", "7", "one"]
    assert secrets_in(b"not json", ["a"]) == []
    assert secrets_in(UNSOUND.encode(), ["a"]) == []


def test_a_payload_that_can_not_be_searched_is_refused() -> None:
    with pytest.raises(BadInput, match="is its JSON sound"):
        amend(lambda: "null", (), UNSOUND, FIELDS)


def test_a_value_in_a_list_comes_back_where_it_was() -> None:
    fields = ("list.key",)
    assert json.loads(amend(lambda: PAYLOAD, fields, mask(PAYLOAD, fields), fields)) == json.loads(PAYLOAD)
