"""A webhook sends the events that it names and that its account may read, in order, and again on request."""

import pytest

from storage.identity.roles import Role
from storage.webhooks.event_types import EVENT_TYPES
from tests.jobs.webhooks.conftest import DISABLE, ENABLE, REPLAY, WebhookScenario
from tests.resolvers.calls.test_jobs import LAUNCH, call_list
from tests.resolvers.chat.test_conversations import start
from tests.resolvers.chat.test_joining import ADD
from tests.resolvers.people import DELETE, EDIT, REACT, SignIn

pytestmark = pytest.mark.anyio

REDELIVER = "mutation ($id: ID!) { done: redeliverWebhookEvent(deliveryId: $id) { outcome } }"


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


async def test_only_events_of_named_places_are_sent(webhooks: WebhookScenario) -> None:
    chat = webhooks.chat
    other_topic, other_community = await chat.ann.create_topic(chat.community), await chat.ann.create_community()
    far_topic = await chat.ann.create_topic(other_community)
    of_community, of_topic, of_all = [await webhooks.receiver() for _ in range(3)]
    await webhooks.create(of_community, communityIds=[chat.community])
    await webhooks.create(of_topic, topicIds=[chat.topic])
    await webhooks.create(of_all)
    parent = await chat.ann.post(chat.topic, "Here")
    await chat.ann.post(other_topic, "Next to it")
    await chat.ann.post(far_topic, "Far away")
    await chat.ann.post(chat.topic, "In a thread", replyTo=parent["id"])
    await webhooks.deliver()
    assert set(of_community.texts()) == {"Here", "Next to it", "In a thread"}
    assert set(of_topic.texts()) == {"Here", "In a thread"}
    assert len(of_all.texts()) == 4


async def test_each_event_type_of_chat_is_sent(webhooks: WebhookScenario) -> None:
    receiver, chat = await webhooks.receiver(), webhooks.chat
    types = [name for name, each in EVENT_TYPES.items() if each.scope == "chat:read"]
    await webhooks.create(receiver, *types)
    message = await chat.ann.post(chat.topic, "Hello")
    await chat.bob.run(REACT, id=message["id"], emoji="👍")
    await chat.ann.run(EDIT, id=message["id"], text="Hi")
    await chat.ann.run("mutation ($id: ID!) { pinMessage(messageId: $id) { id } }", id=message["id"])
    await chat.ann.run("mutation ($id: ID!) { unpinMessage(messageId: $id) { id } }", id=message["id"])
    await chat.bob.post(chat.topic, "Reply", replyTo=message["id"])
    await chat.ann.run(DELETE, id=message["id"])
    await chat.ann.run('mutation ($id: ID!) { renameTopic(topicId: $id, title: "Ebb") { id } }', id=chat.topic)
    await chat.ann.create_topic(chat.community, "New")
    rename = 'mutation ($id: ID!) { updateCommunity(id: $id, name: "Anglers") { id } }'
    await chat.ann.run(rename, id=chat.community)
    await webhooks.deliver()
    assert {body["type"] for body in receiver.events()} == set(types)
    (deleted,) = [body["data"]["message"] for body in receiver.events("MessageDeleted")]
    assert (deleted["text"], bool(deleted["deletedAt"])) == ("", True)
    (changed,) = [body["data"]["community"] for body in receiver.events("CommunityChanged")]
    assert changed["name"] == "Anglers"
    assert {body["data"]["topic"]["title"] for body in receiver.events("TopicCreated")} == {"New"}


async def test_private_messages_are_sent_to_members_only(webhooks: WebhookScenario) -> None:
    chat = webhooks.chat
    private = await chat.ann.create_community(visibility="PRIVATE")
    topic, conversation = await chat.ann.create_topic(private), await start(chat.ann, chat.bob)
    receiver = await webhooks.receiver()
    await webhooks.create(receiver, "MessagePosted", "TopicCreated")
    await chat.ann.post(topic, "Before")
    await chat.ann.post(conversation, "Between us")
    await webhooks.deliver()
    assert receiver.events() == []
    await chat.ann.run(ADD, id=private, user=webhooks.key)
    await chat.ann.post(topic, "As a member")
    await webhooks.deliver()
    assert receiver.texts() == ["As a member"]
    kick = "mutation ($id: ID!, $user: ID!) { kickMember(communityId: $id, userId: $user) { id } }"
    await chat.ann.run(kick, id=private, user=webhooks.key)
    await chat.ann.post(topic, "After")
    await webhooks.deliver()
    assert receiver.texts() == ["As a member"]


async def test_nothing_of_another_organization_is_sent(webhooks: WebhookScenario) -> None:
    receiver = await webhooks.receiver()
    await webhooks.create(receiver, *EVENT_TYPES)
    eva = await SignIn(webhooks.stores)("eva", "other", [Role.ADMIN])
    topic = await eva.create_topic(await eva.create_community())
    await eva.post(topic, "Elsewhere")
    await eva.create_post("Elsewhere")
    await webhooks.deliver()
    assert receiver.events() == []


async def test_posts_of_the_local_feed_are_sent(webhooks: WebhookScenario) -> None:
    receiver, ann = await webhooks.receiver(), webhooks.chat.ann
    await webhooks.create(receiver, "PostArrived", "PostRemoved")
    post = await ann.create_post("The beacon is lit #news")
    await ann.run("mutation ($id: ID!) { deletePost(id: $id) { id } }", id=await ann.create_post("Removed"))
    await webhooks.deliver()
    first, *_, last = receiver.events()
    assert (first["data"]["post"]["id"], first["data"]["post"]["hashtags"]) == (post, ["news"])
    assert last["type"] == "PostRemoved"


async def test_events_of_named_call_job_are_sent(webhooks: WebhookScenario) -> None:
    receiver, ada = await webhooks.receiver(), webhooks.ada
    first, second = [await ada.do(LAUNCH, input=call_list()) for _ in range(2)]
    await webhooks.create(receiver, "CallJobChanged", "CallTaskChanged", jobIds=[first["id"]])
    for job in (first, second):
        await ada.run("mutation ($id: ID!) { cancelCallJob(id: $id) { id } }", id=job["id"])
    await webhooks.deliver()
    changed = receiver.events("CallJobChanged")
    assert {body["data"]["job"]["id"] for body in changed} == {first["id"]}
    assert changed[-1]["data"]["job"]["state"] == "CANCELLED"


async def test_lost_events_are_announced_before_later_ones(webhooks: WebhookScenario) -> None:
    receiver, chat = await webhooks.receiver(), webhooks.chat
    await webhooks.create(receiver)
    await chat.ann.post(chat.topic, "First")
    await webhooks.deliver()
    await chat.ann.post(chat.topic, "Lost")
    await webhooks.stores.events.prune(0)
    await chat.ann.post(chat.topic, "Later")
    await webhooks.deliver()
    assert [body["type"] for body in receiver.events()] == ["MessagePosted", "StreamReady", "MessagePosted"]
    gap = receiver.events("StreamReady")[0]
    assert (gap["stream"], gap["data"]["resumed"]) == (f"topic:{chat.topic}", False)
    assert receiver.texts() == ["First", "Later"]


async def test_replay_sends_events_again_with_equal_ids(webhooks: WebhookScenario) -> None:
    receiver, chat = await webhooks.receiver(), webhooks.chat
    id_ = await webhooks.create(receiver)
    start_at = (await webhooks.stores.mongo.now()).isoformat()
    for text in ("One", "Two", "Three"):
        await chat.ann.post(chat.topic, text)
    await webhooks.deliver()
    sent = list(receiver.messages)
    await webhooks.ada.do(REPLAY, input={"webhookId": id_, "since": start_at})
    await webhooks.deliver()
    assert receiver.messages == [*sent, *sent]
    cursor = sent[1][1]["data"]["cursor"]
    await webhooks.ada.do(REPLAY, input={"webhookId": id_, "cursor": cursor})
    await webhooks.deliver()
    assert receiver.messages == [*sent, *sent, sent[2]]


async def test_delivery_is_sent_again_on_request(webhooks: WebhookScenario) -> None:
    receiver, chat = await webhooks.receiver(), webhooks.chat
    id_ = await webhooks.create(receiver)
    await chat.ann.post(chat.topic, "One")
    await chat.ann.post(chat.topic, "Two")
    await webhooks.deliver()
    first = (await webhooks.deliveries(id_))[-1]
    waiting = await webhooks.ada.do(REDELIVER, id=first["id"])
    assert waiting["outcome"] == "WAITING"
    await webhooks.deliver()
    assert receiver.texts() == ["One", "Two"]
    assert [message_id for message_id, _ in receiver.messages].count(first["messageId"]) == 2
    assert (await webhooks.deliveries(id_))[0]["outcome"] == "DELIVERED"


async def test_disabled_webhook_is_tested_and_sends_nothing_else(webhooks: WebhookScenario) -> None:
    receiver, chat = await webhooks.receiver(), webhooks.chat
    id_ = await webhooks.create(receiver)
    await webhooks.ada.run(DISABLE, id=id_)
    await chat.ann.post(chat.topic, "Missed")
    await webhooks.ada.run("mutation ($id: ID!) { testWebhook(webhookId: $id) { id } }", id=id_)
    await webhooks.send()
    ((_, body),) = receiver.messages
    assert body["type"] == "WebhookTest"
    assert (await webhooks.deliveries(id_))[0]["answer"] == "thanks"
    await webhooks.ada.run(ENABLE, id=id_)
    await webhooks.deliver()
    assert receiver.texts() == ["Missed"]
