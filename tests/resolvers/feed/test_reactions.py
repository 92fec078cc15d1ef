"""Reactions to posts: fields for each viewer, notifications, blocked people, and bounds."""

import pytest

from tests.resolvers.people import Answer, Person, SignIn, until_outbox_is_empty

pytestmark = pytest.mark.anyio

REACT = "mutation ($id: ID!, $emoji: String!) { done: addPostReaction(postId: $id, emoji: $emoji) { id } }"
UNREACT = "mutation ($id: ID!, $emoji: String!) { done: removePostReaction(postId: $id, emoji: $emoji) { id } }"
DELETE = "mutation ($id: ID!) { deletePost(id: $id) { reactions { emoji } } }"
READ = "query ($id: ID!) { post(id: $id) { reactions { emoji count reacted users(limit: 2) { id } } } }"
NOTIFICATIONS = '{ notifications(latest: "now") { items { kind actor { id } post { text } } } }'


async def reactions(person: Person, id_: str) -> list[Answer]:
    found: list[Answer] = (await person.run(READ, id=id_))["post"]["reactions"]
    return found


def reaction(emoji: str, reacted: bool, *users: str, count: int | None = None) -> Answer:
    return {
        "emoji": emoji,
        "count": len(users) if count is None else count,
        "reacted": reacted,
        "users": [{"id": user} for user in users],
    }


async def test_reactions_are_shown_as_each_viewer_sees_them(sign_in: SignIn) -> None:
    ann, bob, cat = [await sign_in(name) for name in ("ann", "bob", "cat")]
    id_ = await ann.create_post("news")
    for person, emoji in ((bob, "🌊"), (cat, "👍"), (bob, "👍"), (bob, "👍"), (ann, "👍")):
        await person.do(REACT, id=id_, emoji=emoji)
    assert await reactions(ann, id_) == [
        reaction("🌊", False, "bob"),
        reaction("👍", True, "cat", "bob", count=3),
    ]
    await ann.block(bob)
    assert await reactions(ann, id_) == [reaction("👍", True, "cat", "ann")]


async def test_reaction_notifies_the_author_once(sign_in: SignIn) -> None:
    ann, bob = await sign_in("ann"), await sign_in("bob")
    id_ = await ann.create_post("news")
    for person, emoji in ((bob, "🌊"), (bob, "👍"), (ann, "👍")):
        await person.do(REACT, id=id_, emoji=emoji)
    await until_outbox_is_empty(ann.stores)
    items = (await ann.run(NOTIFICATIONS))["notifications"]["items"]
    assert items == [{"kind": "REACTION", "actor": {"id": "bob"}, "post": {"text": "news"}}]


async def test_removed_reaction_is_gone(sign_in: SignIn) -> None:
    ann, bob = await sign_in("ann"), await sign_in("bob")
    id_ = await ann.create_post("news")
    await bob.do(REACT, id=id_, emoji="👍")
    for _ in range(2):
        await bob.do(UNREACT, id=id_, emoji="👍")
    assert await reactions(ann, id_) == []


async def test_reactions_of_deleted_post_are_gone(sign_in: SignIn) -> None:
    ann, bob = await sign_in("ann"), await sign_in("bob")
    id_ = await ann.create_post("news")
    await bob.do(REACT, id=id_, emoji="👍")
    assert (await ann.run(DELETE, id=id_))["deletePost"] == {"reactions": []}
    for mutation in (REACT, UNREACT):
        assert await bob.code(mutation, id=id_, emoji="👍") == "NOT_FOUND"
    assert await ann.stores.mongo["post_reactions"].count_documents({}) == 0


async def test_invalid_emoji_and_31st_emoji_are_refused(sign_in: SignIn) -> None:
    ann = await sign_in("ann")
    id_ = await ann.create_post("news")
    for invalid in ("", "a", "👍👍"):
        assert await ann.code(REACT, id=id_, emoji=invalid) == "BAD_USER_INPUT"
    for n in range(30):
        await ann.do(REACT, id=id_, emoji=chr(0x1F600 + n))
    assert await ann.code(REACT, id=id_, emoji="👍") == "CONFLICT"
    await ann.do(REACT, id=id_, emoji=chr(0x1F600))
