"""The bound on the bodies that a process holds, with an ASGI `receive` of fixed messages."""

import itertools

import pytest
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from server.transport import bodies as limits
from server.transport.bodies import BodyTooLarge, RefusalsAfterBodies, RequestBodies
from storage.errors import RateLimited

pytestmark = pytest.mark.anyio


def receive_of(*chunks: bytes, is_cut: bool = False) -> Receive:
    """Returns a `receive` that returns these chunks of a body. A cut body ends with a disconnect."""
    count = len(chunks)
    messages: list[Message] = [
        {"type": "http.request", "body": chunk, "more_body": is_cut or number < count}
        for number, chunk in enumerate(chunks, 1)
    ]
    messages.append({"type": "http.disconnect"})

    async def receive() -> Message:
        return messages.pop(0)

    return receive


async def test_body_is_read_whole_up_to_its_limit() -> None:
    with RequestBodies().hold(receive_of(b"12345", b"", b"67890"), 10) as body:
        assert await body.read() == b"1234567890"
    with RequestBodies().hold(receive_of(b"12345", b"67890", b"1"), 10) as body, pytest.raises(BodyTooLarge):
        await body.read()


async def test_disconnect_within_a_body_raises() -> None:
    with RequestBodies().hold(receive_of(b"12345", is_cut=True)) as body, pytest.raises(ClientDisconnect):
        await body.read()


async def test_bodies_over_common_limit_are_refused_until_others_end() -> None:
    bodies = RequestBodies(max_held_bytes=10)
    with bodies.hold(receive_of(b"12345678"), 10) as first:
        await first.read()
        with bodies.hold(receive_of(b"12", b"3"), 10) as second, pytest.raises(RateLimited):
            await second.read()
        assert bodies.held_bytes == 8
    with bodies.hold(receive_of(b"1234567890"), 10) as later:
        assert len(await later.read()) == 10
    assert bodies.held_bytes == 0


def answering_app(status: int) -> ASGIApp:
    """Returns an application that reads the first chunk of a body, and then answers."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await Response(status_code=status)(scope, receive, send)

    return app


@pytest.mark.parametrize(("status", "chunks_before_answer"), [(401, 3), (429, 3), (200, 1)])
async def test_rest_of_a_refused_body_is_read_before_the_answer(status: int, chunks_before_answer: int) -> None:
    chunks = [{"type": "http.request", "body": b"1234", "more_body": number < 3} for number in (1, 2, 3)]
    unread = list(chunks)

    async def receive() -> Message:
        return unread.pop(0)

    async def send(message: Message) -> None:
        assert len(chunks) - len(unread) == chunks_before_answer

    await RefusalsAfterBodies(answering_app(status))({"type": "http"}, receive, send)


async def test_endless_refused_body_is_read_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_DISCARDED_BYTES", 10)
    counted, sent = itertools.count(), []

    async def receive() -> Message:
        next(counted)
        return {"type": "http.request", "body": b"1234", "more_body": True}

    async def send(message: Message) -> None:
        sent.append(message["type"])

    await RefusalsAfterBodies(answering_app(413))({"type": "http"}, receive, send)
    assert next(counted) == 4
    assert sent == ["http.response.start", "http.response.body"]
