"""Stamps of the program and of the organization, in messages and as reactions."""

from typing import Any

import pytest

from storage.chat.stamps.catalogue import STAMPS, Stamp
from storage.identity.audit import Actor
from storage.stores import Stores
from tests.resolvers.people import REACT, UNREACT, ChatScenario, Person
from tests.storage.chat.stamps.test_packs import upload

pytestmark = pytest.mark.anyio

LIST = "{ stamps { id name imageUrl } }"


POST = """
mutation ($input: PostMessageInput!) { done: postMessage(input: $input) { id stamp { id name imageUrl emoji } } }
"""
PACKS = "{ done: stampPacks { name stamps { id name emoji imageUrl thumbnailUrl } } }"
REACT_TO_POST = "mutation ($id: ID!, $emoji: String!) { addPostReaction(postId: $id, emoji: $emoji) { id } }"
POST_REACTIONS = "query ($id: ID!) { done: post(id: $id) { reactions { emoji count } } }"
REACTIONS = "query ($id: ID!) { done: message(id: $id) { reactions { emoji count reacted } } }"


async def add_stamp(stores: Stores, organization_id: str = "acme", name: str = "lit") -> Stamp:
    """Adds a stamp to the pack "Harbour" of the organization."""
    actor = Actor(organization_id, "ann", is_command_line=True)
    file_id = await upload(stores, actor)
    pack = await stores.stamp_packs.create(actor, "Harbour")
    return (await stores.stamp_packs.add_stamp(actor, pack.id, name, file_id)).stamps[-1]


async def remove_stamp(stores: Stores, name: str = "lit") -> None:
    actor = Actor("acme", "ann", is_command_line=True)
    (pack,) = await stores.stamp_packs.list_packs("acme")
    await stores.stamp_packs.remove_stamp(actor, pack.id, name)


async def reactions(person: Person, message: dict[str, Any]) -> list[tuple[str, int]]:
    found = (await person.do(REACTIONS, id=message["id"]))["reactions"]
    return [(each["emoji"], each["count"]) for each in found]


async def test_stamps_are_listed_with_their_pictures(chat: ChatScenario) -> None:
    listed = (await chat.ann.run(LIST))["stamps"]
    assert listed == [{"id": each.id, "name": each.name, "imageUrl": each.image_url} for each in STAMPS]
    assert len({stamp["id"] for stamp in listed}) == len(listed) > 0
    assert all(stamp["imageUrl"].startswith("/stamps/") for stamp in listed)


async def test_every_stamp_can_be_posted(chat: ChatScenario) -> None:
    query = """
    mutation ($input: PostMessageInput!) { postMessage(input: $input) { stamp { id name imageUrl } } }
    """
    for stamp in (await chat.ann.run(LIST))["stamps"]:
        posted = await chat.ann.run(query, input={"topicId": chat.topic, "stampId": stamp["id"]})
        assert posted["postMessage"]["stamp"] == stamp


async def test_own_stamp_is_posted_and_stays_after_its_removal(chat: ChatScenario, stores: Stores) -> None:
    stamp = await add_stamp(stores)
    (pack,) = await chat.bob.do(PACKS)
    assert (pack["name"], [each["id"] for each in pack["stamps"]]) == ("Harbour", [stamp.id])
    new = {"topicId": chat.topic, "stampId": stamp.id}
    posted = await chat.bob.do(POST, input=new)
    assert posted["stamp"] == {"id": stamp.id, "name": "lit", "imageUrl": stamp.image_url, "emoji": ":lit:"}
    await remove_stamp(stores)
    (item,) = (await chat.ann.page(chat.topic))["items"]
    assert item["stamp"] == {"id": stamp.id}
    refused = await chat.bob.fails(POST, input=new)
    assert (refused["code"], refused["field"]) == ("BAD_USER_INPUT", "stampId")


async def test_stamp_of_another_organization_or_name_is_refused(chat: ChatScenario, stores: Stores) -> None:
    foreign, own = await add_stamp(stores, "globex"), await add_stamp(stores)
    file_id = own.id.partition(".")[2]
    for unknown in (foreign.id, f"other.{file_id}", "lit.", ".", "lit.none", "nothing"):
        assert await chat.bob.code(POST, input={"topicId": chat.topic, "stampId": unknown}) == "BAD_USER_INPUT"


async def test_own_stamp_is_a_reaction_until_it_is_removed(chat: ChatScenario, stores: Stores) -> None:
    await add_stamp(stores)
    message = await chat.ann.post(chat.topic)
    await chat.bob.run(REACT, id=message["id"], emoji=":LIT:")
    await chat.ann.run(REACT, id=message["id"], emoji=":lit:")
    assert await reactions(chat.bob, message) == [(":lit:", 2)]
    await remove_stamp(stores)
    assert await chat.eve.code(REACT, id=message["id"], emoji=":lit:") == "NOT_FOUND"
    await chat.bob.run(UNREACT, id=message["id"], emoji=":lit:")
    assert await reactions(chat.bob, message) == [(":lit:", 1)]


async def test_own_stamp_is_a_reaction_to_a_post(chat: ChatScenario, stores: Stores) -> None:
    await add_stamp(stores)
    post = await chat.ann.create_post("news")
    await chat.bob.run(REACT_TO_POST, id=post, emoji=":lit:")
    assert (await chat.ann.do(POST_REACTIONS, id=post))["reactions"] == [{"emoji": ":lit:", "count": 1}]
    await remove_stamp(stores)
    assert await chat.eve.code(REACT_TO_POST, id=post, emoji=":lit:") == "NOT_FOUND"
    await chat.bob.run(REACT_TO_POST.replace("addPostReaction", "removePostReaction"), id=post, emoji=":lit:")
    assert (await chat.ann.do(POST_REACTIONS, id=post))["reactions"] == []


async def test_unknown_name_is_no_reaction(chat: ChatScenario, stores: Stores) -> None:
    await add_stamp(stores, "globex")
    message = await chat.ann.post(chat.topic)
    assert await chat.bob.code(REACT, id=message["id"], emoji=":lit:") == "NOT_FOUND"
    for text in ("::", ":a:", ":two words:", ":é:", ":lit", "lit:", f":{'x' * 33}:", ":lit::lit:"):
        assert await chat.bob.code(REACT, id=message["id"], emoji=text) == "BAD_USER_INPUT", text
    assert await reactions(chat.bob, message) == []
