"""What goes on to where a service redirects: never a secret to another origin."""

from collections.abc import Mapping

from msgspec import Struct
from yarl import URL

from foliot.outbound.errors import RedirectRefused

STATUSES = frozenset({301, 302, 303, 307, 308})
SCHEMES = frozenset({"http", "https"})

# All that another origin is told. A list of what may go and not of what may not: any other header may hold a secret,
# whatever its name.
HARMLESS = frozenset(
    {
        "accept",
        "accept-charset",
        "accept-encoding",
        "accept-language",
        "cache-control",
        "content-encoding",
        "content-language",
        "content-type",
        "idempotency-key",
        "if-modified-since",
        "if-none-match",
        "pragma",
        "prefer",
        "range",
        "traceparent",
        "user-agent",
        "x-request-id",
    }
)


class Step(Struct, frozen=True, kw_only=True):
    """One request of a call. Its URL holds neither credentials nor a fragment."""

    method: str
    url: URL
    headers: Mapping[str, str]
    body: bytes | None

    @property
    def has_secrets(self) -> bool:
        return any(name.lower() not in HARMLESS for name in self.headers)


def next_step(step: Step, status: int, location: str) -> Step:
    """The request that follows. Raises `RedirectRefused`."""
    try:
        target = step.url.join(URL(location))
    except ValueError:
        raise RedirectRefused(f"{step.url} redirects to what is no address") from None
    if target.scheme not in SCHEMES or not target.host:
        raise RedirectRefused(f"{step.url} redirects to {target.scheme or 'no'}:, which is not followed")
    target = target.with_user(None).with_fragment(None)
    method, body, headers = step.method, step.body, dict(step.headers)
    if (status == 303 and method != "HEAD") or (status in (301, 302) and method == "POST"):
        method, body = "GET", None
        headers = {name: value for name, value in headers.items() if not name.lower().startswith("content-")}
    if step.url.scheme == "https" and target.scheme == "http" and (step.has_secrets or body):
        raise RedirectRefused(
            f"{step.url} redirects from https to http, where anybody on the way could read what is sent"
        )
    if not _same_origin(step.url, target):
        headers = {name: value for name, value in headers.items() if name.lower() in HARMLESS}
    return Step(method=method, url=target, headers=headers, body=body)


def _same_origin(one: URL, other: URL) -> bool:
    """The step up to https at the same host counts: it makes nothing worse."""
    if one.raw_host != other.raw_host:
        return False
    if (one.scheme, one.port) == (other.scheme, other.port):
        return True
    return (one.scheme, one.port, other.scheme, other.port) == ("http", 80, "https", 443)
