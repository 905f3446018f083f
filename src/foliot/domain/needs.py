"""What a job asks of its worker: amounts of resources, held while it runs, and labels that must match.

Amounts are counted in thousandths, so that sums are exact: 0.1 + 0.2 fit into 0.3.
"""

import math
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from functools import lru_cache

import msgspec

from foliot.domain.errors import BadInput

SLOT = "slot"
UNIT = 1000  # in how many parts one of anything can be asked for
MOST = 1 << 52  # of anything, in its units
_NAME = re.compile(r"[A-Za-z0-9._/-]{1,64}")
_AMOUNT = re.compile(r"([0-9]+(?:\.[0-9]+)?)(Ki|Mi|Gi|Ti|k|M|G|T)?")
_FACTORS = {
    None: 1,
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "Ti": 2**40,
}


class Needs(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Amounts in thousandths, `slot` among them, and labels; both sorted by name."""

    amounts: tuple[tuple[str, int], ...] = ((SLOT, UNIT),)
    labels: tuple[tuple[str, str], ...] = ()


PLAIN = Needs()

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Needs).decode


def parse_needs(resources: Mapping[str, float | str] | None, requires: Mapping[str, str] | None) -> Needs:
    """What a submit body asks for; a slot unless it says otherwise. Raises `BadInput` naming the field."""
    amounts = {SLOT: UNIT} | parse_amounts(resources or {}, "resources")
    return Needs(amounts=tuple(sorted(amounts.items())), labels=tuple(sorted((requires or {}).items())))


def parse_amounts(resources: Mapping[str, float | str], field: str) -> dict[str, int]:
    """What is asked for, in thousandths, rounded up: a job never holds less than it asked for."""
    return {name: math.ceil(_amount(name, value, f"{field}.{name}")) for name, value in resources.items()}


def parse_offer(resources: Mapping[str, float | str], field: str) -> dict[str, int]:
    """What there is, in thousandths, rounded down: nobody is given what is not there."""
    return {name: math.floor(_amount(name, value, f"{field}.{name}")) for name, value in resources.items()}


def in_thousandths(value: float) -> int:
    """An amount that was read and checked before, rounded down."""
    return math.floor(_thousandths(value))


def how_many(free: Mapping[str, int], amounts: tuple[tuple[str, int], ...]) -> int | None:
    """How many jobs that hold these amounts each fit in what is free; None where they hold nothing at all."""
    if amounts is PLAIN.amounts:  # nearly all: without a walk
        return free.get(SLOT, 0) // UNIT
    return min((free.get(name, 0) // amount for name, amount in amounts if amount), default=None)


def holds(free: Mapping[str, int], amounts: tuple[tuple[str, int], ...]) -> bool:
    """Whether one such job fits."""
    if amounts is PLAIN.amounts:
        return free.get(SLOT, 0) >= UNIT
    return all(free.get(name, 0) >= amount for name, amount in amounts)


def _amount(name: str, value: float | str, field: str) -> Decimal | int:
    if not _NAME.fullmatch(name):
        raise BadInput.at(field, "a resource's name is 1–64 of A–Z a–z 0–9 . _ / -")
    if isinstance(value, str):
        match = _AMOUNT.fullmatch(value)
        if match is None:
            raise BadInput.at(field, 'is a number, or one with a unit such as "256Mi" or "2G"')
        value = float(match[1]) * _FACTORS[match[2]]
    if not 0 <= value * UNIT <= MOST:
        raise BadInput.at(field, f"is from 0 to {MOST // UNIT:,}")
    return _thousandths(value)


def _thousandths(value: float) -> Decimal | int:
    """As it is written, not as it is kept: 0.07 * 1000 would be a hair more than 70."""
    return int(value) * UNIT if value == int(value) else Decimal(repr(value)) * UNIT


def show_amount(amount: int) -> float:
    """In whole units, as it is shown."""
    return amount // UNIT if amount % UNIT == 0 else amount / UNIT


def show_amounts(amounts: Iterable[tuple[str, int]]) -> dict[str, float]:
    """Read back they are the same amounts, whichever way that rounds."""
    return {name: show_amount(amount) for name, amount in amounts}


def show_needs(needs: Needs) -> str:
    """As a lane carries it: empty for a slot and nothing else."""
    return "" if needs == PLAIN else _encode(needs).decode()


@lru_cache(maxsize=10_000)
def read_needs(text: str) -> Needs:
    return PLAIN if not text else _decode(text)
