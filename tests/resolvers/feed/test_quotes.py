"""Quotes of posts: fields, pages, counts, notifications, deleted posts and blocked people."""

import asyncio
from typing import Any

import pytest

from jobs.fan_out import finish_fan_outs
from tests.jobs.contexts import job_context
from tests.resolvers.people import CREATE_POST, Person, SignIn, until_outbox_is_empty

pytestmark = pytest.mark.anyio

READ = "query ($id: ID!) { post(id: $id) { text isQuote isReply quoteOf { id text } quoteCount replyCount } }"
REPOST = "mutation ($id: ID!) { done: repost(postId: $id) { id } }"
DELETE = "mutation ($id: ID!) { deletePost(id: $id) { id } }"
PAGES = '{ homeFeed(latest: "now") { items { text } } localFeed(latest: "now") { items { text } } }'
HOME_EVENTS = "subscription { homeFeedEvents { ... on PostArrived { post { text } } } }"
NOTIFICATIONS = '{ notifications(latest: "now") { items { kind actor { id } post { text } } } }'


async def read(person: Person, id_: str) -> dict[str, Any]:
    """Returns the post, after all quotes were counted."""
    await until_outbox_is_empty(person.stores)
    post: dict[str, Any] = (await person.run(READ, id=id_))["post"]
    return post


async def test_quote_shows_the_other_post_until_it_is_deleted(sign_in: SignIn) -> None:
    ann, bob = await sign_in("ann"), await sign_in("bob")
    original = await ann.create_post("news")
    quote = await bob.create_post("look @ann", quoteOf=original)
    shown = {"text": "look @ann", "isQuote": True, "isReply": False, "quoteCount": 0, "replyCount": 0}
    assert await read(ann, quote) == shown | {"quoteOf": {"id": original, "text": "news"}}
    assert (await read(ann, original))["quoteCount"] == 1
    items = (await ann.run(NOTIFICATIONS))["notifications"]["items"]
    assert items == [{"kind": "QUOTE", "actor": {"id": "bob"}, "post": {"text": "look @ann"}}]
    await ann.run(DELETE, id=original)
    assert await read(ann, quote) == shown | {"quoteOf": None}


async def test_quote_is_on_the_pages_of_other_posts(sign_in: SignIn) -> None:
    ann, bob, cat = [await sign_in(name) for name in ("ann", "bob", "cat")]
    await cat.follow(bob)
    repost = (await bob.do(REPOST, id=await ann.create_post("news")))["id"]
    quote = await bob.create_post("look", quoteOf=repost)
    while await finish_fan_outs(job_context(cat.stores)):
        pass
    pages = await cat.run(PAGES)
    assert [each["text"] for each in pages["homeFeed"]["items"]] == ["look", ""]
    assert [each["text"] for each in pages["localFeed"]["items"]] == ["look", "news"]
    assert (await read(cat, quote))["quoteOf"]["text"] == "news"


async def test_quote_arrives_at_followers_of_its_author_alone(sign_in: SignIn) -> None:
    ann, bob, cat = [await sign_in(name) for name in ("ann", "bob", "cat")]
    await cat.follow(bob)
    original = await ann.create_post("news")
    async with cat.subscribed(HOME_EVENTS) as events:
        await bob.create_post("look", quoteOf=original)
        while await finish_fan_outs(job_context(cat.stores)):
            pass
        assert (await events.next_event())["post"] == {"text": "look"}


async def test_concurrent_quotes_are_counted_exactly(sign_in: SignIn) -> None:
    ann = await sign_in("ann")
    people = [await sign_in(f"fan{n}") for n in range(5)]
    original = await ann.create_post("news")
    quotes = await asyncio.gather(*(each.create_post("me", quoteOf=original) for each in people for _ in range(2)))
    assert (await read(ann, original))["quoteCount"] == 10
    await asyncio.gather(*(people[n // 2].run(DELETE, id=quote) for n, quote in enumerate(quotes) if n % 2))
    await ann.block(people[0])
    assert ((await read(ann, original))["quoteCount"], (await read(people[0], original))["quoteCount"]) == (4, 5)


async def test_quoted_post_of_blocked_author_is_hidden(sign_in: SignIn) -> None:
    ann, bob, cat = [await sign_in(name) for name in ("ann", "bob", "cat")]
    own, other = await ann.create_post("own"), await bob.create_post("other")
    quote = await cat.create_post("look", quoteOf=other)
    await ann.block(bob)
    assert ((await read(ann, quote))["isQuote"], (await read(ann, quote))["quoteOf"]) == (True, None)
    assert (await read(bob, quote))["quoteOf"]["text"] == "other"
    for person, post, code in ((bob, own, "FORBIDDEN"), (ann, other, "NOT_FOUND")):
        assert await person.code(CREATE_POST, input={"text": "hi", "quoteOf": post}) == code


async def test_reply_with_a_quote_is_refused(sign_in: SignIn) -> None:
    ann = await sign_in("ann")
    id_ = await ann.create_post("news")
    assert await ann.code(CREATE_POST, input={"text": "hi", "quoteOf": id_, "inReplyTo": id_}) == "BAD_USER_INPUT"
    assert await ann.code(CREATE_POST, input={"text": "", "quoteOf": id_}) == "BAD_USER_INPUT"
