"""Good tokens, written in a way that another reader might read otherwise."""

import base64
import json
from collections.abc import Callable

from tests.oidc.attacks.attacker import Attacker, Attacks, each

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
CHANGES: dict[str, Callable[[str], str]] = {
    "padded": lambda part: part + "=" * (-len(part) % 4 or 4),
    "with a blank": lambda part: f"{part[:4]} {part[4:]}",
    "with a line break": lambda part: f"{part[:4]}\n{part[4:]}",
    "with a tab at the end": lambda part: f"{part}\t",
    "with a sign that is skipped": lambda part: f"{part[:4]}!{part[4:]}",
    "with an invisible sign": lambda part: f"{part[:4]}\u200b{part[4:]}",
    "in a wide letter": lambda part: chr(ord(part[0]) + 0xFEE0) + part[1:],
    "percent-encoded": lambda part: f"%{ord(part[0]):02X}{part[1:]}",
    "with a letter that is left over": lambda part: part + "A" * ((1 - len(part)) % 4),
}


def attacks() -> Attacks:
    yield from each("header", CHANGES, lambda a, v: _changed(a, 0, v))
    yield from each("claims", CHANGES, lambda a, v: _changed(a, 1, v))
    yield from each("signature", CHANGES, lambda a, v: _changed(a, 2, v))
    yield "the other alphabet", _other_alphabet
    yield "other bits at the end", _other_bits
    yield "a line break after", lambda a: f"{a.rsa.token()}\n"
    yield "a blank before", lambda a: f" {a.rsa.token()}"
    yield "with the scheme", lambda a: f"Bearer {a.rsa.token()}"


def _changed(a: Attacker, place: int, change: Callable[[str], str]) -> str:
    parts = a.parts()
    changed = change(parts[place])
    assert changed != parts[place]
    return ".".join([*parts[:place], changed, *parts[place + 1 :]])


def _other_alphabet(a: Attacker) -> str:
    claims = base64.b64encode(json.dumps(a.rsa.claims(x="???>>>???")).encode()).rstrip(b"=").decode()
    assert "/" in claims or "+" in claims
    return a.rsa.signed(f"{a.parts()[0]}.{claims}")


def _other_bits(a: Attacker) -> str:
    """256 bytes leave four bits of the last letter unused: another letter stands for the same signature."""
    token = a.rsa.token()
    signature = token.split(".")[2]
    other = signature[:-1] + LETTERS[LETTERS.index(signature[-1]) + 1]
    assert base64.urlsafe_b64decode(f"{other}==") == base64.urlsafe_b64decode(f"{signature}==")
    return token[: -len(signature)] + other
