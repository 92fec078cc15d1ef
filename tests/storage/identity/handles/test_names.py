"""Names that people choose: copied in the same transaction, never undone by tokens, and refused without access."""

import asyncio

import pytest

from storage.chat.communities import NewCommunity
from storage.errors import Forbidden
from storage.identity.audit import Actor
from storage.identity.handles.names import ProfileFields
from storage.identity.records import User, user_document_id
from storage.identity.roles import Role
from storage.mongo.text_index.names import search_terms
from storage.privacy.steps import ERASED_NAME
from storage.stores import Stores
from tests.databases import refusing_documents

pytestmark = pytest.mark.anyio


async def sign_in(stores: Stores, org: str, id_: str, name: str | None = None) -> User:
    """Signs a member in with a token, whose handle is the id at first."""
    return await stores.users.sign_in(org, id_, [Role.MEMBER], name or id_.title(), None)


async def change(stores: Stores, org: str, id_: str, fields: ProfileFields) -> User:
    """Changes the profile of a person."""
    return await stores.users.change_profile(Actor(org, id_), fields)


async def member_of(stores: Stores, org: str, id_: str) -> User:
    """Signs a person in who is a member of a community."""
    user = await sign_in(stores, org, id_)
    await stores.communities.create(NewCommunity(org, id_, ""), user, None)
    return user


async def require_current_copies(stores: Stores, org: str) -> None:
    """Fails if a search term or the handle of a user or a membership is not that of the user."""
    users = {each["_id"]["id"]: each async for each in stores.mongo["users"].find({"_id.org": org})}
    memberships = [each async for each in stores.mongo["memberships"].find({"org": org})]
    for each in [*users.values(), *memberships]:
        user = users[each["user"] if "user" in each else each["_id"]["id"]]
        assert (each["handle"], each["search"]) == (user["handle"], search_terms(user["handle"], user["name"]))


async def test_people_are_found_by_their_new_name(shared_stores: Stores, org: str) -> None:
    await member_of(shared_stores, org, "ann")
    changed = await change(shared_stores, org, "ann", {"name": "山田 花", "bio": "Beacons"})
    assert changed == await shared_stores.users.get(org, "ann")
    assert (changed.name, changed.bio) == ("山田 花", "Beacons")
    for query, found in (("花", ["ann"]), ("Ann", ["ann"])):
        assert [each.id for each in await shared_stores.users.search(org, query, 10)] == found
    await require_current_copies(shared_stores, org)


async def test_fields_left_out_stay(shared_stores: Stores, org: str) -> None:
    await sign_in(shared_stores, org, "ann")
    await change(shared_stores, org, "ann", {"name": "Ann Lee", "bio": "Beacons"})
    assert (await change(shared_stores, org, "ann", {"name": "Ann"})).bio == "Beacons"
    removed = await change(shared_stores, org, "ann", {"bio": None})
    assert (removed.name, removed.bio) == ("Ann", None)
    assert removed == await shared_stores.users.get(org, "ann")


async def test_token_keeps_a_chosen_name(shared_stores: Stores, org: str) -> None:
    """Only the choice of a name counts: a bio alone leaves the name to the tokens."""
    await member_of(shared_stores, org, "ann")
    await change(shared_stores, org, "ann", {"bio": "Beacons"})
    assert (await sign_in(shared_stores, org, "ann", "Ann Lee")).name == "Ann Lee"
    await change(shared_stores, org, "ann", {"name": "Ann Lee"})
    user = await shared_stores.users.sign_in(org, "ann", [Role.OPERATOR], "Token", None, "ann@example.org")
    assert (user.name, user.roles, user.email) == ("Ann Lee", (Role.OPERATOR,), "ann@example.org")
    await require_current_copies(shared_stores, org)


async def test_tokens_racing_with_choices_undo_none(shared_stores: Stores, org: str) -> None:
    people = [f"id{number}" for number in range(12)]
    await asyncio.gather(*(member_of(shared_stores, org, each) for each in people))
    tokens = [sign_in(shared_stores, org, each, f"Token {number}") for each in people for number in range(3)]
    await asyncio.gather(*tokens, *(change(shared_stores, org, each, {"name": f"Own {each}"}) for each in people))
    assert [user.name for user in await shared_stores.users.get_all(org, people)] == [f"Own {each}" for each in people]
    await require_current_copies(shared_stores, org)


async def test_name_racing_with_handle_keeps_both(shared_stores: Stores, org: str) -> None:
    people = [f"id{number}" for number in range(8)]
    await asyncio.gather(*(member_of(shared_stores, org, each) for each in people))
    handles = (shared_stores.users.change_handle(Actor(org, each), f"newt_{each}") for each in people)
    await asyncio.gather(*(change(shared_stores, org, each, {"name": f"Own {each}"}) for each in people), *handles)
    users = await shared_stores.users.get_all(org, people)
    assert [(user.handle, user.name) for user in users] == [(f"newt_{each}", f"Own {each}") for each in people]
    await require_current_copies(shared_stores, org)


async def test_name_racing_with_erasure_leaves_no_name(shared_stores: Stores, org: str, admin: Actor) -> None:
    async def ignore_progress(_changed: int) -> None:
        """Records nothing."""

    async def erase(user: User) -> None:
        await shared_stores.erasures.request(admin, user.id, user.handle)
        await shared_stores.eraser.reduce_user(user.key, ignore_progress)

    people = [await sign_in(shared_stores, org, f"id{number}") for number in range(6)]
    names = (change(shared_stores, org, user.id, {"name": "Own", "bio": "Beacons"}) for user in people)
    erasures = asyncio.gather(*map(erase, people))
    outcomes = await asyncio.gather(*names, return_exceptions=True)
    await erasures
    assert all(isinstance(each, User | Forbidden) for each in outcomes)
    for user in people:
        stored = await shared_stores.mongo["users"].find_one({"_id": user_document_id(org, user.id)})
        assert stored is not None
        assert (stored["name"], stored["search"]) == (ERASED_NAME, [])
        assert stored.keys().isdisjoint({"name_chosen_at", "bio"})


async def test_erased_or_deactivated_people_change_nothing(shared_stores: Stores, org: str, admin: Actor) -> None:
    await shared_stores.erasures.request(admin, "bob", "bob")
    await shared_stores.user_administration.deactivate(admin, "ann", "rude")
    for id_ in ("ann", "bob"):
        for fields in (ProfileFields(name="Own"), ProfileFields(bio="late")):
            with pytest.raises(Forbidden):
                await change(shared_stores, org, id_, fields)
        user = await shared_stores.users.get(org, id_)
        assert (user.name, user.bio) == (id_.title(), None)


async def test_interrupted_change_changes_no_copies(shared_stores: Stores, org: str) -> None:
    """The last write of the transaction is refused, as if the process had ended before the commit."""
    before = await member_of(shared_stores, org, "ann")
    async with refusing_documents(shared_stores.mongo, "memberships"):
        with pytest.raises(Exception, match="Document failed validation"):
            await change(shared_stores, org, "ann", {"name": "Own", "bio": "Beacons"})
        with pytest.raises(Exception, match="Document failed validation"):
            await sign_in(shared_stores, org, "ann", "Token")
    async with refusing_documents(shared_stores.mongo, "reserved_handles"):
        with pytest.raises(Exception, match="Document failed validation"):
            await shared_stores.users.change_handle(Actor(org, "ann"), "newt")
    assert await shared_stores.users.get(org, "ann") == before
    await require_current_copies(shared_stores, org)
