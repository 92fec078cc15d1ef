"""The address guard against real servers on loopback: refused addresses are never connected to."""

import asyncio
import gzip
import socket
import ssl
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.providers.egress import (
    USER_AGENT,
    Egress,
    EgressFailed,
    EgressRefused,
    EgressTooLarge,
    GuardedTransport,
    IpAddress,
    IpNetwork,
    check_addresses,
    is_public,
)
from tests.certificates import create_tls_contexts
from tests.jobs.providers.stub_server import StubServer, endless, head, redirect, respond, silent, stub_server

LOOPBACK: tuple[IpNetwork, ...] = (ip_network("127.0.0.0/8"),)
ONLY_ONE: tuple[IpNetwork, ...] = (ip_network("127.0.0.1/32"),)


@pytest.fixture
async def server() -> AsyncIterator[StubServer]:
    async with stub_server() as server:
        yield server


@pytest.fixture
async def egress() -> AsyncIterator[Egress]:
    egress_guard = Egress(LOOPBACK, timeout_s=5)
    yield egress_guard
    await egress_guard.aclose()


# Public and private addresses

PRIVATE = [
    "0.0.0.0",
    "10.1.2.3",
    "100.64.0.1",
    "100.127.255.255",
    "127.0.0.1",
    "169.254.169.254",
    "172.16.0.1",
    "192.0.0.8",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.250",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::7f00:1",
    "::808:808",
    "::ffff:10.0.0.1",
    "::ffff:169.254.169.254",
    "::ffff:0:127.0.0.1",
    "64:ff9b::10.0.0.1",
    "64:ff9b::169.254.169.254",
    "64:ff9b:1::8.8.8.8",
    "100::1",
    "2001::1",
    "2001:0:808:808:0:0:f7f7:f7f7",
    "2001:db8::1",
    "2002:7f00:1::1",
    "2002:a9fe:a9fe::1",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "ff02::1",
    "ff0e::1",
]
PUBLIC = ["1.1.1.1", "8.8.8.8", "100.63.255.255", "2606:4700:4700::1111", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8"]


@pytest.mark.parametrize("text", PRIVATE)
def test_private_address_is_refused(text: str) -> None:
    assert not is_public(ip_address(text))
    with pytest.raises(EgressRefused, match="not a public address"):
        check_addresses([text], 443, ())


@pytest.mark.parametrize("text", PUBLIC)
def test_public_address_is_allowed_on_web_ports(text: str) -> None:
    check_addresses([text], 80, ())
    check_addresses([text], 443, ())
    with pytest.raises(EgressRefused, match="port 6379"):
        check_addresses([text], 6379, ())


@pytest.mark.parametrize("addresses", [["8.8.8.8", "10.0.0.1"], ["10.0.0.1", "8.8.8.8"], ["8.8.8.8", "::1"]])
def test_name_with_one_private_address_is_refused(addresses: list[str]) -> None:
    with pytest.raises(EgressRefused):
        check_addresses(addresses, 443, ())


def test_allowed_range_permits_any_port_and_nothing_else() -> None:
    check_addresses(["127.0.0.1", "::ffff:127.0.0.2"], 6379, LOOPBACK)
    with pytest.raises(EgressRefused, match=r"10\.0\.0\.1"):
        check_addresses(["127.0.0.1", "10.0.0.1"], 80, LOOPBACK)
    with pytest.raises(EgressRefused, match="port 6379"):
        check_addresses(["127.0.0.1", "8.8.8.8"], 6379, LOOPBACK)


@pytest.mark.parametrize("text", ["64:ff9b::127.0.0.1", "2002:7f00:1::1"])
def test_allowed_range_does_not_open_translation_gateways(text: str) -> None:
    with pytest.raises(EgressRefused):
        check_addresses([text], 80, LOOPBACK)


def embedding(prefix: str, shift: int) -> Callable[[IPv4Address], IPv6Address]:
    """Returns a function that puts an IPv4 address into an IPv6 prefix, shifted left by `shift` bits."""
    return lambda ipv4: IPv6Address(int(IPv6Address(prefix)) | int(ipv4) << shift)


V4 = st.integers(0, 2**32 - 1).map(IPv4Address) | st.sampled_from(PRIVATE[:18]).map(IPv4Address)
ADDRESSES = st.one_of(
    V4,
    st.ip_addresses(v=6),
    V4.map(embedding("::ffff:0:0", 0)),
    V4.map(embedding("::", 0)),
    V4.map(embedding("64:ff9b::", 0)),
    V4.map(embedding("64:ff9b:1::", 0)),
    V4.map(embedding("2002::", 80)),
    V4.map(embedding("2001::", 64)),
)


def embedded_ipv4_addresses(address: IpAddress) -> list[IPv4Address]:
    """Returns every IPv4 address embedded in the address. `ipaddress` knows each embedding but NAT64."""
    if isinstance(address, IPv4Address):
        return []
    nat64 = [IPv4Address(address.packed[-4:])] if address.packed[:12] == bytes.fromhex("0064ff9b") + bytes(8) else []
    candidates = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ()), *nat64]
    return [ipv4 for ipv4 in candidates if ipv4 is not None]


@given(ADDRESSES)
def test_public_address_is_global_and_embeds_no_private_one(address: IpAddress) -> None:
    if is_public(address):
        embedded_addresses = embedded_ipv4_addresses(address)
        assert embedded_addresses or address.is_global
        assert all(ipv4.is_global for ipv4 in embedded_addresses)
        for each in (address, *embedded_addresses):
            assert not each.is_multicast
            assert not each.is_loopback
            assert not each.is_link_local
            assert not each.is_unspecified


@given(V4)
def test_ipv4_address_is_public_iff_global_unicast(address: IPv4Address) -> None:
    is_reserved = any(address in ip_network(network) for network in ("192.0.0.0/24", "192.88.99.0/24"))
    assert is_public(address) == (address.is_global and not address.is_multicast and not is_reserved)


@given(V4)
def test_ipv4_address_embedded_in_ipv6_is_equally_public(address: IPv4Address) -> None:
    for embed in (embedding("::ffff:0:0", 0), embedding("64:ff9b::", 0), embedding("2002::", 80)):
        assert is_public(embed(address)) == is_public(address)


# URLs


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("file:///etc/passwd", "scheme 'file'"),
        ("gopher://example.com/", "scheme 'gopher'"),
        ("ftp://127.0.0.1/", "scheme 'ftp'"),
        ("//127.0.0.1/", "scheme ''"),
        ("http://user:secret@127.0.0.1/", "credentials"),
        ("http://example.com@127.0.0.1/", "credentials"),
        ("http:///path", "no host"),
        ("http://a b/", "no host"),
        ("http://[fe80::1%25lo]/", "no host"),
        ("http://１２７.0.0.1/", "not a URL"),
        ("http://0177.0.0.1/", "not a URL"),
        ("http://127.0.0.1:0/", "no port 0"),
        ("http://127.0.0.1:65536/", "no port 65536"),
        ("http://a\x00b/", "not a URL"),
        ("http://x/\ud800", "not a URL"),
        ("http://" + "a" * 64 + ".example/", "not a host name"),
        ("http://127.0.0.1/" + "a" * 2048, "longer than 2048"),
    ],
)
async def test_disallowed_url_is_refused(egress: Egress, url: str, reason: str) -> None:
    with pytest.raises(EgressRefused, match=reason):
        await egress.get(url)


@pytest.mark.anyio
@pytest.mark.parametrize(
    "host", ["127.0.0.1", "2130706433", "0x7f000001", "0x7f.1", "127.1", "[::ffff:127.0.0.1]", "localhost", "0"]
)
async def test_refused_address_in_any_spelling_is_not_contacted(server: StubServer, host: str) -> None:
    with pytest.raises(EgressRefused, match="not a public address"):
        await Egress().get(server.url(host=host))
    assert server.connections == 0
    await Egress(LOOPBACK).get(server.url(host="127.0.0.1"))
    assert server.connections == 1


@pytest.mark.anyio
@pytest.mark.parametrize("host", ["2130706433", "0x7f.1", "localhost", "[::ffff:127.0.0.1]"])
async def test_allowed_address_is_reached_in_other_spellings(server: StubServer, egress: Egress, host: str) -> None:
    server.answers["/"] = respond(b"here")
    assert (await egress.get(server.url(host=host))).body == b"here"


def is_no_web_address(text: str) -> bool:
    return not text.strip().lower().startswith("http")


@given(st.text().filter(is_no_web_address))
def test_arbitrary_url_raises_only_documented_errors(text: str) -> None:
    # No name is resolved: a URL that parses is refused for its scheme, its port 0, or its private address.
    for url in (text, f"http://127.0.0.1:0/{text}", f"http://[::1]/{text}", f"gopher://{text}"):
        with pytest.raises(EgressRefused):
            asyncio.run(Egress(ssl_context=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)).get(url))


@pytest.mark.anyio
async def test_unresolvable_name_is_retryable(egress: Egress) -> None:
    with pytest.raises(EgressFailed, match="does not resolve"):
        await egress.get("http://nowhere.invalid/")


@pytest.mark.anyio
async def test_refusal_of_url_is_known_without_a_request(server: StubServer, egress: Egress) -> None:
    assert await egress.refusal_of(server.url(host="localhost")) is None
    assert await egress.refusal_of("http://nowhere.invalid/") is None, "The name may resolve later."
    for url in (server.url(host="localhost"), "http://10.0.0.1/", "http://[::1]/"):
        assert "not a public address" in (await Egress().refusal_of(url) or "")
    assert "neither 80 nor 443" in (await Egress().refusal_of("http://93.184.215.14:8080/") or "")
    assert "no host" in (await Egress().refusal_of("http://a b/") or "")
    assert server.connections == 0


# Names. The tests replace the system's resolver.

AnswerLookup = Callable[[list[str]], None]


@pytest.fixture
def answer_lookup(monkeypatch: pytest.MonkeyPatch) -> AnswerLookup:
    """A function that queues addresses for a lookup of `name.example`. Further lookups repeat the last answer."""
    queued: list[list[str]] = []
    system = socket.getaddrinfo

    def look_up(host: str | None, port: int, *rest: int, **more: int) -> list[Any]:
        if host not in ("name.example", b"name.example"):
            return list(system(host, port, *rest, **more))
        addresses = queued.pop(0) if len(queued) > 1 else queued[0]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    return queued.append


@pytest.mark.anyio
async def test_dns_answer_changed_after_check_has_no_effect(server: StubServer, answer_lookup: AnswerLookup) -> None:
    async with stub_server("127.0.0.2", port=server.port) as private_server:
        server.answers["/"] = respond(b"public")
        private_server.answers["/"] = respond(b"secret")
        answer_lookup(["127.0.0.1"])
        answer_lookup(["127.0.0.2"])
        egress_guard = Egress(ONLY_ONE)
        assert (await egress_guard.get(server.url(host="name.example"))).body == b"public"
        with pytest.raises(EgressRefused):
            await egress_guard.get(server.url(host="name.example"))
        assert (server.connections, private_server.connections) == (1, 0)


@pytest.mark.anyio
async def test_name_with_refused_address_is_not_contacted(server: StubServer, answer_lookup: AnswerLookup) -> None:
    answer_lookup(["127.0.0.1", "127.0.0.2"])
    with pytest.raises(EgressRefused, match=r"127\.0\.0\.2"):
        await Egress(ONLY_ONE).get(server.url(host="name.example"))
    assert server.connections == 0


@pytest.mark.anyio
async def test_next_address_is_tried_after_failed_connection(
    server: StubServer, egress: Egress, answer_lookup: AnswerLookup
) -> None:
    server.answers["/"] = respond(b"here")
    answer_lookup(["127.0.0.3", "127.0.0.1"])
    assert (await egress.get(server.url(host="name.example"))).body == b"here"


@pytest.mark.anyio
async def test_at_most_four_addresses_are_tried(
    server: StubServer, egress: Egress, answer_lookup: AnswerLookup
) -> None:
    answer_lookup([f"127.0.0.{last}" for last in (3, 4, 5, 6, 1)])
    with pytest.raises(EgressFailed, match="ConnectError"):
        await egress.get(server.url(host="name.example"))
    assert server.connections == 0


# Requests


@pytest.mark.anyio
async def test_request_has_host_and_user_agent(server: StubServer, egress: Egress) -> None:
    server.answers["/a?b=%E3%81%82"] = respond(b"ok")
    fetched = await egress.get(server.url("/a?b=あ#part", host="localhost"), accept=("text/html", "text/plain"))
    assert fetched.body == b"ok"
    lines = server.requests[0].rstrip().split("\r\n")
    assert lines[0] == "GET /a?b=%E3%81%82 HTTP/1.1"
    assert set(lines[1:]) == {
        f"Host: localhost:{server.port}",
        f"User-Agent: {USER_AGENT}",
        "Accept: text/html, text/plain",
        "Accept-Encoding: gzip, deflate",
    }


@pytest.mark.anyio
async def test_cookies_are_never_sent_back(server: StubServer, egress: Egress) -> None:
    server.answers["/"] = respond(b"", 302, Location="/next", Set_Cookie="a=b")
    server.answers["/next"] = respond(b"", Set_Cookie="c=d")
    await egress.get(server.url())
    await egress.get(server.url())
    assert server.paths() == ["/", "/next", "/", "/next"]
    assert not any("cookie" in request.lower() for request in server.requests)


@pytest.mark.anyio
async def test_proxy_in_environment_is_not_used(server: StubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    async with stub_server() as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url())
        await Egress(LOOPBACK).get(server.url())
        assert (server.connections, proxy.connections) == (1, 0)


@pytest.mark.anyio
async def test_connection_is_not_reused_for_another_name(server: StubServer, egress: Egress) -> None:
    async def keep_alive(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        await writer.drain()
        await asyncio.Event().wait()

    server.answers["/"] = keep_alive
    await egress.get(server.url(host="127.0.0.1"))
    await egress.get(server.url(host="localhost"))
    assert server.connections == 2


@pytest.mark.anyio
async def test_kept_connection_is_unused_after_dns_change(answer_lookup: AnswerLookup) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                requests.append(await reader.readuntil(b"\r\n\r\n"))
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        writer.close()
        has_ended.set()

    requests: list[bytes] = []
    connections: list[asyncio.StreamWriter] = []
    has_ended = asyncio.Event()
    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    for address in ("127.0.0.1", "127.0.0.1", "127.0.0.2"):
        answer_lookup([address])
    egress_guard, url = Egress(ONLY_ONE), f"http://name.example:{listening.sockets[0].getsockname()[1]}/"
    assert [(await egress_guard.get(url)).body for _ in range(2)] == [b"ok", b"ok"]
    with pytest.raises(EgressRefused, match=r"127\.0\.0\.2"):
        await egress_guard.get(url)
    assert (len(connections), len(requests)) == (1, 2)
    await egress_guard.aclose()
    await has_ended.wait()
    with suppress(ConnectionError):
        await connections[0].wait_closed()
    listening.close()


@pytest.mark.anyio
async def test_concurrent_lookups_of_a_name_share_one_answer(
    server: StubServer, egress: Egress, monkeypatch: pytest.MonkeyPatch
) -> None:
    lookups: list[str] = []
    system = socket.getaddrinfo

    def look_up(host: str, *rest: int, **more: int) -> list[Any]:
        lookups.append(host)
        return list(system(host, *rest, **more))

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    server.answers["/"] = respond(b"here")
    assert len(await asyncio.gather(*(egress.get(server.url(host="localhost")) for _ in range(10)))) == 10
    assert lookups.count("localhost") == 1
    await egress.get(server.url(host="localhost"))
    assert lookups.count("localhost") == 2


# Redirects


@pytest.mark.anyio
async def test_redirect_to_refused_address_is_never_followed(server: StubServer) -> None:
    async with stub_server("127.0.0.2") as private_server:
        server.answers["/"] = redirect(private_server.url("/admin"))
        egress_guard = Egress(ONLY_ONE)
        with pytest.raises(EgressRefused, match=r"127\.0\.0\.2 is not a public address"):
            await egress_guard.get(server.url())
        assert (server.connections, private_server.connections) == (1, 0)
        with pytest.raises(EgressRefused):
            await egress_guard.get(private_server.url())
        assert private_server.connections == 0


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("location", "reason"),
    [
        ("file:///etc/passwd", "scheme"),
        ("http://169.254.169.254/latest/meta-data/", "not a public address"),
        ("http://[::1]/", "not a public address"),
        ("//10.0.0.1/", "not a public address"),
        ("http://u:p@127.0.0.1/", "credentials"),
        ("http://[", "no host"),
        ("/" + "a" * 3000, "longer than"),
    ],
)
async def test_redirect_is_checked_like_first_url(
    server: StubServer, egress: Egress, location: str, reason: str
) -> None:
    server.answers["/"] = redirect(location)
    with pytest.raises(EgressRefused, match=reason):
        await egress.get(server.url())
    assert server.connections == 1


@pytest.mark.anyio
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_relative_redirect_is_followed_and_reported(server: StubServer, egress: Egress, status: int) -> None:
    server.answers["/a/b"] = redirect("../c?d", status)
    server.answers["/c?d"] = respond(b"found")
    fetched = await egress.get(server.url("/a/b"))
    assert (fetched.url, fetched.body) == (server.url("/c?d"), b"found")


@pytest.mark.anyio
async def test_three_redirects_are_followed_and_loops_end(server: StubServer, egress: Egress) -> None:
    server.answers |= {"/3": redirect("/2"), "/2": redirect("/1"), "/1": redirect("/0"), "/0": respond(b"end")}
    server.answers |= {"/4": redirect("/3"), "/loop": redirect("/loop")}
    assert (await egress.get(server.url("/3"))).body == b"end"
    with pytest.raises(EgressRefused, match="more than 3 redirects"):
        await egress.get(server.url("/4"))
    server.requests.clear()
    with pytest.raises(EgressRefused, match="more than 3 redirects"):
        await egress.get(server.url("/loop"))
    assert server.paths() == ["/loop"] * 4


# Responses


@pytest.mark.anyio
async def test_error_response_has_status_and_no_body(server: StubServer, egress: Egress) -> None:
    server.answers["/"] = respond(b"secret", 404)
    fetched = await egress.get(server.url(), accept=("image/png",))
    assert (fetched.status, fetched.body, fetched.content_type) == (404, b"", "text/html; charset=utf-8")


@pytest.mark.anyio
@pytest.mark.parametrize("content_type", ["video/mp4", "text/htmlx", ""])
async def test_response_of_other_type_is_refused_unread(server: StubServer, egress: Egress, content_type: str) -> None:
    server.answers["/"] = silent(head(content_type=content_type))
    with pytest.raises(EgressRefused, match="the answer is"):
        await egress.get(server.url(), accept=("text/html",), timeout_s=30)


@pytest.mark.anyio
async def test_content_type_ignores_case_and_parameters(server: StubServer, egress: Egress) -> None:
    server.answers["/"] = respond(b"x", content_type="Text/HTML ; charset=x")
    assert (await egress.get(server.url(), accept=("text/html",))).content_type == "Text/HTML ; charset=x"


@pytest.mark.anyio
async def test_reading_stops_soon_after_byte_limit(server: StubServer, egress: Egress) -> None:
    written: list[int] = []
    server.answers["/"] = endless(bytes(65536), written)
    with pytest.raises(EgressTooLarge, match="larger than 100000 bytes"):
        await egress.get(server.url(), max_bytes=100_000)
    fetched = await egress.get(server.url(), max_bytes=100_000, truncate=True)
    assert fetched.body == bytes(100_000)
    assert sum(written) < 2 * 16 * 1024 * 1024, "More was read than the socket buffers hold."


@pytest.mark.anyio
async def test_body_of_exactly_the_byte_limit_is_accepted(server: StubServer, egress: Egress) -> None:
    server.answers["/"] = respond(bytes(1000))
    assert len((await egress.get(server.url(), max_bytes=1000)).body) == 1000
    with pytest.raises(EgressTooLarge):
        await egress.get(server.url(), max_bytes=999)


@pytest.mark.anyio
@pytest.mark.parametrize("layers", [1, 2, 3])
async def test_gzip_bomb_is_counted_after_decompression(server: StubServer, egress: Egress, layers: int) -> None:
    bomb = bytes(64 * 1024 * 1024)
    for _ in range(layers):
        bomb = gzip.compress(bomb, 6)
    server.answers["/"] = respond(bomb, Content_Encoding=", ".join(["gzip"] * layers))
    tracemalloc.start()
    with pytest.raises(EgressTooLarge):
        await egress.get(server.url(), max_bytes=1_000_000)
    assert tracemalloc.get_traced_memory()[1] < 16 * 1024 * 1024
    tracemalloc.stop()


@pytest.mark.anyio
async def test_compressed_body_is_read_and_corrupt_one_retryable(server: StubServer, egress: Egress) -> None:
    server.answers["/gzip"] = respond(gzip.compress(b"plain"), Content_Encoding="gzip")
    server.answers["/deflate"] = respond(zlib.compress(b"plain"), Content_Encoding="deflate")
    server.answers["/broken"] = respond(b"not gzip", Content_Encoding="gzip")
    server.answers["/layers"] = respond(b"x", Content_Encoding=", ".join(["gzip"] * 50))
    assert (await egress.get(server.url("/gzip"))).body == b"plain"
    assert (await egress.get(server.url("/deflate"))).body == b"plain"
    for path in ("/broken", "/layers"):
        with pytest.raises(EgressFailed, match="DecodingError"):
            await egress.get(server.url(path))


@pytest.mark.anyio
@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 50_000 + b"\r\n",
        b"",
    ],
    ids=["another protocol", "cut off", "endless headers", "nothing"],
)
async def test_response_that_is_not_http_is_retryable(server: StubServer, egress: Egress, answer: bytes) -> None:
    async def broken(writer: asyncio.StreamWriter) -> None:
        writer.write(answer)

    server.answers["/"] = broken
    with pytest.raises(EgressFailed):
        await egress.get(server.url())


@pytest.mark.anyio
async def test_refused_connection_is_retryable(egress: Egress) -> None:
    async with stub_server() as closed_server:
        url = closed_server.url()
    with pytest.raises(EgressFailed, match="ConnectError"):
        await egress.get(url)


@pytest.mark.anyio
async def test_one_deadline_covers_redirects_headers_and_body(server: StubServer, egress: Egress) -> None:
    async def dripping(writer: asyncio.StreamWriter) -> None:
        writer.write(head())
        while not writer.is_closing():
            writer.write(b".")
            await writer.drain()
            await asyncio.sleep(0.02)

    server.answers |= {"/silent": silent(), "/drip": dripping, "/redirect": redirect("/drip")}
    for path in ("/silent", "/drip", "/redirect"):
        started_at = asyncio.get_running_loop().time()
        with pytest.raises(EgressFailed, match=r"no complete answer within 0\.3 s"):
            await egress.get(server.url(path), timeout_s=0.3)
        assert asyncio.get_running_loop().time() - started_at < 15


# TLS


@pytest.mark.anyio
async def test_tls_is_verified_by_name_when_connecting_by_address(tmp_path: Path) -> None:
    server_side, client_side = create_tls_contexts("localhost", tmp_path)
    requested_names: list[str | None] = []
    server_side.sni_callback = lambda _socket, name, _context: requested_names.append(name)
    async with stub_server(tls=server_side) as server:
        server.answers["/"] = respond(b"sealed")
        egress_guard = Egress(LOOPBACK, ssl_context=client_side)
        assert (await egress_guard.get(server.url(host="localhost", scheme="https"))).body == b"sealed"
        assert requested_names == ["localhost"]
        with pytest.raises(EgressFailed, match="CERTIFICATE_VERIFY_FAILED"):
            await egress_guard.get(server.url(host="127.0.0.1", scheme="https"))
        with pytest.raises(EgressFailed, match="CERTIFICATE_VERIFY_FAILED"):
            await Egress(LOOPBACK).get(server.url(host="localhost", scheme="https"))
        assert server.paths() == ["/"]


# The transport, for clients that use other methods than GET


@pytest.mark.anyio
async def test_guarded_transport_applies_the_same_checks(server: StubServer) -> None:
    server.answers["/hook"] = respond(b"{}", 201)
    async with httpx2.AsyncClient(transport=GuardedTransport(ONLY_ONE), follow_redirects=True) as client:
        assert (await client.post(server.url("/hook"), json={"a": 1})).status_code == 201
        assert server.requests[0].startswith("POST /hook")
        async with stub_server("127.0.0.2") as private_server:
            server.answers["/hook"] = redirect(private_server.url(), 307)
            for url in (private_server.url(), server.url("/hook")):
                with pytest.raises(EgressRefused):
                    await client.post(url, json={"a": 1})
            assert private_server.connections == 0
