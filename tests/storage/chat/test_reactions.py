"""Reactions as one viewer sees them: those of the blocked do not exist, not even in the counts."""

import asyncio

import pytest

from storage.chat.reactions import Visibility
from storage.chat.records import Message
from tests.storage.places import Place

pytestmark = pytest.mark.anyio

NOBODY: frozenset[str] = frozenset()


async def reacted(place: Place, *reactions: tuple[str, str]) -> Message:
    """A message of ann's with these (user, emoji) in order."""
    message = await place.post()
    for user, emoji in reactions:
        message = await place.stores.messages.add_reaction(place.organization_id, message.key, user, emoji)
    return message


async def seen(place: Place, message: Message, viewer: str, blocked: frozenset[str] = NOBODY) -> list[object]:
    (reactions,) = await place.stores.reactions.of_messages([message], Visibility(viewer, blocked))
    return [(reaction.emoji, reaction.count, reaction.reacted) for reaction in reactions]


async def test_counts_come_in_the_order_of_first_use_with_ones_own_marked(place: Place) -> None:
    message = await reacted(place, ("bob", "👍"), ("cyd", "🎉"), ("cyd", "👍"))
    assert await seen(place, message, "cyd") == [("👍", 2, True), ("🎉", 1, True)]
    assert await seen(place, message, "ann") == [("👍", 2, False), ("🎉", 1, False)]


async def test_the_blocked_are_missing_from_the_counts_and_their_emojis_from_the_list(place: Place) -> None:
    message = await reacted(place, ("bob", "👍"), ("cyd", "🎉"), ("cyd", "👍"))
    assert await seen(place, message, "ann", frozenset({"cyd"})) == [("👍", 1, False)]
    assert await seen(place, message, "ann", frozenset({"bob", "cyd"})) == []


async def test_many_messages_and_viewers_of_one_moment_do_not_mix(place: Place) -> None:
    one = await reacted(place, ("bob", "👍"))
    other = await reacted(place, ("cyd", "👍"), ("bob", "🎉"))
    asked = [(one, "bob", NOBODY), (other, "bob", NOBODY), (one, "ann", frozenset({"bob"})), (other, "cyd", NOBODY)]
    assert await asyncio.gather(*(seen(place, *each) for each in asked)) == [
        [("👍", 1, True)],
        [("👍", 1, False), ("🎉", 1, True)],
        [],
        [("👍", 1, True), ("🎉", 1, False)],
    ]


async def test_who_reacted_is_told_in_order_up_to_the_limit_without_the_blocked(place: Place) -> None:
    message = await reacted(place, ("bob", "👍"), ("cyd", "👍"), ("dan", "👍"), ("eve", "🎉"))
    users = place.stores.reactions.users
    assert await users(message.key, "👍", 10, NOBODY) == ["bob", "cyd", "dan"]
    assert await users(message.key, "👍", 2, frozenset({"bob"})) == ["cyd", "dan"]
    assert await users(message.key, "💤", 10, NOBODY) == []
