"""The address guard: the only way to reach a URL that a user gave.

Connects only to addresses that were checked in the same step, so a name that changes its answer (DNS rebinding) gains
nothing, and every redirect is checked anew. Connections are kept for a second, and used again only for the same name at
an address that was checked just now. Keeps no cookies, reads no proxy settings.
"""

import asyncio
import socket
import ssl
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

import httpx2

from jobs.providers.connections import Body, Connection, Connections, Peer

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

USER_AGENT = "NoroshiBot/0.1 (+link previews)"
MAX_REDIRECTS = 3
MAX_URL_CHARS = 2048
MAX_ADDRESSES = 4
PUBLIC_PORTS = frozenset({80, 443})

_DEFAULT_PORTS = {"http": 80, "https": 443}
_NAT64 = IPv6Network("64:ff9b::/96")
_GLOBAL_UNICAST_V6 = IPv6Network("2000::/3")
# Set aside by IANA, yet global to the `ipaddress` of some Python versions: protocol assignments, 6to4 relays,
# Teredo and its kin, documentation.
_SET_ASIDE = tuple(map(ip_network, ("192.0.0.0/24", "192.88.99.0/24", "2001::/23", "3fff::/20")))


class EgressRefused(Exception):
    """The URL, its address or its answer is not acceptable. Trying again changes nothing."""


class EgressTooLarge(EgressRefused):
    """The answer holds more bytes than were asked for."""


class EgressFailed(Exception):
    """The network or the other side did not do its part. May be tried again."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """An answer: `url` is the last one after redirects, `content_type` the header as sent ("" when none was)."""

    url: str
    status: int
    content_type: str
    body: bytes


@dataclass(frozen=True, slots=True)
class _Wanted:
    accept: tuple[str, ...]
    max_bytes: int
    truncate: bool
    connect_timeout_s: float


def is_public(address: Address) -> bool:
    """Whether packets to `address` end at a public unicast host, also when it only carries an IPv4 address."""
    if isinstance(address, IPv6Address):
        carried = _carried(address)
        if carried is not None:
            return is_public(carried)
        if address not in _GLOBAL_UNICAST_V6:
            return False
    return address.is_global and not address.is_multicast and not _within(address, _SET_ASIDE)


def check_addresses(addresses: Iterable[str], port: int, allow: tuple[Network, ...]) -> None:
    """Raises EgressRefused unless each of a name's addresses may be reached: one private answer spoils them all."""
    for text in addresses:
        address = ip_address(text)
        mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
        if _within(mapped or address, allow):
            continue
        if not is_public(address):
            raise EgressRefused(f"{text} is not a public address")
        if port not in PUBLIC_PORTS:
            raise EgressRefused(f"port {port} is neither 80 nor 443")


def _carried(address: IPv6Address) -> IPv4Address | None:
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped or address.sixtofour


def _within(address: Address, networks: tuple[Network, ...]) -> bool:
    return any(address in network for network in networks)


def web_url(text: str, base: str | None = None) -> httpx2.URL:
    """The http(s) URL that `text` spells, relative to `base` when given. Raises EgressRefused when it is none.

    Says nothing of the address behind it: only what connects can.
    """
    if len(text) > MAX_URL_CHARS:
        raise EgressRefused(f"the URL is longer than {MAX_URL_CHARS} characters")
    try:
        return _checked_url(httpx2.URL(text) if base is None else httpx2.URL(base).join(text))
    except (httpx2.InvalidURL, ValueError) as error:
        raise EgressRefused(f"not a URL: {error}") from None


def _checked_url(url: httpx2.URL) -> httpx2.URL:
    if url.scheme not in _DEFAULT_PORTS:
        raise EgressRefused(f"scheme {url.scheme!r} is neither http nor https")
    if url.userinfo:
        raise EgressRefused("the URL carries credentials")
    if not url.host or "%" in url.host:  # What no name may hold comes percent-encoded, and so do IPv6 zones.
        raise EgressRefused("the URL names no host")
    if not 1 <= _port(url) <= 65535:
        raise EgressRefused(f"there is no port {url.port}")
    return url


def _port(url: httpx2.URL) -> int:
    return _DEFAULT_PORTS[url.scheme] if url.port is None else url.port


class GuardedTransport(httpx2.AsyncBaseTransport):
    """A transport for any httpx2 client that connects to nothing but checked addresses.

    Refuses with EgressRefused, before a socket is opened; a name that does not resolve is a ConnectError. Names in TLS
    and in the Host header stay those of the URL. `allow` may be reached on any port, the public only on 80 and 443.
    """

    def __init__(self, allow: tuple[Network, ...] = (), ssl_context: ssl.SSLContext | None = None) -> None:
        self._allow = allow
        self._connections = Connections(ssl_context)
        # Threads of its own: names that resolve slowly must not hold up what else the process resolves.
        self._resolvers = ThreadPoolExecutor(8, thread_name_prefix="egress-resolver")
        self._lookups: dict[tuple[str, int], asyncio.Future[list[str]]] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Sends the request to the first of the name's addresses that takes a connection.

        Of the request's timeouts only `connect` counts: who sends limits the whole.
        """
        connection = await self._connected(request)
        try:
            answer = await connection.send(request)
        except BaseException:
            connection.close()
            raise
        body = Body(self._connections, connection, answer)
        return httpx2.Response(answer.status, headers=answer.headers, stream=body)

    async def _connected(self, request: httpx2.Request) -> Connection:
        url = _checked_url(request.url)
        addresses = await self._resolve(url)
        check_addresses(addresses, _port(url), self._allow)
        peers = [Peer(url.scheme, _name(url), _port(url), address) for address in addresses[:MAX_ADDRESSES]]
        for peer in peers:
            if (kept := self._connections.kept(peer)) is not None:
                return kept
        failure: httpx2.TransportError = httpx2.ConnectError(f"{url.host} has no address")
        for peer in peers:
            try:
                return await self._connections.open(peer, request.extensions.get("timeout", {}).get("connect"))
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                failure = error
        raise failure

    async def _resolve(self, url: httpx2.URL) -> list[str]:
        try:
            answers = await asyncio.shield(self._lookup(_name(url), _port(url)))
        except UnicodeError as error:
            raise EgressRefused(f"not a host name: {error}") from None
        except OSError as error:
            raise httpx2.ConnectError(f"{url.host} does not resolve: {error}") from error
        return list(dict.fromkeys(answers))

    def _lookup(self, name: str, port: int) -> asyncio.Future[list[str]]:
        """One for all who ask while it is under way."""
        known = self._lookups.get((name, port))
        if known is None:
            loop = asyncio.get_running_loop()
            known = self._lookups[name, port] = loop.run_in_executor(self._resolvers, _look_up, name, port)
            known.add_done_callback(lambda found: self._looked_up(name, port, found))
        return known

    def _looked_up(self, name: str, port: int, found: asyncio.Future[list[str]]) -> None:
        del self._lookups[name, port]
        if not found.cancelled():
            found.exception()  # marked as seen: whoever asked may be gone

    async def aclose(self) -> None:
        """Closes what is kept; a lookup under way is left to end by itself."""
        self._resolvers.shutdown(wait=False)
        await self._connections.aclose()


def _name(url: httpx2.URL) -> str:
    return url.raw_host.decode("ascii")


def _look_up(name: str, port: int) -> list[str]:
    found = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


class Egress:
    """GETs what users point at, through the guard. One serves a whole process."""

    def __init__(
        self,
        allow: tuple[Network, ...] = (),
        *,
        timeout_s: float = 5.0,
        max_bytes: int = 1024 * 1024,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        self.transport = GuardedTransport(allow, ssl_context)
        self._timeout_s = timeout_s
        self._max_bytes = max_bytes

    async def get(
        self,
        url: str,
        *,
        accept: tuple[str, ...] = ("*/*",),
        max_bytes: int | None = None,
        timeout_s: float | None = None,
        truncate: bool = False,
    ) -> Fetched:
        """Follows at most 3 redirects, within `timeout_s` for everything together.

        `accept` is sent, and a 2xx of another type is refused unread ("*/*" takes all). `max_bytes` counts after
        decompression: more is EgressTooLarge, or with `truncate` left unread. The body is empty unless 2xx.
        Raises: EgressRefused (final), EgressFailed (may be tried again).
        """
        limit_s = self._timeout_s if timeout_s is None else timeout_s
        limit_bytes = self._max_bytes if max_bytes is None else max_bytes
        wanted = _Wanted(accept, limit_bytes, truncate, connect_timeout_s=limit_s / 2)
        try:
            async with asyncio.timeout(limit_s):
                return await self._follow(web_url(url), wanted)
        except TimeoutError:
            raise EgressFailed(f"no complete answer within {limit_s:g} s") from None
        except (httpx2.HTTPError, OSError) as error:
            raise EgressFailed(f"{type(error).__name__}: {error}") from error

    async def _follow(self, url: httpx2.URL, wanted: _Wanted) -> Fetched:
        for _ in range(MAX_REDIRECTS + 1):
            answer = await self._ask(url, wanted)
            if isinstance(answer, Fetched):
                return answer
            url = answer
        raise EgressRefused(f"more than {MAX_REDIRECTS} redirects")

    async def _ask(self, url: httpx2.URL, wanted: _Wanted) -> Fetched | httpx2.URL:
        headers = {"User-Agent": USER_AGENT, "Accept": ", ".join(wanted.accept), "Accept-Encoding": "gzip, deflate"}
        timeout = httpx2.Timeout(None, connect=wanted.connect_timeout_s)
        request = httpx2.Request("GET", url, headers=headers, extensions={"timeout": timeout.as_dict()})
        response = await self.transport.handle_async_request(request)
        try:
            if response.has_redirect_location:
                return web_url(response.headers["location"], base=str(url))
            content_type = response.headers.get("content-type", "")
            body = await _body(response, content_type, wanted) if response.is_success else b""
            return Fetched(str(url), response.status_code, content_type, body)
        finally:
            await response.aclose()

    async def aclose(self) -> None:
        """Closes the transport; afterwards nothing can be fetched."""
        await self.transport.aclose()


async def _body(response: httpx2.Response, content_type: str, wanted: _Wanted) -> bytes:
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type not in wanted.accept and "*/*" not in wanted.accept:
        raise EgressRefused(f"the answer is {media_type or 'of no type'}, not {' or '.join(wanted.accept)}")
    body = bytearray()
    async with aclosing(response.aiter_bytes()) as chunks:
        async for chunk in chunks:
            body += chunk
            if len(body) > wanted.max_bytes:
                break
    if len(body) > wanted.max_bytes and not wanted.truncate:
        raise EgressTooLarge(f"the answer is larger than {wanted.max_bytes} bytes")
    return bytes(body[: wanted.max_bytes])
