"""Web Push: the example of RFC 8291, and a push service that checks every request as the RFCs say."""

from collections.abc import AsyncIterator
from dataclasses import replace
from ipaddress import ip_network
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from jobs.providers.egress import GuardedTransport
from jobs.providers.web_push import (
    MAX_PLAINTEXT_BYTES,
    PushDelayed,
    PushGone,
    PushMessage,
    PushRefused,
    WebPush,
    encrypt,
)
from storage.notifications.channels import PushSubscription
from storage.secrets.vapid_keys import base64url, base64url_bytes, new_vapid_key, vapid_key
from tests.twins.push_service import PushService, SubscribedBrowser, push_service

pytestmark = pytest.mark.anyio

MESSAGE = PushMessage(b'{"tag": "a", "title": "Hello"}', "topic-1")


@pytest.fixture
async def pushes(tmp_path: Path) -> AsyncIterator[tuple[PushService, WebPush]]:
    async with push_service(tmp_path) as (service, trust):
        transport = GuardedTransport((ip_network("127.0.0.0/8"),), trust)
        yield service, WebPush(transport, new_vapid_key(), "mailto:operator@example.org")
        await transport.aclose()


def subscription(browser: SubscribedBrowser) -> PushSubscription:
    return PushSubscription(browser.url, browser.public_key, browser.auth_secret)


def test_example_of_rfc_8291_is_encrypted_as_printed() -> None:
    """RFC 8291, 5 and appendix A."""
    key = int.from_bytes(base64url_bytes("yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw", 32), "big")
    receiver = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
    body = encrypt(
        b"When I grow up, I want to be a watermelon",
        base64url_bytes(receiver, 65),
        base64url_bytes("BTBZMqHH6r4Tts7J_aSIgg", 16),
        ec.derive_private_key(key, ec.SECP256R1()),
        base64url_bytes("DGv6ra1nlYgDCS1FRnbzlw", 16),
    )
    assert base64url(body) == (
        "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3"
        "jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
    )


async def test_push_is_decrypted_by_its_browser(pushes: tuple[PushService, WebPush]) -> None:
    service, web_push = pushes
    browser, other = service.browser(), service.browser()
    await web_push.send(subscription(browser), MESSAGE)
    assert (browser.titles, browser.topics, other.pushes) == (["Hello"], ["topic-1"], [])
    largest = b'{"tag": "' + b"a" * (MAX_PLAINTEXT_BYTES - 11) + b'"}'
    await web_push.send(subscription(browser), replace(MESSAGE, plaintext=largest))
    assert len(browser.pushes) == 2


@pytest.mark.parametrize(
    ("status", "error", "retry_s"),
    [
        *((status, PushGone, None) for status in (404, 410)),
        *((status, PushRefused, None) for status in (302, 400, 413)),
        (429, PushDelayed, 7.0),
        (503, PushDelayed, None),
    ],
)
async def test_answers_are_classified(
    pushes: tuple[PushService, WebPush], status: int, error: type[Exception], retry_s: float | None
) -> None:
    service, web_push = pushes
    browser = service.browser()
    browser.statuses = [status]
    with pytest.raises(error) as raised:
        await web_push.send(subscription(browser), MESSAGE)
    assert getattr(raised.value, "retry_s", None) == retry_s
    assert browser.pushes == []


async def test_private_and_plain_addresses_are_never_reached(pushes: tuple[PushService, WebPush]) -> None:
    service, web_push = pushes
    browser = service.browser()
    plain = replace(subscription(browser), url=browser.url.replace("https", "http"))
    guarded = WebPush(GuardedTransport(), new_vapid_key(), "mailto:operator@example.org")
    for sender, target in ((guarded, subscription(browser)), (web_push, plain)):
        with pytest.raises(PushRefused):
            await sender.send(target, MESSAGE)
    assert browser.pushes == []


async def test_unreachable_push_service_delays(tmp_path: Path) -> None:
    async with push_service(tmp_path) as (service, trust):
        browser = service.browser()
    web_push = WebPush(GuardedTransport((ip_network("127.0.0.0/8"),), trust), new_vapid_key(), "mailto:a@example.org")
    with pytest.raises(PushDelayed):
        await web_push.send(subscription(browser), MESSAGE)


def test_vapid_key_is_read_as_it_was_written() -> None:
    key = new_vapid_key()
    assert vapid_key(key.private_text).public_text == key.public_text
    assert len(base64url_bytes(key.public_text, 65)) == 65
    for text in ("", "short", "!" * 43, base64url(bytes(32))):
        with pytest.raises(ValueError):
            vapid_key(text)
