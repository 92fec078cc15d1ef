"""Refuses requests whose Host names another server.

A page of a foreign name can make that name resolve to this server's address (DNS rebinding). The browser then takes
the page and this server for one origin, but it still sends the foreign name as Host.
"""

import re
from collections.abc import Awaitable, Iterable
from ipaddress import ip_address

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from server.http.json_answers import error_answer
from storage.errors import BadUserInput

ANY_NAME = "*"
LOCALHOST = "localhost"
_HOST = re.compile(rb"(?:\[([0-9A-Fa-f:.]+)\]|([\w.-]+))(?::\d*)?", re.ASCII)


class AllowedHosts:
    """The names of this server. IP addresses and localhost are always allowed, since DNS cannot rebind them."""

    def __init__(self, names: Iterable[str]) -> None:
        """Takes names, patterns such as `*.example.org`, or `*` for every name."""
        lowered = {name.lower() for name in names}
        self._allows_all = ANY_NAME in lowered
        self._names = lowered | {LOCALHOST}
        self._suffixes = (f".{LOCALHOST}", *(name[1:] for name in lowered if name.startswith("*.")))

    def allows(self, host: bytes) -> bool:
        """Returns whether the value of a Host header, with or without a port, names this server."""
        name = host_name(host)
        return self._allows_all or name in self._names or name.endswith(self._suffixes) or _is_address(name)


class HostCheck:
    """ASGI middleware that answers 400 to requests for foreign hosts, including WebSocket handshakes.

    Requests without the header Host are served: browsers always send the header, but some health checks do not.
    """

    def __init__(self, app: ASGIApp, names: Iterable[str]) -> None:
        self._app = app
        self._hosts = AllowedHosts(names)

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Returns the awaitable of the next application, so that an open socket keeps no coroutine of this class."""
        headers = () if scope["type"] == "lifespan" else scope["headers"]
        foreign_hosts = [value for name, value in headers if name == b"host" and not self._hosts.allows(value)]
        return (_refusal(foreign_hosts[0]) if foreign_hosts else self._app)(scope, receive, send)


def host_name(host: bytes) -> str:
    """Returns the name in a Host header in lower case, without the port; empty when it is malformed."""
    match = _HOST.fullmatch(host)
    return (match[1] or match[2]).decode().lower().removesuffix(".") if match else ""


def is_loopback(name: str) -> bool:
    """Returns whether a host name or address refers to the machine itself."""
    return name == LOCALHOST or (_is_address(name) and ip_address(name).is_loopback)


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _refusal(host: bytes) -> Response:
    quoted = host.decode("ascii", "backslashreplace")[:100]
    message = f"Host {quoted!r} is not served here; NOROSHI_PUBLIC_URL and NOROSHI_ALLOWED_HOSTS name the served hosts."
    return error_answer(BadUserInput("Host", "a name of this server, or an IP address", message))
