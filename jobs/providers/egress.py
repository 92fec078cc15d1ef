"""The address guard. Every request to a URL that a user chose passes the guard.

The guard resolves a name, checks the addresses, and connects to these addresses without a second lookup, which defeats
DNS rebinding. It checks every redirect in the same way. An idle connection is reused only for the same name, at an
address that was checked for the new request. The guard keeps no cookies and reads no proxy settings.
"""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import dataclass, replace
from io import RawIOBase
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

import httpx2

from jobs.providers.connections import Connection, ConnectionPool, Peer, ResponseBody

IpAddress = IPv4Address | IPv6Address
IpNetwork = IPv4Network | IPv6Network

USER_AGENT = "NoroshiBot/0.1 (+link previews)"
MAX_REDIRECTS = 3
MAX_URL_CHARS = 2048
MAX_ADDRESSES = 4
PUBLIC_PORTS = frozenset({80, 443})

_DEFAULT_PORTS = {"http": 80, "https": 443}
_NAT64 = IPv6Network("64:ff9b::/96")
_GLOBAL_UNICAST_V6 = IPv6Network("2000::/3")
# Reserved by IANA, but `is_global` in some Python versions: protocol assignments, 6to4 relays, Teredo and related
# ranges, documentation.
_RESERVED = tuple(map(ip_network, ("192.0.0.0/24", "192.88.99.0/24", "2001::/23", "3fff::/20")))


class EgressRefused(Exception):
    """The URL, its address or its response is not acceptable. A retry would fail in the same way."""


class EgressTooLarge(EgressRefused):
    """The response is larger than allowed."""


class EgressFailed(Exception):
    """The network or the server failed. A retry may succeed."""


@dataclass(frozen=True, slots=True)
class FetchedResponse:
    """A response with its body. `url` is the URL after redirects; `content_type` is "" without that header."""

    url: str
    status: int
    content_type: str
    body: bytes


@dataclass(frozen=True, slots=True)
class _FetchOptions:
    accept: tuple[str, ...]
    max_bytes: int
    truncate: bool
    connect_timeout_s: float
    write: Callable[[bytes], Awaitable[None]]
    """Receives the body in pieces."""


def is_public(address: IpAddress) -> bool:
    """Returns whether the address is public and unicast. IPv6 forms of IPv4 addresses are checked as IPv4."""
    if isinstance(address, IPv6Address):
        embedded = _embedded_ipv4(address)
        if embedded is not None:
            return is_public(embedded)
        if address not in _GLOBAL_UNICAST_V6:
            return False
    return address.is_global and not address.is_multicast and not _within(address, _RESERVED)


def check_addresses(addresses: Iterable[str], port: int, allow: tuple[IpNetwork, ...]) -> None:
    """Checks every address of a name. Raises: EgressRefused if any of them is forbidden."""
    for text in addresses:
        address = ip_address(text)
        mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
        if _within(mapped or address, allow):
            continue
        if not is_public(address):
            raise EgressRefused(f"{text} is not a public address")
        if port not in PUBLIC_PORTS:
            raise EgressRefused(f"port {port} is neither 80 nor 443")


def _embedded_ipv4(address: IPv6Address) -> IPv4Address | None:
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped or address.sixtofour


def _within(address: IpAddress, networks: tuple[IpNetwork, ...]) -> bool:
    return any(address in network for network in networks)


def web_url(text: str, base: str | None = None) -> httpx2.URL:
    """Parses an http or https URL, which may be relative to `base`. Raises: EgressRefused for any other text.

    The addresses of the host are not checked here, but by the transport when it connects.
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
    # Characters that host names cannot hold are percent-encoded, and so are IPv6 zones.
    if not url.host or "%" in url.host:
        raise EgressRefused("the URL names no host")
    if not 1 <= _port(url) <= 65535:
        raise EgressRefused(f"there is no port {url.port}")
    return url


def _port(url: httpx2.URL) -> int:
    return _DEFAULT_PORTS[url.scheme] if url.port is None else url.port


class GuardedTransport(httpx2.AsyncBaseTransport):
    """A transport for any httpx2 client that connects to checked addresses only.

    Raises EgressRefused before it opens a socket, and ConnectError for a name that does not resolve. TLS and the Host
    header use the name in the URL. Networks in `allow` may be reached on any port, public addresses on 80 and 443 only.
    """

    def __init__(self, allow: tuple[IpNetwork, ...] = (), ssl_context: ssl.SSLContext | None = None) -> None:
        self._allow = allow
        self._connections = ConnectionPool(ssl_context)
        # A separate thread pool, so that slow name lookups do not delay other threaded work of the process.
        self._resolver_threads = ThreadPoolExecutor(8, thread_name_prefix="egress-resolver")
        self._lookups: dict[tuple[str, int], asyncio.Future[list[str]]] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Sends the request to the first of the name's addresses that accepts a connection.

        Only the timeout `connect` of the request is applied. Callers limit the time of the whole request.
        """
        connection = await self._connect(request)
        try:
            incoming = await connection.send(request)
        except BaseException:
            connection.close()
            raise
        body = ResponseBody(self._connections, connection, incoming)
        return httpx2.Response(incoming.status, headers=incoming.headers, stream=body)

    async def _connect(self, request: httpx2.Request) -> Connection:
        url = _checked_url(request.url)
        addresses = await self.checked_addresses(url)
        peers = [Peer(url.scheme, _ascii_host(url), _port(url), address) for address in addresses[:MAX_ADDRESSES]]
        for peer in peers:
            if (idle := self._connections.take_idle(peer)) is not None:
                return idle
        failure: httpx2.TransportError = httpx2.ConnectError(f"{url.host} has no address")
        for peer in peers:
            try:
                return await self._connections.open(peer, request.extensions.get("timeout", {}).get("connect"))
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                failure = error
        raise failure

    async def checked_addresses(self, url: httpx2.URL) -> list[str]:
        """Returns the addresses of the URL's host. Raises: EgressRefused; ConnectError if the name does not resolve."""
        addresses = await self._resolve(url)
        check_addresses(addresses, _port(url), self._allow)
        return addresses

    async def _resolve(self, url: httpx2.URL) -> list[str]:
        try:
            addresses = await asyncio.shield(self._shared_lookup(_ascii_host(url), _port(url)))
        except UnicodeError as error:
            raise EgressRefused(f"not a host name: {error}") from None
        except OSError as error:
            raise httpx2.ConnectError(f"{url.host} does not resolve: {error}") from error
        return list(dict.fromkeys(addresses))

    def _shared_lookup(self, name: str, port: int) -> asyncio.Future[list[str]]:
        """Resolves a name; concurrent callers share one lookup."""
        lookup = self._lookups.get((name, port))
        if lookup is None:
            loop = asyncio.get_running_loop()
            lookup = self._lookups[name, port] = loop.run_in_executor(
                self._resolver_threads, _resolve_blocking, name, port
            )
            lookup.add_done_callback(lambda done: self._end_lookup(name, port, done))
        return lookup

    def _end_lookup(self, name: str, port: int, done: asyncio.Future[list[str]]) -> None:
        del self._lookups[name, port]
        if not done.cancelled():
            done.exception()  # Retrieves the exception so that asyncio does not log it.

    async def aclose(self) -> None:
        """Closes idle connections; a running lookup ends on its own."""
        self._resolver_threads.shutdown(wait=False)
        await self._connections.aclose()


def _ascii_host(url: httpx2.URL) -> str:
    return url.raw_host.decode("ascii")


def _resolve_blocking(name: str, port: int) -> list[str]:
    entries = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in entries]


class Egress:
    """Fetches URLs from users through the guard. A process has one instance."""

    def __init__(
        self,
        allow: tuple[IpNetwork, ...] = (),
        *,
        timeout_s: float = 5.0,
        max_bytes: int = 1024 * 1024,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        self.transport = GuardedTransport(allow, ssl_context)
        self._timeout_s = timeout_s
        self._max_bytes = max_bytes

    async def refusal_of(self, url: str) -> str | None:
        """Returns why the guard refuses requests to the URL, without sending one.

        None: the guard permits them now, or the name does not resolve in time. Each request is checked again.
        """
        try:
            async with asyncio.timeout(self._timeout_s):
                await self.transport.checked_addresses(web_url(url))
        except EgressRefused as error:
            return str(error)
        except (httpx2.ConnectError, TimeoutError):
            pass
        return None

    async def get(
        self,
        url: str,
        *,
        accept: tuple[str, ...] = ("*/*",),
        max_bytes: int | None = None,
        timeout_s: float | None = None,
        truncate: bool = False,
    ) -> FetchedResponse:
        """Sends GET and follows at most 3 redirects, within `timeout_s` in total.

        `accept` is sent ("*/*" means all types). A 2xx response of another type is refused before its body is read. A
        body of more than `max_bytes` decompressed bytes raises EgressTooLarge, or is cut with `truncate`. The body is
        empty unless the status is 2xx. Raises: EgressRefused (final), EgressFailed (a retry may succeed).
        """
        limit_s = self._timeout_s if timeout_s is None else timeout_s
        limit_bytes = self._max_bytes if max_bytes is None else max_bytes
        body = bytearray()

        async def write(piece: bytes) -> None:
            body.extend(piece)

        options = _FetchOptions(accept, limit_bytes, truncate, limit_s / 2, write)
        response = await self._fetch(url, options, limit_s)
        return replace(response, body=bytes(body))

    async def download(self, url: str, file: RawIOBase, *, max_bytes: int, timeout_s: float) -> FetchedResponse:
        """Fetches as `get`, but writes the body to the file, in a thread. The response's body is empty."""

        async def write(piece: bytes) -> None:
            await asyncio.to_thread(write_all, file, piece)

        return await self._fetch(url, _FetchOptions(("*/*",), max_bytes, False, timeout_s / 2, write), timeout_s)

    async def _fetch(self, url: str, options: _FetchOptions, limit_s: float) -> FetchedResponse:
        try:
            async with asyncio.timeout(limit_s):
                return await self._follow(web_url(url), options)
        except TimeoutError:
            raise EgressFailed(f"no complete answer within {limit_s:g} s") from None
        except (httpx2.HTTPError, OSError) as error:
            raise EgressFailed(f"{type(error).__name__}: {error}") from error

    async def _follow(self, url: httpx2.URL, options: _FetchOptions) -> FetchedResponse:
        for _ in range(MAX_REDIRECTS + 1):
            result = await self._request_once(url, options)
            if isinstance(result, FetchedResponse):
                return result
            url = result
        raise EgressRefused(f"more than {MAX_REDIRECTS} redirects")

    async def _request_once(self, url: httpx2.URL, options: _FetchOptions) -> FetchedResponse | httpx2.URL:
        """Sends one request and writes the body. Returns the response without it, or the URL to which it redirects."""
        headers = {"User-Agent": USER_AGENT, "Accept": ", ".join(options.accept), "Accept-Encoding": "gzip, deflate"}
        timeout = httpx2.Timeout(None, connect=options.connect_timeout_s)
        request = httpx2.Request("GET", url, headers=headers, extensions={"timeout": timeout.as_dict()})
        response = await self.transport.handle_async_request(request)
        try:
            if response.has_redirect_location:
                return web_url(response.headers["location"], base=str(url))
            content_type = response.headers.get("content-type", "")
            if response.is_success:
                await _read_body(response, content_type, options)
            return FetchedResponse(str(url), response.status_code, content_type, b"")
        finally:
            await response.aclose()

    async def aclose(self) -> None:
        """Closes the transport."""
        await self.transport.aclose()


def write_all(file: RawIOBase, data: bytes) -> None:
    """Writes all bytes. A single write may write fewer."""
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]


async def _read_body(response: httpx2.Response, content_type: str, options: _FetchOptions) -> None:
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type not in options.accept and "*/*" not in options.accept:
        raise EgressRefused(f"the answer is {media_type or 'of no type'}, not {' or '.join(options.accept)}")
    remaining = options.max_bytes
    async with aclosing(response.aiter_bytes()) as chunks:
        async for chunk in chunks:
            if len(chunk) > remaining and not options.truncate:
                raise EgressTooLarge(f"the answer is larger than {options.max_bytes} bytes")
            await options.write(chunk[:remaining])
            remaining -= len(chunk)
            if remaining < 0:
                break
