"""Where `http` jobs may not go: a corpus of addresses, with listeners on this machine that nobody may reach."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from foliot.handlers.http import http_handler
from foliot.outbound import AllowList
from tests.handlers.places import ADDRESSES, Canary, Names, canary_on, has_ipv6, served
from tests.worker.lone_runner import LoneRunner, assigned, error_of, result_of

NAMES = {
    "loopback.test": [["127.0.0.1"]],
    "loopback6.test": [["::1"]],
    "any.test": [["0.0.0.0"]],
    "mapped.test": [["::ffff:127.0.0.1"]],
    "compatible.test": [["::127.0.0.1"]],
    "nat64.test": [["64:ff9b::7f00:1"]],
    "teredo.test": [["2001:0:7f00:1::80ff:fffe"]],
    "6to4.test": [["2002:7f00:1::1"]],
    "isatap.test": [["2600::5efe:7f00:1"]],
    "private.test": [["10.0.0.1"]],
    "several.test": [["127.0.0.1", "127.0.0.2", "::1", "192.168.0.1"]],
    "text.test": [["localhost"]],
    "short.test": [["127.1"]],
    "octal.test": [["0177.0.0.1"]],
    "scope.test": [["fe80::1%1"]],
    "metadata.google.internal": [["169.254.169.254"]],
    "instance-data.ec2.internal": [["169.254.169.254"]],
    "xn--bcher-kva.test": [["127.0.0.1"]],
}

# Where the system finds such a name at all it leads home; else the call fails as one to any unknown name.
PERHAPS_NOT_FOUND = ["http://%31%32%37.0.0.1:{port}/", "http://127.0.0.1%2e:{port}/", "http://localhost.:{port}/"]

CORPUS = [
    # loopback as it is written
    "http://127.0.0.1:{port}/",
    "http://127.0.0.2:{port}/",
    "http://127.255.255.254:{port}/",
    "http://[::1]:{port}/",
    "http://[0:0:0:0:0:0:0:1]:{port}/",
    "http://[0000::0001]:{port}/",
    "http://[::1%25lo]:{port}/",
    "https://127.0.0.1:{port}/",
    "HTTP://127.0.0.1:{port}/",
    "http://127.0.0.1:{port}/a/../b?c#d",
    # and as it is not
    "http://127.1:{port}/",
    "http://127.0.1:{port}/",
    "http://2130706433:{port}/",
    "http://0x7f000001:{port}/",
    "http://0x7f.1:{port}/",
    "http://0x7f.0x0.0x0.0x1:{port}/",
    "http://0X7F.0.0.1:{port}/",
    "http://0177.0.0.1:{port}/",
    "http://0177.0.0.01:{port}/",
    "http://017700000001:{port}/",
    "http://127.0.0.1.:{port}/",
    "http://127.000.000.001:{port}/",
    "http://①②⑦.⓪.⓪.①:{port}/",
    "http://127。0。0。1:{port}/",
    "http://\uff11\uff12\uff17.0.0.1:{port}/",
    *PERHAPS_NOT_FOUND,
    # this machine by other numbers
    "http://0.0.0.0:{port}/",
    "http://0:{port}/",
    "http://0x0:{port}/",
    "http://0.1.2.3:{port}/",
    "http://[::]:{port}/",
    "http://[::ffff:127.0.0.1]:{port}/",
    "http://[::ffff:7f00:1]:{port}/",
    "http://[::ffff:0.0.0.0]:{port}/",
    "http://[::127.0.0.1]:{port}/",
    "http://[::ffff:0:127.0.0.1]:{port}/",
    "http://[64:ff9b::127.0.0.1]:{port}/",
    "http://[64:ff9b:1::7f00:1]:{port}/",
    "http://[2002:7f00:1::]:{port}/",
    "http://[2001:0:7f00:1::]:{port}/",
    # names
    "http://localhost:{port}/",
    "http://LOCALHOST:{port}/",
    "http://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ:{port}/",
    "http://loopback.test:{port}/",
    "http://loopback.test.:{port}/",
    "http://loopback6.test:{port}/",
    "http://any.test:{port}/",
    "http://mapped.test:{port}/",
    "http://compatible.test:{port}/",
    "http://nat64.test:{port}/",
    "http://teredo.test:{port}/",
    "http://6to4.test:{port}/",
    "http://isatap.test:{port}/",
    "http://private.test:{port}/",
    "http://several.test:{port}/",
    "http://text.test:{port}/",
    "http://short.test:{port}/",
    "http://octal.test:{port}/",
    "http://scope.test:{port}/",
    "http://bücher.test:{port}/",
    # who is the host here?
    "http://public.test@127.0.0.1:{port}/",
    "http://public.test:80@127.0.0.1:{port}/",
    "http://public.test%00@127.0.0.1:{port}/",
    "http://public.test\\@127.0.0.1:{port}/",
    "http://127.0.0.1:{port}\\@public.test/",
    "http://127.0.0.1:{port}#@public.test/",
    "http://127.0.0.1:{port}?@public.test/",
    "http://127.0.0.1:{port};@public.test@127.0.0.1:{port}/",
    "http://a@b@127.0.0.1:{port}/",
    "http://[::1]@127.0.0.1:{port}/",
    "http://[127.0.0.1]:{port}/",
    "http://\t127.0.0.1:{port}/",
    "http://127.0.0.1\n:{port}/",
    "http:127.0.0.1:{port}/",
    "http:///127.0.0.1:{port}/",
    "//127.0.0.1:{port}/",
    # what a cloud tells its machines
    "http://169.254.169.254/latest/meta-data/",
    "http://[fd00:ec2::254]/latest/meta-data/",
    "http://[::ffff:169.254.169.254]/",
    "http://0xa9fea9fe/",
    "http://2852039166/",
    "http://metadata.google.internal/computeMetadata/v1/",
    "http://instance-data.ec2.internal/",
    "http://100.100.100.200/latest/meta-data/",
    "http://168.63.129.16/",
    "http://192.0.0.192/",
    "http://169.254.170.2/v2/credentials",
    # networks around it
    "http://10.0.0.1:{port}/",
    "http://172.16.0.1:{port}/",
    "http://172.31.255.255:{port}/",
    "http://192.168.1.1:{port}/",
    "http://100.64.0.1:{port}/",
    "http://169.254.1.1:{port}/",
    "http://198.18.0.1:{port}/",
    "http://224.0.0.1:{port}/",
    "http://255.255.255.255:{port}/",
    "http://[fe80::1]:{port}/",
    "http://[fc00::1]:{port}/",
    "http://[ff02::1]:{port}/",
    "http://[2001:db8::1]:{port}/",
    "http://[fec0::1]:{port}/",
    # other ways in
    "file:/etc/passwd",
    "gopher://127.0.0.1:{port}/_x",
    "ftp://127.0.0.1:{port}/",
    "unix:///var/run/docker.sock",
    "ws://127.0.0.1:{port}/",
]


@pytest.fixture
async def canary() -> AsyncIterator[Canary]:
    async with canary_on(ADDRESSES if has_ipv6() else ADDRESSES[:2]) as canary:
        yield canary


@asynccontextmanager
async def caller(allowed: str = "", names: Names | None = None) -> AsyncIterator[LoneRunner]:
    lone = LoneRunner({"http": http_handler(AllowList.parse(allowed), names or Names(NAMES))})
    yield lone
    await lone.close()


def refusals(url: str, *codes: str) -> list[str]:
    return [*codes, "connection"] if url in PERHAPS_NOT_FOUND else [*codes]


def test_the_corpus_is_large_and_says_nothing_twice() -> None:
    assert len(set(CORPUS)) == len(CORPUS) >= 60


@pytest.mark.parametrize("url", CORPUS)
async def test_no_address_of_the_corpus_is_reached(canary: Canary, url: str) -> None:
    async with caller() as lone:
        report, _ = await lone.run(assigned("http", {"url": url.format(port=canary.port), "timeout": 5}))
    assert report.status == ("retriable_failure" if error_of(report).code == "connection" else "fatal_failure")
    assert error_of(report).code in refusals(url, "address_not_allowed", "bad_payload")
    assert canary.visits == 0


@pytest.mark.parametrize("url", CORPUS)
async def test_no_address_of_the_corpus_is_reached_by_a_redirect(canary: Canary, url: str) -> None:
    async def redirect(request: web.Request) -> web.Response:
        return web.Response(status=307, headers={"Location": url.format(port=canary.port).replace("\n", "")})

    async with served(redirect) as port, caller(f"127.0.0.1:{port}") as lone:
        report, _ = await lone.run(assigned("http", {"url": f"http://127.0.0.1:{port}/", "timeout": 5}))
    assert error_of(report).code in refusals(url, "address_not_allowed", "bad_payload", "redirects")
    assert canary.visits == 0


@pytest.mark.parametrize(
    ("allowed", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:{port}/"),
        ("127.0.0.1:{port}", "http://127.0.0.1:{port}/"),
        ("127.0.0.0/8", "http://127.0.0.2:{port}/"),
        ("10.0.0.0/8, 127.0.0.0/8:{port}", "http://127.0.0.2:{port}/"),
        ("127.0.0.1", "http://loopback.test:{port}/"),
        ("127.0.0.1", "http://0x7f.1:{port}/"),
        ("localhost:{port}", "http://localhost:{port}/"),
        ("LoopBack.Test.", "http://loopback.test:{port}/"),
        ("loopback.test", "http://loopback.test:{port}/"),
        ("loopback.test:{port}", "http://user:word@loopback.test.:{port}/"),
        ("bücher.test", "http://xn--bcher-kva.test:{port}/"),
        ("0.0.0.0", "http://0.0.0.0:{port}/"),
    ],
)
async def test_what_is_listed_is_reached(canary: Canary, allowed: str, url: str) -> None:
    async with caller(allowed.format(port=canary.port)) as lone:
        report, _ = await lone.run(assigned("http", {"url": url.format(port=canary.port)}))
    assert result_of(report)["body"] == "secret"
    assert canary.visits == 1


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")
@pytest.mark.parametrize(
    ("allowed", "url"),
    [
        ("::1", "http://[::1]:{port}/"),
        ("[::1]:{port}", "http://[::1]:{port}/"),
        ("::/0", "http://loopback6.test:{port}/"),
        ("loopback6.test", "http://loopback6.test:{port}/"),
    ],
)
async def test_what_is_listed_is_reached_by_ipv6(canary: Canary, allowed: str, url: str) -> None:
    await test_what_is_listed_is_reached(canary, allowed, url)


@pytest.mark.parametrize(
    ("allowed", "url"),
    [
        ("127.0.0.1:1", "http://127.0.0.1:{port}/"),
        ("127.0.0.2", "http://127.0.0.1:{port}/"),
        ("localhost", "http://127.0.0.1:{port}/"),
        ("localhost", "http://loopback.test:{port}/"),
        ("test", "http://loopback.test:{port}/"),
        ("loopback.test", "http://loopback.test.evil.test:{port}/"),
        ("loopback.test", "http://loopback.test@any.test:{port}/"),
        ("any.test", "http://any.test:{port}/"),  # no name opens what a machine never has as its address
        ("metadata.google.internal", "http://metadata.google.internal/"),
    ],
)
async def test_what_is_listed_opens_nothing_else(canary: Canary, allowed: str, url: str) -> None:
    names = Names({**NAMES, "loopback.test.evil.test": [["127.0.0.1"]]})
    async with caller(allowed, names) as lone:
        report, _ = await lone.run(assigned("http", {"url": url.format(port=canary.port)}))
    assert error_of(report).code == "address_not_allowed"
    assert canary.visits == 0


async def test_an_answer_that_changes_between_look_ups_changes_nothing(canary: Canary) -> None:
    """The first look-up leads to the address that is allowed, every other one beside it."""
    names = Names({"rebind.test": [["127.0.0.1"], ["127.0.0.2"]]})
    async with caller("127.0.0.1", names) as lone:
        first, _ = await lone.run(assigned("http", {"url": f"http://rebind.test:{canary.port}/"}))
        second, _ = await lone.run(assigned("http", {"url": f"http://rebind.test:{canary.port}/"}, number=2))
    assert result_of(first)["body"] == "secret"
    assert error_of(second).code == "address_not_allowed"
    assert names.asked == ["rebind.test", "rebind.test"]
    assert canary.visits == 1


async def test_an_answer_that_changes_between_redirects_changes_nothing(canary: Canary) -> None:
    async def redirect(request: web.Request) -> web.Response:
        where = f"http://rebind.test:{canary.port}/"
        return web.Response(status=302, headers={"Location": where, "Connection": "close"})

    names = Names({"rebind.test": [["127.0.0.1"], ["127.0.0.2"]]})
    async with served(redirect) as port, caller("127.0.0.1", names) as lone:
        report, _ = await lone.run(assigned("http", {"url": f"http://rebind.test:{port}/"}))
    assert error_of(report).code == "address_not_allowed"
    assert names.asked == ["rebind.test", "rebind.test"]
    assert canary.visits == 0


async def test_of_several_addresses_only_the_allowed_are_tried(canary: Canary) -> None:
    names = Names({"both.test": [["127.0.0.1", "127.0.0.2"]], "down.test": [["127.0.0.3", "127.0.0.1"]]})
    async with caller("127.0.0.2,127.0.0.3", names) as lone:
        report, _ = await lone.run(assigned("http", {"url": f"http://both.test:{canary.port}/"}))
        assert (result_of(report)["body"], canary.visits) == ("secret", 1)
        report, _ = await lone.run(assigned("http", {"url": f"http://down.test:{canary.port}/"}, number=2))
    assert error_of(report).code == "address_not_allowed", "the one that is allowed does not answer"
    assert canary.visits == 1


async def test_proxies_of_the_environment_are_not_used(canary: Canary, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.2:{canary.port}")

    async def answer(request: web.Request) -> web.Response:
        return web.Response(text="straight")

    async with served(answer) as port, caller("127.0.0.1,127.0.0.2") as lone:
        report, _ = await lone.run(assigned("http", {"url": f"http://127.0.0.1:{port}/"}))
    assert result_of(report)["body"] == "straight"
    assert canary.visits == 0


@pytest.mark.parametrize(
    ("url", "told"),
    [
        (
            "http://127.0.0.1:81/",
            "which jobs may not call. If they should, list 127.0.0.1:81 on the worker, with --http-allow or FOLIOT_",
        ),
        ("http://[::1]/", "[::1]:80 leads to a loopback address"),
        ("http://private.test/", "list private.test:80 on"),
        ("http://metadata.google.internal/", "list its address on"),
        ("http://169.254.169.254/", "list 169.254.169.254:80 on"),
    ],
)
async def test_a_refusal_says_what_to_set(url: str, told: str) -> None:
    async with caller() as lone:
        report, _ = await lone.run(assigned("http", {"url": url}))
    assert told in error_of(report).message


async def test_where_a_name_leads_is_told_to_the_operator_and_not_to_the_job(caplog: pytest.LogCaptureFixture) -> None:
    async with caller() as lone:
        report, lines = await lone.run(assigned("http", {"url": "http://private.test/"}))
    assert "10.0.0.1" not in error_of(report).message + "".join(lines)
    assert "a call of private.test:80 was refused: 10.0.0.1 is a private address" in caplog.text
