"""What a webhook sends: the events that it names and that its account may read, in order, and again on request."""

import pytest

from tests.jobs.webhooks.conftest import WebhookScenario

pytestmark = pytest.mark.anyio


async def test_messages_are_sent_signed_and_in_order(webhooks: WebhookScenario) -> None:
    receiver, chat = await webhooks.receiver(), webhooks.chat
    id_ = await webhooks.create(receiver)
    texts = [f"Message {number}" for number in range(45)]
    for text in texts:
        await chat.ann.post(chat.topic, text)
    await webhooks.deliver()
    assert receiver.texts() == texts
    assert len(receiver.messages) == len(texts)
    id_of_first, body = receiver.messages[0]
    assert body["type"] == "MessagePosted"
    assert body["organizationId"] == "acme"
    assert body["topic"] == {"id": chat.topic, "title": "Tides", "communityId": chat.community, "parentMessageId": None}
    assert body["data"]["cursor"] == id_of_first
    assert body["data"]["message"]["author"] == {"id": "ann", "handle": "ann", "name": "ann"}
    assert (await webhooks.webhook(id_))["lastDeliveredAt"]
    assert [each["outcome"] for each in await webhooks.deliveries(id_)] == ["DELIVERED"] * 45
