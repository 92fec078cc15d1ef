"""Changes of handles: one of many gets a handle, the old one is reserved for its user, and a pause follows."""

import asyncio
from collections.abc import Coroutine
from datetime import timedelta
from typing import Any

import pytest

from storage.chat.communities import NewCommunity
from storage.errors import Conflict, Forbidden, RateLimited
from storage.identity.audit import Actor
from storage.identity.handles.changes import HANDLE_PAUSE_DAYS
from storage.identity.records import User, user_document_id
from storage.identity.roles import Role
from storage.indexes.lifetimes import HANDLES_KEPT_S
from storage.stores import Stores
from tests.databases import refusing_documents

pytestmark = pytest.mark.anyio

YEAR = timedelta(seconds=HANDLES_KEPT_S)


async def sign_in(stores: Stores, org: str, id_: str, name: str | None = None) -> User:
    """Signs a member in, whose handle is the id at first."""
    return await stores.users.sign_in(org, id_, [Role.MEMBER], name or id_.title(), None)


async def change(stores: Stores, org: str, id_: str, handle: str) -> str:
    """Changes the handle. Returns the new one."""
    return (await stores.users.change_handle(Actor(org, id_), handle)).handle


async def let_time_pass(stores: Stores, org: str, id_: str, time: timedelta) -> None:
    """Makes the earlier changes of a user older."""
    key = {"_id": user_document_id(org, id_)}
    user = await stores.mongo["users"].find_one(key)
    assert user is not None
    former = [{**each, "at": each["at"] - time} for each in user["former_handles"]]
    changes = {"handle_changed_at": user["handle_changed_at"] - time, "former_handles": former}
    await stores.mongo["users"].update_one(key, {"$set": changes})


async def outcomes(*calls: Coroutine[Any, Any, object]) -> list[object]:
    """Runs the calls at once. Returns the result of each, or the type of its error."""
    results = await asyncio.gather(*calls, return_exceptions=True)
    return [type(each) if isinstance(each, BaseException) else each for each in results]


async def test_one_of_many_people_gets_a_handle(shared_stores: Stores, org: str) -> None:
    people = [f"id{number}" for number in range(12)]
    await asyncio.gather(*(sign_in(shared_stores, org, each) for each in people))
    found = await outcomes(*(change(shared_stores, org, each, "newt") for each in people))
    assert sorted(found, key=str) == [*[Conflict] * 11, "newt"]
    users = await shared_stores.users.get_all(org, people)
    assert [user.handle for user in users].count("newt") == 1
    documents = await shared_stores.mongo["users"].find({"_id.org": org}).to_list(None)
    assert len([each for each in documents if "handle_changed_at" in each]) == 1


async def test_concurrent_changes_of_one_person_commit_once(shared_stores: Stores, org: str) -> None:
    await sign_in(shared_stores, org, "ann")
    found = await outcomes(*(change(shared_stores, org, "ann", f"newt{number}") for number in range(5)))
    assert found.count(RateLimited) == 4
    repeated = await outcomes(*(change(shared_stores, org, "ann", str(max(found, key=str))) for _ in range(2)))
    assert RateLimited not in repeated or repeated == [RateLimited] * 2


async def test_repeated_change_changes_nothing(shared_stores: Stores, org: str) -> None:
    await sign_in(shared_stores, org, "ann")
    key = {"_id": user_document_id(org, "ann")}
    assert await outcomes(*(change(shared_stores, org, "ann", "newt") for _ in range(3))) == ["newt"] * 3
    before = await shared_stores.mongo["users"].find_one(key, {"locked_at": 0})
    assert await change(shared_stores, org, "ann", "newt") == "newt"
    assert await shared_stores.mongo["users"].find_one(key, {"locked_at": 0}) == before


async def test_interrupted_change_changes_nothing(shared_stores: Stores, org: str) -> None:
    """The last write of the transaction is refused, as if the process had ended before the commit."""
    await sign_in(shared_stores, org, "ann")
    key = {"_id": user_document_id(org, "ann")}
    before = await shared_stores.mongo["users"].find_one(key)
    async with refusing_documents(shared_stores.mongo, "reserved_handles"):
        with pytest.raises(Exception, match="Document failed validation"):
            await change(shared_stores, org, "ann", "newt")
    assert await shared_stores.mongo["users"].find_one(key) == before
    assert await change(shared_stores, org, "ann", "newt") == "newt"


async def test_next_change_is_possible_after_30_days(shared_stores: Stores, org: str) -> None:
    await sign_in(shared_stores, org, "ann")
    await change(shared_stores, org, "ann", "newt")
    await let_time_pass(shared_stores, org, "ann", timedelta(days=HANDLE_PAUSE_DAYS - 1))
    with pytest.raises(RateLimited, match=r"in 1 day\.") as refused:
        await change(shared_stores, org, "ann", "frog")
    assert 86_000_000 < int(str(refused.value.details["retryAfterMs"])) <= 86_400_000
    await let_time_pass(shared_stores, org, "ann", timedelta(days=1))
    assert await change(shared_stores, org, "ann", "frog") == "frog"


async def test_old_handle_is_reserved_for_its_user(shared_stores: Stores, org: str) -> None:
    for id_ in ("ann", "bob"):
        await sign_in(shared_stores, org, id_)
    await change(shared_stores, org, "ann", "newt")
    with pytest.raises(Conflict):
        await change(shared_stores, org, "bob", "ann")
    assert (await shared_stores.users.sign_in(org, "new", (), None, "ann")).handle == "ann-2"
    await let_time_pass(shared_stores, org, "ann", timedelta(days=HANDLE_PAUSE_DAYS))
    assert await change(shared_stores, org, "ann", "ann") == "ann"
    with pytest.raises(Conflict):
        await change(shared_stores, org, "bob", "newt")


async def test_claim_to_an_old_handle_ends_after_a_year(shared_stores: Stores, org: str) -> None:
    """The reservation in the test stands for one of another person, who had the handle after the year."""
    await sign_in(shared_stores, org, "ann")
    await change(shared_stores, org, "ann", "newt")
    await let_time_pass(shared_stores, org, "ann", YEAR)
    with pytest.raises(Conflict):
        await change(shared_stores, org, "ann", "ann")
    await change(shared_stores, org, "ann", "frog")
    user = await shared_stores.mongo["users"].find_one({"_id": user_document_id(org, "ann")})
    assert user is not None
    assert [each["handle"] for each in user["former_handles"]] == ["newt"]


async def test_handle_of_another_organization_is_free(shared_stores: Stores, org: str) -> None:
    for each in (org, org + "x"):
        await sign_in(shared_stores, each, "ann")
        assert await change(shared_stores, each, "ann", "newt") == "newt"


async def test_handle_given_up_is_not_given_to_a_new_user(shared_stores: Stores, org: str) -> None:
    """New users who want the handle while its user gives it up all get others."""
    for number in range(6):
        await sign_in(shared_stores, org, f"id{number}")
        _, *new = await asyncio.gather(
            change(shared_stores, org, f"id{number}", f"newt{number}"),
            *(shared_stores.users.sign_in(org, f"{each}-{number}", (), None, f"id{number}") for each in "abc"),
        )
        handles = {user.handle for user in new if isinstance(user, User)}
        assert handles == {f"id{number}-{each}" for each in (2, 3, 4)}


async def test_token_never_undoes_a_change(shared_stores: Stores, org: str) -> None:
    await shared_stores.users.sign_in(org, "ann", [Role.MEMBER], "Ann", "ann")
    await change(shared_stores, org, "ann", "newt")
    user = await shared_stores.users.sign_in(org, "ann", [Role.MEMBER], "Ann Lee", "ann")
    assert (user.handle, user.name) == ("newt", "Ann Lee")
    assert [each.id for each in await shared_stores.users.search(org, "newt", 10)] == ["ann"]
    assert await shared_stores.users.search(org, "lee", 10) == [await shared_stores.users.get(org, "ann")]


async def test_names_of_tokens_keep_the_search_terms_current(shared_stores: Stores, org: str) -> None:
    """Tokens that rename people while they change their handles leave no terms with an old handle."""
    people = [f"id{number}" for number in range(10)]
    await asyncio.gather(*(sign_in(shared_stores, org, each) for each in people))
    renamed = (sign_in(shared_stores, org, each, f"New {each}") for each in people)
    changed = (change(shared_stores, org, each, f"newt_{each}") for each in people)
    await asyncio.gather(*renamed, *changed)
    async for user in shared_stores.mongo["users"].find({"_id.org": org}):
        assert user["search"][:2] == [user["handle"], user["name"].lower()]


async def test_memberships_have_the_new_handle(shared_stores: Stores, org: str) -> None:
    """Requests in progress have read the people before the change."""
    ann, bob = [await sign_in(shared_stores, org, each) for each in ("ann", "bob")]
    communities = shared_stores.communities
    first = await communities.create(NewCommunity(org, "First", ""), ann, None)
    for each in ("ann", "bob"):
        await change(shared_stores, org, each, f"newt_{each}")
    second = await communities.create(NewCommunity(org, "Second", ""), ann, None)
    await communities.join(first, bob)
    await communities.join(second, bob)
    await shared_stores.conversations.start(ann, [bob], "", None)
    handles = [each["handle"] async for each in shared_stores.mongo["memberships"].find({"org": org})]
    assert sorted(handles) == [*["newt_ann"] * 3, *["newt_bob"] * 3]


async def test_erased_or_deactivated_people_keep_their_handles(shared_stores: Stores, org: str, admin: Actor) -> None:
    await change(shared_stores, org, "bob", "newt")
    await shared_stores.erasures.request(admin, "bob", "newt")
    await shared_stores.user_administration.deactivate(admin, "ann", "rude")
    for id_ in ("ann", "bob"):
        with pytest.raises(Forbidden):
            await change(shared_stores, org, id_, "frog")
    for handle in ("bob", "newt"):
        with pytest.raises(Conflict):
            await change(shared_stores, org, "ada", handle)
