"""Load generator of the benchmark of event delivery: many graphql-transport-ws sockets in one process.

A sample of the sockets is read whenever data arrive, and each of their frames is parsed for latency, order and gaps.
All other sockets are read every 20 ms, and their frames are only counted by the headers. The first line on stdin is a
SubscriptionLoadSpec as JSON. Each further line is a command, answered by one line of JSON. Linux only.
"""

import gc
import os
import select
import socket
import struct
import sys
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import orjson

MAX_CONNECTING = 64
MAX_RECONNECTING = 2000
CONNECT_TIMEOUT_S = 120.0
FIRST_EVENT_TIMEOUT_S = 240.0
RESET_ON_CLOSE = struct.pack("ii", 1, 0)
"""SO_LINGER with a time of 0: closing sends RST and no FIN, as if the connection had been lost."""

BUFFER_BYTES = 1 << 20
SWEEP_INTERVAL_S = 0.02
"""Interval between two reads of the sockets whose frames are only counted."""

MAX_SOCKETS_PER_POLL = 100
TEXT, CLOSE, PING, PONG = 0x81, 0x88, 0x89, 0x8A
# Clients must mask their frames. A masking key of zeros leaves the payload unchanged.
MASKED, MASKING_KEY = 0x80, b"\0\0\0\0"


@dataclass(frozen=True, slots=True)
class SubscriptionLoadSpec:
    """A subscription, with a socket for each token.

    `field` is its root field; `sample_size` is the number of sockets in the sample.
    """

    port: int
    tokens: list[str]
    query: str
    field: str
    variables: dict[str, Any]
    sample_size: int


@dataclass(slots=True)
class DeliveryTally:
    """Measurements since the last `reset`."""

    latencies_ms: list[float] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    began_s: float = field(default_factory=time.monotonic)
    last_s: float = 0.0
    """When the last data arrived, by the monotonic clock."""

    began_cpu_s: float = field(default_factory=time.process_time)
    """Processor time of this process at the last `reset`."""

    frame_bytes: int = 0


def client_frame(opcode: int, payload: bytes) -> bytes:
    """Returns a masked frame of a client."""
    if len(payload) < 126:
        return bytes((opcode, MASKED | len(payload))) + MASKING_KEY + payload
    return bytes((opcode, MASKED | 126)) + len(payload).to_bytes(2) + MASKING_KEY + payload


class ResumingSubscriber:
    """A socket with one subscription. It resumes after the last event of `predecessor`, which must be sampled."""

    def __init__(
        self, load: "LoadGenerator", token: str, is_sampled: bool, predecessor: "ResumingSubscriber | None" = None
    ) -> None:
        self.sock = socket.create_connection(("127.0.0.1", load.spec.port))
        self.sock.setblocking(False)
        self.is_ready, self.is_counted_only = False, False
        self.frames, self.frames_at_reset = 0, 0
        self.cursor = predecessor.cursor if predecessor else None
        self.first_event_s = 0.0
        self._load, self._token, self._is_sampled = load, token, is_sampled
        self._id = str(uuid.uuid4())
        self._unparsed, self._bytes_to_skip = b"", 0
        self._last_number: int | None = predecessor._last_number if predecessor else None
        self._is_upgraded = False
        self._send(_handshake(load.spec.port))

    def parse(self, received: memoryview) -> bool:
        """Parses whole frames. Returns whether further frames are only counted."""
        self._unparsed += received
        if self._is_upgraded or self._upgrade():
            for opcode, payload in self._whole_frames():
                if opcode == TEXT:
                    self._handle_message(orjson.loads(payload), len(payload))
                else:
                    self._handle_control_frame(opcode, payload)
        self.is_counted_only = self.is_ready and not self._is_sampled
        return self.is_counted_only

    def _upgrade(self) -> bool:
        """Reads the answer to the handshake. Returns whether the connection was upgraded."""
        head, end, rest = self._unparsed.partition(b"\r\n\r\n")
        if not end:
            return False
        if not head.startswith(b"HTTP/1.1 101"):
            self._load.tally.faults[head.partition(b"\r")[0].decode()] += 1
            return False
        self._is_upgraded, self._unparsed = True, rest
        self._send_message({"type": "connection_init", "payload": {"authorization": f"Bearer {self._token}"}})
        return True

    def _send_message(self, message: dict[str, Any]) -> None:
        self._send(client_frame(TEXT, orjson.dumps(message)))

    def _send(self, data: bytes) -> None:
        # The next read reports a closed connection.
        with suppress(OSError):
            self.sock.send(data)

    def count(self, buffer: bytearray, size: int) -> None:
        """Counts frames by their headers. Every `next` message has 126 to 65,535 bytes."""
        if self._unparsed:
            buffer, size, self._unparsed = bytearray(self._unparsed + buffer[:size]), size + len(self._unparsed), b""
        offset, frames = self._bytes_to_skip, 0
        while size - offset >= 4:
            if buffer[offset + 1] != 126:
                end = offset + 2 + buffer[offset + 1]
                if end > size:
                    break
                self._handle_control_frame(buffer[offset], bytes(buffer[offset + 2 : end]))
                offset = end
                continue
            offset += 4 + (buffer[offset + 2] << 8) + buffer[offset + 3]
            frames += 1
        self.frames += frames
        self._bytes_to_skip = max(offset - size, 0)
        if offset < size:
            self._unparsed = bytes(buffer[offset:size])

    def _whole_frames(self) -> Iterator[tuple[int, bytes]]:
        data, offset = self._unparsed, 0
        while len(data) - offset >= 4:
            length, start = data[offset + 1], offset + 2
            if length == 126:
                length, start = (data[offset + 2] << 8) + data[offset + 3], offset + 4
            if start + length > len(data):
                break
            yield data[offset], data[start : start + length]
            offset = start + length
        self._unparsed = data[offset:]

    def _handle_message(self, message: dict[str, Any], size: int) -> None:
        if message["type"] == "connection_ack":
            resumed = {"since": self.cursor} if self.cursor else {}
            payload = {"query": self._load.spec.query, "variables": self._load.spec.variables | resumed}
            self._send_message({"id": self._id, "type": "subscribe", "payload": payload})
        elif message["type"] != "next" or message["id"] != self._id or "errors" in message["payload"]:
            self._load.tally.faults[orjson.dumps(message).decode()] += 1
        elif not self.is_ready:
            self.is_ready = True
        else:
            self._record_event(message["payload"]["data"][self._load.spec.field], size)

    def _record_event(self, event: dict[str, Any], size: int) -> None:
        tally = self._load.tally
        number, posted_s, _ = event["message"]["text"].split(" ", 2)
        if self._last_number is not None and int(number) != self._last_number + 1:
            tally.faults["out of order" if int(number) <= self._last_number else "a gap"] += 1
        self._last_number, self.cursor = int(number), event["cursor"]
        self.first_event_s = self.first_event_s or self._load.now_s
        self.frames += 1
        tally.latencies_ms.append(1000 * (self._load.now_s - float(posted_s)))
        tally.frame_bytes = size

    def _handle_control_frame(self, opcode: int, payload: bytes) -> None:
        if opcode == PING:
            self._send(client_frame(PONG, payload))
        elif opcode == CLOSE:
            self._load.tally.faults[f"closed with {int.from_bytes(payload[:2])}"] += 1
        else:
            self._load.tally.faults[payload.decode(errors="replace")] += 1


class LoadGenerator:
    """All subscribers, and the tally of their frames. The commands are connect, cut, reset, progress and report."""

    def __init__(self, spec: SubscriptionLoadSpec) -> None:
        self.spec, self.tally, self.now_s = spec, DeliveryTally(), 0.0
        self._parsed_epoll, self._counted_epoll = select.epoll(), select.epoll()
        self._parsed_epoll.register(sys.stdin.fileno(), select.EPOLLIN)
        self._next_sweep_s = 0.0
        self._by_fd: dict[int, ResumingSubscriber] = {}
        self._by_index: dict[int, ResumingSubscriber] = {}
        """Open sockets by the index of their token."""
        self._cut_subscribers: dict[int, ResumingSubscriber] = {}
        self._buffer = bytearray(BUFFER_BYTES)

    def run(self) -> None:
        """Executes commands until the end of stdin."""
        while True:
            if self._read_sockets(SWEEP_INTERVAL_S):
                command = sys.stdin.buffer.readline().strip().decode()
                if not command:
                    return
                self.write_answer(getattr(self, command)())

    @staticmethod
    def write_answer(answer: dict[str, Any]) -> None:
        """Writes the answer to a command as one line."""
        sys.stdout.buffer.write(orjson.dumps(answer) + b"\n")
        sys.stdout.buffer.flush()

    def connect(self, max_connecting: int = MAX_CONNECTING) -> dict[str, Any]:
        """Opens every socket that is not open, at most `max_connecting` at a time."""
        began_s = time.monotonic()
        missing = [index for index in range(len(self.spec.tokens)) if index not in self._by_index]
        opened = len(missing)
        connecting: set[ResumingSubscriber] = set()
        while (missing or connecting) and time.monotonic() < began_s + CONNECT_TIMEOUT_S:
            while missing and len(connecting) < max_connecting:
                connecting.add(self._open(missing.pop()))
            self._read_sockets(0.1)
            connecting = {subscriber for subscriber in connecting if not subscriber.is_ready}
        return {"opened": opened, "seconds": time.monotonic() - began_s, **self.progress()}

    def cut(self) -> dict[str, Any]:
        """Cuts every socket, connects all of them again, and waits until each has received an event.

        Returns the progress and the faults. `connect_s` has the seconds until all sockets were connected again, and
        `first_ms` the milliseconds from the cut to the first event of each socket.
        """
        self._cut_subscribers, self._by_index, self._by_fd = self._by_index, {}, {}
        for subscriber in self._cut_subscribers.values():
            subscriber.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
            subscriber.sock.close()
        cut_at_s = time.monotonic()
        connected = self.connect(MAX_RECONNECTING)
        while self.progress()["least"] == 0 and time.monotonic() < cut_at_s + FIRST_EVENT_TIMEOUT_S:
            self._read_sockets(0.1)
        first_ms = [1000 * (each.first_event_s - cut_at_s) for each in self._by_index.values() if each.frames]
        return {**self.progress(), "connect_s": connected["seconds"], "first_ms": first_ms, "faults": self.tally.faults}

    def reset(self) -> dict[str, Any]:
        """Starts a new tally."""
        self.tally = DeliveryTally()
        for subscriber in self._by_index.values():
            subscriber.frames_at_reset = subscriber.frames
        return {}

    def progress(self) -> dict[str, Any]:
        """Returns the number of open sockets, and the least and most events of a socket since the last reset."""
        counts = [each.frames - each.frames_at_reset for each in self._by_index.values() if each.is_ready]
        return {
            "open": len(counts),
            "least": min(counts, default=0),
            "most": max(counts, default=0),
        }

    def report(self) -> dict[str, Any]:
        """Returns the tally."""
        tally, counts = self.tally, [each.frames - each.frames_at_reset for each in self._by_index.values()]
        cpu_percent = 100 * (time.process_time() - tally.began_cpu_s) / (time.monotonic() - tally.began_s)
        return {
            **self.progress(),
            "frames": sum(counts),
            "latencies_ms": tally.latencies_ms,
            "faults": tally.faults,
            "last_s": tally.last_s,
            "cpu_percent": cpu_percent,
            "frame_bytes": tally.frame_bytes,
        }

    def _open(self, index: int) -> ResumingSubscriber:
        interval = max(len(self.spec.tokens) // self.spec.sample_size, 1)
        token, predecessor = self.spec.tokens[index], self._cut_subscribers.get(index)
        subscriber = ResumingSubscriber(self, token, index % interval == 0, predecessor)
        self._by_index[index] = self._by_fd[subscriber.sock.fileno()] = subscriber
        self._parsed_epoll.register(subscriber.sock.fileno(), select.EPOLLIN)
        return subscriber

    def _read_sockets(self, timeout_s: float) -> bool:
        """Reads parsed sockets, and counted ones when a sweep is due. Returns whether a command is pending."""
        is_command_pending = self._poll(self._parsed_epoll, timeout_s)
        if self.now_s < self._next_sweep_s:
            return is_command_pending
        self._next_sweep_s = self.now_s + SWEEP_INTERVAL_S
        for _ in range(0, len(self._by_index), MAX_SOCKETS_PER_POLL):
            self._poll(self._counted_epoll, 0)
            # A sweep must not delay the parsed sockets, whose latency is measured.
            is_command_pending |= self._poll(self._parsed_epoll, 0)
        return is_command_pending

    def _poll(self, epoll: select.epoll, timeout_s: float) -> bool:
        """Reads each ready socket once. Returns whether stdin is ready."""
        is_command_pending, buffer = False, self._buffer
        ready = epoll.poll(timeout_s, MAX_SOCKETS_PER_POLL)
        self.now_s = time.monotonic()
        for fd, _ in ready:
            subscriber = self._by_fd.get(fd)
            if subscriber is None:
                is_command_pending = True
                continue
            try:
                size = subscriber.sock.recv_into(buffer)
            except OSError:
                size = 0
            if size:
                self._handle_received(subscriber, size)
            else:
                self._remove(subscriber)
        return is_command_pending

    def _handle_received(self, subscriber: ResumingSubscriber, size: int) -> None:
        self.tally.last_s = self.now_s
        if subscriber.is_counted_only:
            subscriber.count(self._buffer, size)
        elif subscriber.parse(memoryview(self._buffer)[:size]):
            self._parsed_epoll.unregister(subscriber.sock.fileno())
            self._counted_epoll.register(subscriber.sock.fileno(), select.EPOLLIN)

    def _remove(self, subscriber: ResumingSubscriber) -> None:
        self.tally.faults["connection lost"] += 1
        del self._by_fd[subscriber.sock.fileno()]
        index = next(index for index, each in self._by_index.items() if each is subscriber)
        del self._by_index[index]
        subscriber.sock.close()


def _handshake(port: int) -> bytes:
    lines = [
        "GET /graphql HTTP/1.1",
        f"Host: 127.0.0.1:{port}",
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
        "Sec-WebSocket-Protocol: graphql-transport-ws",
        "",
        "",
    ]
    return "\r\n".join(lines).encode()


def main() -> None:
    """Runs the load that the first line of stdin specifies."""
    # Reads without a buffer: a buffered read could also take commands, and epoll would never report them.
    line = b""
    while not line.endswith(b"\n"):
        line += os.read(0, 1 << 20)
    gc.disable()
    load = LoadGenerator(SubscriptionLoadSpec(**orjson.loads(line)))
    load.write_answer({})
    load.run()


if __name__ == "__main__":
    main()
