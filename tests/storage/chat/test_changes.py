"""Changes of messages and reactions, their events, and their outbox rows."""

import asyncio

import pytest

from storage.chat.changes import MAX_EMOJIS, NewMessage
from storage.chat.records import Message
from storage.errors import BadUserInput, Conflict, Forbidden, NotFound
from storage.ids import MessageKey
from tests.storage.places import OpenStores, Place

pytestmark = pytest.mark.anyio


async def kinds(place: Place) -> list[str]:
    return [event["kind"] for event in await place.events()]


async def react(place: Place, message: Message, user: str, emoji: str = "👍") -> Message:
    return await place.stores.messages.add_reaction(place.organization_id, message.key, user, emoji)


async def take_back(place: Place, message: Message, user: str, emoji: str = "👍") -> Message:
    return await place.stores.messages.remove_reaction(place.organization_id, message.key, user, emoji)


async def test_posted_message_has_the_posted_content(place: Place) -> None:
    new = NewMessage(place.topic.id, place.community.id, "ann", "狼煙 @bob", "tea", ["bob"])
    message = await place.stores.messages.post(new)
    assert (message.text, message.stamp_id, list(message.mention_ids)) == ("狼煙 @bob", "tea", ["bob"])
    assert (message.edited_at, message.deleted_at, message.link_preview) == (None, None, None)
    assert await place.stores.messages.get(message.key) == message
    assert await kinds(place) == ["MessagePosted"]


async def test_edit_replaces_text_and_sets_edited_at(place: Place) -> None:
    message = await place.post()
    edited = await place.stores.messages.edit(message.key, "ann", "new @cyd", ["cyd"])
    assert (edited.text, list(edited.mention_ids), edited.timestamp) == ("new @cyd", ["cyd"], message.timestamp)
    assert edited.edited_at is not None
    assert await kinds(place) == ["MessagePosted", "MessageEdited"]


async def test_edit_by_another_user_is_forbidden(place: Place) -> None:
    message = await place.post()
    with pytest.raises(Forbidden):
        await place.stores.messages.edit(message.key, "bob", "mine now", ())
    assert await place.stores.messages.get(message.key) == message


async def test_edit_to_empty_text_without_stamp_is_refused(place: Place) -> None:
    message = await place.post()
    with pytest.raises(BadUserInput):
        await place.stores.messages.edit(message.key, "ann", "", ())
    stamped = await place.stores.messages.post(NewMessage(place.topic.id, place.community.id, "ann", "x", "tea", ()))
    assert (await place.stores.messages.edit(stamped.key, "ann", "", ())).text == ""


async def test_delete_by_neither_author_nor_admin_is_forbidden(place: Place) -> None:
    one, other = await place.post(), await place.post()
    with pytest.raises(Forbidden):
        await place.stores.messages.delete(one.key, "bob", False)
    assert (await place.stores.messages.delete(one.key, "ann", False)).deleted_at is not None
    assert (await place.stores.messages.delete(other.key, "bob", True)).deleted_at is not None


async def test_delete_is_idempotent(place: Place) -> None:
    message = await place.post()
    first = await place.stores.messages.delete(message.key, "ann", False)
    assert await place.stores.messages.delete(message.key, "ann", False) == first
    assert await kinds(place) == ["MessagePosted", "MessageDeleted"]


async def test_edit_and_reaction_of_a_tombstone_conflict(place: Place) -> None:
    message = await place.post()
    await place.stores.messages.delete(message.key, "ann", False)
    with pytest.raises(Conflict):
        await place.stores.messages.edit(message.key, "ann", "back", ())
    with pytest.raises(Conflict):
        await react(place, message, "bob")


async def test_empty_fields_of_a_message_are_not_stored(place: Place) -> None:
    message = await place.post()

    async def fields() -> set[str]:
        stored = await place.stores.mongo["messages"].find_one({"_id": message.key.document_id})
        return set(stored or ())

    plain = {"_id", "author", "text"}
    assert await fields() == plain
    await react(place, message, "bob")
    assert await fields() == plain | {"reactions"}
    await take_back(place, message, "bob")
    assert await fields() == plain
    await place.stores.messages.edit(message.key, message.author_id, "again", ())
    assert await fields() == plain | {"edited_at"}
    await react(place, message, "bob")
    await place.stores.messages.delete(message.key, message.author_id, False)
    assert await fields() == plain | {"deleted_at"}


async def test_changes_of_a_missing_message_are_not_found(place: Place) -> None:
    never = MessageKey(place.topic.id, 5)
    messages = place.stores.messages
    for change in (
        messages.edit(never, "ann", "x", ()),
        messages.delete(never, "ann", True),
        messages.add_reaction("o", never, "ann", "👍"),
        messages.remove_reaction("o", never, "ann", "👍"),
        messages.set_preview(never, "https://example.com", None),
    ):
        with pytest.raises(NotFound):
            await change
    assert await place.messages() == []


async def test_adding_and_removing_a_reaction_are_idempotent(place: Place) -> None:
    message = await place.post()
    for user in ("bob", "bob", "cyd"):
        await react(place, message, user)
    assert (await react(place, message, "bob", "🎉")).reaction_counts == (("👍", 2), ("🎉", 1))
    for _ in range(2):
        reacted = await take_back(place, message, "bob")
    assert reacted.reaction_counts == (("👍", 1), ("🎉", 1))
    assert (await take_back(place, message, "cyd")).reaction_counts == (("🎉", 1),)
    assert (await kinds(place)).count("ReactionsChanged") == 5


async def test_concurrent_reactions_are_all_counted(place: Place) -> None:
    message = await place.post()
    users = [f"user{number}" for number in range(30)]
    await asyncio.gather(*(react(place, message, user) for user in users for _ in range(2)))
    await asyncio.gather(*(take_back(place, message, user) for user in users[:10] for _ in range(2)))
    assert (await place.stores.messages.get(message.key)).reaction_counts == (("👍", 20),)


async def test_thirty_first_emoji_of_a_message_conflicts(place: Place) -> None:
    message = await place.post()
    emojis = [chr(0x1F600 + number) for number in range(MAX_EMOJIS + 1)]
    for emoji in emojis[:-1]:
        await react(place, message, "bob", emoji)
    with pytest.raises(Conflict):
        await react(place, message, "bob", emojis[-1])
    await react(place, message, "cyd", emojis[0])
    await take_back(place, message, "bob", emojis[1])
    assert len((await react(place, message, "bob", emojis[-1])).reaction_counts) == MAX_EMOJIS


async def test_only_reactions_of_others_are_relayed_to_the_author(place: Place, another: OpenStores) -> None:
    message = await place.post()
    async with another() as stores:
        await stores.outbox.close()
        for user in ("ann", "bob"):
            await react(place.through(stores), message, user)
    rows = await place.stores.mongo["outbox"].find({"kind": "Reaction", "ref.t": place.topic.id}).to_list(None)
    assert [row["ref"]["u"] for row in rows] == ["bob"]
