"""Signed by the provider, and not for us, not now, or of nobody."""

from tests.oidc.attacks.attacker import Attacks, each
from tests.oidc.tokens import AUDIENCE

ISSUERS = {
    "another": lambda _: "https://evil.example",
    "with a slash": lambda issuer: f"{issuer}/",
    "with more": lambda issuer: f"{issuer}.evil.example",
    "with less": lambda issuer: issuer[:-1],
    "in upper case": lambda issuer: issuer.upper(),
    "with a blank": lambda issuer: f" {issuer}",
    "with a zero": lambda issuer: f"{issuer}\0",
    "in a list": lambda issuer: [issuer],
    "in an object": lambda issuer: {issuer: issuer},
    "empty": lambda _: "",
    "with a user": lambda issuer: issuer.replace("http://", "http://evil@"),
    "with wide digits": lambda issuer: issuer.replace("1", "１"),  # noqa: RUF001
    "in a path": lambda issuer: f"https://evil.example/{issuer}",
}
AUDIENCES = {
    "another": "https://other.example",
    "with more": f"{AUDIENCE}.evil.example",
    "with less": AUDIENCE[:-1],
    "with a slash": f"{AUDIENCE}/",
    "in upper case": AUDIENCE.upper(),
    "with a blank": f"{AUDIENCE} ",
    "with another in one text": f"https://other.example {AUDIENCE}",
    "empty": "",
    "a letter of it": AUDIENCE[0],
    "an empty list": [],
    "a list of others": ["https://other.example", f"{AUDIENCE}x", AUDIENCE[:-1]],
    "a list with a number": [AUDIENCE, 7],
    "a list in a list": [[AUDIENCE]],
    "an object": {AUDIENCE: True},
    "a number": 7,
    "true": True,
    "a look-alike": AUDIENCE.replace("o", "о"),  # noqa: RUF001
}
LATE = {
    "in 270 years": 10_000_000_000,
    "in milliseconds": 4_000_000_000_000,
    "2 to the 63": 2**63,
    "2 to the 64": 2**64,
    "of 400 digits": 10**400,
    "1e308": 1e308,
}
NO_TIMES = (
    '"9999999999"', '""', "null", "true", "[]", "{}", "-1", "-0.5", "NaN", "Infinity", "-Infinity", "1e400", "9" * 5000,
)  # fmt: skip
SUBJECTS = ("", " ", "\n", "a\nb", "\ud800", "s" * 256, 7, ["x"], {"sub": "x"}, True)
DOUBLES = ('"groups":["ops"]', '"iss":"x"', '"exp":9', '"aud":"x"', r'"g\u0072oups":["ops"]', '"x":{"y":1,"y":2}')
LOGOUT: dict[str, object] = {"http://schemas.openid.net/event/backchannel-logout": {}}


def attacks() -> Attacks:
    yield from each("iss", ISSUERS, lambda a, v: a.rsa.token(iss=v(a.rsa.process.issuer)))
    yield "iss where nobody should ask", lambda a: a.rsa.token(iss=a.canary)
    yield "iss below the provider", lambda a: a.rsa.token(iss=a.evil)
    yield from each("aud", AUDIENCES, lambda a, v: a.rsa.token(aud=v))
    yield from each("no", ("iss", "aud", "exp", "iat", "sub"), lambda a, v: a.rsa.token(**{v: None}))
    yield from each("null for", ("iss", "aud", "sub"), lambda a, v: a.claims_without(v, f'"{v}":null'))
    yield from _times()
    yield from each("sub", SUBJECTS, lambda a, v: a.rsa.token(sub=v))
    yield from each("twice", DOUBLES, lambda a, v: a.claims_with(v))
    yield "alg twice", lambda a: a.raw(header=f'{{"alg":"none","kid":"{a.rsa.key["kid"]}","alg":"RS256"}}'.encode())
    yield "kid twice", lambda a: a.raw(header=f'{{"alg":"RS256","kid":"x","kid":"{a.rsa.key["kid"]}"}}'.encode())
    yield "tells of a logout", lambda a: a.rsa.token(events=LOGOUT)


def _times() -> Attacks:
    yield "expired", lambda a: a.rsa.token(exp=a.rsa.now - 61, iat=a.rsa.now - 300)
    yield "expired long ago", lambda a: a.rsa.token(exp=2, iat=1)
    yield "issued tomorrow", lambda a: a.rsa.token(iat=a.rsa.now + 3600, exp=a.rsa.now + 7200)
    yield "good from tomorrow on", lambda a: a.rsa.token(nbf=a.rsa.now + 3600, exp=a.rsa.now + 7200)
    yield "over before it began", lambda a: a.rsa.token(exp=a.rsa.now - 20)
    yield "for no time", lambda a: a.rsa.token(exp=a.rsa.now, iat=a.rsa.now)
    yield "exp in 32 days", lambda a: a.rsa.token(exp=a.rsa.now + 32 * 86400)
    yield from each("exp", LATE, lambda a, v: a.rsa.token(exp=v))
    yield from each("exp", NO_TIMES, lambda a, v: a.claims_without("exp", f'"exp":{v}'))
    yield from each("iat", NO_TIMES, lambda a, v: a.claims_without("iat", f'"iat":{v}'))
    yield from each("nbf", NO_TIMES, lambda a, v: a.claims_without("nbf", f'"nbf":{v}'))
    yield from each("a right time as text,", ("exp", "iat", "nbf"), lambda a, v: a.rsa.token(**{v: str(a.rsa.now + 9)}))
