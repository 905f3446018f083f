"""Ways to ask for a path so that one part of a server takes it for another than the next part does."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple


class Trick(NamedTuple):
    """A request that tries to be taken for another. `target` is percent-encoded, as it is sent."""

    name: str
    method: str
    target: str
    headers: Mapping[str, str] = {}


SUFFIXES = (
    "/",
    "//",
    "/.",
    "/..",
    "/docs",
    "/healthz",
    "/readyz",
    "/openapi.json",
    "/login",
    "/../docs",
    "/..%2fdocs",
    "/%2e%2e/docs",
    "/%2e%2e%2f%2e%2e%2f%2e%2e%2fhealthz",
    "/..;/docs",
    ";x",
    ";/docs",
    ";/../healthz",
    ".json",
    ".html",
    ".css",
    ".",
    "%20",
    "%09",
    "%00",
    "%00.json",
    "%00/docs",
    "%0a",
    "%0d%0a",
    "%0d%0aX-Role:%20admin",
    "%5c",
    "%5c..%5cdocs",
    "\\..\\docs",
    "%23",
    "%23/docs",
    "%3f",
    "%3f/docs",
    "%ef%bc%8f",
    "%e2%80%ae",
    "%c0%ae%c0%ae/docs",
    "%c0%af",
    "%ff",
    "%252e%252e/docs",
    "%2fhealthz",
    "~",
    "*",
)
QUERIES = (
    "docs",
    "/healthz",
    "path=/docs",
    "token=admin",
    "access_token=x",
    "key=x",
    "role=admin",
    "namespace=default",
    "_method=GET",
    "url=/docs",
    "debug=1",
)
HEADERS: tuple[Mapping[str, str], ...] = (
    {"x-original-url": "/docs"},
    {"x-rewrite-url": "/docs"},
    {"x-original-uri": "/healthz"},
    {"x-forwarded-uri": "/docs"},
    {"x-forwarded-path": "/docs"},
    {"x-forwarded-prefix": "/docs"},
    {"x-forwarded-for": "127.0.0.1"},
    {"x-forwarded-host": "localhost"},
    {"x-forwarded-proto": "https"},
    {"x-real-ip": "127.0.0.1"},
    {"x-client-ip": "::1"},
    {"forwarded": "for=127.0.0.1;by=127.0.0.1;host=localhost"},
    {"x-forwarded-user": "admin"},
    {"remote-user": "admin"},
    {"x-remote-user": "admin"},
    {"x-role": "admin"},
    {"x-namespace": "here"},
    {"x-foliot-key": "admin"},
    {"x-api-key": "an-admin-key-for-tests"},
    {"proxy-authorization": "Bearer an-admin-key-for-tests"},
    {"cookie": "authorization=Bearer an-admin-key-for-tests"},
    {"cookie": "foliot_session=; foliot_session=admin"},
    {"host": "localhost"},
    {"referer": "http://localhost/docs"},
    {"origin": "null"},
    {"upgrade": "h2c", "connection": "upgrade, http2-settings", "http2-settings": "AAMAAABkAAQAAP__"},
    {"x-middleware-subrequest": "src/middleware:middleware"},
)
OVERRIDES = ("x-http-method-override", "x-http-method", "x-method-override")
METHODS = ("HEAD", "OPTIONS", "TRACE", "PATCH", "DEBUG", "PROPFIND", "get", "GET ", "FOO")


def tricks(method: str, path: str) -> Iterator[Trick]:
    """Those for one route; `path` has its names filled in."""
    first, rest = path[1:2], path[2:]
    prefixes = {
        "a doubled slash": f"/{path}",
        "doubled slashes": path.replace("/", "//"),
        "a dot": f"/.{path}",
        "up and back": f"/docs/..{path}",
        "up and back, encoded": f"/docs/%2e%2e{path}",
        "up and back, with a parameter": f"/docs/..;{path}",
        "below an open one": f"/healthz{path}",
        "below the page": f"/docs{path}",
        "a backslash": path.replace("/", "\\"),
        "backslashes, encoded": path.replace("/", "%5c"),
        "slashes, encoded": f"/{path[1:].replace('/', '%2f')}",
        "a letter, encoded twice": f"/%25{ord(first):02x}{rest}",
        "upper case": path.upper(),
        "a capital": f"/{first.upper()}{rest}",
        "a wide slash": path.replace("/", "%ef%bc%8f"),
        "a space first": f"/%20{path[1:]}",
        "a NUL first": f"/%00{path[1:]}",
        "no slash first": path[1:],
        "a parameter": path.replace("/v1", "/v1;x=y", 1),
        "another version": path.replace("/v1", "/v2", 1),
    }
    for name, target in prefixes.items():
        if target != path:
            yield Trick(name, method, target)
    for suffix in SUFFIXES:
        yield Trick(f"ends with {suffix}", method, path + suffix)
    for query in QUERIES:
        yield Trick(f"asks {query}", method, f"{path}?{query}")
    for headers in HEADERS:
        yield Trick(f"with {headers}", method, path, headers)
        if any(value in ("/docs", "/healthz") for value in headers.values()):
            yield Trick(f"the page with {headers}", method, "/docs", dict.fromkeys(headers, path))
    for name in OVERRIDES:
        yield Trick(f"{name} on a read", "GET", path, {name: method})
        yield Trick(f"{name} on a write", "POST", path, {name: method})
        yield Trick(f"{name} on the page", "POST", "/docs", {name: method, "x-original-url": path})
    for other in METHODS:
        yield Trick(f"as {other}", other, path)
    yield Trick("one letter encoded", method, f"/%{ord(first):02x}{rest}")
