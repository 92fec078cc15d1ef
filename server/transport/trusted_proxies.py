"""The address of a request's client: behind a trusted proxy, the one that the proxy names in X-Forwarded-For.

Limits, sessions, the audit log and the demo sign-in use this address. Headers of other peers are ignored, since every
client can send them.
"""

from collections.abc import Awaitable, Iterable
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any

import structlog
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

FORWARDED_FOR = b"x-forwarded-for"
FORWARDED = b"forwarded"
FORWARDED_PREFIX = b"x-forwarded-"
"""Beginning of the names of all headers that uvicorn's middleware reads."""

MAX_WARNED_PEERS = 100
"""Number of peers for each of which a process logs one warning. Further peers are ignored in silence."""
MAPPED_PREFIX_BITS = 96
"""Length of the prefix `::ffff:` of IPv6 addresses that stand for IPv4 addresses."""

log = structlog.get_logger(__name__)


class TrustedProxies:
    """ASGI middleware that replaces the address of a trusted proxy by that of its client.

    The rightmost address of X-Forwarded-For that is no trusted proxy is the client. If this entry is not an address,
    the client is unknown, and the scope has no client.
    """

    def __init__(self, app: ASGIApp, proxies: Iterable[IPv4Network | IPv6Network]) -> None:
        """Trusts peers with addresses of these networks."""
        self._app = app
        networks = [str(form) for network in proxies for form in _forms(network)]
        forward: Any = self._serve_client
        self._resolver = ProxyHeadersMiddleware(forward, networks)
        self._warned_peers: set[str] = set()

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Returns the awaitable of the application, so that an open socket keeps no coroutine of this class."""
        if scope["type"] == "lifespan":
            return self._app(scope, receive, send)
        self._warn_of_ignored_header(scope)
        is_forwarded = any(name.startswith(FORWARDED_PREFIX) for name, _ in scope["headers"])
        forward: Any = self._resolver if is_forwarded else self._serve_client
        awaitable: Awaitable[None] = forward(scope, receive, send)
        return awaitable

    def _serve_client(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        if (client := scope.get("client")) is not None:
            address = _plain_address(client[0])
            scope["client"] = None if address is None else (address, client[1])
        return self._app(scope, receive, send)

    def _warn_of_ignored_header(self, scope: Scope) -> None:
        peer = scope["client"][0] if scope.get("client") else None
        names = {name for name, _ in scope["headers"]} & {FORWARDED_FOR, FORWARDED}
        if peer is None or not names:
            return
        if peer not in self._resolver.trusted_hosts:
            self._warn_once(peer, "proxy_not_trusted", "Its header is ignored; NOROSHI_TRUSTED_PROXIES names proxies.")
        elif FORWARDED_FOR not in names:
            self._warn_once(peer, "forwarded_header_not_read", "Let the proxy send X-Forwarded-For.")

    def _warn_once(self, peer: str, event: str, hint: str) -> None:
        if peer in self._warned_peers or len(self._warned_peers) >= MAX_WARNED_PEERS:
            return
        self._warned_peers.add(peer)
        log.warning(event, peer=peer, hint=hint)


def _forms(network: IPv4Network | IPv6Network) -> list[IPv4Network | IPv6Network]:
    """Returns a network, and the IPv6 network that an IPv4 network has on sockets for both versions."""
    if not isinstance(network, IPv4Network):
        return [network]
    return [network, ip_network(f"::ffff:{network.network_address}/{MAPPED_PREFIX_BITS + network.prefixlen}")]


def _plain_address(text: str) -> str | None:
    """Returns an address in its usual form, an IPv4 address for a mapped one; None if the text is no address.

    The zone of an IPv6 address, such as `%eth0`, is left out: it may be any text.
    """
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(mapped or address)
