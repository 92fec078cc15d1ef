"""Clients that send arbitrary bytes affect no other client, and cause no logged error."""

import socket
from collections.abc import Iterator
from contextlib import closing, suppress
from urllib.parse import urlsplit

import orjson
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from websockets.exceptions import ConnectionClosed
from websockets.frames import Frame, Opcode
from websockets.sync.client import connect
from websockets.typing import Subprotocol

from tests.serving import WebProcess, web_process
from tests.websocket_handshake import PROTOCOL, handshake_request

# 1002, 1007 and 1009 concern malformed frames, text and sizes; the others belong to the subprotocol.
SERVER_CLOSE_CODES = {1002, 1007, 1009, 4400, 4401, 4403, 4409, 4429}
TIMEOUT_S = 30
FUZZ_SETTINGS = settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def web(
    tmp_path_factory: pytest.TempPathFactory, mongodb_uri: str, redis_url: str, shared_database: str
) -> Iterator[WebProcess]:
    with web_process(tmp_path_factory.mktemp("web"), mongodb_uri, redis_url, database=shared_database) as web:
        yield web


class RawWebSocket:
    """A WebSocket client that reads and writes only on request."""

    def __init__(self, url: str) -> None:
        address = urlsplit(url)
        self.socket = socket.create_connection((address.hostname, address.port), TIMEOUT_S)
        self.socket.sendall(handshake_request(address.netloc))
        self.read_until(b"\r\n\r\n")

    def send(self, message: object) -> None:
        """Sends one text frame."""
        self.socket.sendall(Frame(Opcode.TEXT, orjson.dumps(message)).serialize(mask=True))

    def read_until(self, ending: bytes) -> None:
        """Reads until these bytes have arrived."""
        read = b""
        while ending not in read:
            received = self.socket.recv(1024)
            assert received, "The server closed the connection."
            read += received

    def close(self) -> None:
        self.socket.close()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=10,
)
TYPES = st.sampled_from(["connection_init", "ping", "pong", "subscribe", "complete", "next", "error", "nope"])
QUERIES = st.sampled_from(
    [
        *(
            "{ __typename }",
            "{ viewer { id } }",
            "{",
            "",
            "\0",
            "{ nope }",
            "query A { __typename } query B { __typename }",
        ),
        *(
            'subscription { topicEvents(topicId: "x") { __typename } }',
            "subscription { nope }",
            "mutation { a }",
            "# 狼",
        ),
        "query ($a: Int!) { __typename @skip(if: $a) }",
        "fragment F on Query { ...F } { ...F }",
    ]
)
PAYLOADS = st.fixed_dictionaries(
    {},
    optional={
        "query": QUERIES | JSON,
        "variables": st.dictionaries(st.sampled_from(["a", "topic", "since"]), JSON, max_size=3) | JSON,
        "operationName": st.sampled_from(["A", "B", "C", ""]) | JSON,
        "extensions": JSON,
        "authorization": JSON,
    },
)
MESSAGES = st.fixed_dictionaries(
    {}, optional={"type": TYPES | JSON, "id": st.sampled_from(["1", "2", "狼" * 60]) | JSON, "payload": PAYLOADS | JSON}
)
FRAMES = st.one_of(
    MESSAGES.map(lambda message: orjson.dumps(message, default=str, option=orjson.OPT_NON_STR_KEYS).decode()),
    st.text(max_size=50).map(lambda text: text.encode("utf-8", "replace").decode()),
    st.binary(max_size=50),
)


@given(signs_in=st.booleans(), frames=st.lists(FRAMES, max_size=8))
@example(signs_in=True, frames=['{"type":"subscribe","id":"1","payload":{"query":"{a}","variables":{"a":1e999}}}'])
@example(signs_in=True, frames=["\ud83d\udd25".encode("utf-16", "surrogatepass").decode("utf-16")])
@FUZZ_SETTINGS
def test_arbitrary_frames_are_answered_or_closed_by_protocol(
    web: WebProcess, signs_in: bool, frames: list[str | bytes]
) -> None:
    init = orjson.dumps({"type": "connection_init", "payload": {"authorization": f"Bearer {web.token()}"}}).decode()
    address = f"{web.url.replace('http', 'ws')}/graphql"
    with connect(address, subprotocols=[Subprotocol(PROTOCOL)], compression=None) as ws, suppress(ConnectionClosed):
        for frame in [init] * signs_in + frames:
            ws.send(frame)
        ws.send('{"type":"ping"}')
        types: list[str] = []
        while "pong" not in types:
            types.append(orjson.loads(ws.recv(timeout=TIMEOUT_S))["type"])
        assert set(types) <= {"connection_ack", "next", "error", "complete", "pong"}
        return
    assert ws.protocol.close_rcvd is not None, "The server closed the connection without a close frame."
    assert ws.protocol.close_rcvd.code in SERVER_CLOSE_CODES


@given(data=st.binary(min_size=1, max_size=200))
@example(data=Frame(Opcode.TEXT, b"\xff\xfe").serialize(mask=True))
@example(data=Frame(Opcode.TEXT, b'{"type":"ping"}', fin=False).serialize(mask=True))
@example(data=Frame(Opcode.CONT, b"x").serialize(mask=True))
@example(data=Frame(Opcode.TEXT, b'{"type":"ping"}').serialize(mask=False))
@example(data=Frame(Opcode.CLOSE, b"\x03").serialize(mask=True))
@example(data=Frame(Opcode.CLOSE, (1011).to_bytes(2) + b"\xff").serialize(mask=True))
@example(data=Frame(Opcode.PING, b"x" * 125).serialize(mask=True))
@example(data=b"\x81\xff" + (2**62).to_bytes(8) + b"mask")
@example(data=b"\xf1\x80mask")
@FUZZ_SETTINGS
def test_arbitrary_bytes_affect_no_other_client(web: WebProcess, data: bytes) -> None:
    with closing(RawWebSocket(web.url)) as hostile, closing(RawWebSocket(web.url)) as other:
        hostile.socket.sendall(data)
        other.send({"type": "ping"})
        other.read_until(b"pong")


def test_server_still_serves_without_logged_fault(web: WebProcess) -> None:
    with closing(RawWebSocket(web.url)) as client:
        client.send({"type": "connection_init", "payload": {"authorization": f"Bearer {web.token()}"}})
        client.read_until(b"connection_ack")
    assert "Traceback" not in web.log_text
    assert "unexpected_error" not in web.log_text
