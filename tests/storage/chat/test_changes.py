"""Changes of messages and reactions, their events, and their outbox rows."""

import asyncio

import pytest

from storage.chat.changes import NewMessage
from storage.chat.reactions.changes import MAX_EMOJIS
from storage.chat.records import Message
from storage.chat.roles import Moderator
from storage.errors import BadUserInput, Conflict, Forbidden, NotFound
from storage.identity.roles import Role
from storage.ids import MessageKey
from tests.storage.topic_scenario import OpenStores, TopicScenario

pytestmark = pytest.mark.anyio


async def event_kinds(scenario: TopicScenario) -> list[str]:
    return [event["kind"] for event in await scenario.events()]


async def react(scenario: TopicScenario, message: Message, user: str, emoji: str = "👍") -> Message:
    return await scenario.stores.messages.add_reaction(scenario.organization_id, message.key, user, emoji)


async def unreact(scenario: TopicScenario, message: Message, user: str, emoji: str = "👍") -> Message:
    return await scenario.stores.messages.remove_reaction(scenario.organization_id, message.key, user, emoji)


async def test_posted_message_has_the_posted_content(scenario: TopicScenario) -> None:
    new = NewMessage(scenario.topic.id, scenario.community.id, "ann", "狼煙 @bob", "tea", ["bob"])
    message = await scenario.stores.messages.post(new)
    assert (message.text, message.stamp_id, list(message.mention_ids)) == ("狼煙 @bob", "tea", ["bob"])
    assert (message.edited_at, message.deleted_at, message.link_preview) == (None, None, None)
    assert await scenario.stores.messages.get(message.key) == message
    assert await event_kinds(scenario) == ["MessagePosted"]


async def test_edit_replaces_text_and_sets_edited_at(scenario: TopicScenario) -> None:
    message = await scenario.post()
    edited = await scenario.stores.messages.edit(message.key, "ann", "new @cyd", ["cyd"])
    assert (edited.text, list(edited.mention_ids), edited.timestamp) == ("new @cyd", ["cyd"], message.timestamp)
    assert edited.edited_at is not None
    assert await event_kinds(scenario) == ["MessagePosted", "MessageEdited"]


async def test_edit_by_another_user_is_forbidden(scenario: TopicScenario) -> None:
    message = await scenario.post()
    with pytest.raises(Forbidden):
        await scenario.stores.messages.edit(message.key, "bob", "mine now", ())
    assert await scenario.stores.messages.get(message.key) == message


async def test_edit_to_empty_text_without_stamp_is_refused(scenario: TopicScenario) -> None:
    message = await scenario.post()
    with pytest.raises(BadUserInput):
        await scenario.stores.messages.edit(message.key, "ann", "", ())
    stamped = await scenario.stores.messages.post(
        NewMessage(scenario.topic.id, scenario.community.id, "ann", "x", "tea", ())
    )
    assert (await scenario.stores.messages.edit(stamped.key, "ann", "", ())).text == ""


async def test_delete_by_neither_author_nor_moderator_is_forbidden(scenario: TopicScenario) -> None:
    one, other = await scenario.post(), await scenario.post()
    await scenario.stores.users.sign_in(scenario.organization_id, "bob", (Role.ADMIN,), None, None)
    with pytest.raises(Forbidden):
        await scenario.stores.messages.delete(one.key, Moderator("bob"))
    assert (await scenario.stores.messages.delete(one.key, Moderator("ann"))).deleted_at is not None
    assert (await scenario.stores.messages.delete(other.key, Moderator("bob", is_admin=True))).deleted_at is not None


async def test_delete_is_idempotent(scenario: TopicScenario) -> None:
    message = await scenario.post()
    first = await scenario.stores.messages.delete(message.key, Moderator("ann"))
    assert await scenario.stores.messages.delete(message.key, Moderator("ann")) == first
    assert await event_kinds(scenario) == ["MessagePosted", "MessageDeleted"]


async def test_edit_and_reaction_of_a_tombstone_conflict(scenario: TopicScenario) -> None:
    message = await scenario.post()
    await scenario.stores.messages.delete(message.key, Moderator("ann"))
    with pytest.raises(Conflict):
        await scenario.stores.messages.edit(message.key, "ann", "back", ())
    with pytest.raises(Conflict):
        await react(scenario, message, "bob")


async def test_empty_fields_of_a_message_are_not_stored(scenario: TopicScenario) -> None:
    message = await scenario.post()

    async def fields() -> set[str]:
        stored = await scenario.stores.mongo["messages"].find_one({"_id": message.key.document_id})
        return set(stored or ())

    plain = {"_id", "author", "text"}
    assert await fields() == plain
    await react(scenario, message, "bob")
    assert await fields() == plain | {"reactions"}
    await unreact(scenario, message, "bob")
    assert await fields() == plain
    await scenario.stores.messages.edit(message.key, message.author_id, "again", ())
    assert await fields() == plain | {"edited_at"}
    await react(scenario, message, "bob")
    await scenario.stores.messages.delete(message.key, Moderator(message.author_id))
    assert await fields() == plain | {"deleted_at"}


async def test_changes_of_a_missing_message_are_not_found(scenario: TopicScenario) -> None:
    missing = MessageKey(scenario.topic.id, 5)
    messages = scenario.stores.messages
    for change in (
        messages.edit(missing, "ann", "x", ()),
        messages.delete(missing, Moderator("ann", is_admin=True)),
        messages.add_reaction("o", missing, "ann", "👍"),
        messages.remove_reaction("o", missing, "ann", "👍"),
        messages.set_preview(missing, "https://example.com", None),
    ):
        with pytest.raises(NotFound):
            await change
    assert await scenario.messages() == []


async def test_adding_and_removing_a_reaction_are_idempotent(scenario: TopicScenario) -> None:
    message = await scenario.post()
    for user in ("bob", "bob", "cyd"):
        await react(scenario, message, user)
    assert (await react(scenario, message, "bob", "🎉")).reaction_counts == (("👍", 2), ("🎉", 1))
    for _ in range(2):
        reacted = await unreact(scenario, message, "bob")
    assert reacted.reaction_counts == (("👍", 1), ("🎉", 1))
    assert (await unreact(scenario, message, "cyd")).reaction_counts == (("🎉", 1),)
    assert (await event_kinds(scenario)).count("ReactionsChanged") == 5


async def test_reaction_to_a_blocked_author_fails_alone(scenario: TopicScenario) -> None:
    message, messages = await scenario.post(), scenario.stores.messages
    organization_id, blocked = scenario.organization_id, frozenset({"ann"})
    results = await asyncio.gather(
        messages.add_reaction(organization_id, message.key, "bob", "👍", blocked),
        messages.remove_reaction(organization_id, message.key, "bob", "👍", blocked),
        *(react(scenario, message, user) for user in ("cyd", "dan")),
        return_exceptions=True,
    )
    assert [type(each) for each in results] == [NotFound, NotFound, Message, Message]
    assert (await messages.get(message.key)).reaction_counts == (("👍", 2),)
    assert await event_kinds(scenario) == ["MessagePosted", "ReactionsChanged", "ReactionsChanged"]


async def test_concurrent_reactions_are_all_counted(scenario: TopicScenario) -> None:
    message = await scenario.post()
    users = [f"user{number}" for number in range(30)]
    await asyncio.gather(*(react(scenario, message, user) for user in users for _ in range(2)))
    await asyncio.gather(*(unreact(scenario, message, user) for user in users[:10] for _ in range(2)))
    assert (await scenario.stores.messages.get(message.key)).reaction_counts == (("👍", 20),)


async def test_thirty_first_emoji_of_a_message_conflicts(scenario: TopicScenario) -> None:
    message = await scenario.post()
    emojis = [chr(0x1F600 + number) for number in range(MAX_EMOJIS + 1)]
    for emoji in emojis[:-1]:
        await react(scenario, message, "bob", emoji)
    with pytest.raises(Conflict):
        await react(scenario, message, "bob", emojis[-1])
    await react(scenario, message, "cyd", emojis[0])
    await unreact(scenario, message, "bob", emojis[1])
    assert len((await react(scenario, message, "bob", emojis[-1])).reaction_counts) == MAX_EMOJIS


async def test_only_reactions_of_others_are_relayed_to_the_author(
    scenario: TopicScenario, open_process: OpenStores
) -> None:
    message = await scenario.post()
    async with open_process() as stores:
        await stores.outbox.close()
        for user in ("ann", "bob"):
            await react(scenario.with_stores(stores), message, user)
    rows = await scenario.stores.mongo["outbox"].find({"kind": "Reaction", "ref.t": scenario.topic.id}).to_list(None)
    assert [row["ref"]["u"] for row in rows] == ["bob"]
