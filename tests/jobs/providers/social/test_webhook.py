"""Webhooks against a receiver that follows Standard Webhooks."""

from collections.abc import AsyncIterator

import pytest

from jobs.providers.social.http import HttpClient
from jobs.providers.social.network import (
    OutcomeUncertain,
    PublishedPost,
    PublishingAccount,
    PublishingRefused,
    RetryableFailure,
)
from jobs.providers.social.webhook import WebhookNetwork
from storage.publishing.networks import ReconciliationMethod
from tests.jobs.providers.social.outgoing import DUE_AT, medium, outgoing
from tests.twins.twin import NetworkFault, running_twin
from tests.twins.webhook import WebhookTwin

pytestmark = pytest.mark.anyio


@pytest.fixture
async def twin() -> AsyncIterator[WebhookTwin]:
    async with running_twin(WebhookTwin()) as twin:
        assert isinstance(twin, WebhookTwin)
        yield twin


@pytest.fixture
def hook(http: HttpClient) -> WebhookNetwork:
    return WebhookNetwork(http)


def account(twin: WebhookTwin, secret: str = WebhookTwin.secret) -> PublishingAccount:
    return PublishingAccount("acc1", f"{twin.url}/hook", secret)


async def test_body_is_as_documented_and_signed(hook: WebhookNetwork, twin: WebhookTwin) -> None:
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


async def test_repeated_key_publishes_once(hook: WebhookNetwork, twin: WebhookTwin) -> None:
    assert hook.reconciliation_method(account(twin)) is ReconciliationMethod.REPEAT
    assert hook.new_key("pub1", DUE_AT) == "pub1"
    twin.faults.extend([NetworkFault.FAIL_AFTER, NetworkFault.CUT_AFTER, NetworkFault.FAIL_BEFORE])
    for _ in range(3):
        with pytest.raises(OutcomeUncertain):
            await hook.publish(account(twin), outgoing(), "key", ())
    assert (await hook.publish(account(twin), outgoing(), "key", ())).external_id == "1"
    assert len(twin.ledger) == 1


async def test_response_without_id_counts_as_published(hook: WebhookNetwork, twin: WebhookTwin) -> None:
    twin.answers_plain_text = True
    assert await hook.publish(account(twin), outgoing(), "key", ()) == PublishedPost(None, None)


@pytest.mark.parametrize("status", [302, 400, 404, 410, 429])
async def test_redirects_and_client_errors_are_final(hook: WebhookNetwork, twin: WebhookTwin, status: int) -> None:
    twin.refusal_status = status
    with pytest.raises(PublishingRefused, match=str(status)):
        await hook.publish(account(twin), outgoing(), "key", ())


async def test_wrong_secret_is_refused(hook: WebhookNetwork, twin: WebhookTwin) -> None:
    with pytest.raises(PublishingRefused):
        await hook.publish(account(twin, "another"), outgoing(), "key", ())


async def test_refused_connection_has_no_effect(hook: WebhookNetwork, twin: WebhookTwin) -> None:
    with pytest.raises(RetryableFailure):
        await hook.publish(PublishingAccount("a", "http://127.0.0.1:1/hook", "s"), outgoing(), "key", ())


async def test_webhook_has_no_status_lookup(hook: WebhookNetwork, twin: WebhookTwin) -> None:
    with pytest.raises(OutcomeUncertain):
        await hook.look_up(account(twin), ())
