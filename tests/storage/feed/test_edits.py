"""Edits of posts: concurrent edits, the bound of the history, terms, and the deletion of all texts."""

import pytest

from storage.chat.roles import Moderator
from storage.errors import Conflict
from storage.feed.edits import MAX_EDITS, NewText
from tests.storage.feed.feed_scenario import FeedScenario, gather_list

pytestmark = pytest.mark.anyio


def new_text(text: str) -> NewText:
    return NewText(text, (), ())


async def test_concurrent_edits_lose_no_text(feed: FeedScenario) -> None:
    post, edits = await feed.post(text="0"), feed.stores.post_edits
    texts = [str(number) for number in range(1, 11)]
    await gather_list(*(edits.edit(post.key, "ann", new_text(text)) for text in texts))
    versions, edited = await edits.versions(post.key), await feed.stores.posts.get(post.key)
    assert sorted([*(each.text for each in versions), edited.text], key=int) == ["0", *texts]
    assert [each.written_at for each in versions] == sorted(each.written_at for each in versions)
    assert edited.edited_at is not None


async def test_edit_after_the_last_one_is_refused(feed: FeedScenario) -> None:
    post, edits = await feed.post(text="0"), feed.stores.post_edits
    for number in range(MAX_EDITS):
        await edits.edit(post.key, "ann", new_text(str(number + 1)))
    await edits.edit(post.key, "ann", new_text(str(MAX_EDITS)))
    with pytest.raises(Conflict, match="edited 50 times"):
        await edits.edit(post.key, "ann", new_text("more"))
    assert len(await edits.versions(post.key)) == MAX_EDITS


async def test_deletion_removes_all_texts(feed: FeedScenario) -> None:
    post, edits = await feed.post(text="first"), feed.stores.post_edits
    await edits.edit(post.key, "ann", new_text("second"))
    await feed.stores.posts.delete(post.key, Moderator("ann"))
    assert await feed.documents("post_histories") == []
    (terms,) = await feed.documents("post_terms")
    assert terms["terms"] == []


async def test_edit_replaces_terms_and_keeps_counts(feed: FeedScenario) -> None:
    post = await feed.post(text="harbour", hashtags=["sea"])
    await feed.stores.post_reactions.add(post, "bob", "👍")
    edited = await feed.stores.post_edits.edit(post.key, "ann", NewText("mountain", (), ("hill",)))
    assert (edited.hashtags, edited.reaction_counts) == (["hill"], [("👍", 1)])
    (terms,) = await feed.documents("post_terms")
    assert "mountain" in terms["terms"]
    assert "harbour" not in terms["terms"]
