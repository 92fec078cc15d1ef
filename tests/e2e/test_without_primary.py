"""Without a primary, hundreds of requests of all kinds get the error of an overload or outage, in bounded memory."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import orjson
import pytest
from pymongo import AsyncMongoClient

from server.embedded import Mongod
from tests.client import Client, GraphQLFailed, client
from tests.e2e.chat_topic import ChatTopic, create_chat_topic, join, post
from tests.e2e.process_memory import forget_peak, memory_mib, needs_proc, peak_memory_mib
from tests.serving import WebProcess, web_process

MAX_GROWTH_MIB = 80
USERS = 10
REQUESTS_PER_KIND = 60
EXPECTED_CODES = {"UNAVAILABLE", "RATE_LIMITED"}
POST = "mutation ($input: PostMessageInput!) { postMessage(input: $input) { id } }"
READ = 'query ($topic: ID!) { messages(topicId: $topic, latest: "now", limit: %d) { items { text } } }'
DELIVERY = b'{"eventId":"%d","address":"a@example.org","at":"2026-01-01T00:00:00Z","diagnostic":"%s"}'

pytestmark = [pytest.mark.anyio, needs_proc]


@pytest.fixture
def web(tmp_path_factory: pytest.TempPathFactory, own_mongod: Mongod, redis_url: str) -> Iterator[WebProcess]:
    # With a direct connection, the driver would read from the member after it stepped down.
    uri = f"mongodb://{own_mongod.address}/?replicaSet=rs0"
    with web_process(tmp_path_factory.mktemp("web"), uri, redis_url) as web:
        yield web


@asynccontextmanager
async def without_primary(mongod: Mongod) -> AsyncIterator[None]:
    """Makes the only member of the replica set step down during the block."""
    direct: AsyncMongoClient[dict[str, Any]] = AsyncMongoClient(f"mongodb://{mongod.address}/?directConnection=true")
    async with direct:
        await direct.admin.command("replSetStepDown", 3600, force=True)
        try:
            yield
        finally:
            await direct.admin.command("replSetFreeze", 0)


def codes_of(result: dict[str, Any]) -> list[str]:
    """Returns the codes of all errors, or "answered"."""
    return [error["extensions"]["code"] for error in result.get("errors", ())] or ["answered"]


async def ingest(web: WebProcess, http: httpx2.AsyncClient, number: int) -> list[str]:
    """Sends delivery events in a body of half a megabyte."""
    token = web.token("mta", roles=("SERVICE",))
    body = DELIVERY % (number, b"x" * 500_000)
    headers = {"authorization": f"Bearer {token}"}
    response = await http.post(f"{web.url}/ingest/deliveries", content=body, headers=headers)
    return codes_of(orjson.loads(response.content))


async def send_by_socket(person: Client, chat: ChatTopic) -> list[str]:
    """Sends ten queries over one socket."""
    async with person.socket() as socket:
        ids = {await socket.subscribe(READ % 20, topic=chat.topic) for _ in range(10)}
        codes: list[str] = []
        while len(codes) < len(ids):
            frame = await socket.next_frame()
            if frame["type"] == "next":
                codes += codes_of(frame["payload"])
            elif frame["type"] == "error":
                codes += codes_of({"errors": frame["payload"]})
    return codes


async def send_all_kinds(web: WebProcess, people: list[Client], chat: ChatTopic) -> Counter[str]:
    """Sends hundreds of requests at once. Returns how often each code occurred."""

    async def send(person: Client, query: str, **variables: Any) -> list[str]:
        return codes_of(await person.execute(query, **variables))

    requests = []
    for n in range(REQUESTS_PER_KIND):
        person = people[n % len(people)]
        requests.append(send(person, POST, input={"topicId": chat.topic, "text": "狼" * 4000}))
        requests.append(send(person, READ % (n + 1), topic=chat.topic))
        requests.append(send(person, READ % 50, topic=chat.topic))
        requests.append(ingest(web, person.http, n))
    requests += [send_by_socket(person, chat) for person in people]
    return Counter(code for codes in await asyncio.gather(*requests) for code in codes)


async def can_post(person: Client, chat: ChatTopic) -> bool:
    try:
        await post(chat, person, "back")
    except GraphQLFailed:
        return False
    return True


@pytest.mark.timeout(240)
async def test_requests_without_primary_get_documented_errors(web: WebProcess, own_mongod: Mongod) -> None:
    limits = httpx2.Limits(max_connections=None)
    async with httpx2.AsyncClient(timeout=60, limits=limits) as http:
        people = [Client(web.url, web.token(f"user{n}"), http) for n in range(USERS)]
        chat = await create_chat_topic(people[0])
        await join(chat, *people)
        await ingest(web, http, 0)
        before_mib = memory_mib(web)
        forget_peak(web)
        async with without_primary(own_mongod):
            codes = await send_all_kinds(web, people, chat)
        assert codes.keys() <= EXPECTED_CODES, codes
        assert codes.total() == 4 * REQUESTS_PER_KIND + 10 * USERS
        assert peak_memory_mib(web) - before_mib < MAX_GROWTH_MIB
        async with asyncio.timeout(60), client(web.url, web.token("user1")) as person:
            while not await can_post(person, chat):
                await asyncio.sleep(0.1)
