"""Users: one from the first request on, a handle of their own, found by beginnings; and who blocked whom."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.errors import NotFound
from storage.identity.records import Role, stream_owner, user_stream
from storage.identity.users import MAX_HANDLE, normalize_handle, search_terms
from storage.ids import new_id
from storage.stores import Stores

pytestmark = pytest.mark.anyio


@pytest.fixture
def org() -> str:
    return new_id()


async def test_a_user_exists_from_the_first_sight_on_and_once(shared_stores: Stores, org: str) -> None:
    users = shared_stores.users
    seen = await asyncio.gather(*(users.sign_in(org, "ann", [Role.MEMBER], "Ann", None) for _ in range(10)))
    assert {user.handle for user in seen} == {"ann"}
    assert await shared_stores.mongo["users"].count_documents({"_id.org": org}) == 1


async def test_a_taken_handle_gets_the_next_number_and_stays(shared_stores: Stores, org: str) -> None:
    users = shared_stores.users
    signing = (users.sign_in(org, f"id{number}", (), "Ann", "Ann!") for number in range(4))
    assert {user.handle for user in await asyncio.gather(*signing)} == {"ann", "ann-2", "ann-3", "ann-4"}
    before = await users.get(org, "id2")
    assert (await users.sign_in(org, "id2", (), "Renamed", "other")).handle == before.handle
    assert (await users.get(org, "id2")).name == "Renamed"


async def test_the_same_handle_in_another_organization_is_free(shared_stores: Stores, org: str) -> None:
    for each in (org, org + "x"):
        assert (await shared_stores.users.sign_in(each, "ann", (), None, None)).handle == "ann"


async def test_roles_are_those_of_the_newest_token(shared_stores: Stores, org: str) -> None:
    await shared_stores.users.sign_in(org, "ann", [Role.ADMIN], "Ann", None)
    await shared_stores.users.sign_in(org, "ann", [Role.MEMBER, Role.SERVICE], None, None)
    user = await shared_stores.users.get(org, "ann")
    assert (user.roles, user.name) == ((Role.MEMBER, Role.SERVICE), "Ann")


async def test_users_of_another_organization_are_not_found(shared_stores: Stores, org: str) -> None:
    await shared_stores.users.sign_in(org, "ann", (), "Ann", None)
    assert await shared_stores.users.find(org + "x", "ann") is None
    with pytest.raises(NotFound):
        await shared_stores.users.get(org + "x", "ann")
    assert await shared_stores.users.find_handles(org + "x", ["ann"]) == {}
    assert await shared_stores.users.search(org + "x", "ann", 10) == []


@pytest.mark.parametrize(
    ("text", "handle"),
    [
        ("Ann", "ann"),
        ("José Ångström", "jose_angstrom"),
        ("a.b-c", "a_b_c"),
        ("山田", "user"),
        ("", "user"),
        ("_ok_", "_ok_"),
        ("x" * 50, "x" * MAX_HANDLE),
    ],
)
def test_a_text_becomes_a_handle(text: str, handle: str) -> None:
    assert normalize_handle(text) == handle


@given(st.text())
def test_any_text_becomes_a_handle_that_stays_as_it_is(text: str) -> None:
    handle = normalize_handle(text)
    assert 1 <= len(handle) <= MAX_HANDLE
    assert set(handle) <= set("abcdefghijklmnopqrstuvwxyz0123456789_")
    assert normalize_handle(handle) == handle


@given(st.text(min_size=1), st.text(min_size=1))
def test_the_owner_of_a_users_stream_is_told_by_its_name(org: str, user: str) -> None:
    assert stream_owner(user_stream(org, user)) == (org, user)


def test_a_user_is_found_by_the_handle_the_name_and_its_words() -> None:
    assert search_terms("ann-2", "Ann  Ｌｅｅ") == ["ann-2", "ann  lee", "ann", "lee"]
    assert len(search_terms("x", " ".join(map(str, range(100))))) == 8


@pytest.mark.parametrize(("query", "found"), [("ann", ["ann"]), ("LE", ["ann"]), ("b", ["bob"]), ("x", []), ("ee", [])])
async def test_search_finds_by_beginnings(shared_stores: Stores, org: str, query: str, found: list[str]) -> None:
    await shared_stores.users.sign_in(org, "ann", (), "Ann Lee", None)
    await shared_stores.users.sign_in(org, "bob", (), "Bob", None)
    assert [user.id for user in await shared_stores.users.search(org, query, 10)] == found


@pytest.mark.parametrize("query", [".*", "^a", "$where", "a\\", "\0", "\U0010ffff"])
async def test_a_query_is_text_and_nothing_else(shared_stores: Stores, org: str, query: str) -> None:
    await shared_stores.users.sign_in(org, "ann", (), "Ann", None)
    assert await shared_stores.users.search(org, query, 10) == []


async def test_blocks_are_one_way_and_told_from_both_sides(shared_stores: Stores, org: str) -> None:
    relations = shared_stores.relations
    await asyncio.gather(*(relations.block(org, "ann", "bob") for _ in range(3)))
    await relations.block(org, "cyd", "bob")
    assert await relations.blocked_by(org, "ann") == {"bob"}
    assert await relations.blocked_by(org, "bob") == set()
    assert await relations.blockers_of(org, "bob") == {"ann", "cyd"}
    assert await relations.blocked_by(org + "x", "ann") == set()
    await relations.unblock(org, "ann", "bob")
    await relations.unblock(org, "ann", "bob")
    assert await relations.blockers_of(org, "bob") == {"cyd"}


async def test_a_block_ends_follows_both_ways_and_their_counts(shared_stores: Stores, org: str) -> None:
    mongo, users = shared_stores.mongo, shared_stores.users
    for user, other in (("ann", "bob"), ("bob", "ann")):
        await users.sign_in(org, user, (), None, None)
        await mongo["follows"].insert_one({"org": org, "follower": user, "followee": other})
    both = {"_id.org": org}
    await mongo["users"].update_many(both, {"$set": {"followers": 1, "following": 1}})
    for _ in range(2):
        await shared_stores.relations.block(org, "ann", "bob")
    assert not await shared_stores.relations.follows(org, "ann", "bob")
    assert not await shared_stores.relations.follows(org, "bob", "ann")
    for user in ("ann", "bob"):
        found = await users.get(org, user)
        assert (found.follower_count, found.following_count) == (0, 0)
