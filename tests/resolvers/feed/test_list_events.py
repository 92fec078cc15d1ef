"""localEvents and hashtagEvents: each post once, resumption by cursor, hidden authors, and streams without readers."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

import pytest
from prometheus_client import REGISTRY

from server.graphql import subscription_limits
from storage.feed.records import hashtag_stream, local_stream
from storage.stores import Stores
from tests.resolvers.people import CREATE_POST, Person, RunningSubscription, SignIn, until_outbox_is_empty

pytestmark = pytest.mark.anyio

EVENT = """
  type: __typename
  ... on Event { cursor }
  ... on StreamReady { resumed }
  ... on PostArrived { post { id text } }
  ... on PostRemoved { postId }
"""
LOCAL = "subscription ($since: Cursor) { localEvents(since: $since) {" + EVENT + "} }"
HASHTAG = "subscription ($tag: String!, $since: Cursor) { hashtagEvents(tag: $tag, since: $since) {" + EVENT + "} }"
DELETE = "mutation ($id: ID!) { deletePost(id: $id) { id } }"
EDIT = "mutation ($id: ID!, $text: String!) { editPost(id: $id, text: $text) { id } }"
MUTE = "mutation ($id: ID!) { muteUser(userId: $id) { id } }"


async def arrived(events: RunningSubscription) -> str:
    """Returns the text of the next event, which must be an arrival."""
    event = await events.next_event()
    return str(event["post"]["text"])


async def test_lists_emit_their_posts_and_removals(sign_in: SignIn) -> None:
    ann, bob = await sign_in("ann"), await sign_in("bob")
    async with ann.subscribed(LOCAL) as local, ann.subscribed(HASHTAG, tag="#Tide") as tagged:
        first = await bob.create_post("high #tide #sea #ﷺ")
        assert await arrived(local) == await arrived(tagged) == "high #tide #sea #ﷺ"
        await bob.create_post("answer #tide", inReplyTo=first)
        assert await arrived(tagged) == "answer #tide"
        await bob.create_post("plain")
        assert await arrived(local) == "plain"
        quote = await bob.create_post("look", quoteOf=first)
        assert await arrived(local) == "look"
        await bob.run(DELETE, id=first)
        for events in (local, tagged):
            event = await events.next_event()
            assert (event["type"], event["postId"]) == ("PostRemoved", first)
        await bob.run(DELETE, id=quote)
        assert (await local.next_event())["postId"] == quote


async def test_edit_moves_a_post_between_lists(sign_in: SignIn) -> None:
    ann, bob = await sign_in("ann"), await sign_in("bob")
    async with ann.subscribed(HASHTAG, tag="sea") as sea, ann.subscribed(HASHTAG, tag="tide") as tide:
        post = await bob.create_post("calm #sea")
        assert await arrived(sea) == "calm #sea"
        await until_outbox_is_empty(bob.stores)
        await bob.run(EDIT, id=post, text="high #tide")
        event = await sea.next_event()
        assert (event["type"], event["postId"]) == ("PostRemoved", post)
        assert await arrived(tide) == "high #tide"
        await bob.run(EDIT, id=post, text="higher #tide")
        await bob.run(DELETE, id=post)
        assert (await tide.next_event())["postId"] == post


async def test_reconnecting_reader_misses_and_repeats_no_post(sign_in: SignIn) -> None:
    ann, people = await sign_in("ann"), [await sign_in(f"fan{n}") for n in range(4)]
    async with ann.subscribed(HASHTAG, tag="tide") as events:
        await people[0].create_post("start #tide")
        cursor = (await events.next_event())["cursor"]
    expected = {f"{person.id}-{n} #tide" for person in people for n in range(5)}
    writes = [asyncio.create_task(write(person, 5)) for person in people]
    seen: list[str] = []
    while len(seen) < len(expected):
        async with ann.subscribed(HASHTAG, tag="tide", since=cursor) as events:
            for _ in range(min(3, len(expected) - len(seen))):
                event = await events.next_event()
                cursor = event["cursor"]
                seen.append(event["post"]["text"])
    await asyncio.gather(*writes)
    assert sorted(seen) == sorted(expected)


async def write(person: Person, count: int) -> None:
    for n in range(count):
        await person.do(CREATE_POST, input={"text": f"{person.id}-{n} #tide"})


@pytest.mark.parametrize("subscribe", [(LOCAL, {}), (HASHTAG, {"tag": "tide"})])
async def test_hidden_authors_send_no_event(sign_in: SignIn, subscribe: tuple[str, dict[str, Any]]) -> None:
    ann, bob, cat, dog = [await sign_in(name) for name in ("ann", "bob", "cat", "dog")]
    await ann.block(bob)
    query, variables = subscribe
    async with ann.subscribed(query, **variables) as events:
        await bob.create_post("blocked #tide")
        await ann.run(MUTE, id=cat.id)
        await cat.create_post("muted #tide")
        await until_outbox_is_empty(ann.stores)
        await dog.create_post("visible #tide")
        assert await arrived(events) == "visible #tide"


def executed_events() -> float:
    """Returns the number of events that all broadcasts of this process have executed so far."""
    return REGISTRY.get_sample_value("noroshi_broadcast_executions_total") or 0.0


async def test_thousand_readers_cost_one_execution_an_event(sign_in: SignIn) -> None:
    """Ten people have a hundred connections each. One of them blocked the author, another one muted the author."""
    author = await sign_in("author")
    first, *others = [await sign_in(f"reader{n}") for n in range(10)]
    readers = [first, *(replace(each, subscriptions=first.subscriptions) for each in others)]
    await readers[1].block(author)
    await readers[2].run(MUTE, id=author.id)
    async with AsyncExitStack() as stack:
        subscribing = [each.subscribed(HASHTAG, tag="tide") for each in readers for _ in range(100)]
        events = [await stack.enter_async_context(each) for each in subscribing]
        before = executed_events()
        await author.create_post("#tide")
        await until_outbox_is_empty(author.stores)
        for reader in (readers[1], readers[2]):
            await reader.create_post("next #tide")
        texts = [[await arrived(each) for _ in range(2)] for each in events]
        assert executed_events() - before == 3
    shown = [text for n, text in enumerate(texts) if n // 100 not in (1, 2)]
    assert shown == [["#tide", "next #tide"]] * 800
    assert texts[100:300] == [["next #tide", "next #tide"]] * 200


async def test_lists_count_as_own_subscriptions(sign_in: SignIn, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each hashtag has a stream of its own, so a limit for each stream would allow any number of them."""
    monkeypatch.setattr(subscription_limits, "MAX_OWN", 3)
    ann = await sign_in("ann")
    async with AsyncExitStack() as stack:
        for tag in ("one", "two", "three", "three"):
            await stack.enter_async_context(ann.subscribed(HASHTAG, tag=tag))
        answer = await anext(ann.answers(HASHTAG, tag="four"))
        assert answer["errors"][0]["extensions"]["code"] == "RATE_LIMITED"


async def test_lists_without_subscribers_have_no_stream(sign_in: SignIn, stores: Stores) -> None:
    ann = await sign_in("ann")
    await ann.run(DELETE, id=await ann.create_post("#tide"))
    await until_outbox_is_empty(stores)
    names = [local_stream("acme").name, hashtag_stream("acme", "tide").name]
    assert await stores.mongo["streams"].count_documents({"_id": {"$in": names}}) == 0


async def test_stream_of_another_organization_or_tag_takes_no_cursor(sign_in: SignIn) -> None:
    ann = await sign_in("ann")
    async with ann.subscribed(HASHTAG, tag="tide") as events:
        await ann.create_post("#tide")
        cursor = (await events.next_event())["cursor"]
    assert (await anext(ann.answers(LOCAL, since=cursor)))["errors"][0]["extensions"]["code"] == "BAD_USER_INPUT"
    answer = await anext(ann.answers(HASHTAG, tag="sea", since=cursor))
    assert answer["errors"][0]["extensions"]["code"] == "BAD_USER_INPUT"
