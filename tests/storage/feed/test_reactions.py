"""Concurrent reactions to a post: each user counts once for each emoji."""

import pytest

from storage.chat.reactions.store import ViewerBlocks
from storage.chat.roles import Moderator
from tests.storage.feed.feed_scenario import FeedScenario, gather_list

pytestmark = pytest.mark.anyio

USERS = [f"user-{n}" for n in range(12)]


async def test_concurrent_reactions_are_counted_exactly(feed: FeedScenario) -> None:
    post, reactions = await feed.post(), feed.stores.post_reactions
    await gather_list(*(reactions.add(post, user, emoji) for user in USERS for emoji in "👍🌊" for _ in range(2)))
    removals = [reactions.remove(post.key, user, "👍") for user in USERS[:5] for _ in range(2)]
    await gather_list(*removals, *(reactions.add(post, user, "🔥") for user in USERS[:3]))
    counted = await feed.stores.posts.get(post.key)
    assert dict(counted.reaction_counts) == {"👍": 7, "🌊": 12, "🔥": 3}
    assert len(await feed.documents("post_reactions")) == 22
    (found,) = await reactions.of_posts([counted], ViewerBlocks(USERS[0], frozenset(USERS[5:7])))
    assert {each.emoji: (each.count, each.reacted) for each in found} == {
        "👍": (5, False),
        "🌊": (10, True),
        "🔥": (3, True),
    }


async def test_reaction_to_missing_post_changes_nothing(feed: FeedScenario) -> None:
    post = await feed.post()
    await feed.stores.posts.delete(post.key, Moderator("ann"))
    removed = await feed.stores.post_reactions.remove(post.key, "bob", "👍")
    assert removed is not None
    assert removed.deleted_at is not None
