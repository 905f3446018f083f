"""What has not the shape of a token, is too large, too deep, or one inside another."""

import json

from tests.oidc.attacks.attacker import Attacks, each
from tests.oidc.tokens import encode_json

NO_OBJECTS = (b"[]", b'"x"', b"7", b"null", b"", b"{'iss': 1}", b'{"sub":"\xff"}')


def attacks() -> Attacks:
    yield "one part", lambda a: a.parts()[1]
    yield "two parts", lambda a: ".".join(a.parts()[:2])
    yield "four parts", lambda a: ".".join([*a.parts(), "AAAA"])
    yield "five parts", lambda a: ".".join([*a.parts(), "AAAA", "AAAA"])
    yield "five parts of an encrypted one", lambda _: f"{encode_json({'alg': 'RSA-OAEP', 'enc': 'A256GCM'})}.A.A.A.A"
    yield from each(
        "just", ("", ".", "..", "...", "a.b.c", "null", "\0", "🔑.🔑.🔑", "\ud800.a.b"), lambda _, v: str(v)
    )
    yield "a dot before", lambda a: f".{a.rsa.token()}"
    yield "a dot after", lambda a: f"{a.rsa.token()}."
    yield "as JSON", lambda a: json.dumps(dict(zip(("protected", "payload", "signature"), a.parts(), strict=True)))
    yield "two of them", lambda a: f"{a.rsa.token()},{a.rsa.token()}"
    yield from each("claims", NO_OBJECTS, lambda a, v: a.raw(claims=v))
    yield from each("header", NO_OBJECTS, lambda a, v: a.raw(header=v))
    yield "claims with more after", lambda a: a.raw(claims=json.dumps(a.rsa.claims()).encode() + b"{}")
    yield "claims with a byte order mark", lambda a: a.raw(claims=b"\xef\xbb\xbf" + json.dumps(a.rsa.claims()).encode())
    yield "claims in UTF-16", lambda a: a.raw(claims=json.dumps(a.rsa.claims()).encode("utf-16"))
    yield (
        "one in another",
        lambda a: a.rsa.signed(a.rsa.unsigned(header=a.rsa.header(cty="JWT"), claims=a.rsa.token().encode())),
    )
    yield "one in another, said of a good one", lambda a: a.rsa.with_header(cty="JWT")
    yield "one in another, as a text", lambda a: a.raw(claims=json.dumps(a.rsa.token()).encode())
    yield "deep lists", lambda a: a.raw(claims=b"[" * 10_000)
    yield "deep objects", lambda a: a.raw(claims=b'{"a":' * 2_000)
    yield "deep header", lambda a: a.raw(header=b'{"a":' * 2_000)
    yield "deep, and else good", lambda a: a.claims_with('"x":' + "[" * 5_000 + "]" * 5_000)
    yield "a megabyte", lambda a: a.rsa.token(x="x" * 1_000_000)
    yield "a megabyte of dots", lambda _: "." * 1_000_000
    yield "a little too long", lambda a: a.rsa.token(x="x" * 16_000)
