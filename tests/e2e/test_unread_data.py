"""Clients that send and never read cost little memory, and affect no other client."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from urllib.parse import urlsplit

import orjson
import pytest
from websockets.frames import Frame, Opcode

from tests.client import client
from tests.e2e.chat_topic import ChatTopic, create_chat_topic, post
from tests.e2e.process_memory import forget_peak, memory_mib, needs_proc, peak_memory_mib
from tests.e2e.test_hostile_clients import RawWebSocket
from tests.serving import WebProcess, web_process

RFC_PING = Frame(Opcode.PING, b"x" * 125).serialize(mask=True)
PROTOCOL_PING = Frame(Opcode.TEXT, b'{"type":"ping"}').serialize(mask=True)
FLOOD_BYTES = 160 << 20
MAX_GROWTH_MIB = 90
MAX_UNSENT_MIB = 64
MESSAGES = 200
# A page of these messages takes 2.4 MB.
TEXT = "狼" * 4_000
PAGE = 'query ($id: ID!) { %s: messages(topicId: $id, latest: "now", limit: 200) { items { text } } }'

pytestmark = [pytest.mark.anyio, needs_proc]


@pytest.fixture(scope="module")
def web(
    tmp_path_factory: pytest.TempPathFactory, mongodb_uri: str, redis_url: str, shared_database: str
) -> Iterator[WebProcess]:
    with web_process(tmp_path_factory.mktemp("web"), mongodb_uri, redis_url, database=shared_database) as web:
        yield web


async def fill_topic(web: WebProcess) -> ChatTopic:
    """Creates a topic with long messages."""
    async with client(web.url, web.token()) as ann:
        chat = await create_chat_topic(ann)
        for _ in range(MESSAGES // 20):
            await asyncio.gather(*(post(chat, ann, TEXT) for _ in range(20)))
        return chat


def flood(sock: socket.socket, frame: bytes) -> None:
    """Sends the frame until FLOOD_BYTES are sent, the server closes the connection, or it stops reading for 2 s."""
    sock.settimeout(2)
    sent_bytes, block = 0, frame * 100
    with suppress(OSError):
        while sent_bytes < FLOOD_BYTES:
            sock.sendall(block)
            sent_bytes += len(block)


def sign_in(ws: RawWebSocket, web: WebProcess, user: str = "ann") -> None:
    ws.send({"type": "connection_init", "payload": {"authorization": f"Bearer {web.token(user)}"}})
    ws.read_until(b"connection_ack")


def assert_others_are_served(web: WebProcess) -> None:
    with closing(RawWebSocket(web.url)) as other:
        sign_in(other, web, "bob")
        other.send({"id": "1", "type": "subscribe", "payload": {"query": "{ viewer { id } }"}})
        other.read_until(b'"bob"')


async def warm_up(web: WebProcess, chat: ChatTopic) -> None:
    """Runs one query and resets the peak of memory, so that only the test causes later growth."""
    async with client(web.url, web.token()) as ann:
        await ann.run(PAGE % "page", id=chat.topic)
    forget_peak(web)


@pytest.mark.parametrize("ping", [RFC_PING, PROTOCOL_PING], ids=["rfc", "protocol"])
@pytest.mark.parametrize("signs_in", [False, True], ids=["before_init", "after_init"])
async def test_flood_of_pings_takes_little_memory(web: WebProcess, ping: bytes, signs_in: bool) -> None:
    before_mib = memory_mib(web)
    forget_peak(web)
    with closing(RawWebSocket(web.url)) as hostile:
        if signs_in:
            sign_in(hostile, web)
        flood(hostile.socket, ping)
        assert_others_are_served(web)
    assert peak_memory_mib(web) - before_mib < MAX_GROWTH_MIB


async def test_unread_answers_of_a_socket_take_little_memory(web: WebProcess) -> None:
    chat = await fill_topic(web)
    await warm_up(web, chat)
    before_mib = memory_mib(web)
    with closing(RawWebSocket(web.url)) as hostile:
        sign_in(hostile, web)
        hostile.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        payload = {"query": PAGE % "page", "variables": {"id": chat.topic}}
        messages = [{"id": f"{n}", "type": "subscribe", "payload": payload} for n in range(50)]
        frames = [Frame(Opcode.TEXT, orjson.dumps(message)).serialize(mask=True) for message in messages]
        # The server reads all messages at once, before it has answered one.
        hostile.socket.sendall(b"".join(frames))
        hostile.read_until(b"next")
        for _ in range(5):
            assert_others_are_served(web)
    assert peak_memory_mib(web) - before_mib < MAX_GROWTH_MIB


def send_query_without_reading(web: WebProcess, query: str, topic: str) -> socket.socket:
    """Sends a query over HTTP, and returns the socket, whose receive buffer is small."""
    sock, address = socket.socket(), urlsplit(web.url)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.settimeout(30)
    sock.connect((address.hostname, address.port))
    body = orjson.dumps({"query": query, "variables": {"id": topic}})
    head = (
        f"POST /graphql HTTP/1.1\r\nHost: {address.netloc}\r\nAuthorization: Bearer {web.token()}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    sock.sendall(head.encode() + body)
    return sock


async def test_unread_responses_of_all_clients_are_bounded(web: WebProcess) -> None:
    chat = await fill_topic(web)
    await warm_up(web, chat)
    before_mib = memory_mib(web)
    with ExitStack() as stack:
        for n in range(80):
            sock = stack.enter_context(send_query_without_reading(web, PAGE % f"page{n}", chat.topic))
            sock.recv(1, socket.MSG_PEEK)
        assert_others_are_served(web)
    assert peak_memory_mib(web) - before_mib < MAX_UNSENT_MIB + MAX_GROWTH_MIB
