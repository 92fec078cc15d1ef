"""The client's address: from a trusted proxy's X-Forwarded-For, and from nobody else's."""

from ipaddress import ip_network

import pytest
from starlette.types import Message, Receive, Scope, Send
from structlog.testing import capture_logs

from server.transport.trusted_proxies import MAX_WARNED_PEERS, TrustedProxies

pytestmark = pytest.mark.anyio

PROXY, OTHER_PROXY, CLIENT = "10.0.0.1", "10.0.1.7", "203.0.113.7"
TRUSTED = (ip_network(PROXY), ip_network("10.0.1.0/24"), ip_network("fd00::/64"))


class Application:
    """An application that records the address of each client."""

    def __init__(self) -> None:
        self.addresses: list[str | None] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.addresses.append(scope["client"] and scope["client"][0])


async def no_message() -> Message:
    raise AssertionError("nothing is received")


async def ignore(message: Message) -> None:
    raise AssertionError("nothing is sent")


async def address_of(
    peer: str, *forwarded_for: str, header: str = "x-forwarded-for", kind: str = "http", proxies: object = TRUSTED
) -> str | None:
    """Returns the client's address that an application sees."""
    application = Application()
    headers = [(header.encode(), value.encode("latin1")) for value in forwarded_for]
    scope = {"type": kind, "client": (peer, 4711), "scheme": "http", "headers": headers}
    await TrustedProxies(application, proxies)(scope, no_message, ignore)  # type: ignore[arg-type]
    return application.addresses[0]


@pytest.mark.parametrize("kind", ["http", "websocket"])
async def test_trusted_proxy_names_the_client(kind: str) -> None:
    assert await address_of(PROXY, CLIENT, kind=kind) == CLIENT


@pytest.mark.parametrize("kind", ["http", "websocket"])
async def test_header_of_other_peer_is_ignored(kind: str) -> None:
    for peer in ("198.51.100.9", "127.0.0.1", "2001:db8::1"):
        assert await address_of(peer, "127.0.0.1", kind=kind) == peer


async def test_no_peer_is_trusted_without_proxies() -> None:
    for peer in ("127.0.0.1", "::1", PROXY):
        assert await address_of(peer, CLIENT, proxies=()) == peer


@pytest.mark.parametrize(
    ("forwarded_for", "address"),
    [
        # The client's own header stands to the left of what the proxy adds.
        (["127.0.0.1, 203.0.113.7"], CLIENT),
        (["127.0.0.1", "203.0.113.7"], CLIENT),
        (["garbage, 203.0.113.7"], CLIENT),
        # Other trusted proxies between the client and the last proxy.
        ([f"127.0.0.1, 203.0.113.7, {OTHER_PROXY}"], CLIENT),
        ([f"127.0.0.1,203.0.113.7,::ffff:{OTHER_PROXY},fd00::9"], CLIENT),
        ([f"203.0.113.7, {OTHER_PROXY}:8080, [fd00::9]:443"], CLIENT),
        # Forms of addresses.
        (["203.0.113.7:4711"], CLIENT),
        (["::ffff:203.0.113.7"], CLIENT),
        (["2001:DB8:0::7"], "2001:db8::7"),
        ([f"fe80::7%{'z' * 9000}"], "fe80::7"),
        (["[2001:db8::7]"], "2001:db8::7"),
        (["[2001:db8::7]:4711"], "2001:db8::7"),
        # A proxy that is the client itself.
        ([OTHER_PROXY], OTHER_PROXY),
        # The proxy says nothing.
        ([], PROXY),
        ([""], PROXY),
    ],
)
async def test_rightmost_untrusted_address_is_the_client(forwarded_for: list[str], address: str) -> None:
    assert await address_of(PROXY, *forwarded_for) == address


@pytest.mark.parametrize(
    "value",
    ["unknown", "_hidden", "203.0.113.7:http", "203.0.113.7.9", "[2001:db8::7", "localhost", "\xff", "a" * 9000],
)
async def test_entry_that_is_no_address_is_an_unknown_client(value: str) -> None:
    # Neither the proxy nor an entry that the client may have written.
    assert await address_of(PROXY, f"127.0.0.1, {value}") is None
    assert await address_of(PROXY, f"127.0.0.1, {value}, {OTHER_PROXY}") is None


async def test_forwarded_header_is_ignored() -> None:
    for peer in (PROXY, CLIENT):
        assert await address_of(peer, "for=127.0.0.1", header="forwarded") == peer


async def test_mapped_address_of_proxy_is_trusted() -> None:
    assert await address_of(f"::ffff:{PROXY}", CLIENT) == CLIENT
    assert await address_of("::ffff:10.0.0.2", CLIENT) == "10.0.0.2"


async def test_ignored_header_is_warned_of_once_for_each_peer() -> None:
    proxies = TrustedProxies(Application(), TRUSTED)

    async def send(peer: str, header: str, value: str = CLIENT) -> None:
        scope = {"type": "http", "client": (peer, 1), "headers": [(header.encode(), value.encode())]}
        await proxies(scope, no_message, ignore)

    with capture_logs() as lines:
        for _ in range(3):
            await send("198.51.100.9", "x-forwarded-for")
            await send("198.51.100.9", "forwarded")
            await send(PROXY, "x-forwarded-for")
            await send(CLIENT, "user-agent")
    assert [(line["event"], line["peer"]) for line in lines] == [("proxy_not_trusted", "198.51.100.9")]
    with capture_logs() as lines:
        for number in range(2 * MAX_WARNED_PEERS):
            await send(f"198.18.{number // 256}.{number % 256}", "x-forwarded-for")
    assert len(lines) == MAX_WARNED_PEERS - 1


async def test_trusted_proxy_that_sends_only_forwarded_is_warned_of() -> None:
    with capture_logs() as lines:
        await address_of(PROXY, "for=203.0.113.7", header="forwarded")
    assert [(line["event"], line["peer"]) for line in lines] == [("forwarded_header_not_read", PROXY)]
