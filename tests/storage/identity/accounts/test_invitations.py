"""Invitations: concurrent acceptances, and people who may not accept or administer an invitation."""

import asyncio
from datetime import timedelta

import pytest

from storage.chat.communities import NewCommunity
from storage.chat.records import CommunityVisibility
from storage.chat.roles import Moderator
from storage.errors import Conflict, DomainError, Forbidden, NotFound
from storage.idempotency import idempotency_key
from storage.identity.accounts.invitations import (
    MAX_DIGESTS,
    CreatedInvitation,
    Invitation,
    InvitationState,
    NewInvitation,
)
from storage.identity.accounts.tokens import LinkInvalid
from storage.identity.audit import Actor, AuditAction, AuditFilter
from storage.identity.records import User
from storage.identity.roles import Role
from storage.ids import UserKey
from storage.mongo import Session
from storage.stores import Stores
from tests.storage.identity.accounts.conftest import new_invitation
from tests.waiting import until

pytestmark = pytest.mark.anyio


async def person(stores: Stores, org: str, name: str, role: Role = Role.MEMBER) -> User:
    email = f"{name}@example.org"
    return await stores.users.sign_in(org, name, [role], name.title(), None, email, is_email_verified=True)


async def invite(stores: Stores, admin: Actor, new: NewInvitation) -> CreatedInvitation:
    return await stores.invitations.create(admin, new, None)


async def accept(stores: Stores, created: CreatedInvitation, user: User) -> User:
    return await stores.invitations.accept(Actor(user.organization_id, user.id), created.token or "", user)


async def actions(stores: Stores, org: str) -> list[tuple[AuditAction, str]]:
    entries = await stores.audit.list_entries(org, AuditFilter(), None, 50)
    return [(entry.action, entry.actor_id) for entry in entries]


@pytest.mark.parametrize(("people", "uses"), [(12, 1), (12, 3)])
async def test_concurrent_acceptances_never_exceed_uses(
    shared_stores: Stores, org: str, admin: Actor, people: int, uses: int
) -> None:
    created = await invite(shared_stores, admin, new_invitation(Role.OPERATOR, uses))
    users = [await person(shared_stores, org, f"p{n}") for n in range(people)]
    results = await asyncio.gather(*(accept(shared_stores, created, each) for each in users), return_exceptions=True)
    accepted = [each for each in results if isinstance(each, User)]
    assert len(accepted) == uses
    assert {type(each) for each in results if not isinstance(each, User)} == {Conflict}
    invitation = await shared_stores.invitations.get(org, created.invitation.id)
    assert (invitation.uses, invitation.state) == (uses, InvitationState.USED_UP)
    operators = await shared_stores.mongo["users"].count_documents({"_id.org": org, "roles": "OPERATOR"})
    assert operators == uses
    assert len(await actions(shared_stores, org)) == 1 + uses


async def test_user_who_accepts_twice_counts_once(shared_stores: Stores, org: str, admin: Actor) -> None:
    created = await invite(shared_stores, admin, new_invitation(max_uses=2))
    bob = await person(shared_stores, org, "bob")
    await asyncio.gather(*(accept(shared_stores, created, bob) for _ in range(5)))
    assert (await shared_stores.invitations.get(org, created.invitation.id)).uses == 1


async def test_accepted_role_widens_and_never_narrows(shared_stores: Stores, org: str, admin: Actor) -> None:
    bob, boss = await person(shared_stores, org, "bob"), await person(shared_stores, org, "boss", Role.ADMIN)
    await shared_stores.user_administration.set_roles(admin, "boss", [Role.ADMIN])
    before = await shared_stores.clock.now()
    created = await invite(shared_stores, admin, new_invitation(Role.OPERATOR, 2))
    assert (await accept(shared_stores, created, bob)).roles == (Role.MEMBER, Role.OPERATOR)
    assert (await accept(shared_stores, created, boss)).roles == (Role.ADMIN,)
    assert UserKey(org, "bob") in await shared_stores.access_changes.users_since(before)


@pytest.mark.parametrize("ending", ["revoked", "expired"])
async def test_ended_invitation_is_refused(shared_stores: Stores, org: str, admin: Actor, ending: str) -> None:
    created = await invite(shared_stores, admin, new_invitation())
    if ending == "revoked":
        revoked = await shared_stores.invitations.revoke(admin, created.invitation.id)
        assert revoked == await shared_stores.invitations.revoke(admin, created.invitation.id)
    else:
        past = {"$set": {"expires_at": await shared_stores.mongo.now() - timedelta(seconds=1)}}
        await shared_stores.mongo["invitations"].update_one({"_id": created.invitation.id}, past)
    with pytest.raises(Conflict, match=ending):
        await accept(shared_stores, created, await person(shared_stores, org, "bob"))
    assert (await shared_stores.users.get(org, "bob")).has_granted_roles is False
    assert (AuditAction.INVITATION_ACCEPTED, "bob") not in await actions(shared_stores, org)


async def test_concurrent_revocation_and_acceptance_agree(shared_stores: Stores, org: str, admin: Actor) -> None:
    for n in range(6):
        created = await invite(shared_stores, admin, new_invitation(Role.OPERATOR))
        bob = await person(shared_stores, org, f"bob{n}")
        revocation = shared_stores.invitations.revoke(admin, created.invitation.id)
        _, result = await asyncio.gather(revocation, accept(shared_stores, created, bob), return_exceptions=True)
        stored = await shared_stores.users.get(org, bob.id)
        uses = (await shared_stores.invitations.get(org, created.invitation.id)).uses
        assert (stored.has_granted_roles, uses) == ((True, 1) if isinstance(result, User) else (False, 0))


async def test_invitation_of_another_organization_does_not_exist(shared_stores: Stores, org: str, admin: Actor) -> None:
    created = await invite(shared_stores, admin, new_invitation(Role.ADMIN))
    eve = await person(shared_stores, f"{org}-other", "eve", Role.ADMIN)
    foreigner = Actor(eve.organization_id, "eve")
    with pytest.raises(LinkInvalid):
        await accept(shared_stores, created, eve)
    with pytest.raises(NotFound):
        await shared_stores.invitations.revoke(foreigner, created.invitation.id)
    with pytest.raises(LinkInvalid):
        await shared_stores.invitations.find(eve.organization_id, created.token or "")
    assert await shared_stores.invitations.list_invitations(eve.organization_id, None, 10) == []


async def test_former_administrator_invites_and_revokes_nobody(shared_stores: Stores, org: str, admin: Actor) -> None:
    created = await invite(shared_stores, admin, new_invitation())
    await person(shared_stores, org, "boss", Role.ADMIN)
    await shared_stores.user_administration.set_roles(Actor(org, "boss"), "ada", [Role.MEMBER])
    for attempt in (
        shared_stores.invitations.create(admin, new_invitation(Role.ADMIN), None),
        shared_stores.invitations.revoke(admin, created.invitation.id),
    ):
        with pytest.raises(Forbidden):
            await attempt
    revoked = await shared_stores.invitations.get(org, created.invitation.id)
    assert (revoked.state, revoked.revoked_at is None) == (InvitationState.REVOKED, False)


async def test_invitation_for_an_address_is_for_nobody_else(shared_stores: Stores, org: str, admin: Actor) -> None:
    created = await invite(shared_stores, admin, new_invitation(Role.ADMIN, address="bob@example.org"))
    with pytest.raises(Forbidden):
        await accept(shared_stores, created, await person(shared_stores, org, "eve"))
    nameless = await shared_stores.users.sign_in(org, "x", [Role.MEMBER], None, None)
    with pytest.raises(Forbidden):
        await accept(shared_stores, created, nameless)
    assert Role.ADMIN in (await accept(shared_stores, created, await person(shared_stores, org, "bob"))).roles
    mails = await shared_stores.mongo["account_mails"].find({"org": org}).to_list(None)
    assert [(mail["kind"], mail["address"]) for mail in mails] == [("INVITATION", "bob@example.org")]
    entries = await shared_stores.mongo["audit"].find({"org": org}).to_list(None)
    assert "bob@example.org" not in repr(entries)


async def test_invitation_needs_a_verified_address(shared_stores: Stores, org: str, admin: Actor) -> None:
    """At some providers, people may write the address of another person into their profile."""
    created = await invite(shared_stores, admin, new_invitation(Role.ADMIN, address="bob@example.org"))
    eve = await shared_stores.users.sign_in(org, "eve", [Role.MEMBER], "Eve", None, "bob@example.org")
    with pytest.raises(Forbidden, match="verified"):
        await accept(shared_stores, created, eve)
    assert (await shared_stores.invitations.get(org, created.invitation.id)).uses == 0


async def test_deactivated_user_accepts_nothing(shared_stores: Stores, org: str, admin: Actor) -> None:
    created = await invite(shared_stores, admin, new_invitation(Role.ADMIN))
    bob = await person(shared_stores, org, "bob")
    await shared_stores.user_administration.deactivate(admin, "bob", "left")
    with pytest.raises(Forbidden):
        await accept(shared_stores, created, bob)
    assert (await shared_stores.invitations.get(org, created.invitation.id)).uses == 0


async def test_acceptance_rolls_back_with_the_sign_in(shared_stores: Stores, org: str, admin: Actor) -> None:
    created = await invite(shared_stores, admin, new_invitation(Role.OPERATOR))
    bob = await person(shared_stores, org, "bob")

    async def fail(session: Session) -> Invitation:
        await shared_stores.invitations.accept_in_transaction(session, created.token or "", bob)
        raise Conflict("the sign-in failed")

    with pytest.raises(DomainError, match="failed"):
        await shared_stores.mongo.transact(fail)
    assert (await shared_stores.invitations.get(org, created.invitation.id)).uses == 0
    assert (await shared_stores.users.get(org, "bob")).roles == (Role.MEMBER,)


async def test_repeated_key_creates_one_invitation_with_one_link(shared_stores: Stores, org: str, admin: Actor) -> None:
    key = idempotency_key(org, "ada", "createInvitation", "k", {})
    creating = (shared_stores.invitations.create(admin, new_invitation(), key) for _ in range(4))
    results = await asyncio.gather(*creating)
    assert len({each.invitation.id for each in results}) == 1
    assert sum(each.token is not None for each in results) == 1
    assert len(await actions(shared_stores, org)) == 1


async def test_further_links_leave_the_first_and_the_newest_valid(
    shared_stores: Stores, org: str, admin: Actor
) -> None:
    invitations = shared_stores.invitations
    created = await invite(shared_stores, admin, new_invitation())
    links = [await invitations.add_token(org, created.invitation.id) for _ in range(MAX_DIGESTS + 5)]
    tokens = [each[1] for each in links if each is not None]
    for token in (created.token or "", *tokens[1 - MAX_DIGESTS :]):
        assert (await invitations.find(org, token)).id == created.invitation.id
    with pytest.raises(LinkInvalid):
        await invitations.find(org, tokens[0])
    await invitations.revoke(admin, created.invitation.id)
    assert await invitations.add_token(org, created.invitation.id) is None


async def test_invitations_are_listed_newest_first_in_pages(shared_stores: Stores, org: str, admin: Actor) -> None:
    ids = [(await invite(shared_stores, admin, new_invitation())).invitation.id for _ in range(3)]
    listed = shared_stores.invitations.list_invitations
    assert [each.id for each in await listed(org, None, 10)] == ids[::-1]
    assert [each.id for each in await listed(org, ids[2], 1)] == [ids[1]]
    with pytest.raises(NotFound):
        await listed(org, "nothing", 10)


@pytest.mark.parametrize("banned", [False, True])
@pytest.mark.parametrize("visibility", list(CommunityVisibility))
async def test_accepted_invitation_makes_a_community_member(
    shared_stores: Stores, org: str, admin: Actor, banned: bool, visibility: CommunityVisibility
) -> None:
    ada, bob = await shared_stores.users.get(org, "ada"), await person(shared_stores, org, "bob")
    community = await shared_stores.communities.create(NewCommunity(org, "Hills", "", visibility), ada, None)
    if banned:
        await shared_stores.moderation.ban_member(community, Moderator("ada"), "bob", None, "spam")
    created = await invite(shared_stores, admin, new_invitation(community_id=community.id, max_uses=2))
    await accept(shared_stores, created, bob)

    async def is_relayed() -> bool:
        return await shared_stores.mongo["outbox"].count_documents({"kind": "InvitedMember"}) == 0

    await until(is_relayed)
    assert await shared_stores.communities.is_member(community.id, "bob") is not banned
    assert (await shared_stores.communities.get(org, community.id)).member_count == (1 if banned else 2)
