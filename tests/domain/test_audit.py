"""The chain of the audit log: whatever is done to an entry that was kept is found."""

import hashlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.domain.audit import FIRST, AuditEntry, chained, first_break

ASKED = AuditEntry(time=1, namespace="default", actor="ann", action="POST /jobs", object="job_1", source="10.0.0.1")


def chain(count: int) -> list[AuditEntry]:
    entries = [msgspec.structs.replace(ASKED, time=number) for number in range(count)]
    return chained(entries, seq=0, previous=FIRST)


def test_entries_are_numbered_from_one_and_fit_each_other() -> None:
    entries = chain(5)
    assert [entry.seq for entry in entries] == [1, 2, 3, 4, 5]
    assert len({entry.hash for entry in entries}) == 5
    assert first_break(entries) is None
    assert first_break([]) is None


def test_a_chain_goes_on_where_it_was() -> None:
    first = chain(3)
    more = chained([ASKED, ASKED], seq=first[-1].seq, previous=first[-1].hash)
    assert [entry.seq for entry in more] == [4, 5]
    assert first_break([*first, *more]) is None
    assert first_break(more, seq=3, previous=first[-1].hash) is None
    assert first_break(more) == 1


def test_what_an_entry_says_of_itself_is_not_believed() -> None:
    (entry,) = chained([msgspec.structs.replace(ASKED, seq=77, hash=b"x")], seq=0, previous=FIRST)
    assert entry == chained([ASKED], seq=0, previous=FIRST)[0]


@pytest.mark.parametrize("field", [name for name in AuditEntry.__struct_fields__ if name not in {"seq", "hash"}])
def test_a_change_of_any_field_breaks_the_chain_there(field: str) -> None:
    entries = chain(4)
    value = getattr(entries[2], field)
    other = value + 1 if isinstance(value, int) else f"{value}x"
    entries[2] = msgspec.structs.replace(entries[2], **{field: other})
    assert first_break(entries) == 3


def test_an_entry_taken_out_put_in_or_moved_breaks_the_chain() -> None:
    entries = chain(4)
    assert first_break([entries[0], *entries[2:]]) == 2
    assert first_break([entries[0], entries[0], *entries[1:]]) == 2
    assert first_break([entries[1], entries[0], *entries[2:]]) == 1
    renumbered = [msgspec.structs.replace(entry, seq=entry.seq - 1) for entry in entries[1:]]
    assert first_break(renumbered) == 1


@given(st.lists(st.builds(AuditEntry, time=st.integers(0, 9), namespace=st.text(), actor=st.text(), action=st.text())))
def test_any_texts_can_be_chained(entries: list[AuditEntry]) -> None:
    made = chained(entries, seq=0, previous=FIRST)
    assert first_break(made) is None
    assert [entry.actor for entry in made] == [entry.actor for entry in entries]


def test_the_hash_of_an_entry_is_the_same_in_every_version() -> None:
    (entry,) = chained([ASKED], seq=0, previous=FIRST)
    text = (
        b'{"seq":1,"time":1,"namespace":"default","actor":"ann","key_id":null,"action":"POST /jobs","object":"job_1",'
        b'"source":"10.0.0.1","request_id":"","outcome":"asked","hash":""}'
    )
    assert entry.hash == hashlib.sha256(FIRST + text).digest()
