"""A subscriber that is disconnected repeatedly while servers are killed gets every event once and in order."""

import asyncio
import os
import random
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import orjson
import pytest
from websockets.frames import Frame, Opcode

from server.embedded import Valkey, find_valkey
from tests.client import Client, client
from tests.e2e.chat_topic import (
    POSTED_EVENTS,
    ChatTopic,
    all_messages,
    create_chat_topic,
    cursor_position,
    events,
    join,
    post,
    subscribed,
)
from tests.e2e.conftest import DeployedProduct
from tests.product import running_product
from tests.serving import web_process

POSTERS = 4
BATCH = 15
PATIENCE_S = 30
HANDSHAKE = (
    "GET /graphql HTTP/1.1\r\nHost: {}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: graphql-transport-ws\r\n\r\n"
)


@pytest.fixture
def breakable(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeployedProduct]:
    """A product of the test's own, whose processes may be killed."""
    data_dir = tmp_path_factory.mktemp("breakable") / "data"
    with running_product(data_dir, "--web", "2") as processes:
        yield DeployedProduct(processes.url, data_dir, processes)


@dataclass
class Run:
    """Posted and received messages so far. Posting keeps pace with the disconnects, so that each misses events."""

    chat: ChatTopic
    cuts: int
    messages: int
    posted: int = 0
    cut: int = 0
    since: str | None = None
    events: list[dict[str, Any]] = field(default_factory=list)
    ends: Counter[str] = field(default_factory=Counter)
    longest_silence_s: float = 0
    heard_at: float = 0

    @property
    def is_over(self) -> bool:
        return len(self.events) >= self.messages

    def may_post(self) -> bool:
        """Returns whether the next batch is due; none is before there is a cursor to resume from."""
        return self.since is not None and self.posted / self.messages <= (self.cut + 2) / self.cuts

    def hear(self, event: dict[str, Any]) -> None:
        """Records an event and its cursor. The event must follow the last one."""
        if event["__typename"] == "StreamReady":
            if self.since is not None:
                assert (event["resumed"], event["cursor"]) == (True, self.since)
        else:
            assert self.since is not None
            assert cursor_position(event["cursor"]) == cursor_position(self.since) + 1
            self.events.append(event)
        now = time.monotonic()
        self.longest_silence_s = max(self.longest_silence_s, now - (self.heard_at or now))
        self.heard_at = now
        self.since = event["cursor"]


@dataclass(frozen=True)
class Cut:
    """When a connection ends: while subscribing, after a number of bytes, or after some seconds."""

    while_subscribing: bool = False
    after_bytes: float = float("inf")
    after_s: float = PATIENCE_S


def a_cut(dice: random.Random) -> Cut:
    kind = dice.random()
    if kind < 0.1:
        return Cut(while_subscribing=True)
    if kind < 0.5:
        return Cut(after_bytes=dice.randint(1, 20_000), after_s=0.5)
    return Cut(after_s=dice.uniform(0, 0.25))


class Connection:
    """A WebSocket read byte by byte, so that it can end within a frame."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self.buffer = bytearray()
        self.bytes_left: float = float("inf")

    async def shake_hands(self, host: str) -> None:
        self._writer.write(HANDSHAKE.format(host).encode())
        await self._reader.readuntil(b"\r\n\r\n")

    def send(self, message: object, part: float = 1) -> None:
        """Sends a text frame, or the first part of one."""
        self._write(Opcode.TEXT, orjson.dumps(message), part)

    def _write(self, opcode: Opcode, payload: bytes, part: float = 1) -> None:
        data = Frame(opcode, payload).serialize(mask=True)
        self._writer.write(data[: int(len(data) * part)])

    async def messages(self) -> AsyncIterator[dict[str, Any]]:
        """Yields frames as they arrive. Raises: ConnectionError when either side closes."""
        while True:
            while (frame := self._next_frame()) is not None:
                opcode, payload = frame
                if opcode == Opcode.CLOSE:
                    raise ConnectionResetError(f"closed with {int.from_bytes(payload[:2])}")
                if opcode == Opcode.PING:
                    self._write(Opcode.PONG, payload)
                if opcode == Opcode.TEXT:
                    yield orjson.loads(payload)
            received = await self._reader.read(int(min(self.bytes_left, 65_536)))
            if not received:
                raise ConnectionResetError("cut off" if self.bytes_left < 1 else "hung up")
            self.bytes_left -= len(received)
            self.buffer += received

    def _next_frame(self) -> tuple[int, bytes] | None:
        """Returns the first whole frame. Frames of servers are not masked."""
        if len(self.buffer) < 2:
            return None
        short = self.buffer[1] & 0x7F
        start = {126: 4, 127: 10}.get(short, 2)
        if len(self.buffer) < start:
            return None
        end = start + (short if start == 2 else int.from_bytes(self.buffer[2:start]))
        if len(self.buffer) < end:
            return None
        frame = self.buffer[0] & 0x0F, bytes(self.buffer[start:end])
        del self.buffer[:end]
        return frame

    def abort(self) -> None:
        self._writer.transport.abort()


async def listen(run: Run, url: str, token: str, dice: random.Random) -> None:
    """Reads until every event arrived, disconnecting and resuming as often as planned."""
    while not run.is_over:
        cut = a_cut(dice) if run.cut < run.cuts else Cut()
        address = urlsplit(url)
        connection = Connection(*await asyncio.open_connection(address.hostname, address.port))
        try:
            await connection.shake_hands(address.netloc)
            await listen_once(run, connection, token, cut)
        except (ConnectionError, TimeoutError, asyncio.IncompleteReadError) as error:
            run.ends[str(error) or "out of time"] += 1
            run.ends["in the middle of a frame"] += bool(connection.buffer)
        finally:
            connection.abort()
        run.cut += 1


async def listen_once(run: Run, connection: Connection, token: str, cut: Cut) -> None:
    """Reads events of one connection. Raises: ConnectionError, TimeoutError when it ends."""
    connection.send({"type": "connection_init", "payload": {"authorization": f"Bearer {token}"}})
    payload = {"query": POSTED_EVENTS, "variables": {"topic": run.chat.topic, "since": run.since}}
    async with asyncio.timeout(PATIENCE_S) as patience:
        async for message in connection.messages():
            if message["type"] == "connection_ack":
                part = 0.5 if cut.while_subscribing else 1
                connection.send({"id": "1", "type": "subscribe", "payload": payload}, part)
                if cut.while_subscribing:
                    return
                continue
            assert message["type"] == "next", message
            event = message["payload"]["data"]["topicEvents"]
            run.hear(event)
            if event["__typename"] == "StreamReady":
                connection.bytes_left = cut.after_bytes
                patience.reschedule(asyncio.get_running_loop().time() + cut.after_s)
            if run.is_over:
                return


async def post_all(run: Run, author: Client, texts: list[str]) -> None:
    """Posts every text, with retries: idempotency keys prevent repeated messages."""
    for start in range(0, len(texts), BATCH):
        while not run.may_post():
            await asyncio.sleep(0.005)
        batch = texts[start : start + BATCH]
        while not await is_posted(run.chat, author, batch):
            await asyncio.sleep(0.1)
        run.posted += len(batch)


async def is_posted(chat: ChatTopic, author: Client, texts: list[str]) -> bool:
    """Returns whether the batch is posted; False when the outcome is unknown."""
    declared = ", ".join(f"$i{n}: PostMessageInput!" for n in range(len(texts)))
    fields = " ".join(f"m{n}: postMessage(input: $i{n}) {{ id }}" for n in range(len(texts)))
    given = {f"i{n}": {"topicId": chat.topic, "text": text, "idempotencyKey": text} for n, text in enumerate(texts)}
    try:
        answer = await author.post(f"mutation ({declared}) {{ {fields} }}", **given)
    except (httpx2.HTTPError, orjson.JSONDecodeError):
        return False
    codes = {error["extensions"]["code"] for error in answer.get("errors", [])}
    assert codes <= {"UNAVAILABLE"}
    return not codes


async def break_things(run: Run, product: DeployedProduct) -> None:
    """Kills Redis after a third of the disconnects, and a web process after two thirds."""
    for share, words in ((1 / 3, "valkey-server"), (2 / 3, "noroshi web")):
        while run.cut < run.cuts * share:
            await asyncio.sleep(0.01)
        pid = product.processes.child(words)
        os.kill(pid, signal.SIGKILL)


async def cut_off_again_and_again(product: DeployedProduct, cuts: int, messages: int) -> Run:
    """Runs a plan to its end and checks the result."""
    async with AsyncExitStack() as stack:
        names = [f"u{n}" for n in range(POSTERS)]
        people = [await stack.enter_async_context(client(product.url, product.token(name))) for name in names]
        run = Run(await create_chat_topic(people[0]), cuts, messages)
        await join(run.chat, *people[1:])
        shares = [[f"{name}-{n}" for n in range(i, messages, POSTERS)] for i, name in enumerate(names)]
        began = time.monotonic()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(break_things(run, product))
            tasks.create_task(listen(run, product.url, product.token("u0"), random.Random(cuts)))
            for person, texts in zip(people, shares, strict=True):
                tasks.create_task(post_all(run, person, texts))
        took_s = time.monotonic() - began
        timeline = await all_messages(run.chat, people[0], "text timestamp")
    print(
        f"{cuts} cuts, {messages} messages in {took_s:.1f} s; longest silence {run.longest_silence_s:.1f} s; {run.ends}"
    )
    assert sorted(message["text"] for message in timeline) == sorted(text for texts in shares for text in texts)
    assert [message["timestamp"] for message in timeline] == sorted({message["timestamp"] for message in timeline})
    assert [event["message"] for event in run.events] == timeline
    assert len({event["cursor"] for event in run.events}) == messages
    assert run.ends["in the middle of a frame"]
    return run


@pytest.mark.anyio
@pytest.mark.timeout(180)
async def test_resume_through_60_cuts_and_2_kills_misses_nothing(breakable: DeployedProduct) -> None:
    run = await cut_off_again_and_again(breakable, cuts=60, messages=1500)
    assert run.longest_silence_s < PATIENCE_S


@pytest.mark.soak
@pytest.mark.anyio
@pytest.mark.timeout(600)
async def test_resume_through_200_cuts_and_2_kills_misses_nothing(breakable: DeployedProduct) -> None:
    await cut_off_again_and_again(breakable, cuts=200, messages=5000)


@pytest.mark.anyio
async def test_resume_ahead_of_lagging_process_repeats_nothing(tmp_path: Path, mongodb_uri: str) -> None:
    valkey = Valkey(tmp_path / "redis", find_valkey())
    await valkey.start()
    assert valkey.pid is not None
    async with AsyncExitStack() as stack:
        stack.push_async_callback(valkey.stop, 0)
        one = stack.enter_context(web_process(tmp_path / "one", mongodb_uri, valkey.url))
        other = stack.enter_context(web_process(tmp_path / "other", mongodb_uri, valkey.url, shared=one))
        ann, behind = [await stack.enter_async_context(client(web.url, one.token())) for web in (one, other)]
        chat = await create_chat_topic(ann)
        _, start = await stack.enter_async_context(subscribed(chat, behind))
        os.kill(valkey.pid, signal.SIGSTOP)
        stack.callback(os.kill, valkey.pid, signal.SIGCONT)
        await post(chat, ann, "only one process knows")
        async with subscribed(chat, ann, since=start["cursor"]) as (socket, _):
            (seen,) = await events(socket, 1)
        async with subscribed(chat, behind, since=seen["cursor"]) as (socket, ready):
            assert (ready["resumed"], ready["cursor"]) == (True, seen["cursor"])
            os.kill(valkey.pid, signal.SIGCONT)
            await post(chat, ann, "all know")
            (heard,) = await events(socket, 1)
            assert heard["message"]["text"] == "all know"
