"""Webhooks against a receiver that follows Standard Webhooks."""

from collections.abc import AsyncIterator

import pytest

from jobs.providers.social.http import HttpClient
from jobs.providers.social.network import Account, NetworkRefused, NoEffect, OutcomeUncertain, PublishedPost
from jobs.providers.social.webhook import Webhook
from storage.publishing.networks import ReconciliationMethod
from tests.jobs.providers.social.outgoing import DUE_AT, medium, outgoing
from tests.twins.twin import Fault, running_twin
from tests.twins.webhook import WebhookTwin

pytestmark = pytest.mark.anyio


@pytest.fixture
async def twin() -> AsyncIterator[WebhookTwin]:
    async with running_twin(WebhookTwin()) as twin:
        assert isinstance(twin, WebhookTwin)
        yield twin


@pytest.fixture
def hook(http: HttpClient) -> Webhook:
    return Webhook(http)


def account(twin: WebhookTwin, secret: str = WebhookTwin.secret) -> Account:
    return Account("acc1", f"{twin.url}/hook", secret)


async def test_webhook_body_is_documented_and_signed(hook: Webhook, twin: WebhookTwin) -> None:
    post = outgoing("hello", medium("https://example.org/a.png"))
    assert (await hook.upload(account(twin), post)).references == ()
    published = await hook.publish(account(twin), post, "key", ())
    assert published == PublishedPost("1", "https://example.org/1")
    assert twin.bodies == [
        {
            "publicationId": "pub1",
            "text": "hello",
            "media": [{"url": "https://example.org/a.png", "altText": "A hill"}],
            "dueAt": "2026-11-21T12:00:00.500Z",
            "author": {"id": "ann", "handle": "ann", "name": "Ann"},
        }
    ]


async def test_repeated_key_publishes_once(hook: Webhook, twin: WebhookTwin) -> None:
    assert hook.reconciliation_method(account(twin)) is ReconciliationMethod.REPEAT
    assert hook.new_key("pub1", DUE_AT) == "pub1"
    twin.faults.extend([Fault.FAIL_AFTER, Fault.CUT_AFTER, Fault.FAIL_BEFORE])
    for _ in range(3):
        with pytest.raises(OutcomeUncertain):
            await hook.publish(account(twin), outgoing(), "key", ())
    assert (await hook.publish(account(twin), outgoing(), "key", ())).external_id == "1"
    assert len(twin.ledger) == 1


async def test_response_without_id_counts_as_published(hook: Webhook, twin: WebhookTwin) -> None:
    twin.answers_plain_text = True
    assert await hook.publish(account(twin), outgoing(), "key", ()) == PublishedPost(None, None)


@pytest.mark.parametrize("status", [302, 400, 404, 410, 429])
async def test_unexpected_responses_are_final(hook: Webhook, twin: WebhookTwin, status: int) -> None:
    twin.refusal_status = status
    with pytest.raises(NetworkRefused, match=str(status)):
        await hook.publish(account(twin), outgoing(), "key", ())


async def test_wrong_secret_is_refused(hook: Webhook, twin: WebhookTwin) -> None:
    with pytest.raises(NetworkRefused):
        await hook.publish(account(twin, "another"), outgoing(), "key", ())


async def test_refused_connection_has_no_effect(hook: Webhook, twin: WebhookTwin) -> None:
    with pytest.raises(NoEffect):
        await hook.publish(Account("a", "http://127.0.0.1:1/hook", "s"), outgoing(), "key", ())


async def test_webhook_has_no_status_lookup(hook: Webhook, twin: WebhookTwin) -> None:
    with pytest.raises(OutcomeUncertain):
        await hook.look_up(account(twin), ())
