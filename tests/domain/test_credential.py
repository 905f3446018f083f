"""API keys: their form, what is kept of them, and until when which secret is good."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.domain.access import Caller
from foliot.domain.credential import ApiKey, hash_of, new_key_id, new_secret, parse_key, show_key

NEW, OLD = "n" * 43, "o" * 43
KEY = ApiKey(
    key_id="a" * 16,
    namespace="shop",
    name="till",
    role="submitter",
    queues=("mail",),
    job_types=("send",),
    hash=hash_of(NEW),
    created=5,
)


def test_a_key_that_is_shown_can_be_read_again() -> None:
    key_id, secret = new_key_id(), new_secret()
    assert parse_key(show_key(key_id, secret)) == (key_id, secret)


def test_a_secret_has_256_bits_and_no_two_are_alike() -> None:
    assert len(new_secret()) == 43
    assert len({new_secret() for _ in range(100)}) == len({new_key_id() for _ in range(100)}) == 100


@pytest.mark.parametrize(
    "text",
    [
        "",
        "fk_",
        "fk_" + "a" * 16,
        "fk_" + "a" * 16 + "_" + "s" * 42,
        "fk_" + "a" * 16 + "_" + "s" * 44,
        "fk_" + "A" * 16 + "_" + "s" * 43,
        "fk_" + "ä" * 16 + "_" + "s" * 43,
        "FK_" + "a" * 16 + "_" + "s" * 43,
        "xfk_" + "a" * 16 + "_" + "s" * 43,
        "fk_" + "a" * 16 + "_" + "s" * 43 + "\n",
        "fk_" + "a" * 16 + "_" + "s" * 42 + "=",
    ],
)
def test_what_has_not_the_form_of_a_key_is_none(text: str) -> None:
    assert parse_key(text) is None


@given(st.text())
def test_any_text_can_be_looked_at(text: str) -> None:
    assert parse_key(text) is None


def test_a_key_opens_with_its_secret_only() -> None:
    assert KEY.opens(NEW, 10)
    assert not KEY.opens(OLD, 10)
    assert not KEY.opens("", 10)


def test_the_secret_before_a_rotation_is_good_until_its_time_is_over() -> None:
    rotated = msgspec.structs.replace(KEY, old_hash=hash_of(OLD), old_until=100)
    assert rotated.opens(NEW, 99)
    assert rotated.opens(OLD, 99)
    assert rotated.opens(NEW, 100)
    assert not rotated.opens(OLD, 100)
    assert not rotated.opens("other", 99)


def test_a_key_is_good_until_it_expires_or_is_revoked() -> None:
    assert KEY.good(10)
    expiring = msgspec.structs.replace(KEY, expires=100)
    assert expiring.good(99)
    assert not expiring.good(100)
    assert not msgspec.structs.replace(KEY, revoked=7).good(10)
    assert not msgspec.structs.replace(expiring, revoked=7).good(10)


def test_the_caller_is_what_the_key_says() -> None:
    assert KEY.caller("10.0.0.1") == Caller(
        name="till",
        namespace="shop",
        role="submitter",
        queues=("mail",),
        job_types=("send",),
        key_id="a" * 16,
        source="10.0.0.1",
    )
    assert KEY.caller().source == ""


def test_only_a_hash_is_kept() -> None:
    assert hash_of(NEW) != hash_of(OLD)
    assert len(hash_of(NEW)) == 32
    assert NEW.encode() not in msgspec.msgpack.encode(KEY)
