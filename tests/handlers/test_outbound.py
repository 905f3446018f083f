"""The rules of calls to addresses of others, one by one."""

from ipaddress import ip_address

import pytest
from yarl import URL

from foliot.outbound import AllowList, BadEntry, RedirectRefused
from foliot.outbound.address import kind_of
from foliot.outbound.redirect import Step, next_step


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("8.8.8.8", None),
        ("93.184.216.34", None),
        ("172.32.0.1", None),
        ("100.128.0.1", None),
        ("2606:4700::1111", None),
        ("2a00:1450:4001::1", None),
        ("::ffff:8.8.8.8", None),
        ("64:ff9b::8.8.8.8", None),  # a machine with IPv6 only reaches IPv4 so
        ("2600::5efe:808:808", None),
        ("127.0.0.1", "loopback"),
        ("::ffff:127.0.0.1", "loopback"),
        ("::1", "loopback"),
        ("0.0.0.0", "unspecified"),
        ("::", "unspecified"),
        ("10.1.2.3", "private"),
        ("64:ff9b::10.1.2.3", "private"),
        ("fd12::1", "private"),
        ("100.64.0.1", "shared"),
        ("100.127.255.255", "shared"),
        ("169.254.1.1", "link-local"),
        ("fe80::1%1", "link-local"),
        ("169.254.169.254", "metadata"),
        ("::ffff:169.254.169.254", "metadata"),
        ("64:ff9b::a9fe:a9fe", "metadata"),
        ("fd00:ec2::254", "metadata"),
        ("168.63.129.16", "metadata"),
        ("224.0.0.251", "multicast"),
        ("ff02::1", "multicast"),
        ("240.0.0.1", "reserved"),
        ("255.255.255.255", "reserved"),
        ("192.0.2.1", "reserved"),
        ("2001:db8::1", "reserved"),
        ("2001:20::1", "reserved"),
        ("4000::1", "reserved"),
        ("100::1", "reserved"),
        ("2002:808:808::1", "tunnel"),
        ("2001:0:808:808::1", "tunnel"),
        ("64:ff9b:1::808:808", "tunnel"),
        ("::8.8.8.8", "tunnel"),
        ("2600::200:5efe:a00:1", "tunnel"),
    ],
)
def test_what_an_address_is(address: str, kind: str | None) -> None:
    assert kind_of(ip_address(address)) == kind


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("10.0.0.1/8", "write 10.0.0.0/8"),
        ("300.1.1.1", "no network, host or host:port"),
        ("127.1", "no network, host or host:port"),
        ("http://intranet/", "no network, host or host:port"),
        ("*.example.org", "no network, host or host:port"),
        ("host:0", "no port between"),
        ("host:70000", "no port between"),
        ("a b", "no network, host or host:port"),
    ],
)
def test_an_entry_that_says_nothing_is_refused(text: str, told: str) -> None:
    with pytest.raises(BadEntry, match=told):
        AllowList.parse(f"localhost,{text}")


def test_no_entries_are_an_empty_list() -> None:
    assert AllowList.parse(" , ") == AllowList()


# redirects

SECRETS = {
    "Authorization": "Bearer s",
    "Cookie": "s=1",
    "X-Api-Key": "s",
    "X-Mine": "s",
    "Proxy-Authorization": "s",
}
PLAIN = {"Accept": "text/plain", "Content-Type": "application/json", "Idempotency-Key": "j1"}


def step(url: str, method: str = "GET", headers: dict[str, str] | None = None, body: bytes | None = None) -> Step:
    return Step(method=method, url=URL(url), headers=SECRETS | PLAIN if headers is None else headers, body=body)


@pytest.mark.parametrize(
    ("url", "location", "target"),
    [
        ("http://a.test/x/y", "z", "http://a.test/x/z"),
        ("http://a.test/x/y", "/z?q=1#f", "http://a.test/z?q=1"),
        ("http://a.test:80/", "http://a.test/", "http://a.test/"),
        ("http://a.test/", "http://user:word@a.test/", "http://a.test/"),
        ("http://a.test/", "https://a.test/", "https://a.test/"),
    ],
)
def test_the_same_origin_is_told_all(url: str, location: str, target: str) -> None:
    following = next_step(step(url), 302, location)
    assert str(following.url) == target
    assert following.headers == SECRETS | PLAIN


@pytest.mark.parametrize(
    ("url", "location"),
    [
        ("http://a.test/", "http://b.test/"),
        ("http://a.test/", "//b.test/"),
        ("http://a.test/", "http://a.test:8080/"),
        ("http://a.test/", "http://www.a.test/"),
        ("http://a.test:8080/", "https://a.test/"),
        ("http://a.test/", "https://a.test:8443/"),
        ("https://a.test/", "https://b.test/"),
    ],
)
def test_another_origin_is_told_no_secret(url: str, location: str) -> None:
    assert next_step(step(url), 302, location).headers == PLAIN


def test_https_leads_to_http_only_without_anything_to_read() -> None:
    with pytest.raises(RedirectRefused, match="from https to http"):
        next_step(step("https://a.test/"), 302, "http://a.test/")
    with pytest.raises(RedirectRefused, match="from https to http"):
        next_step(step("https://a.test/", "POST", PLAIN, b"{}"), 307, "http://a.test/")
    assert next_step(step("https://a.test/", headers=PLAIN), 302, "http://a.test/").headers == PLAIN


@pytest.mark.parametrize(
    ("status", "method", "then"),
    [
        (301, "POST", "GET"),
        (302, "POST", "GET"),
        (303, "PUT", "GET"),
        (303, "HEAD", "HEAD"),
        (302, "PUT", "PUT"),
        (307, "POST", "POST"),
        (308, "POST", "POST"),
    ],
)
def test_which_method_and_body_go_on(status: int, method: str, then: str) -> None:
    following = next_step(step("http://a.test/", method, PLAIN, b"{}"), status, "/b")
    assert following.method == then
    assert (following.body is None) == (method != then)
    assert ("Content-Type" in following.headers) == (method == then)


@pytest.mark.parametrize("location", ["file:/etc/passwd", "gopher://a.test/", "http://a.test:x/", "ws:a"])
def test_what_is_no_http_address_is_not_followed(location: str) -> None:
    with pytest.raises(RedirectRefused):
        next_step(step("http://a.test/"), 302, location)
