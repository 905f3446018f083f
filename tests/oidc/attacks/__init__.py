"""Tokens that somebody makes who wants to be let in and must not be."""

from itertools import chain

from tests.oidc.attacks import algorithms, claims, headers, shapes, signatures, spellings
from tests.oidc.attacks.attacker import EVIL_KEYS, Attacker

ATTACKS = dict(
    chain.from_iterable(room.attacks() for room in (algorithms, claims, headers, shapes, signatures, spellings))
)

__all__ = ["ATTACKS", "EVIL_KEYS", "Attacker"]
