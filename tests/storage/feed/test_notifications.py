"""Notifications of posts name the first post of their conversation, so that one mute covers all of it."""

import pytest

from storage.feed.edits import NewText
from storage.feed.records import Post, PostParentKind
from storage.identity.mutes import HiddenSubjects
from storage.identity.records import user_stream
from storage.ids import PostKey
from storage.notifications import NotificationKind
from storage.timeline import NOW, timeline_range
from tests.storage.feed.feed_scenario import FeedScenario

pytestmark = pytest.mark.anyio

REPLY, QUOTE = PostParentKind.REPLY, PostParentKind.QUOTE


async def roots_of(feed: FeedScenario, person: str) -> dict[NotificationKind, PostKey | None]:
    """Returns the first post of the conversation that each of the person's notifications is about."""
    await feed.wait_for_relays(user_stream(feed.organization_id, person))
    newest = timeline_range(latest=NOW)
    page = await feed.stores.notifications.page(feed.organization_id, person, newest, HiddenSubjects())
    return {each.kind: each.root for each in page.items}


async def deep_reply(feed: FeedScenario) -> tuple[Post, Post]:
    """Returns a post of Ann's, and Cat's reply two levels below."""
    await feed.sign_in("ann", "bob", "cat")
    first = await feed.post("ann", "first")
    reply = await feed.post("bob", "second", parent=first.as_parent(REPLY))
    return first, await feed.post("cat", "third", parent=reply.as_parent(REPLY))


async def test_every_notification_of_a_conversation_names_its_root(feed: FeedScenario) -> None:
    first, post = await deep_reply(feed)
    assert post.root_key == first.key
    await feed.post("bob", "fourth", parent=post.as_parent(REPLY))
    await feed.post("bob", "quoted", parent=post.as_parent(QUOTE))
    await feed.stores.posts.repost("bob", post)
    await feed.stores.post_reactions.add(post, "bob", "🐟")
    await feed.post("bob", "fifth", parent=first.as_parent(REPLY), mention_ids=["cat"])
    kinds = [NotificationKind[each] for each in ("REPLY", "QUOTE", "REPOST", "REACTION", "MENTION")]
    assert await roots_of(feed, "cat") == dict.fromkeys(kinds, first.key)


async def test_mention_added_by_an_edit_names_the_root(feed: FeedScenario) -> None:
    first, post = await deep_reply(feed)
    await feed.sign_in("dan")
    await feed.stores.post_edits.edit(post.key, "cat", NewText("third for dan", ["dan"], ()))
    assert await roots_of(feed, "dan") == {NotificationKind.MENTION: first.key}


async def test_quote_begins_a_conversation(feed: FeedScenario) -> None:
    _, post = await deep_reply(feed)
    quote = await feed.post("bob", "quoted", parent=post.as_parent(QUOTE), mention_ids=["ann"])
    assert quote.root_key == quote.key
    assert (await roots_of(feed, "ann"))[NotificationKind.MENTION] == quote.key


async def test_reply_below_a_deleted_post_keeps_its_root(feed: FeedScenario) -> None:
    first, post = await deep_reply(feed)
    assert post.parent_key is not None
    await feed.stores.posts.erase(post.parent_key)
    assert (await feed.stores.posts.get(post.key)).root_key == first.key
