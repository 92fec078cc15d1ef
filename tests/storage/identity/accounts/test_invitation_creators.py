"""An invitation ends with the right of its creator, also if the right ends at the same time as somebody accepts."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from storage.chat.communities import NewCommunity
from storage.chat.records import CommunityVisibility
from storage.errors import Conflict
from storage.identity.accounts.invitations import CreatedInvitation, InvitationState
from storage.identity.audit import Actor, AuditAction, AuditFilter, command_line_actor
from storage.identity.provider_logins import PersonClaims
from storage.identity.records import User, user_document_id
from storage.identity.roles import Role
from storage.identity.session_records import NewSession, SignInMethod
from storage.ids import UserKey
from storage.stores import Stores
from tests.storage.identity.accounts.conftest import new_invitation

pytestmark = pytest.mark.anyio

End = Callable[[Stores, Actor], Awaitable[object]]


@pytest.fixture
async def boss(shared_stores: Stores, org: str, admin: Actor) -> Actor:
    """A second administrator, who takes the right from `ada`."""
    await shared_stores.users.sign_in(org, "boss", [Role.MEMBER], "Boss", None)
    await shared_stores.user_administration.set_roles(admin, "boss", [Role.ADMIN])
    return Actor(org, "boss")


async def demote(stores: Stores, boss: Actor) -> object:
    return await stores.user_administration.set_roles(boss, "ada", [Role.OPERATOR])


async def deactivate(stores: Stores, boss: Actor) -> object:
    return await stores.user_administration.deactivate(boss, "ada", "left")


async def erase(stores: Stores, boss: Actor) -> object:
    return await stores.erasures.request(boss, "ada", "ada")


async def sign_in_without_role(stores: Stores, boss: Actor) -> None:
    new = NewSession(UserKey(boss.organization_id, "ada"), SignInMethod.OIDC)
    for role in (Role.ADMIN, Role.MEMBER):
        person = PersonClaims("ada", boss.organization_id, frozenset({role}), None, None, None)
        await stores.provider_logins.sign_in(person, new, None)


ENDS = [demote, deactivate, erase, sign_in_without_role]


async def accept(stores: Stores, org: str, created: CreatedInvitation, name: str = "zed") -> User:
    user = await stores.users.sign_in(org, name, [Role.MEMBER], name.title(), None)
    return await stores.invitations.accept(Actor(org, name), created.token or "", user)


async def revocations(stores: Stores, org: str) -> list[tuple[str, str]]:
    """Returns the actor and the target of each entry about a revoked invitation."""
    entries = await stores.audit.list_entries(org, AuditFilter(action=AuditAction.INVITATION_REVOKED), None, 50)
    return [(entry.actor_id, entry.target_id) for entry in entries]


@pytest.mark.parametrize("end", ENDS)
async def test_open_invitation_ends_with_its_creators_right(
    shared_stores: Stores, org: str, admin: Actor, boss: Actor, end: End
) -> None:
    invitations = shared_stores.invitations
    used = await invitations.create(admin, new_invitation(), None)
    await accept(shared_stores, org, used, "bob")
    created = await invitations.create(admin, new_invitation(Role.ADMIN), None)
    others = await invitations.create(boss, new_invitation(), None)
    await end(shared_stores, boss)
    with pytest.raises(Conflict, match="revoked"):
        await accept(shared_stores, org, created)
    assert Role.ADMIN not in (await shared_stores.users.get(org, "zed")).roles
    ended = await invitations.get(org, created.invitation.id)
    assert (ended.state, ended.revoked_at is None) == (InvitationState.REVOKED, False)
    assert (await invitations.get(org, used.invitation.id)).state is InvitationState.USED_UP
    actor = "ada" if end is sign_in_without_role else "boss"
    assert await revocations(shared_stores, org) == [(actor, created.invitation.id)]
    assert Role.MEMBER in (await accept(shared_stores, org, others)).roles


@pytest.mark.parametrize("end", ENDS)
async def test_acceptance_while_the_right_ends_counts_or_is_refused(
    shared_stores: Stores, org: str, admin: Actor, boss: Actor, end: End
) -> None:
    """The acceptance and the end of the creator's right run at the same time. The first one counts."""
    created = [await shared_stores.invitations.create(admin, new_invitation(Role.OPERATOR), None) for _ in range(8)]
    await asyncio.gather(*(shared_stores.users.sign_in(org, f"p{n}", [Role.MEMBER], None, None) for n in range(8)))
    accepting = (accept(shared_stores, org, each, f"p{n}") for n, each in enumerate(created))
    results, _ = await asyncio.gather(asyncio.gather(*accepting, return_exceptions=True), end(shared_stores, boss))
    for each, result in zip(created, results, strict=True):
        invitation = await shared_stores.invitations.get(org, each.invitation.id)
        is_accepted = isinstance(result, User)
        assert is_accepted or isinstance(result, Conflict), result
        assert (invitation.uses, invitation.revoked_at is None) == ((1, True) if is_accepted else (0, False))


async def test_reactivated_creators_invitation_stays_revoked(
    shared_stores: Stores, org: str, admin: Actor, boss: Actor
) -> None:
    created = await shared_stores.invitations.create(admin, new_invitation(Role.ADMIN), None)
    await deactivate(shared_stores, boss)
    await shared_stores.user_administration.reactivate(boss, "ada")
    with pytest.raises(Conflict, match="revoked"):
        await accept(shared_stores, org, created)


@pytest.mark.parametrize("change", [{"roles": ["MEMBER"], "roles_granted": True}, {"erasing_at": 1}])
async def test_right_that_ended_without_revocation_is_noticed(
    shared_stores: Stores, org: str, admin: Actor, change: dict[str, object]
) -> None:
    """Earlier releases left invitations open when they took the creator's role."""
    created = await shared_stores.invitations.create(admin, new_invitation(Role.ADMIN), None)
    await shared_stores.mongo["users"].update_one({"_id": user_document_id(org, "ada")}, {"$set": change})
    listed = await shared_stores.invitations.list_invitations(org, None, 10)
    assert [each.state for each in listed] == [InvitationState.REVOKED]
    with pytest.raises(Conflict, match="revoked"):
        await accept(shared_stores, org, created)


async def test_command_lines_invitation_needs_no_creator(shared_stores: Stores, org: str) -> None:
    created = await shared_stores.invitations.create(command_line_actor(org), new_invitation(Role.ADMIN), None)
    assert Role.ADMIN in (await accept(shared_stores, org, created)).roles


async def test_namesake_of_the_command_line_gets_no_exception(shared_stores: Stores, org: str, admin: Actor) -> None:
    namesake = command_line_actor(org).user_id
    await shared_stores.users.sign_in(org, namesake, [Role.ADMIN], "Eve", None)
    created = await shared_stores.invitations.create(Actor(org, namesake), new_invitation(Role.ADMIN), None)
    await shared_stores.user_administration.set_roles(admin, namesake, [Role.MEMBER])
    with pytest.raises(Conflict, match="revoked"):
        await accept(shared_stores, org, created)


async def test_creator_outside_a_private_community_invites_nobody(
    shared_stores: Stores, org: str, admin: Actor
) -> None:
    ada, ann = [await shared_stores.users.get(org, each) for each in ("ada", "ann")]
    new = NewCommunity(org, "Hills", "", CommunityVisibility.PRIVATE)
    own, others = [await shared_stores.communities.create(new, each, None) for each in (ada, ann)]
    created = [
        await shared_stores.invitations.create(admin, new_invitation(community_id=each.id), None)
        for each in (own, others)
    ]
    await accept(shared_stores, org, created[0])
    with pytest.raises(Conflict, match="revoked"):
        await accept(shared_stores, org, created[1])
    listed = await shared_stores.invitations.list_invitations(org, None, 10)
    assert [each.state for each in listed] == [InvitationState.REVOKED, InvitationState.USED_UP]
