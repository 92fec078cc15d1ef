"""Connections to Redis: URLs of Sentinels, passwords, TLS, silent connections, and a failover with a subscriber."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from redis.asyncio import Redis
from redis.exceptions import RedisError

from storage.calls.wake_ups import WakeUpChannel
from storage.redis.connections import SentinelAddress, parse_sentinel_url, redis_client
from tests.certificates import create_tls_contexts
from tests.storage.event_recorder import recorded_events
from tests.storage.faulty_proxy import faulty_proxy
from tests.storage.redis.sentinel_group import PASSWORD, QUOTED_PASSWORD, SentinelGroup
from tests.storage.topic_scenario import OpenStores, TopicScenario
from tests.waiting import poll_until_true

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (
            "redis+sentinel://a:1,b/main",
            SentinelAddress([("a", 1), ("b", 26379)], "main", {}),
        ),
        (
            f"redis+sentinel://ann:{QUOTED_PASSWORD}@[::1]:26380/my%20master/3",
            SentinelAddress([("::1", 26380)], "my master", {"username": "ann", "password": PASSWORD, "db": 3}),
        ),
        (
            "rediss+sentinel://:secret@a/main?ssl_ca_certs=/ca.pem",
            SentinelAddress([("a", 26379)], "main", {"password": "secret", "ssl_ca_certs": "/ca.pem", "ssl": True}),
        ),
    ],
)
def test_sentinel_url_is_parsed(url: str, expected: SentinelAddress) -> None:
    assert parse_sentinel_url(url) == expected


@pytest.mark.parametrize(
    "url",
    ["redis+sentinel://a:1", "redis+sentinel://a:1/", "redis+sentinel:///main", "redis+sentinel://a,,b/main",
     "redis+sentinel://a:port/main", "redis+sentinel://a/main/x"],
)  # fmt: skip
def test_malformed_sentinel_url_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_sentinel_url(url)


@pytest.fixture
async def sentinel_group(tmp_path: Path) -> AsyncIterator[SentinelGroup]:
    """A running master with a replica and Sentinels."""
    group = SentinelGroup(tmp_path)
    try:
        await group.start()
        yield group
    finally:
        await group.stop()


@asynccontextmanager
async def recorded_wake_ups(channel: WakeUpChannel) -> AsyncIterator[list[str]]:
    """Yields the list of organizations that were woken, which grows until the block ends."""
    organizations: list[str] = []
    connected = asyncio.Event()
    listening = asyncio.create_task(channel.listen(lambda org, _released: organizations.append(org), connected.set))
    try:
        async with asyncio.timeout(30):
            await connected.wait()
        yield organizations
    finally:
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)


async def test_events_and_wake_ups_pass_after_a_failover(
    sentinel_group: SentinelGroup, scenario: TopicScenario, open_process: OpenStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("storage.streams.hub.COMPARE_EVERY_S", 3600.0)
    async with (
        open_process(sentinel_group.url) as stores,
        open_process(sentinel_group.url) as other,
        recorded_events(stores.hub, scenario.stream) as recorder,
        recorded_wake_ups(stores.call_wake_ups) as organizations,
    ):
        sentinel_group.servers[0].kill()

        async def have_both_arrived() -> bool:
            await scenario.with_stores(other).post()
            other.call_wake_ups.wake("acme")
            return bool(recorder.received and organizations)

        assert await poll_until_true(have_both_arrived, 60)


async def test_wake_ups_pass_after_a_connection_went_silent(open_process: OpenStores, redis_url: str) -> None:
    async with (
        faulty_proxy(redis_url) as proxy,
        open_process(proxy.redis_url) as stores,
        open_process() as other,
        recorded_wake_ups(stores.call_wake_ups) as organizations,
    ):
        proxy.drop_traffic_of_open_connections()

        async def is_woken() -> bool:
            other.call_wake_ups.wake("acme")
            return bool(organizations)

        assert await poll_until_true(is_woken)


@asynccontextmanager
async def tls_terminator(folder: Path, redis_url: str) -> AsyncIterator[str]:
    """Serves TLS in front of Redis. Yields a URL with the option that makes the client trust the certificate."""
    context, _ = create_tls_contexts("localhost", folder)
    server_port = urlsplit(redis_url).port

    async def copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        while data := await source.read(65_536):
            target.write(data)
            await target.drain()
        target.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await asyncio.open_connection("127.0.0.1", server_port)
        await asyncio.gather(copy(reader, server_writer), copy(server_reader, writer), return_exceptions=True)

    async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context) as server:
        port = server.sockets[0].getsockname()[1]
        yield f"rediss://localhost:{port}/0?ssl_ca_certs={folder / 'certificate.pem'}"


async def test_rediss_checks_the_certificate(tmp_path: Path, redis_url: str) -> None:
    async with tls_terminator(tmp_path, redis_url) as url:
        async with redis_client(url, Redis, 5.0) as client:
            assert await client.ping()
        untrusted_url = url.partition("?")[0]
        async with redis_client(untrusted_url, Redis, 5.0) as client:
            with pytest.raises(RedisError, match="certificate verify failed"):
                await client.ping()


async def test_events_arrive_over_tls(
    tmp_path: Path, redis_url: str, scenario: TopicScenario, open_process: OpenStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("storage.streams.hub.COMPARE_EVERY_S", 3600.0)
    async with (
        tls_terminator(tmp_path, redis_url) as url,
        open_process(url) as stores,
        recorded_events(stores.hub, scenario.stream) as recorder,
    ):
        await scenario.post()
        assert await recorder.wait_for_event(1)


async def test_wrong_password_is_an_error(sentinel_group: SentinelGroup) -> None:
    wrong_url = sentinel_group.url.replace(QUOTED_PASSWORD, "wrong")
    async with (
        redis_client(sentinel_group.url, Redis, 5.0) as client,
        redis_client(wrong_url, Redis, 5.0) as refused_client,
    ):
        assert await client.ping()
        with pytest.raises(RedisError):
            await refused_client.ping()
