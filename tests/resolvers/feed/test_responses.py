"""Replies and reposts: fields, pages, home feeds, notifications, exact counts, and blocked people."""

import asyncio
from typing import Any

import pytest

from jobs.fan_out import finish_fan_outs
from tests.jobs.contexts import job_context
from tests.resolvers.people import CREATE_POST, HOME, Person, SignIn, until_outbox_is_empty

pytestmark = pytest.mark.anyio

READ = """
query ($id: ID!) { post(id: $id) {
  text isReply inReplyTo { id } isRepost repostOf { id } replyCount repostCount reposted
  replies(latest: "now") { items { text } }
} }
"""
REPLIES = """
query ($id: ID!, $oldest: Timestamp, $latest: Timestamp) {
  post(id: $id) { replies(oldest: $oldest, latest: $latest, limit: 2) { items { text } hasOlder hasNewer } }
}
"""
REPOST = "mutation ($id: ID!) { done: repost(postId: $id) { id isRepost text repostOf { id } } }"
UNDO = "mutation ($id: ID!) { done: undoRepost(postId: $id) { id reposted } }"
REACT = 'mutation ($id: ID!) { done: addPostReaction(postId: $id, emoji: "👍") { id } }'
DELETE = "mutation ($id: ID!) { deletePost(id: $id) { id } }"
MUTE = "mutation ($id: ID!) { muteUser(userId: $id) { id } }"
HOME_POSTS = '{ homeFeed(latest: "now") { items { text author { id } repostOf { text } } } }'
AUTHOR_POSTS = 'query ($id: ID!) { posts(authorId: $id, latest: "now") { items { text repostOf { text } } } }'
NOTIFICATIONS = '{ notifications(latest: "now") { items { kind actor { id } post { text } } } }'


async def read(person: Person, id_: str) -> dict[str, Any]:
    post: dict[str, Any] = (await person.run(READ, id=id_))["post"]
    return post


async def counts(person: Person, id_: str) -> tuple[int, int]:
    """Returns the numbers of replies and reposts, after all of them were counted."""
    await until_outbox_is_empty(person.stores)
    post = await read(person, id_)
    return post["replyCount"], post["repostCount"]


async def home_entries(person: Person) -> list[tuple[str, str]]:
    """Returns author and text of each entry of the home feed, or the text of the reposted post, oldest first."""
    while await finish_fan_outs(job_context(person.stores)):
        pass
    items = (await person.run(HOME_POSTS))["homeFeed"]["items"]
    return [(each["author"]["id"], (each["repostOf"] or each)["text"]) for each in reversed(items)]


async def notifications_of(person: Person) -> list[tuple[str, str, str]]:
    await until_outbox_is_empty(person.stores)
    items = (await person.run(NOTIFICATIONS))["notifications"]["items"]
    return [(each["kind"], each["actor"]["id"], each["post"]["text"]) for each in items]


async def test_reply_names_its_parent_and_is_counted(sign_in: SignIn) -> None:
    ann, bob = await sign_in("ann"), await sign_in("bob")
    parent = await ann.create_post("question")
    reply = await bob.create_post("answer @ann", inReplyTo=parent)
    assert await counts(ann, parent) == (1, 0)
    post = await read(ann, reply)
    assert (post["isReply"], post["inReplyTo"], post["isRepost"]) == (True, {"id": parent}, False)
    assert (await read(ann, parent))["replies"]["items"] == [{"text": "answer @ann"}]
    assert await notifications_of(ann) == [("REPLY", "bob", "answer @ann")]
    await bob.run(DELETE, id=reply)
    assert await counts(ann, parent) == (0, 0)
    assert (await read(ann, parent))["replies"]["items"] == []


async def test_replies_follow_the_timeline_rule(sign_in: SignIn) -> None:
    ann = await sign_in("ann")
    parent = await ann.create_post("question")
    ids = [await ann.create_post(str(n), inReplyTo=parent) for n in range(4)]
    await ann.create_post("deeper", inReplyTo=ids[1])
    at = (await ann.run("query ($id: ID!) { post(id: $id) { timestamp } }", id=ids[1]))["post"]["timestamp"]
    page = (await ann.run(REPLIES, id=parent, oldest=at))["post"]["replies"]
    assert page == {"items": [{"text": "1"}, {"text": "2"}], "hasOlder": True, "hasNewer": True}
    page = (await ann.run(REPLIES, id=parent, latest=at))["post"]["replies"]
    assert page == {"items": [{"text": "1"}, {"text": "0"}], "hasOlder": False, "hasNewer": True}


async def test_deleted_parent_leaves_its_replies(sign_in: SignIn) -> None:
    ann, bob = await sign_in("ann"), await sign_in("bob")
    parent = await ann.create_post("question")
    reply = await bob.create_post("answer", inReplyTo=parent)
    await ann.run(DELETE, id=parent)
    post = await read(ann, reply)
    assert (post["text"], post["isReply"], post["inReplyTo"]) == ("answer", True, None)
    assert await bob.code(CREATE_POST, input={"text": "late", "inReplyTo": parent}) == "NOT_FOUND"


async def test_reply_is_in_the_feeds_of_those_who_follow_both(sign_in: SignIn) -> None:
    ann, bob, cat, dog = [await sign_in(name) for name in ("ann", "bob", "cat", "dog")]
    for reader, authors in ((cat, (ann, bob)), (dog, (bob,)), (ann, (bob,))):
        for author in authors:
            await reader.follow(author)
    parent = await ann.create_post("question")
    await bob.create_post("answer", inReplyTo=parent)
    both = [("ann", "question"), ("bob", "answer")]
    assert await home_entries(cat) == await home_entries(ann) == both
    assert await home_entries(dog) == []
    assert await home_entries(bob) == [("bob", "answer")]
    assert [
        each["text"] for each in (await ann.run('{ p: localFeed(latest: "now") { items { text } } }'))["p"]["items"]
    ] == ["question"]


async def test_repost_reaches_followers_once_until_undone(sign_in: SignIn) -> None:
    ann, bob, cat = [await sign_in(name) for name in ("ann", "bob", "cat")]
    await cat.follow(bob)
    original = await ann.create_post("news")
    ids = {(await bob.do(REPOST, id=original))["id"] for _ in range(3)}
    assert len(ids) == 1
    assert await home_entries(cat) == await home_entries(bob) == [("bob", "news")]
    assert await counts(cat, original) == (0, 1)
    assert [(await read(person, original))["reposted"] for person in (bob, cat)] == [True, False]
    assert await notifications_of(ann) == [("REPOST", "bob", "news")]
    for _ in range(2):
        assert await bob.do(UNDO, id=original) == {"id": original, "reposted": False}
    assert await home_entries(cat) == await home_entries(bob) == []
    assert await counts(cat, original) == (0, 0)
    await bob.do(REPOST, id=original)
    assert await home_entries(cat) == [("bob", "news")]


async def test_id_of_repost_stands_for_the_original(sign_in: SignIn) -> None:
    ann, bob, cat = [await sign_in(name) for name in ("ann", "bob", "cat")]
    original = await ann.create_post("news")
    repost = (await bob.do(REPOST, id=original))["id"]
    assert (await cat.do(REPOST, id=repost))["repostOf"] == {"id": original}
    await cat.create_post("answer", inReplyTo=repost)
    assert (await cat.do(REACT, id=repost))["id"] == original
    assert await counts(ann, original) == (1, 2)
    await bob.run(DELETE, id=repost)
    assert await counts(ann, original) == (1, 1)


async def test_repost_of_deleted_post_is_on_no_page(sign_in: SignIn) -> None:
    ann, bob, cat = [await sign_in(name) for name in ("ann", "bob", "cat")]
    await cat.follow(bob)
    original = await ann.create_post("news")
    await bob.create_post("own")
    await bob.do(REPOST, id=original)
    assert await home_entries(cat) == [("bob", "own"), ("bob", "news")]
    await ann.run(DELETE, id=original)
    assert await home_entries(cat) == [("bob", "own")]
    assert (await cat.run(AUTHOR_POSTS, id=bob.id))["posts"]["items"] == [{"text": "own", "repostOf": None}]


async def test_page_reaches_posts_behind_hidden_ones(sign_in: SignIn) -> None:
    ann, bob, cat = [await sign_in(name) for name in ("ann", "bob", "cat")]
    await cat.follow(bob)
    originals = [await ann.create_post("news") for _ in range(8)]
    await bob.create_post("own")
    for _ in range(6):
        await bob.create_post("answer", inReplyTo=originals[0])
    for original in originals:
        await bob.do(REPOST, id=original)
        await ann.run(DELETE, id=original)
    assert await home_entries(cat) == [("bob", "own")]
    for query, expected in ((HOME_POSTS, "own"), (AUTHOR_POSTS, "answer")):
        answer = await cat.run(query.replace('latest: "now"', 'latest: "now", limit: 1'), id=bob.id)
        (page,) = answer.values()
        assert [each["text"] for each in page["items"]] == [expected]


async def test_concurrent_responses_are_counted_exactly(sign_in: SignIn) -> None:
    ann = await sign_in("ann")
    people = [await sign_in(f"fan{n}") for n in range(6)]
    original = await ann.create_post("news")
    replies = await asyncio.gather(*(each.create_post("me", inReplyTo=original) for each in people for _ in range(3)))
    await asyncio.gather(*(each.do(REPOST, id=original) for each in people for _ in range(3)))
    assert await counts(ann, original) == (18, 6)
    changes = [ann.run("{ viewer { id } }")]
    changes += [people[n // 3].run(DELETE, id=reply) for n, reply in enumerate(replies) if n % 2]
    changes += [each.do(UNDO, id=original) for each in people[:4] for _ in range(2)]
    await asyncio.gather(*changes)
    assert await counts(ann, original) == (9, 2)


async def test_responses_of_blocked_users_are_hidden_and_not_counted(sign_in: SignIn) -> None:
    ann, bob, cat = [await sign_in(name) for name in ("ann", "bob", "cat")]
    await ann.follow(cat)
    original, other = await ann.create_post("news"), await bob.create_post("bad news")
    for person in (bob, cat):
        await person.create_post(f"from {person.id}", inReplyTo=original)
        await person.do(REPOST, id=original)
    await cat.do(REPOST, id=other)
    await cat.create_post("agreed", inReplyTo=other)
    assert await counts(ann, original) == (2, 2)
    await ann.block(bob)
    assert await counts(ann, original) == (1, 1)
    assert (await read(ann, original))["replies"]["items"] == [{"text": "from cat"}]
    assert [text for _, text in await home_entries(ann)] == ["news", "from cat"]
    items = (await ann.run(AUTHOR_POSTS, id=cat.id))["posts"]["items"]
    assert [each["text"] for each in items] == ["agreed", "", "from cat"]
    assert await counts(bob, original) == (2, 2)


async def test_reposts_of_muted_users_leave_the_home_feed(sign_in: SignIn) -> None:
    ann, bob, cat = [await sign_in(name) for name in ("ann", "bob", "cat")]
    await ann.follow(cat)
    original = await bob.create_post("news")
    await cat.do(REPOST, id=original)
    assert await home_entries(ann) == [("cat", "news")]
    await ann.run(MUTE, id=bob.id)
    assert await home_entries(ann) == []


async def test_blocked_user_cannot_respond_to_a_post(sign_in: SignIn) -> None:
    ann, bob = await sign_in("ann"), await sign_in("bob")
    original, other = await ann.create_post("news"), await bob.create_post("other")
    await ann.block(bob)
    for person, post, code in ((bob, original, "FORBIDDEN"), (ann, other, "NOT_FOUND")):
        assert await person.code(CREATE_POST, input={"text": "hi", "inReplyTo": post}) == code
        for mutation in (REPOST, REACT):
            assert await person.code(mutation, id=post) == code
    assert await counts(ann, original) == (0, 0)
    assert (await bob.run(HOME, latest="now"))["homeFeed"]["items"][0]["text"] == "other"
