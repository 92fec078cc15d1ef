"""Reactions that a viewer sees: lists and counts without the reactions of blocked users."""

import asyncio

import pytest

from storage.chat.reactions.store import ViewerBlocks
from storage.chat.records import Message
from tests.resolvers.people import until_outbox_is_empty
from tests.storage.topic_scenario import TopicScenario

pytestmark = pytest.mark.anyio

NO_BLOCKED_USERS: frozenset[str] = frozenset()


async def post_with_reactions(scenario: TopicScenario, *reactions: tuple[str, str]) -> Message:
    """Posts a message of ann, and adds reactions by (user, emoji) in order."""
    message = await scenario.post()
    for user, emoji in reactions:
        message = await scenario.stores.messages.add_reaction(scenario.organization_id, message.key, user, emoji)
    return message


async def visible_reactions(
    scenario: TopicScenario, message: Message, viewer: str, blocked: frozenset[str] = NO_BLOCKED_USERS
) -> list[object]:
    (reactions,) = await scenario.stores.reactions.of_messages([message], ViewerBlocks(viewer, blocked))
    return [(reaction.emoji, reaction.count, reaction.reacted) for reaction in reactions]


async def test_counts_are_by_first_use_and_mark_viewers_reactions(scenario: TopicScenario) -> None:
    message = await post_with_reactions(scenario, ("bob", "👍"), ("cyd", "🎉"), ("cyd", "👍"))
    assert await visible_reactions(scenario, message, "cyd") == [("👍", 2, True), ("🎉", 1, True)]
    assert await visible_reactions(scenario, message, "ann") == [("👍", 2, False), ("🎉", 1, False)]


async def test_reactions_of_blocked_users_are_left_out(scenario: TopicScenario) -> None:
    message = await post_with_reactions(scenario, ("bob", "👍"), ("cyd", "🎉"), ("cyd", "👍"))
    assert await visible_reactions(scenario, message, "ann", frozenset({"cyd"})) == [("👍", 1, False)]
    assert await visible_reactions(scenario, message, "ann", frozenset({"bob", "cyd"})) == []


async def test_concurrent_reads_of_reactions_do_not_mix(scenario: TopicScenario) -> None:
    one = await post_with_reactions(scenario, ("bob", "👍"))
    other = await post_with_reactions(scenario, ("cyd", "👍"), ("bob", "🎉"))
    reads = [
        (one, "bob", NO_BLOCKED_USERS),
        (other, "bob", NO_BLOCKED_USERS),
        (one, "ann", frozenset({"bob"})),
        (other, "cyd", NO_BLOCKED_USERS),
    ]
    assert await asyncio.gather(*(visible_reactions(scenario, *each) for each in reads)) == [
        [("👍", 1, True)],
        [("👍", 1, False), ("🎉", 1, True)],
        [],
        [("👍", 1, True), ("🎉", 1, False)],
    ]


async def test_users_are_in_order_of_reaction_up_to_the_limit(scenario: TopicScenario) -> None:
    message = await post_with_reactions(scenario, ("bob", "👍"), ("cyd", "👍"), ("dan", "👍"), ("eve", "🎉"))
    users = scenario.stores.reactions.users
    assert await users(message.key, "👍", 10, NO_BLOCKED_USERS) == ["bob", "cyd", "dan"]
    assert await users(message.key, "👍", 2, frozenset({"bob"})) == ["cyd", "dan"]
    assert await users(message.key, "💤", 10, NO_BLOCKED_USERS) == []


async def test_users_of_many_reactions_are_read_together(scenario: TopicScenario) -> None:
    messages = [await post_with_reactions(scenario, ("bob", "👍"), ("cyd", "👍"), ("dan", "🎉")) for _ in range(5)]
    database, users = scenario.stores.mongo.database, scenario.stores.reactions.users
    # Relays of the reactions read the same collection.
    await until_outbox_is_empty(scenario.stores)
    await database.command({"profile": 2})
    user_ids = await asyncio.gather(
        *(users(each.key, "👍", 2, NO_BLOCKED_USERS) for each in messages),
        *(users(each.key, "🎉", 2, frozenset({"cyd"})) for each in messages),
        *(users(each.key, "👍", 1, frozenset({"bob"})) for each in messages),
    )
    await database.command({"profile": 0})
    assert user_ids == [["bob", "cyd"]] * 5 + [["dan"]] * 5 + [["cyd"]] * 5
    assert (
        await database["system.profile"].count_documents(
            {"ns": f"{database.name}.reactions", "op": {"$in": ["query", "command"]}}
        )
        == 3
    )
