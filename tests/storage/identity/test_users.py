"""Users: created by their first request, with a unique handle, and found by prefixes of handle and names."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from storage.errors import NotFound
from storage.identity.roles import Role
from storage.mongo import Mongo
from storage.stores import Stores

pytestmark = pytest.mark.anyio


async def test_concurrent_first_requests_create_one_user(shared_stores: Stores, org: str) -> None:
    users = shared_stores.users
    records = await asyncio.gather(*(users.sign_in(org, "ann", [Role.MEMBER], "Ann", None) for _ in range(10)))
    assert {user.handle for user in records} == {"ann"}
    assert await shared_stores.mongo["users"].count_documents({"_id.org": org}) == 1


async def test_taken_handle_gets_a_number_and_stays(shared_stores: Stores, org: str) -> None:
    users = shared_stores.users
    sign_ins = (users.sign_in(org, f"id{number}", (), "Ann", "Ann!") for number in range(4))
    assert {user.handle for user in await asyncio.gather(*sign_ins)} == {"ann", "ann-2", "ann-3", "ann-4"}
    user_before = await users.get(org, "id2")
    assert (await users.sign_in(org, "id2", (), "Renamed", "other")).handle == user_before.handle
    assert (await users.get(org, "id2")).name == "Renamed"


async def test_concurrent_sign_ins_read_users_together(
    shared_stores: Stores, org: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    users, reads, find = shared_stores.users, list[int](), Mongo.find
    people = [f"id{number}" for number in range(20)]
    await asyncio.gather(*(users.sign_in(org, each, [Role.MEMBER], each, None) for each in people))

    async def recording_find(mongo: Mongo, collection: str, query: Any, *args: Any) -> list[Any]:
        reads.append(len(query["_id"]["$in"]))
        return await find(mongo, collection, query, *args)

    monkeypatch.setattr(Mongo, "find", recording_find)
    found = await asyncio.gather(*(users.sign_in(org, each, [Role.MEMBER], each, None) for each in people))
    assert [user.id for user in found] == people
    assert reads == [20]


async def test_handle_taken_in_another_organization_is_free(shared_stores: Stores, org: str) -> None:
    for each in (org, org + "x"):
        assert (await shared_stores.users.sign_in(each, "ann", (), None, None)).handle == "ann"


async def test_roles_follow_the_newest_token(shared_stores: Stores, org: str) -> None:
    await shared_stores.users.sign_in(org, "ann", [Role.ADMIN], "Ann", None)
    await shared_stores.users.sign_in(org, "ann", [Role.MEMBER, Role.SERVICE], None, None)
    user = await shared_stores.users.get(org, "ann")
    assert (user.roles, user.name) == ((Role.MEMBER, Role.SERVICE), "Ann")


async def set_role_times(stores: Stores, org: str, days_ago: float, *roles: Role) -> None:
    """Sets the time at which a token last contained these roles of ann."""
    at = await stores.clock.now() - timedelta(days=days_ago)
    times = {f"role_seen.{role.value}": at for role in roles}
    await stores.mongo["users"].update_one({"_id": {"org": org, "id": "ann"}}, {"$set": times})


async def test_token_with_fewer_roles_keeps_lasting_roles(shared_stores: Stores, org: str) -> None:
    users = shared_stores.users
    await users.sign_in(org, "ann", [Role.OPERATOR], None, None)
    await users.sign_in(org, "ann", [Role.MEMBER], None, None)
    assert await users.lasting_roles(org, "ann") == {Role.OPERATOR, Role.MEMBER}
    with pytest.raises(NotFound):
        await users.lasting_roles(org + "x", "ann")


@pytest.mark.parametrize(("days_ago", "has_role"), [(89, True), (92, False)])
async def test_role_ends_90_days_after_its_last_token(
    shared_stores: Stores, org: str, days_ago: int, has_role: bool
) -> None:
    users = shared_stores.users
    await users.sign_in(org, "ann", [Role.OPERATOR, Role.MEMBER], None, None)
    await set_role_times(shared_stores, org, days_ago, Role.OPERATOR)
    await users.sign_in(org, "ann", [Role.MEMBER], None, None)
    assert await users.lasting_roles(org, "ann") == ({Role.OPERATOR, Role.MEMBER} if has_role else {Role.MEMBER})
    await users.sign_in(org, "ann", [Role.OPERATOR], None, None)
    assert await users.lasting_roles(org, "ann") == {Role.OPERATOR, Role.MEMBER}


async def test_time_of_a_role_is_written_once_a_day(shared_stores: Stores, org: str) -> None:
    async def stored_user() -> dict[str, Any]:
        user: dict[str, Any] | None = await shared_stores.mongo["users"].find_one({"_id": {"org": org, "id": "ann"}})
        assert user is not None
        return user

    await shared_stores.users.sign_in(org, "ann", [Role.MEMBER], None, None)
    await set_role_times(shared_stores, org, 0.9, Role.MEMBER)
    user_before = await stored_user()
    await shared_stores.users.sign_in(org, "ann", [Role.MEMBER], None, None)
    assert await stored_user() == user_before
    await set_role_times(shared_stores, org, 1.1, Role.MEMBER)
    await shared_stores.users.sign_in(org, "ann", [Role.MEMBER], None, None)
    assert (await stored_user())["role_seen"]["MEMBER"] > user_before["role_seen"]["MEMBER"]


async def test_roles_stored_by_earlier_versions_are_kept(shared_stores: Stores, org: str) -> None:
    users = shared_stores.users
    await users.sign_in(org, "ann", [Role.OPERATOR], None, None)
    await shared_stores.mongo["users"].update_one({"_id": {"org": org, "id": "ann"}}, {"$unset": {"role_seen": ""}})
    assert await users.lasting_roles(org, "ann") == {Role.OPERATOR}
    await users.sign_in(org, "ann", [Role.MEMBER], None, None)
    assert await users.lasting_roles(org, "ann") == {Role.OPERATOR, Role.MEMBER}


async def test_users_of_another_organization_are_not_found(shared_stores: Stores, org: str) -> None:
    await shared_stores.users.sign_in(org, "ann", (), "Ann", None)
    assert await shared_stores.users.find(org + "x", "ann") is None
    with pytest.raises(NotFound):
        await shared_stores.users.get(org + "x", "ann")
    assert await shared_stores.users.find_handles(org + "x", ["ann"]) == {}
    assert await shared_stores.users.search(org + "x", "ann", 10) == []


@pytest.mark.parametrize(
    ("id_", "name", "handle", "expected"),
    [
        ("u1", "Taro", "taro", "taro"),
        ("u1", "Taro", None, "u1"),
        ("u1", "やまだ はな", "山田", "yamada_hana"),
        ("山田", "はな", None, "hana"),
    ],
)
async def test_first_token_gives_a_readable_handle(
    shared_stores: Stores, org: str, id_: str, name: str, handle: str | None, expected: str
) -> None:
    assert (await shared_stores.users.sign_in(org, id_, (), name, handle)).handle == expected


@pytest.mark.parametrize(
    ("query", "user_ids"), [("ann", ["ann"]), ("LE", ["ann"]), ("b", ["bob"]), ("x", []), ("ee", [])]
)
async def test_search_matches_prefixes_only(shared_stores: Stores, org: str, query: str, user_ids: list[str]) -> None:
    await shared_stores.users.sign_in(org, "ann", (), "Ann Lee", None)
    await shared_stores.users.sign_in(org, "bob", (), "Bob", None)
    assert [user.id for user in await shared_stores.users.search(org, query, 10)] == user_ids


@pytest.mark.parametrize("query", [".*", "^a", "$where", "a\\", "\0", "\U0010ffff"])
async def test_search_query_is_never_an_expression(shared_stores: Stores, org: str, query: str) -> None:
    await shared_stores.users.sign_in(org, "ann", (), "Ann", None)
    assert await shared_stores.users.search(org, query, 10) == []
