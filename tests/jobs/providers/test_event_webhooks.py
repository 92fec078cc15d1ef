"""Requests to webhooks: signed by each secret, to public addresses only, and with an end."""

import asyncio
import time
from collections.abc import AsyncIterator
from ipaddress import ip_network

import pytest

from jobs.providers import event_webhooks
from jobs.providers.egress import Egress
from jobs.providers.event_webhooks import WebhookSender, signatures
from jobs.providers.signed_webhooks import SIGNATURE, SignatureRefused, verify
from storage.webhooks.deliveries import SentMessage
from storage.webhooks.records import DeliveryOutcome
from tests.twins.event_receiver import EventReceiver
from tests.twins.twin import running_twin

pytestmark = pytest.mark.anyio

SECRETS = ["whsec_bmV3ZXN0LXNlY3JldA==", "whsec_ZWFybGllci1zZWNyZXQ="]
MESSAGE = SentMessage("message", "MessagePosted", b'{"type":"MessagePosted"}')


@pytest.fixture
async def receiver() -> AsyncIterator[EventReceiver]:
    receiver = EventReceiver()
    async with running_twin(receiver):
        yield receiver


@pytest.fixture
async def sender() -> AsyncIterator[WebhookSender]:
    egress = Egress((ip_network("127.0.0.0/8"),))
    yield WebhookSender(egress.transport)
    await egress.aclose()


@pytest.mark.parametrize("secret", SECRETS)
async def test_each_secret_verifies_the_request(receiver: EventReceiver, sender: WebhookSender, secret: str) -> None:
    receiver.secret = secret
    result = await sender.send(receiver.address, SECRETS, MESSAGE)
    assert (result.outcome, result.status, result.answer) == (DeliveryOutcome.DELIVERED, 200, "thanks")
    assert receiver.messages == [("message", {"type": "MessagePosted"})]


def test_another_secret_does_not_verify_the_request() -> None:
    headers = {name.lower(): value for name, value in signatures(SECRETS, MESSAGE).items()}
    assert len(headers[SIGNATURE].split(" ")) == 2
    with pytest.raises(SignatureRefused):
        verify("whsec_b3RoZXI=", headers, MESSAGE.body, time.time())


@pytest.mark.parametrize("status", [301, 302, 400, 404, 500])
async def test_other_answers_are_failures(receiver: EventReceiver, sender: WebhookSender, status: int) -> None:
    receiver.status, receiver.headers = status, {"Location": "/events", "Retry-After": "7"}
    result = await sender.send(receiver.address, SECRETS, MESSAGE)
    assert (result.outcome, result.status, result.retry_after_s) == (DeliveryOutcome.FAILED, status, 7.0)
    assert receiver.refused == ["message"]


async def test_private_address_gets_no_request(receiver: EventReceiver) -> None:
    egress = Egress(())
    result = await WebhookSender(egress.transport).send(receiver.address, SECRETS, MESSAGE)
    assert (result.outcome, result.status) == (DeliveryOutcome.FAILED, None)
    assert "127.0.0.1 is not a public address" in result.answer
    assert receiver.messages == []
    await egress.aclose()


async def test_silent_receiver_ends_by_timeout(
    receiver: EventReceiver, sender: WebhookSender, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_webhooks, "TIMEOUT_S", 0.05)
    receiver.delay_s = 3600.0
    result = await sender.send(receiver.address, SECRETS, MESSAGE)
    assert (result.outcome, result.answer) == (DeliveryOutcome.FAILED, "No complete answer within 0.05 s")


async def test_endless_answer_is_cut(sender: WebhookSender) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while not writer.is_closing():
            writer.write(b"3E8\r\n" + b"x" * 1000 + b"\r\n")
            await asyncio.sleep(0)

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    result = await sender.send(f"http://127.0.0.1:{port}/", SECRETS, MESSAGE)
    assert (result.outcome, set(result.answer), len(result.answer)) == (DeliveryOutcome.DELIVERED, {"x"}, 4000)
    server.close()
