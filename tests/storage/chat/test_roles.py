"""Ranks of the roles in a community, owners who can act, and how many communities a person may own."""

import asyncio

import pytest

from storage.chat import roles
from storage.chat.communities import NewCommunity
from storage.chat.memberships import RemoveErasedMember, community_stream
from storage.chat.roles import CommunityRole, Moderator, may_act_on, stored_role
from storage.errors import Conflict, Forbidden
from storage.identity.audit import command_line_actor
from storage.identity.records import User
from storage.identity.roles import Role
from storage.ids import new_id
from storage.stores import Stores
from tests.storage.topic_scenario import TopicScenario

pytestmark = pytest.mark.anyio

OWNER, MODERATOR, MEMBER = CommunityRole


async def join(scenario: TopicScenario, name: str, role: CommunityRole = CommunityRole.MEMBER) -> User:
    """Signs in a person who joins the community with a role."""
    user = await scenario.stores.users.sign_in(scenario.organization_id, name, (), None, None)
    await scenario.stores.communities.join(scenario.community, user)
    if role is not CommunityRole.MEMBER:
        await scenario.stores.moderation.set_role(scenario.community, Moderator("ann"), name, role)
    return user


async def set_deactivated(scenario: TopicScenario, name: str, is_deactivated: bool = True) -> None:
    await scenario.stores.users.sign_in(scenario.organization_id, name, (), None, None)
    actor, administration = command_line_actor(scenario.organization_id), scenario.stores.user_administration
    if is_deactivated:
        await administration.deactivate(actor, name, "left")
    else:
        await administration.reactivate(actor, name)


async def without_owner(scenario: TopicScenario) -> list[str]:
    found = await scenario.stores.communities.list_without_owner(scenario.organization_id, None, 10)
    return [community.id for community in found]


async def test_owner_beside_a_deactivated_owner_stays(scenario: TopicScenario) -> None:
    await join(scenario, "bob", CommunityRole.OWNER)
    await join(scenario, "cat")
    await set_deactivated(scenario, "bob")
    with pytest.raises(Conflict):
        await scenario.stores.communities.leave(scenario.community, "ann")
    with pytest.raises(Conflict):
        await scenario.stores.moderation.set_role(scenario.community, Moderator("ann"), "ann", CommunityRole.MEMBER)
    await set_deactivated(scenario, "bob", False)
    await scenario.stores.communities.leave(scenario.community, "ann")


async def sign_in_admin(scenario: TopicScenario) -> Moderator:
    """Signs in Zoe, an ADMIN, and returns her as a moderator."""
    await scenario.stores.users.sign_in(scenario.organization_id, "zoe", (Role.ADMIN,), None, None)
    return Moderator("zoe", is_admin=True)


async def test_community_of_a_deactivated_owner_is_listed(scenario: TopicScenario) -> None:
    await join(scenario, "bob")
    assert await without_owner(scenario) == []
    await set_deactivated(scenario, "ann")
    assert await without_owner(scenario) == [scenario.community.id]
    admin = await sign_in_admin(scenario)
    with pytest.raises(Conflict):
        await scenario.stores.moderation.set_role(scenario.community, admin, "ann", CommunityRole.MEMBER)
    await scenario.stores.moderation.set_role(scenario.community, admin, "bob", CommunityRole.OWNER)
    assert await without_owner(scenario) == []
    await set_deactivated(scenario, "bob")
    await set_deactivated(scenario, "ann", False)
    assert await without_owner(scenario) == []


async def test_community_of_an_erased_owner_is_listed(scenario: TopicScenario) -> None:
    await join(scenario, "bob")
    change = RemoveErasedMember(scenario.community.id, "ann")
    await scenario.stores.sequencer.commit(community_stream(scenario.community.id), change)
    assert await without_owner(scenario) == [scenario.community.id]
    admin = await sign_in_admin(scenario)
    await scenario.stores.moderation.set_role(scenario.community, admin, "bob", CommunityRole.OWNER)
    assert await without_owner(scenario) == []


async def test_community_without_members_is_not_listed(scenario: TopicScenario) -> None:
    change = RemoveErasedMember(scenario.community.id, "ann")
    await scenario.stores.sequencer.commit(community_stream(scenario.community.id), change)
    assert await without_owner(scenario) == []
    await join(scenario, "bob")
    assert await scenario.stores.moderation.role(scenario.community.id, "bob") is CommunityRole.OWNER


async def test_communities_without_owner_are_paged(shared_stores: Stores) -> None:
    org, stores = new_id(), shared_stores
    ann = await stores.users.sign_in(org, "ann", (), None, None)
    created = [await stores.communities.create(NewCommunity(org, str(n), ""), ann, None) for n in range(3)]
    await stores.user_administration.deactivate(command_line_actor(org), "ann", "left")
    ids = sorted(each.id for each in created)
    first = await stores.communities.list_without_owner(org, None, 2)
    rest = await stores.communities.list_without_owner(org, ids[1], 2)
    assert [each.id for each in (*first, *rest)] == ids


async def test_list_without_owner_reads_no_managed_community(shared_stores: Stores) -> None:
    org, stores = new_id(), shared_stores
    people = [await stores.users.sign_in(org, name, (), None, None) for name in ("ann", "bob")]
    for person, count in zip(people, (40, 2), strict=True):
        for number in range(count):
            await stores.communities.create(NewCommunity(org, str(number), ""), person, None)
    await stores.user_administration.deactivate(command_line_actor(org), "bob", "left")
    for collection, query in (
        ("memberships", roles.owned_query(org, ["bob"])),
        ("communities", roles.marked_query(org)),
    ):
        plan = await stores.mongo.database.command(
            "explain", {"find": collection, "filter": query}, verbosity="executionStats"
        )
        assert plan["executionStats"]["totalKeysExamined"] <= 4
        assert plan["executionStats"]["totalDocsExamined"] <= 2


async def test_person_owns_a_limited_number_of_communities(
    shared_stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if the person creates several at once."""
    monkeypatch.setattr(roles, "MAX_OWNED", 3)
    org, stores = new_id(), shared_stores
    ann = await stores.users.sign_in(org, "ann", (), None, None)
    creations = (stores.communities.create(NewCommunity(org, str(n), ""), ann, None) for n in range(8))
    results = await asyncio.gather(*creations, return_exceptions=True)
    assert sum(isinstance(each, Conflict) for each in results) == 5
    assert len(await stores.communities.list_communities(org, "ann", None, None, 10)) == 3


async def test_deactivated_person_founds_no_community(shared_stores: Stores) -> None:
    org, stores = new_id(), shared_stores
    ann = await stores.users.sign_in(org, "ann", (), None, None)
    await stores.user_administration.deactivate(command_line_actor(org), "ann", "left")
    with pytest.raises(Forbidden):
        await stores.communities.create(NewCommunity(org, "Late", ""), ann, None)


@pytest.mark.parametrize(
    ("actor", "is_admin", "allowed"),
    [
        (OWNER, False, {MODERATOR, MEMBER, None}),
        (OWNER, True, {MODERATOR, MEMBER, None}),
        (MODERATOR, False, {MEMBER, None}),
        (MEMBER, False, set()),
        (None, False, set()),
        (MEMBER, True, {MEMBER, None}),
        (None, True, {MEMBER, None}),
    ],
)
def test_people_act_on_lower_ranks_only(
    actor: CommunityRole | None, is_admin: bool, allowed: set[CommunityRole | None]
) -> None:
    assert {target for target in (*CommunityRole, None) if may_act_on(actor, is_admin, target)} == allowed


def test_membership_without_role_is_of_a_member() -> None:
    assert stored_role(None) is None
    assert stored_role({"user": "ann"}) is MEMBER  # type: ignore[typeddict-item]
