"""People are found by the beginnings of names and handles, everybody of the organization and nobody else."""

from dataclasses import replace
from typing import Any

import pytest
from pymongo.errors import WriteError

from storage.identity.audit import Actor
from storage.identity.roles import Role
from storage.migrations.search_terms import add_name_ends
from tests.resolvers.people import ChatScenario, Person, SignIn

pytestmark = pytest.mark.anyio

SEARCH = """
query ($query: String!, $after: ID, $limit: Int = 50) {
  done: searchPeople(query: $query, afterUserId: $after, limit: $limit) {
    user { id handle deactivated blocked }
    nameExcerpt { text isMatch }
    handleExcerpt { text isMatch }
  }
}
"""
LEAVE = "mutation ($id: ID!) { leaveCommunity(communityId: $id) { id } }"


async def found(person: Person, query: str, **more: Any) -> list[str]:
    """Returns the ids of a page of results."""
    return [item["user"]["id"] for item in await person.do(SEARCH, query=query, **more)]


@pytest.fixture(scope="module")
async def searcher(shared_sign_in: SignIn) -> Person:
    """Returns ann, who searches. Signs in the people that searches find."""
    for id_, name in (
        ("mika", "Mika Sato"),
        ("ken", "Ken Sato"),
        ("hana", "佐藤花子"),
        ("taro", "山田 太郎"),
        ("mike", "Ｍｉｋｅ"),
        ("emil", "ÉMILE"),
    ):
        await shared_sign_in(id_, name=name)
    await shared_sign_in("mikael", "elsewhere", name="Mika Sato")
    return await shared_sign_in("ann", name="Ann")


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("mi", ["mika", "mike"]),
        ("sato", ["ken", "mika"]),
        ("sato mik", ["mika"]),
        ('"mika s"', ["mika"]),
        ('"sato m"', []),
        ("@HANA", ["hana"]),
        ("＠ｈａｎａ", ["hana"]),
        ("佐藤", ["hana"]),
        ("花子", ["hana"]),
        ("藤花", ["hana"]),
        ("太郎", ["taro"]),
        ("山田太郎", ["taro"]),
        ("太郎 山", ["taro"]),
        ("ｍｉｋｅ", ["mike"]),
        ("émi", ["emil"]),
        ("ika", []),
    ],
)
async def test_people_are_found_by_beginnings_of_names(searcher: Person, query: str, ids: list[str]) -> None:
    assert await found(searcher, query) == ids


async def test_matches_are_highlighted(searcher: Person) -> None:
    (match,) = await searcher.do(SEARCH, query="花子 ha")
    assert match["nameExcerpt"] == [{"text": "佐藤", "isMatch": False}, {"text": "花子", "isMatch": True}]
    assert match["handleExcerpt"] == [{"text": "ha", "isMatch": True}, {"text": "na", "isMatch": False}]


async def test_pages_of_every_size_have_everybody_once(searcher: Person, shared_sign_in: SignIn) -> None:
    community = await searcher.create_community("Rowers")
    for number in range(7):
        person = await shared_sign_in(f"u{number}", name=f"Zoe {number}", handle=f"zoe_{6 - number}")
        await person.join(community)
    for query in ("zoe", "zoe in:Rowers"):
        everybody = await found(searcher, query)
        assert everybody == [f"u{6 - number}" for number in range(7)]
        for limit in range(1, 9):
            listed: list[str] = []
            while page := await found(searcher, query, limit=limit, after=listed[-1] if listed else None):
                listed += page
            assert listed == everybody
    assert await searcher.code(SEARCH, query="zoe", after="mikael") == "NOT_FOUND"
    assert await searcher.code(SEARCH, query="zoe", limit=0) == "BAD_USER_INPUT"


async def test_only_members_of_a_joined_community_are_found(chat: ChatScenario) -> None:
    ids = [person.user.id for person in (chat.ann, chat.bob) if person.user is not None]
    assert [await found(chat.bob, f"{each} in:Fishers") for each in ids] == [[each] for each in ids]
    assert await found(chat.bob, "eve in:Fishers") == []
    unknown = await chat.eve.fails(SEARCH, query="ann in:Nowhere")
    assert {**await chat.eve.fails(SEARCH, query="ann in:Fishers"), "term": "in:Nowhere"} == unknown
    await chat.bob.run(LEAVE, id=chat.community)
    assert (await chat.bob.fails(SEARCH, query="ann in:Fishers"))["term"] == "in:Fishers"


@pytest.mark.parametrize(
    ("query", "part"), [("from:me bob", "from:me"), ("in:Fishers", None), ("@", None), ("a " * 17, None)]
)
async def test_query_without_a_name_or_with_wrong_operator_fails(
    shared_chat: ChatScenario, query: str, part: str | None
) -> None:
    error = await shared_chat.ann.fails(SEARCH, query=query)
    assert (error["code"], error.get("term")) == ("BAD_USER_INPUT", part)


async def test_blocked_and_deactivated_people_are_found(chat: ChatScenario) -> None:
    await chat.ann.block(chat.bob)
    admin = replace(chat.ann, roles=frozenset(Role))
    await admin.run('mutation { deactivateUser(userId: "bob", reason: "left") { id } }')
    (match,) = await chat.ann.do(SEARCH, query="bob")
    assert (match["user"]["blocked"], match["user"]["deactivated"]) == (True, True)


async def test_person_whose_erasure_began_is_not_found(chat: ChatScenario) -> None:
    queries = ("bob", "bob in:Fishers")
    assert [await found(chat.ann, each) for each in queries] == [["bob"], ["bob"]]
    await chat.ann.stores.erasures.request(Actor("acme", "ann", is_command_line=True), "bob", "bob")
    assert [await found(chat.ann, each) for each in queries] == [[], []]


async def test_migration_writes_the_ends_of_names(chat: ChatScenario, sign_in: SignIn) -> None:
    mongo = chat.ann.stores.mongo
    hana = await sign_in("hana", name="佐藤花子")
    await hana.join(chat.community)
    for name, of_hana in (("users", {"_id.id": "hana"}), ("memberships", {"user": "hana"})):
        await mongo[name].update_one(of_hana, {"$set": {"search": ["hana", "佐藤花子"]}})
    queries = ("花子", "花子 in:Fishers")
    assert [await found(chat.ann, each) for each in queries] == [[], []]
    # A migration that ends between its two writes is continued by the next one.
    await mongo.database.command("collMod", "memberships", validator={"user": {"$ne": "hana"}})
    with pytest.raises(WriteError):
        await add_name_ends(mongo)
    await mongo.database.command("collMod", "memberships", validator={})
    for _ in range(2):
        await add_name_ends(mongo)
        assert [await found(chat.ann, each) for each in queries] == [["hana"], ["hana"]]
    erased = {"_id.id": "bob", "_id.org": "acme"}
    await mongo["users"].update_one(erased, {"$set": {"search": [], "name": "花子", "erased_at": "now"}})
    await add_name_ends(mongo)
    assert ((await mongo["users"].find_one(erased)) or {})["search"] == []
