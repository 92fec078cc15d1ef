"""The migration that adds the first post of the conversation to replies of earlier releases."""

import pytest

from storage.feed.records import Post, PostParentKind
from storage.ids import PostKey
from storage.migrations import conversation_roots
from storage.migrations.conversation_roots import add_conversation_roots
from tests.storage.feed.feed_scenario import FeedScenario

pytestmark = pytest.mark.anyio

REPLY, QUOTE = PostParentKind.REPLY, PostParentKind.QUOTE


async def forget_roots(feed: FeedScenario) -> None:
    """Leaves the organization's posts as the release before wrote them."""
    update = {"$unset": {"parent.root": ""}}
    await feed.stores.mongo["posts"].update_many({"_id.o": feed.organization_id, "parent": {"$ne": None}}, update)


async def add_replies(feed: FeedScenario, post: Post, count: int) -> list[Post]:
    """Adds replies, each to the one before."""
    replies: list[Post] = []
    for _ in range(count):
        replies.append(await feed.post("bob", parent=(replies or [post])[-1].as_parent(REPLY)))
    return replies


async def roots(feed: FeedScenario, posts: list[Post]) -> set[PostKey]:
    return {(await feed.stores.posts.get(post.key)).root_key for post in posts}


@pytest.mark.parametrize("batch", [1, 3, 1000])
async def test_replies_of_every_depth_get_their_root(
    feed: FeedScenario, batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation_roots, "BATCH", batch)
    post = await feed.post()
    replies = await add_replies(feed, post, 5)
    quote = await feed.post("bob", parent=replies[-1].as_parent(QUOTE))
    answers = await add_replies(feed, quote, 3)
    await forget_roots(feed)
    assert await roots(feed, replies) != {post.key}
    for _ in range(2):
        await add_conversation_roots(feed.stores.mongo)
        assert await roots(feed, replies) == {post.key}
        assert await roots(feed, [quote, *answers]) == {quote.key}


async def test_replies_below_deleted_posts_get_the_deleted_post(feed: FeedScenario) -> None:
    replies = await add_replies(feed, await feed.post(), 4)
    await feed.stores.posts.erase(replies[1].key)
    await forget_roots(feed)
    await add_conversation_roots(feed.stores.mongo)
    assert await roots(feed, replies[2:]) == {replies[1].key}
