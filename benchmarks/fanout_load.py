"""The listeners of the fan-out benchmark: many graphql-transport-ws sockets in one process.

A few sockets, spread over all, are read at once and parse each frame, for latency, order and gaps; the others are read
every 20 ms and count frames by their headers. The first line on stdin is a Job as JSON; then each line is a command,
answered by one line of JSON. Linux only.
"""

import gc
import os
import select
import socket
import sys
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import orjson

CONNECTING_AT_ONCE = 64
CONNECT_PATIENCE_S = 20.0
BUFFER_BYTES = 1 << 20
SWEEP_EVERY_S = 0.02
SWEPT_AT_ONCE = 100
TEXT, CLOSE, PING, PONG = 0x81, 0x88, 0x89, 0x8A
# Clients must mask; with a key of zeros the payload stays as it is.
MASKED, KEY = 0x80, b"\0\0\0\0"


@dataclass(frozen=True, slots=True)
class Job:
    """Where to listen: a socket for each token. `field` is the subscription's root field."""

    port: int
    tokens: list[str]
    query: str
    field: str
    variables: dict[str, Any]
    sampled: int


@dataclass(slots=True)
class Tally:
    """The frames that arrived since the last mark."""

    latencies_ms: list[float] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    began_s: float = field(default_factory=time.monotonic)
    last_s: float = 0.0
    cpu_s: float = field(default_factory=time.process_time)
    frame_bytes: int = 0


def frame(opcode: int, payload: bytes) -> bytes:
    """A client's frame."""
    if len(payload) < 126:
        return bytes((opcode, MASKED | len(payload))) + KEY + payload
    return bytes((opcode, MASKED | 126)) + len(payload).to_bytes(2) + KEY + payload


class Listener:
    """One socket with one subscription."""

    def __init__(self, load: "Load", token: str, sampled: bool) -> None:
        self.sock = socket.create_connection(("127.0.0.1", load.job.port))
        self.sock.setblocking(False)
        self.ready, self.counts_only = False, False
        self.frames, self.marked = 0, 0
        self._load, self._token, self._sampled = load, token, sampled
        self._id = str(uuid.uuid4())
        self._rest, self._skip = b"", 0
        self._last: int | None = None
        self._upgraded = False
        self._send(_handshake(load.job.port))

    def parse(self, received: memoryview) -> bool:
        """Parses whole frames; `counting` says whether they count."""
        self._rest += received
        if self._upgraded or self._upgrade():
            for opcode, payload in self._whole_frames():
                if opcode == TEXT:
                    self._hear(orjson.loads(payload), len(payload))
                else:
                    self._control(opcode, payload)
        self.counts_only = self.ready and not self._sampled
        return self.counts_only

    def _upgrade(self) -> bool:
        head, end, rest = self._rest.partition(b"\r\n\r\n")
        if not end:
            return False
        if not head.startswith(b"HTTP/1.1 101"):
            self._load.tally.faults[head.partition(b"\r")[0].decode()] += 1
            return False
        self._upgraded, self._rest = True, rest
        self._say({"type": "connection_init", "payload": {"authorization": f"Bearer {self._token}"}})
        return True

    def _say(self, message: dict[str, Any]) -> None:
        self._send(frame(TEXT, orjson.dumps(message)))

    def _send(self, data: bytes) -> None:
        # That it is closed shows when it is read.
        with suppress(OSError):
            self.sock.send(data)

    def count(self, buffer: bytearray, size: int) -> None:
        """Steps from header to header. Every `next` has more than 125 bytes, and no more than 65,535."""
        if self._rest:
            buffer, size, self._rest = bytearray(self._rest + buffer[:size]), size + len(self._rest), b""
        at, frames = self._skip, 0
        while size - at >= 4:
            if buffer[at + 1] != 126:
                end = at + 2 + buffer[at + 1]
                if end > size:
                    break
                self._control(buffer[at], bytes(buffer[at + 2 : end]))
                at = end
                continue
            at += 4 + (buffer[at + 2] << 8) + buffer[at + 3]
            frames += 1
        self.frames += frames
        self._skip = max(at - size, 0)
        if at < size:
            self._rest = bytes(buffer[at:size])

    def _whole_frames(self) -> Iterator[tuple[int, bytes]]:
        data, at = self._rest, 0
        while len(data) - at >= 4:
            length, start = data[at + 1], at + 2
            if length == 126:
                length, start = (data[at + 2] << 8) + data[at + 3], at + 4
            if start + length > len(data):
                break
            yield data[at], data[start : start + length]
            at = start + length
        self._rest = data[at:]

    def _hear(self, message: dict[str, Any], size: int) -> None:
        if message["type"] == "connection_ack":
            payload = {"query": self._load.job.query, "variables": self._load.job.variables}
            self._say({"id": self._id, "type": "subscribe", "payload": payload})
        elif message["type"] != "next" or message["id"] != self._id or "errors" in message["payload"]:
            self._load.tally.faults[orjson.dumps(message).decode()] += 1
        elif not self.ready:
            self.ready = True
        else:
            self._event(message["payload"]["data"][self._load.job.field], size)

    def _event(self, event: dict[str, Any], size: int) -> None:
        tally = self._load.tally
        number, posted_s, _ = event["message"]["text"].split(" ", 2)
        if self._last is not None and int(number) != self._last + 1:
            tally.faults["out of order" if int(number) <= self._last else "a gap"] += 1
        self._last = int(number)
        self.frames += 1
        tally.latencies_ms.append(1000 * (self._load.now_s - float(posted_s)))
        tally.frame_bytes = size

    def _control(self, opcode: int, payload: bytes) -> None:
        if opcode == PING:
            self._send(frame(PONG, payload))
        elif opcode == CLOSE:
            self._load.tally.faults[f"closed with {int.from_bytes(payload[:2])}"] += 1
        else:
            self._load.tally.faults[payload.decode(errors="replace")] += 1


class Load:
    """All listeners, and what they heard."""

    def __init__(self, job: Job) -> None:
        self.job, self.tally, self.now_s = job, Tally(), 0.0
        self._epoll, self._others = select.epoll(), select.epoll()
        self._epoll.register(sys.stdin.fileno(), select.EPOLLIN)
        self._sweep_s = 0.0
        self._by_fd: dict[int, Listener] = {}
        self._at: dict[int, Listener] = {}
        self._buffer = bytearray(BUFFER_BYTES)

    def run(self) -> None:
        """Answers commands until stdin ends."""
        while True:
            if self._turn(SWEEP_EVERY_S):
                command = sys.stdin.buffer.readline().strip().decode()
                if not command:
                    return
                self.answer(getattr(self, command)())

    @staticmethod
    def answer(answer: dict[str, Any]) -> None:
        """One line."""
        sys.stdout.buffer.write(orjson.dumps(answer) + b"\n")
        sys.stdout.buffer.flush()

    def connect(self) -> dict[str, Any]:
        """Opens every socket that is not open, some at a time."""
        began_s = time.monotonic()
        wanted = [place for place in range(len(self.job.tokens)) if place not in self._at]
        opened = len(wanted)
        starting: set[Listener] = set()
        while (wanted or starting) and time.monotonic() < began_s + CONNECT_PATIENCE_S:
            while wanted and len(starting) < CONNECTING_AT_ONCE:
                starting.add(self._open(wanted.pop()))
            self._turn(0.1)
            starting = {each for each in starting if not each.ready}
        return {"opened": opened, "seconds": time.monotonic() - began_s, **self.progress()}

    def mark(self) -> dict[str, Any]:
        """Begins a new tally."""
        self.tally = Tally()
        for listener in self._at.values():
            listener.marked = listener.frames
        return {}

    def progress(self) -> dict[str, Any]:
        """How many events every open socket has at least and at most, since the mark."""
        counts = [each.frames - each.marked for each in self._at.values() if each.ready]
        return {
            "open": len(counts),
            "least": min(counts, default=0),
            "most": max(counts, default=0),
            "late": sum(latency > 250 for latency in self.tally.latencies_ms[-1000:]),
        }

    def report(self) -> dict[str, Any]:
        """The tally. Times in milliseconds and seconds."""
        tally, counts = self.tally, [each.frames - each.marked for each in self._at.values()]
        cpu_percent = 100 * (time.process_time() - tally.cpu_s) / (time.monotonic() - tally.began_s)
        return {
            **self.progress(),
            "frames": sum(counts),
            "latencies_ms": sorted(tally.latencies_ms),
            "faults": tally.faults,
            "last_s": tally.last_s,
            "cpu_percent": cpu_percent,
            "frame_bytes": tally.frame_bytes,
        }

    def _open(self, place: int) -> Listener:
        every = max(len(self.job.tokens) // self.job.sampled, 1)
        listener = Listener(self, self.job.tokens[place], place % every == 0)
        self._at[place] = self._by_fd[listener.sock.fileno()] = listener
        self._epoll.register(listener.sock.fileno(), select.EPOLLIN)
        return listener

    def _turn(self, timeout_s: float) -> bool:
        """Reads what is there. Whether a command waits."""
        command = self._read(self._epoll, timeout_s)
        if self.now_s < self._sweep_s:
            return command
        self._sweep_s = self.now_s + SWEEP_EVERY_S
        for _ in range(0, len(self._at), SWEPT_AT_ONCE):
            self._read(self._others, 0)
            # Those that are parsed don't wait for the others.
            command |= self._read(self._epoll, 0)
        return command

    def _read(self, epoll: select.epoll, timeout_s: float) -> bool:
        command, buffer = False, self._buffer
        ready = epoll.poll(timeout_s, SWEPT_AT_ONCE)
        self.now_s = time.monotonic()
        for fd, _ in ready:
            listener = self._by_fd.get(fd)
            if listener is None:
                command = True
                continue
            try:
                size = listener.sock.recv_into(buffer)
            except OSError:
                size = 0
            if size:
                self._take(listener, size)
            else:
                self._lost(listener)
        return command

    def _take(self, listener: Listener, size: int) -> None:
        self.tally.last_s = self.now_s
        if listener.counts_only:
            listener.count(self._buffer, size)
        elif listener.parse(memoryview(self._buffer)[:size]):
            self._epoll.unregister(listener.sock.fileno())
            self._others.register(listener.sock.fileno(), select.EPOLLIN)

    def _lost(self, listener: Listener) -> None:
        self.tally.faults["connection lost"] += 1
        del self._by_fd[listener.sock.fileno()]
        place = next(place for place, each in self._at.items() if each is listener)
        del self._at[place]
        listener.sock.close()


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
    """Runs the job that stdin's first line holds."""
    # Unbuffered, so that epoll knows of every command.
    line = b""
    while not line.endswith(b"\n"):
        line += os.read(0, 1 << 20)
    gc.disable()
    load = Load(Job(**orjson.loads(line)))
    load.answer({})
    load.run()


if __name__ == "__main__":
    main()
