"""Headers that would choose the key, or change what the rest means."""

from tests.oidc.attacks.attacker import EVIL_KEYS, Attacker, Attacks, each
from tests.oidc.tokens import encode

KEY_IDS = (
    "../../../../../../dev/null",
    "/dev/null",
    "http://127.0.0.1/key",
    "x' UNION SELECT 'secret' --",
    "'; DROP TABLE jobs; --",
    "a\0b",
    "$(id)",
    "{{7*7}}",
    "%s%n",
    "",
    "k" * 10_000,
)
TYPES = ("logout+jwt", "secevent+jwt", "dpop+jwt", "JOSE", "", "JWT ", 7, ["JWT"])


def attacks() -> Attacks:
    yield from _key_ids()
    yield from _brought_keys()
    yield from each(
        "crit", (["exp"], ["b64"], ["x"], [], "exp", [7], {}), lambda a, v: a.rsa.with_header(crit=v, x=True)
    )
    yield "unencoded", lambda a: a.rsa.with_header(b64=False, crit=["b64"])
    yield "unencoded, not critical", lambda a: a.rsa.with_header(b64=False)
    yield "compressed", lambda a: a.rsa.with_header(zip="DEF")
    yield "encrypted", lambda a: a.rsa.with_header(enc="A256GCM")
    yield from each("typ", TYPES, lambda a, v: a.rsa.with_header(typ=v))


def _key_ids() -> Attacks:
    yield "another's key", lambda a: a.forge()
    yield "another's key, no kid", lambda a: a.forge(kid=None)
    yield "another's key, its own kid", lambda a: a.forge(kid=a.own.key_id)
    yield "the other key's kid", lambda a: a.rsa.with_header(kid=a.ec.key["kid"])
    yield "a kid nobody has", lambda a: a.rsa.with_header(kid="nobody")
    yield from each("another's key, kid", (*KEY_IDS, 0, True, [], {"kid": "x"}), lambda a, v: a.forge(kid=v))
    yield from each("HMAC with nothing, kid", KEY_IDS, lambda a, v: a.mac(b"", kid=v))
    yield "kid null", lambda a: a.raw(header=b'{"alg":"RS256","kid":null}')
    yield "kid is the address of a key", lambda a: a.forge(kid=a.evil)
    yield "kid with an invisible sign", lambda a: a.rsa.with_header(kid=f"{a.rsa.key['kid']}\u200b")
    yield "kid with a zero after", lambda a: a.rsa.with_header(kid=f"{a.rsa.key['kid']}\0")


def _brought_keys() -> Attacks:
    yield "a key in it", lambda a: a.forge(jwk=a.own.public_jwk)
    yield "a key in it, no kid", lambda a: a.forge(jwk=a.own.public_jwk, kid=None)
    yield "a key in it, its own kid", lambda a: a.forge(jwk=a.own.public_jwk, kid=a.own.key_id)
    yield "a secret in it", lambda a: a.mac(b"secret", jwk={"kty": "oct", "k": encode(b"secret")})
    yield "the provider's key in it", lambda a: a.rsa.with_header(jwk=a.rsa.key)
    yield "a certificate in it", lambda a: a.forge(x5c=["MIIB"])
    brought = {
        f"{header} {place}": {header: address}
        for header in ("jku", "x5u")
        for place, address in {"at the provider": EVIL_KEYS, "elsewhere": ""}.items()
    }
    yield from each("signed by who brings", brought, lambda a, v: a.forge(**_whole(a, v)))
    yield from each("with a new kid,", brought, lambda a, v: a.forge(kid="new", **_whole(a, v)))
    yield from each("signed by the provider,", brought, lambda a, v: a.rsa.with_header(**_whole(a, v)))


def _whole(a: Attacker, header: dict[str, str]) -> dict[str, str]:
    return {name: a.evil if path else a.canary for name, path in header.items()}
