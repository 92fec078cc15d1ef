"""Connects to Redis: to one server, or to the master that a group of Sentinels names.

Addresses: `redis://user:password@host:port/number`, `rediss://` with TLS, `unix://path`, and
`redis+sentinel://user:password@host:port,host:port/master/number`. The hosts of the last form are the Sentinels; user
and password are for the master. `rediss+sentinel://` uses TLS for both. A query adds options of redis-py, such as
`?ssl_ca_certs=/etc/ca.pem`.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit, urlunsplit

from redis.asyncio import Redis
from redis.asyncio.client import PubSub
from redis.asyncio.connection import parse_url
from redis.asyncio.sentinel import Sentinel
from redis.exceptions import ConnectionError as RedisConnectionError

CONNECT_TIMEOUT_S = 2.0

SILENCE_S = 3.0
"""Seconds without a message after which a ping is sent on a pub/sub connection. Without an answer in the same time, the
connection is closed."""

MIN_RECONNECT_S, MAX_RECONNECT_S = 0.05, 2.0
"""Pauses before a subscriber of pub/sub connects again. The pause doubles after each failure."""

SENTINEL_PORT = 26379

Client = TypeVar("Client", bound=Redis)


@dataclass(frozen=True, slots=True)
class SentinelAddress:
    """Hosts and ports of Sentinels, the name of their master, and redis-py's options for connections to it."""

    sentinels: list[tuple[str, int]]
    master: str
    options: dict[str, Any]


@asynccontextmanager
async def redis_client(url: str, client_class: type[Client], answer_timeout_s: float | None) -> AsyncIterator[Client]:
    """Yields a client, which connects with its first command. Closes it at the end.

    A command fails after `answer_timeout_s` seconds. If this is None, callers limit the time. Raises: ValueError for a
    malformed address.
    """
    timeouts: dict[str, Any] = {"socket_timeout": answer_timeout_s, "socket_connect_timeout": CONNECT_TIMEOUT_S}
    if is_sentinel_url(url):
        async with _sentinel_client(parse_sentinel_url(url), client_class, timeouts) as client:
            yield client
    else:
        async with client_class.from_url(url, **timeouts) as client:
            yield client


@asynccontextmanager
async def _sentinel_client(
    address: SentinelAddress, client_class: type[Client], timeouts: dict[str, Any]
) -> AsyncIterator[Client]:
    options = address.options | timeouts
    # The TLS options apply to the Sentinels too. The user, the password and the database number do not.
    sentinel_options = {name: value for name, value in address.options.items() if name.startswith("ssl")}
    sentinel_options |= {"socket_timeout": CONNECT_TIMEOUT_S, "socket_connect_timeout": CONNECT_TIMEOUT_S}
    group = Sentinel(address.sentinels, sentinel_kwargs=sentinel_options, **options)  # type: ignore[no-untyped-call]
    async with AsyncExitStack() as stack:
        for sentinel in group.sentinels:
            stack.push_async_callback(sentinel.aclose)
        client: Client = group.master_for(address.master, redis_class=client_class)
        async with client:
            yield client


def is_sentinel_url(url: str) -> bool:
    """Returns whether the address names Sentinels instead of a server."""
    return urlsplit(url).scheme in ("redis+sentinel", "rediss+sentinel")


def parse_sentinel_url(url: str) -> SentinelAddress:
    """Returns the parts of the address. Raises: ValueError if it is malformed."""
    parts = urlsplit(url)
    credentials, at, hosts = parts.netloc.rpartition("@")
    sentinels = [_host_and_port(each) for each in hosts.split(",")]
    master, _, number = parts.path.removeprefix("/").partition("/")
    if not master or not (number or "0").isdecimal():
        raise ValueError("expected redis+sentinel://host:port,host:port/master/number")
    scheme = parts.scheme.removesuffix("+sentinel")
    options = dict(parse_url(urlunsplit((scheme, f"{credentials}{at}master", number, parts.query, ""))))
    del options["host"]
    if options.pop("connection_class", None) is not None:
        options["ssl"] = True
    return SentinelAddress(sentinels, unquote(master), options)


def _host_and_port(text: str) -> tuple[str, int]:
    parts = urlsplit(f"//{text}")
    if not parts.hostname:
        raise ValueError("expected the hosts of the Sentinels, separated by commas")
    return parts.hostname, parts.port or SENTINEL_PORT


async def messages(pubsub: PubSub) -> AsyncIterator[dict[str, Any]]:
    """Yields the messages and confirmations of subscribed channels.

    Sends a ping after a silence. Without pings, a connection whose packets are dropped would stay open for ever.
    Raises: redis.exceptions.ConnectionError if nothing arrives after a ping.
    """
    is_pinged = False
    while True:
        message = await pubsub.get_message(timeout=SILENCE_S)
        if message is None and is_pinged:
            raise RedisConnectionError(f"Redis did not answer a ping within {SILENCE_S:g} s.")
        is_pinged = message is None
        if message is None:
            await pubsub.ping()
        elif message["type"] != "pong":
            yield message
