"""A subscriber that is disconnected repeatedly, while servers are killed, receives every event once and in order."""

import asyncio
import os
import random
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator
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
from tests.serving import web_process
from tests.websocket_handshake import handshake_request

AUTHORS = 4
BATCH_SIZE = 15
TIMEOUT_S = 30


@dataclass
class ResumeProgress:
    """The planned and the past disconnects, and the posted and received messages.

    Posting is spread over the disconnects, so that events are missed during each.
    """

    chat: ChatTopic
    planned_disconnects: int
    messages: int
    posted: int = 0
    disconnects: int = 0
    since: str | None = None
    events: list[dict[str, Any]] = field(default_factory=list)
    end_reasons: Counter[str] = field(default_factory=Counter)
    longest_silence_s: float = 0
    last_event_at: float = 0

    @property
    def is_complete(self) -> bool:
        return len(self.events) >= self.messages

    def may_post(self) -> bool:
        """Returns whether the next batch is due. No batch is due before the subscriber has a cursor to resume from."""
        return (
            self.since is not None and self.posted / self.messages <= (self.disconnects + 2) / self.planned_disconnects
        )

    def record(self, event: dict[str, Any]) -> None:
        """Records an event and its cursor. Asserts that the event follows the last one."""
        if event["__typename"] == "StreamReady":
            if self.since is not None:
                assert (event["resumed"], event["cursor"]) == (True, self.since)
        else:
            assert self.since is not None
            assert cursor_position(event["cursor"]) == cursor_position(self.since) + 1
            self.events.append(event)
        now = time.monotonic()
        self.longest_silence_s = max(self.longest_silence_s, now - (self.last_event_at or now))
        self.last_event_at = now
        self.since = event["cursor"]


@dataclass(frozen=True)
class PlannedDisconnect:
    """The time of a disconnect: while subscribing, after a number of bytes, or after some seconds."""

    while_subscribing: bool = False
    after_bytes: float = float("inf")
    after_s: float = TIMEOUT_S


def random_disconnect(rng: random.Random) -> PlannedDisconnect:
    kind = rng.random()
    if kind < 0.1:
        return PlannedDisconnect(while_subscribing=True)
    if kind < 0.5:
        return PlannedDisconnect(after_bytes=rng.randint(1, 20_000), after_s=0.5)
    return PlannedDisconnect(after_s=rng.uniform(0, 0.25))


class ByteCountingWebSocket:
    """A WebSocket client that counts received bytes, so that it can disconnect within a frame."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self.buffer = bytearray()
        self.bytes_left: float = float("inf")

    async def handshake(self, host: str) -> None:
        self._writer.write(handshake_request(host))
        await self._reader.readuntil(b"\r\n\r\n")

    def send(self, message: object, share: float = 1) -> None:
        """Sends a text frame, or only its beginning: `share` is the share of its bytes that is sent."""
        self._write(Opcode.TEXT, orjson.dumps(message), share)

    def _write(self, opcode: Opcode, payload: bytes, share: float = 1) -> None:
        data = Frame(opcode, payload).serialize(mask=True)
        self._writer.write(data[: int(len(data) * share)])

    async def messages(self) -> AsyncIterator[dict[str, Any]]:
        """Yields the messages of text frames. Raises: ConnectionError when either side closes."""
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
                raise ConnectionResetError("byte limit reached" if self.bytes_left < 1 else "closed by the server")
            self.bytes_left -= len(received)
            self.buffer += received

    def _next_frame(self) -> tuple[int, bytes] | None:
        """Removes the first complete frame from the buffer, and returns it. Servers do not mask their frames."""
        if len(self.buffer) < 2:
            return None
        length_code = self.buffer[1] & 0x7F
        start = {126: 4, 127: 10}.get(length_code, 2)
        if len(self.buffer) < start:
            return None
        end = start + (length_code if start == 2 else int.from_bytes(self.buffer[2:start]))
        if len(self.buffer) < end:
            return None
        frame = self.buffer[0] & 0x0F, bytes(self.buffer[start:end])
        del self.buffer[:end]
        return frame

    def abort(self) -> None:
        self._writer.transport.abort()


async def read_with_disconnects(progress: ResumeProgress, url: str, token: str, rng: random.Random) -> None:
    """Reads until every event has arrived. Disconnects and resumes as often as planned."""
    while not progress.is_complete:
        disconnect = (
            random_disconnect(rng) if progress.disconnects < progress.planned_disconnects else PlannedDisconnect()
        )
        address = urlsplit(url)
        connection = ByteCountingWebSocket(*await asyncio.open_connection(address.hostname, address.port))
        try:
            await connection.handshake(address.netloc)
            await read_connection(progress, connection, token, disconnect)
        except (ConnectionError, TimeoutError, asyncio.IncompleteReadError) as error:
            progress.end_reasons[str(error) or "time limit reached"] += 1
            progress.end_reasons["within a frame"] += bool(connection.buffer)
        finally:
            connection.abort()
        progress.disconnects += 1


async def read_connection(
    progress: ResumeProgress, connection: ByteCountingWebSocket, token: str, disconnect: PlannedDisconnect
) -> None:
    """Reads events from one connection. Raises: ConnectionError, TimeoutError when the connection ends."""
    connection.send({"type": "connection_init", "payload": {"authorization": f"Bearer {token}"}})
    payload = {"query": POSTED_EVENTS, "variables": {"topic": progress.chat.topic, "since": progress.since}}
    async with asyncio.timeout(TIMEOUT_S) as deadline:
        async for message in connection.messages():
            if message["type"] == "connection_ack":
                share = 0.5 if disconnect.while_subscribing else 1
                connection.send({"id": "1", "type": "subscribe", "payload": payload}, share)
                if disconnect.while_subscribing:
                    return
                continue
            assert message["type"] == "next", message
            event = message["payload"]["data"]["topicEvents"]
            progress.record(event)
            if event["__typename"] == "StreamReady":
                connection.bytes_left = disconnect.after_bytes
                deadline.reschedule(asyncio.get_running_loop().time() + disconnect.after_s)
            if progress.is_complete:
                return


async def post_all(progress: ResumeProgress, author: Client, texts: list[str]) -> None:
    """Posts every text, with retries. Idempotency keys prevent repeated messages."""
    for start in range(0, len(texts), BATCH_SIZE):
        while not progress.may_post():
            await asyncio.sleep(0.005)
        batch = texts[start : start + BATCH_SIZE]
        while not await post_batch(progress.chat, author, batch):
            await asyncio.sleep(0.1)
        progress.posted += len(batch)


async def post_batch(chat: ChatTopic, author: Client, texts: list[str]) -> bool:
    """Posts a batch. Returns whether it is acknowledged; False means that the outcome is unknown."""
    declared = ", ".join(f"$i{n}: PostMessageInput!" for n in range(len(texts)))
    fields = " ".join(f"m{n}: postMessage(input: $i{n}) {{ id }}" for n in range(len(texts)))
    variables = {f"i{n}": {"topicId": chat.topic, "text": text, "idempotencyKey": text} for n, text in enumerate(texts)}
    try:
        result = await author.execute(f"mutation ({declared}) {{ {fields} }}", **variables)
    except (httpx2.HTTPError, orjson.JSONDecodeError):
        return False
    codes = {error["extensions"]["code"] for error in result.get("errors", [])}
    assert codes <= {"UNAVAILABLE"}
    return not codes


async def kill_redis_and_web_process(progress: ResumeProgress, product: DeployedProduct) -> None:
    """Kills Redis after a third of the disconnects, and a web process after two thirds."""
    for share, command in ((1 / 3, "valkey-server"), (2 / 3, "noroshi web")):
        while progress.disconnects < progress.planned_disconnects * share:
            await asyncio.sleep(0.01)
        pid = product.processes.child(command)
        os.kill(pid, signal.SIGKILL)


async def run_resume_scenario(product: DeployedProduct, disconnects: int, messages: int) -> ResumeProgress:
    """Posts and reads all messages, and asserts that the subscriber has received each message once and in order."""
    async with AsyncExitStack() as stack:
        names = [f"u{n}" for n in range(AUTHORS)]
        people = [await stack.enter_async_context(client(product.url, product.token(name))) for name in names]
        progress = ResumeProgress(await create_chat_topic(people[0]), disconnects, messages)
        await join(progress.chat, *people[1:])
        texts_by_author = [[f"{name}-{n}" for n in range(i, messages, AUTHORS)] for i, name in enumerate(names)]
        began_s = time.monotonic()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(kill_redis_and_web_process(progress, product))
            tasks.create_task(
                read_with_disconnects(progress, product.url, product.token("u0"), random.Random(disconnects))
            )
            for person, texts in zip(people, texts_by_author, strict=True):
                tasks.create_task(post_all(progress, person, texts))
        took_s = time.monotonic() - began_s
        timeline = await all_messages(progress.chat, people[0], "text timestamp")
    print(
        f"{disconnects} disconnects, {messages} messages in {took_s:.1f} s; "
        f"longest silence {progress.longest_silence_s:.1f} s; {progress.end_reasons}"
    )
    assert sorted(message["text"] for message in timeline) == sorted(
        text for texts in texts_by_author for text in texts
    )
    assert [message["timestamp"] for message in timeline] == sorted({message["timestamp"] for message in timeline})
    assert [event["message"] for event in progress.events] == timeline
    assert len({event["cursor"] for event in progress.events}) == messages
    assert progress.end_reasons["within a frame"]
    return progress


@pytest.mark.anyio
@pytest.mark.timeout(180)
async def test_resume_through_30_disconnects_and_kills_misses_nothing(product: DeployedProduct) -> None:
    progress = await run_resume_scenario(product, disconnects=30, messages=600)
    assert progress.longest_silence_s < TIMEOUT_S


@pytest.mark.soak
@pytest.mark.anyio
@pytest.mark.timeout(600)
async def test_resume_through_200_disconnects_and_kills_misses_nothing(product: DeployedProduct) -> None:
    await run_resume_scenario(product, disconnects=200, messages=5000)


@pytest.mark.anyio
async def test_resume_ahead_of_lagging_process_repeats_nothing(tmp_path: Path, mongodb_uri: str) -> None:
    valkey = Valkey(tmp_path / "redis", find_valkey())
    await valkey.start()
    assert valkey.pid is not None
    async with AsyncExitStack() as stack:
        stack.push_async_callback(valkey.stop, 0)
        one = stack.enter_context(web_process(tmp_path / "one", mongodb_uri, valkey.url))
        other = stack.enter_context(web_process(tmp_path / "other", mongodb_uri, valkey.url, shared=one))
        ann, lagging = [await stack.enter_async_context(client(web.url, one.token())) for web in (one, other)]
        chat = await create_chat_topic(ann)
        _, start = await stack.enter_async_context(subscribed(chat, lagging))
        os.kill(valkey.pid, signal.SIGSTOP)
        stack.callback(os.kill, valkey.pid, signal.SIGCONT)
        await post(chat, ann, "only one process knows")
        async with subscribed(chat, ann, since=start["cursor"]) as (socket, _):
            (received,) = await events(socket, 1)
        async with subscribed(chat, lagging, since=received["cursor"]) as (socket, ready):
            assert (ready["resumed"], ready["cursor"]) == (True, received["cursor"])
            os.kill(valkey.pid, signal.SIGCONT)
            await post(chat, ann, "all know")
            (event,) = await events(socket, 1)
            assert event["message"]["text"] == "all know"
