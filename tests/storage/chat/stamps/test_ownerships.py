"""Ownership of packs: each person gets a pack once, with one notification, also when several workers grant it."""

import asyncio

import pytest

from storage.chat.roles import CommunityRole, Moderator
from storage.chat.stamps.ownerships import StampPackGiver
from storage.chat.stamps.packs import StampPack
from storage.chat.stamps.rules import StampPackAvailability
from storage.errors import BadUserInput, Conflict, Forbidden, NotFound
from storage.identity.audit import Actor, AuditFilter
from storage.identity.mutes import HiddenSubjects
from storage.identity.records import user_stream
from storage.identity.roles import Role
from storage.ids import UserKey, new_id
from storage.notifications import Notification
from storage.privacy.registry import PERSONAL_DATA
from storage.stores import Stores
from storage.timeline import NOW, timeline_range
from tests.cancellation import CancelledAwait
from tests.storage.topic_scenario import OpenStores, TopicScenario

pytestmark = pytest.mark.anyio

GIVEN = StampPackAvailability.GIVEN


async def create_pack(
    stores: Stores, organization_id: str, availability: StampPackAvailability = GIVEN, name: str = "Harbour"
) -> StampPack:
    """Creates a pack without a rule."""
    admin = Actor(organization_id, "admin", is_command_line=True)
    pack = await stores.stamp_packs.create(admin, name)
    return await stores.stamp_packs.set_availability(admin, pack.id, availability, None)


async def notifications(stores: Stores, person: UserKey) -> list[Notification]:
    """Returns the notifications of a person about packs, the newest first."""
    page = await stores.notifications.page(*person, timeline_range(latest=NOW, limit=100), HiddenSubjects())
    return [each for each in page.items if each.stamp_pack_id is not None]


async def owned(stores: Stores, person: UserKey) -> list[str]:
    return [each.pack_id for each in await stores.stamp_ownerships.owned_packs(person)]


async def join(scenario: TopicScenario, name: str, role: CommunityRole = CommunityRole.MEMBER) -> UserKey:
    """Makes a new person a member of the community."""
    user = await scenario.stores.users.sign_in(scenario.organization_id, name, (Role.MEMBER,), name.title(), None)
    await scenario.stores.communities.join(scenario.community, user)
    if role is not CommunityRole.MEMBER:
        await scenario.stores.moderation.set_role(scenario.community, Moderator("ann"), name, role)
    return user.key


def giver(scenario: TopicScenario, name: str) -> StampPackGiver:
    return StampPackGiver(Moderator(name), scenario.community.id)


async def test_processes_that_grant_at_once_make_one_owner(scenario: TopicScenario, open_process: OpenStores) -> None:
    bob, packs = await join(scenario, "bob"), [new_id() for _ in range(3)]
    async with open_process() as second, open_process() as third:
        processes = (scenario.stores, second, third)
        grants = [each.stamp_ownerships.grant_earned(bob, pack) for each in processes for pack in packs * 3]
        results = await asyncio.gather(*grants)
    assert sum(results) == 3
    assert await owned(scenario.stores, bob) == sorted(packs)
    assert sorted(each.stamp_pack_id or "" for each in await notifications(scenario.stores, bob)) == sorted(packs)
    events = await scenario.stores.events.read(user_stream(*bob), 0)
    assert [event.kind for event in events] == ["NotificationArrived"] * 3


async def test_grant_that_is_killed_anywhere_is_repeated_once(scenario: TopicScenario) -> None:
    """The ownership and its notification are one commit, so that no kill leaves one without the other."""
    stores, ownerships = scenario.stores, scenario.stores.stamp_ownerships
    for await_number in range(1, 100):
        person, pack_id = await join(scenario, f"p{await_number}"), new_id()
        grant = CancelledAwait(ownerships.grant_earned(person, pack_id), await_number)
        try:
            await grant
        except asyncio.CancelledError:
            # The commit may still be under way.
            await asyncio.gather(*(ownerships.grant_earned(person, pack_id) for _ in range(2)))
        assert await owned(stores, person) == [pack_id]
        assert len(await notifications(stores, person)) == 1
        if grant.awaits < await_number:
            return
    raise AssertionError("The grant did not end.")


async def test_moderator_gives_pack_to_member_of_the_community(scenario: TopicScenario) -> None:
    stores, pack = scenario.stores, await create_pack(scenario.stores, scenario.organization_id)
    bob, mod = await join(scenario, "bob"), await join(scenario, "mod", CommunityRole.MODERATOR)
    await stores.users.sign_in(scenario.organization_id, "eve", (Role.MEMBER,), "Eve", None)
    ownerships = stores.stamp_ownerships
    assert await ownerships.give(bob, pack, giver(scenario, "mod"))
    assert not await ownerships.give(bob, pack, giver(scenario, "ann"))
    (ownership,) = await ownerships.owned_packs(bob)
    assert (ownership.pack_id, ownership.giver_id) == (pack.id, "mod")
    (notification,) = await notifications(stores, bob)
    assert (notification.stamp_pack_id, notification.actor_id) == (pack.id, "mod")
    with pytest.raises(BadUserInput):
        await ownerships.give(UserKey(scenario.organization_id, "eve"), pack, giver(scenario, "mod"))
    for name in ("bob", "eve"):
        with pytest.raises(Forbidden):
            await ownerships.give(mod, pack, giver(scenario, name))
    # The pack for oneself comes without a notification.
    assert await ownerships.give(mod, pack, giver(scenario, "mod"))
    assert await notifications(stores, mod) == []


async def test_giver_without_community_must_be_administrator(scenario: TopicScenario) -> None:
    stores, pack = scenario.stores, await create_pack(scenario.stores, scenario.organization_id)
    bob = await join(scenario, "bob")
    with pytest.raises(Forbidden):
        await stores.stamp_ownerships.give(bob, pack, StampPackGiver(Moderator("nobody", True)))
    admin = await stores.users.sign_in(scenario.organization_id, "ada", (Role.ADMIN,), "Ada", None)
    actor = Actor(scenario.organization_id, "ada")
    assert await stores.stamp_ownerships.give(bob, pack, StampPackGiver(Moderator("ada", True, actor)))
    await stores.users.sign_in(scenario.organization_id, "root", (Role.ADMIN,), "Root", None)
    await stores.user_administration.deactivate(Actor(scenario.organization_id, "root"), admin.id, "left")
    with pytest.raises(Forbidden):
        await stores.stamp_ownerships.give(admin.key, pack, StampPackGiver(Moderator("ada", True, actor)))


async def test_pack_is_taken_back_and_given_again(scenario: TopicScenario) -> None:
    stores, pack = scenario.stores, await create_pack(scenario.stores, scenario.organization_id)
    bob, admin = await join(scenario, "bob"), Actor(scenario.organization_id, "admin", is_command_line=True)
    for _ in range(2):
        assert await stores.stamp_ownerships.give(bob, pack, giver(scenario, "ann"))
        taken = await asyncio.gather(*(stores.stamp_ownerships.take_back(admin, bob, pack) for _ in range(3)))
        assert sorted(taken) == [False, False, True]
        assert not await stores.stamp_ownerships.may_use(bob, pack)
    assert len(await notifications(stores, bob)) == 2
    entries = await stores.audit.list_entries(scenario.organization_id, AuditFilter(target_id="bob"), None, 100)
    assert [entry.action.value for entry in entries] == ["STAMP_PACK_TAKEN_BACK", "STAMP_PACK_GIVEN"] * 2
    with pytest.raises(Forbidden):
        await stores.stamp_ownerships.take_back(Actor(scenario.organization_id, "nobody"), bob, pack)


async def test_only_given_packs_are_given_and_taken_back(scenario: TopicScenario) -> None:
    stores, bob = scenario.stores, await join(scenario, "bob")
    pack = await create_pack(stores, scenario.organization_id, StampPackAvailability.EVERYONE)
    admin = Actor(scenario.organization_id, "admin", is_command_line=True)
    assert await stores.stamp_ownerships.may_use(bob, pack)
    with pytest.raises(Conflict):
        await stores.stamp_ownerships.give(bob, pack, giver(scenario, "ann"))
    with pytest.raises(Conflict):
        await stores.stamp_ownerships.take_back(admin, bob, pack)


async def test_deactivated_person_gets_no_pack_and_keeps_others(scenario: TopicScenario) -> None:
    stores, bob = scenario.stores, await join(scenario, "bob")
    first, second = [await create_pack(stores, scenario.organization_id, name=name) for name in ("Harbour", "Hills")]
    await stores.stamp_ownerships.give(bob, first, giver(scenario, "ann"))
    await stores.users.sign_in(scenario.organization_id, "ada", (Role.ADMIN,), "Ada", None)
    await stores.user_administration.deactivate(Actor(scenario.organization_id, "ada"), bob.user_id, "left")
    with pytest.raises(Conflict):
        await stores.stamp_ownerships.give(bob, second, giver(scenario, "ann"))
    assert not await stores.stamp_ownerships.grant_earned(bob, second.id)
    assert not await stores.stamp_ownerships.grant_earned(UserKey(scenario.organization_id, "nobody"), second.id)
    unknown = UserKey(scenario.organization_id, "nobody")
    with pytest.raises(NotFound):
        await stores.stamp_ownerships.give(unknown, second, giver(scenario, "ann"))
    assert await owned(stores, bob) == [first.id]


async def test_ownership_is_exported_and_erased(scenario: TopicScenario) -> None:
    stores, bob = scenario.stores, await join(scenario, "bob")
    other = UserKey(scenario.organization_id, "bobby")
    await join(scenario, "bobby")
    pack = await create_pack(stores, scenario.organization_id)
    for person in (bob, other):
        await stores.stamp_ownerships.give(person, pack, giver(scenario, "ann"))
    entry, collection = PERSONAL_DATA["stamp_ownerships"], stores.mongo["stamp_ownerships"]
    (document,) = await collection.find(entry.exports[0].documents.find(bob)).to_list(None)
    exported = entry.exports[0].write(document)
    assert (exported["packId"], exported["givenById"]) == (pack.id, "ann")
    await collection.delete_many(entry.rules[0].documents.find(bob))
    assert await stores.stamp_ownerships.owned_among(scenario.organization_id, ["bob", "bobby"]) == {"bobby": {pack.id}}
