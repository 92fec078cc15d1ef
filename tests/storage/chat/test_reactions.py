"""Reactions as a viewer sees them: reactions of blocked users are left out of lists and counts."""

import asyncio

import pytest

from storage.chat.reactions import Visibility
from storage.chat.records import Message
from tests.storage.topic_scenario import TopicScenario

pytestmark = pytest.mark.anyio

NOBODY: frozenset[str] = frozenset()


async def reacted(scenario: TopicScenario, *reactions: tuple[str, str]) -> Message:
    """Posts a message of ann, and adds reactions by (user, emoji) in order."""
    message = await scenario.post()
    for user, emoji in reactions:
        message = await scenario.stores.messages.add_reaction(scenario.organization_id, message.key, user, emoji)
    return message


async def seen(
    scenario: TopicScenario, message: Message, viewer: str, blocked: frozenset[str] = NOBODY
) -> list[object]:
    (reactions,) = await scenario.stores.reactions.of_messages([message], Visibility(viewer, blocked))
    return [(reaction.emoji, reaction.count, reaction.reacted) for reaction in reactions]


async def test_counts_are_in_order_of_first_use_with_own_marked(scenario: TopicScenario) -> None:
    message = await reacted(scenario, ("bob", "👍"), ("cyd", "🎉"), ("cyd", "👍"))
    assert await seen(scenario, message, "cyd") == [("👍", 2, True), ("🎉", 1, True)]
    assert await seen(scenario, message, "ann") == [("👍", 2, False), ("🎉", 1, False)]


async def test_reactions_of_blocked_users_are_left_out(scenario: TopicScenario) -> None:
    message = await reacted(scenario, ("bob", "👍"), ("cyd", "🎉"), ("cyd", "👍"))
    assert await seen(scenario, message, "ann", frozenset({"cyd"})) == [("👍", 1, False)]
    assert await seen(scenario, message, "ann", frozenset({"bob", "cyd"})) == []


async def test_concurrent_reads_of_reactions_do_not_mix(scenario: TopicScenario) -> None:
    one = await reacted(scenario, ("bob", "👍"))
    other = await reacted(scenario, ("cyd", "👍"), ("bob", "🎉"))
    asked = [(one, "bob", NOBODY), (other, "bob", NOBODY), (one, "ann", frozenset({"bob"})), (other, "cyd", NOBODY)]
    assert await asyncio.gather(*(seen(scenario, *each) for each in asked)) == [
        [("👍", 1, True)],
        [("👍", 1, False), ("🎉", 1, True)],
        [],
        [("👍", 1, True), ("🎉", 1, False)],
    ]


async def test_users_are_in_order_of_reaction_up_to_the_limit(scenario: TopicScenario) -> None:
    message = await reacted(scenario, ("bob", "👍"), ("cyd", "👍"), ("dan", "👍"), ("eve", "🎉"))
    users = scenario.stores.reactions.users
    assert await users(message.key, "👍", 10, NOBODY) == ["bob", "cyd", "dan"]
    assert await users(message.key, "👍", 2, frozenset({"bob"})) == ["cyd", "dan"]
    assert await users(message.key, "💤", 10, NOBODY) == []
