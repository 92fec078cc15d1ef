"""Packs that people own: who may use, give and take them, and what their owners and others see."""

from collections.abc import Iterable
from typing import Any

import pytest

from storage.chat.stamps.packs import StampPack
from storage.identity.audit import Actor
from storage.identity.roles import Role
from storage.stores import Stores
from tests.resolvers.chat.test_stamps import POST, REACT_TO_POST, reactions
from tests.resolvers.people import REACT, UNREACT, ChatScenario, Person, SignIn
from tests.storage.chat.stamps.test_packs import upload

pytestmark = pytest.mark.anyio

PACKS = "{ done: stampPacks { name availability rule { kind threshold } owned progress } }"
SET = """
mutation ($pack: ID!, $availability: StampPackAvailability!, $rule: StampRuleInput) {
  done: setStampPackAvailability(packId: $pack, availability: $availability, rule: $rule) { availability }
}
"""
GIVE = """
mutation ($pack: ID!, $user: ID!, $community: ID) {
  done: giveStampPack(packId: $pack, userId: $user, communityId: $community) { id name owned }
}
"""
TAKE_BACK = "mutation ($pack: ID!, $user: ID!) { done: takeBackStampPack(packId: $pack, userId: $user) { id } }"
OWNERSHIPS = """
query ($user: ID!) { done: stampPackOwnerships(userId: $user) { pack { name } ownedSince giver { id } } }
"""
NOTIFICATIONS = """
{ done: notifications(latest: "now") { items { kind actor { id } stampPack { name } } } }
"""
MESSAGES_1 = {"kind": "MESSAGES_POSTED", "threshold": 1}


@pytest.fixture
async def ada(sign_in: SignIn) -> Person:
    """An ADMIN, who belongs to no community."""
    return await sign_in("ada", roles=[Role.ADMIN])


@pytest.fixture
async def pack(stores: Stores) -> StampPack:
    """The pack "Harbour" with the stamp "lit"."""
    actor = Actor("acme", "ann", is_command_line=True)
    created = await stores.stamp_packs.create(actor, "Harbour")
    return await stores.stamp_packs.add_stamp(actor, created.id, "lit", await upload(stores, actor))


async def refusal(person: Person, query: str, /, **variables: Any) -> dict[str, Any]:
    (error,) = (await person.execute(query, **variables))["errors"]
    result: dict[str, Any] = error
    return result


async def notifications(person: Person) -> list[Any]:
    items = (await person.do(NOTIFICATIONS))["items"]
    return [item for item in items if item["kind"] == "STAMP_PACK_RECEIVED"]


async def owned(people: Iterable[Person]) -> list[bool]:
    return [(await person.do(PACKS))[0]["owned"] for person in people]


async def test_earned_pack_shows_rule_and_progress(
    chat: ChatScenario, ada: Person, pack: StampPack, stores: Stores
) -> None:
    (shown,) = await chat.bob.do(PACKS)
    assert shown == {"name": "Harbour", "availability": "EVERYONE", "rule": None, "owned": True, "progress": None}
    rule = {"kind": "REACTIONS_RECEIVED", "threshold": 2}
    assert (await ada.do(SET, pack=pack.id, availability="EARNED", rule=rule))["availability"] == "EARNED"
    message = await chat.bob.post(chat.topic)
    for count, emoji in ((1, "👍"), (2, "🌊"), (2, "🔥")):
        await chat.ann.run(REACT, id=message["id"], emoji=emoji)
        while (shown := (await chat.bob.do(PACKS))[0])["progress"] != count:
            assert shown["owned"] is False
        assert shown == {"name": "Harbour", "availability": "EARNED", "rule": rule, "owned": False, "progress": count}
    assert await stores.stamp_rule_walk.sweep() == 1
    assert await owned([chat.bob, chat.ann]) == [True, False]
    await chat.ann.run(UNREACT, id=message["id"], emoji="👍")
    await stores.stamp_rule_walk.sweep()
    (shown,) = await chat.bob.do(PACKS)
    assert (shown["owned"], shown["progress"]) == (True, 2)
    pack_received = {"kind": "STAMP_PACK_RECEIVED", "actor": None, "stampPack": {"name": "Harbour"}}
    assert await notifications(chat.bob) == [pack_received]
    await stores.stamp_packs.remove(Actor("acme", "ann", is_command_line=True), pack.id)
    assert await notifications(chat.bob) == [{**pack_received, "stampPack": None}]


async def test_stamps_of_a_pack_need_its_ownership(
    chat: ChatScenario, ada: Person, pack: StampPack, stores: Stores
) -> None:
    (stamp,) = pack.stamps
    new = {"topicId": chat.topic, "stampId": stamp.id}
    early = await chat.bob.do(POST, input=new)
    await ada.run(SET, pack=pack.id, availability="EARNED", rule={"kind": "MESSAGES_POSTED", "threshold": 3})
    post = await chat.ann.create_post("news")
    for query, variables in (
        (POST, {"input": new}),
        (REACT, {"id": early["id"], "emoji": ":lit:"}),
        (REACT_TO_POST, {"id": post, "emoji": ":lit:"}),
    ):
        error = await refusal(chat.bob, query, **variables)
        assert error["message"] == "You do not own the pack of stamps Harbour. Post 3 messages to earn it."
        assert error["extensions"]["code"] == "FORBIDDEN"
        assert error["extensions"]["stampPackId"] == pack.id
    # The stamp of an earlier message stays, for everybody.
    assert [item["stamp"] for item in (await chat.ann.page(chat.topic))["items"]] == [{"id": stamp.id}]
    await ada.run(SET, pack=pack.id, availability="GIVEN")
    error = await refusal(chat.bob, POST, input=new)
    assert error["message"] == "You do not own the pack of stamps Harbour. Ask a moderator to give it to you."
    await ada.run(GIVE, pack=pack.id, user="bob")
    await chat.bob.run(POST, input=new)
    await chat.bob.run(REACT, id=early["id"], emoji=":lit:")
    assert await chat.ann.code(REACT, id=early["id"], emoji=":lit:") == "FORBIDDEN"
    await ada.run(TAKE_BACK, pack=pack.id, user="bob")
    assert await chat.bob.code(POST, input=new) == "FORBIDDEN"
    assert await reactions(chat.ann, early) == [(":lit:", 1)]
    await chat.bob.run(UNREACT, id=early["id"], emoji=":lit:")


async def test_moderators_give_packs_to_members_only(
    chat: ChatScenario, ada: Person, pack: StampPack, sign_in: SignIn
) -> None:
    give = {"pack": pack.id, "user": "bob", "community": chat.community}
    assert await chat.ann.code(GIVE, **give) == "CONFLICT"
    await ada.run(SET, pack=pack.id, availability="GIVEN")
    for person in (chat.bob, chat.eve):
        assert await person.code(GIVE, **give) == "FORBIDDEN"
    assert await chat.ann.code(GIVE, pack=pack.id, user="bob") == "FORBIDDEN"
    assert await chat.ann.code(GIVE, **(give | {"user": "eve"})) == "BAD_USER_INPUT"
    assert await chat.ann.code(GIVE, **(give | {"user": "nobody"})) == "NOT_FOUND"
    assert await chat.ann.code(GIVE, **(give | {"pack": "none"})) == "NOT_FOUND"
    for _ in range(2):
        assert await chat.ann.do(GIVE, **give) == {"id": pack.id, "name": "Harbour", "owned": False}
    assert await owned([chat.bob, chat.eve]) == [True, False]
    (received,) = await notifications(chat.bob)
    assert (received["actor"], received["stampPack"]) == ({"id": "ann"}, {"name": "Harbour"})
    await ada.run(GIVE, **(give | {"user": "eve", "community": None}))
    (ownership,) = await ada.do(OWNERSHIPS, user="bob")
    assert (ownership["pack"], ownership["giver"]) == ({"name": "Harbour"}, {"id": "ann"})
    for person in (chat.ann, chat.bob):
        assert await person.code(OWNERSHIPS, user="bob") == "FORBIDDEN"
        assert await person.code(TAKE_BACK, pack=pack.id, user="bob") == "FORBIDDEN"
    for _ in range(2):
        await ada.run(TAKE_BACK, pack=pack.id, user="bob")
    assert await ada.do(OWNERSHIPS, user="bob") == []


async def test_rule_is_needed_for_earned_packs_only(ada: Person, chat: ChatScenario, pack: StampPack) -> None:
    assert await chat.ann.code(SET, pack=pack.id, availability="GIVEN") == "FORBIDDEN"
    wrong: list[tuple[str, Any, str]] = [("EARNED", None, "rule"), ("GIVEN", MESSAGES_1, "rule")]
    wrong += [("EARNED", {"kind": "MESSAGES_POSTED", "threshold": count}, "threshold") for count in (0, 1001, -1)]
    wrong += [("EARNED", {"kind": "MEMBER_DAYS", "threshold": 3651}, "threshold")]
    for availability, rule, field in wrong:
        refused = await ada.fails(SET, pack=pack.id, availability=availability, rule=rule)
        assert (refused["code"], refused["field"]) == ("BAD_USER_INPUT", field)
    assert await ada.code(SET, pack="none", availability="GIVEN") == "NOT_FOUND"
    await ada.run(SET, pack=pack.id, availability="EARNED", rule={"kind": "MEMBER_DAYS", "threshold": 3650})
    await ada.run(SET, pack=pack.id, availability="EVERYONE")
    (shown,) = await chat.bob.do(PACKS)
    assert (shown["availability"], shown["rule"], shown["owned"]) == ("EVERYONE", None, True)
