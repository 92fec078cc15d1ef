"""Registration of the first ADMIN, invited people and mail addresses: concurrent requests create one account."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest
from pymongo.errors import WriteError

from storage.errors import Conflict, DomainError
from storage.identity.accounts.local_accounts import NewLocalAccount
from storage.identity.accounts.registration import offer_first_admin
from storage.identity.accounts.tokens import LinkInvalid, TokenPurpose, TokenSubject
from storage.identity.audit import Actor, AuditAction, AuditFilter
from storage.identity.roles import Role
from storage.identity.session_records import NewSession, SignedIn, SignInMethod
from storage.ids import UserKey
from storage.secrets.random_tokens import token_digest
from storage.stores import Stores
from tests.databases import refusing_documents
from tests.storage.identity.accounts.conftest import new_invitation

pytestmark = pytest.mark.anyio

MakeAccount = Callable[..., NewLocalAccount]


async def test_first_admin_link_clicked_concurrently_makes_one_admin(
    shared_stores: Stores, org: str, new_account: MakeAccount
) -> None:
    registrations = shared_stores.registrations
    token = await offer_first_admin(shared_stores.mongo, org)
    assert token is not None
    clicks = [registrations.create_first_admin(token, new_account(f"Ada{n}")) for n in range(8)]
    results = await asyncio.gather(*clicks, return_exceptions=True)
    users = [each.user for each in results if isinstance(each, SignedIn)]
    assert [user.roles for user in users] == [(Role.ADMIN,)]
    assert {type(each) for each in results if not isinstance(each, SignedIn)} <= {LinkInvalid, Conflict}
    assert await shared_stores.mongo["users"].count_documents({"_id.org": org}) == 1
    assert await shared_stores.mongo["local_accounts"].count_documents({"_id.org": org}) == 1
    entries = await shared_stores.audit.list_entries(org, AuditFilter(), None, 10)
    assert [(each.action, each.actor_id) for each in entries] == [(AuditAction.FIRST_ADMIN_CREATED, users[0].id)]
    assert await offer_first_admin(shared_stores.mongo, org) is None


async def test_later_first_admin_link_replaces_the_earlier(
    shared_stores: Stores, org: str, new_account: MakeAccount
) -> None:
    registrations = shared_stores.registrations
    earlier, later = (
        await offer_first_admin(shared_stores.mongo, org),
        await offer_first_admin(shared_stores.mongo, org),
    )
    assert earlier is not None
    assert later is not None
    with pytest.raises(LinkInvalid):
        await registrations.create_first_admin(earlier, new_account("Eve"))
    assert (await registrations.create_first_admin(later, new_account("Ada"))).user.roles == (Role.ADMIN,)


async def test_first_admin_link_makes_no_second_admin(
    shared_stores: Stores, org: str, new_account: MakeAccount
) -> None:
    token = await offer_first_admin(shared_stores.mongo, org)
    assert token is not None
    await shared_stores.users.sign_in(org, "boss", [Role.ADMIN], None, None)
    with pytest.raises(Conflict):
        await shared_stores.registrations.create_first_admin(token, new_account("Eve"))


async def test_first_admin_link_of_another_organization_is_invalid(
    shared_stores: Stores, org: str, new_account: MakeAccount
) -> None:
    token = await offer_first_admin(shared_stores.mongo, f"{org}-other")
    assert token is not None
    with pytest.raises(LinkInvalid):
        await shared_stores.registrations.create_first_admin(token, new_account("Eve"))
    assert await shared_stores.users.find(org, "Eve") is None


async def test_expired_link_is_invalid_and_tokens_are_stored_hashed(
    shared_stores: Stores, org: str, new_account: MakeAccount
) -> None:
    token = await offer_first_admin(shared_stores.mongo, org)
    assert token is not None
    tokens = shared_stores.mongo["account_tokens"]
    stored = await tokens.find_one({"org": org})
    assert stored is not None
    assert token not in str(stored)
    assert stored["digest"] == token_digest(token)
    await tokens.update_one({"org": org}, {"$set": {"expires_at": await shared_stores.mongo.now()}})
    with pytest.raises(LinkInvalid):
        await shared_stores.registrations.create_first_admin(token, new_account("Ada"))


async def test_existing_address_is_told_to_sign_in(
    shared_stores: Stores, org: str, admin: Actor, new_account: MakeAccount
) -> None:
    registrations, address = shared_stores.registrations, "cy@example.org"
    created = await shared_stores.invitations.create(admin, new_invitation(address=address, max_uses=9), None)
    assert created.token is not None
    await registrations.create_invited(created.token, new_account("Cy", address))
    token = await shared_stores.account_tokens.issue(TokenPurpose.REGISTRATION, TokenSubject(org, address=address))
    with pytest.raises(Conflict, match=r"already\. Sign in\.$"):
        await registrations.create_registered(token, new_account("Cy", address))
    with pytest.raises(Conflict, match=r"already\. Sign in to accept the invitation\.$"):
        await registrations.create_invited(created.token, new_account("Cy", address))


async def test_address_registered_concurrently_gets_one_account(
    shared_stores: Stores, org: str, admin: Actor, new_account: MakeAccount
) -> None:
    created = await shared_stores.invitations.create(admin, new_invitation(address="cy@example.org", max_uses=9), None)
    assert created.token is not None
    news = [new_account("Cy", "cy@example.org") for _ in range(6)]
    registering = [shared_stores.registrations.create_invited(created.token, new) for new in news]
    results = await asyncio.gather(*registering, return_exceptions=True)
    assert sum(isinstance(each, SignedIn) for each in results) == 1
    assert {type(each) for each in results if not isinstance(each, SignedIn)} == {Conflict}
    assert await shared_stores.mongo["local_accounts"].count_documents({"_id.org": org}) == 1
    assert (await shared_stores.invitations.get(org, created.invitation.id)).uses == 1


async def test_people_of_one_name_get_different_handles(
    shared_stores: Stores, org: str, admin: Actor, new_account: MakeAccount
) -> None:
    invitations = [
        await shared_stores.invitations.create(admin, new_invitation(address=f"kim{n}@example.org"), None)
        for n in range(5)
    ]
    signed_in = await asyncio.gather(
        *(
            shared_stores.registrations.create_invited(each.token or "", new_account("Kim", f"kim{n}@example.org"))
            for n, each in enumerate(invitations)
        )
    )
    assert {each.user.handle for each in signed_in} == {"kim", "kim-2", "kim-3", "kim-4", "kim-5"}


async def test_mailed_registration_is_used_once_and_for_its_address(
    shared_stores: Stores, org: str, admin: Actor, new_account: MakeAccount
) -> None:
    subject = TokenSubject(org, address="dee@example.org")
    token = await shared_stores.account_tokens.issue(TokenPurpose.REGISTRATION, subject)
    other = await shared_stores.account_tokens.issue(TokenPurpose.REGISTRATION, subject)
    registrations = shared_stores.registrations
    with pytest.raises(LinkInvalid):
        await registrations.create_registered(token, new_account("Eve"))
    user = (await registrations.create_registered(token, new_account("Dee"))).user
    assert (user.roles, user.has_granted_roles, user.email) == ((Role.MEMBER,), True, "dee@example.org")
    for used in (token, other):
        with pytest.raises(LinkInvalid):
            await registrations.create_registered(used, new_account("Dee"))


async def test_refused_invitation_leaves_no_account(
    shared_stores: Stores, org: str, admin: Actor, new_account: MakeAccount
) -> None:
    created = await shared_stores.invitations.create(admin, new_invitation(Role.OPERATOR), None)
    subject = TokenSubject(org, address="dee@example.org", invitation_id=created.invitation.id)
    token = await shared_stores.account_tokens.issue(TokenPurpose.REGISTRATION, subject)
    await shared_stores.invitations.revoke(admin, created.invitation.id)
    with pytest.raises(DomainError, match="revoked"):
        await shared_stores.registrations.create_registered(token, new_account("Dee"))
    assert await shared_stores.local_accounts.find(org, "dee@example.org") is None
    # The token is still valid, because the refused registration did not use it up.
    assert await shared_stores.account_tokens.find(TokenPurpose.REGISTRATION, token) == subject


@pytest.mark.parametrize("collection", ["sessions", "audit"])
async def test_account_and_its_session_are_created_together(
    shared_stores: Stores, org: str, admin: Actor, new_account: MakeAccount, collection: str
) -> None:
    """Otherwise the link is used up, and the person has an account but is not signed in."""
    created = await shared_stores.invitations.create(admin, new_invitation(address="dee@example.org"), None)
    replaced = await shared_stores.sessions.begin(NewSession(UserKey(org, "ada"), SignInMethod.DEMO))
    new = replace(new_account("Dee"), replaced_token=replaced)
    async with refusing_documents(shared_stores.mongo, collection):
        with pytest.raises(WriteError):
            await shared_stores.registrations.create_invited(created.token or "", new)
    assert await shared_stores.local_accounts.find(org, "dee@example.org") is None
    assert (await shared_stores.invitations.get(org, created.invitation.id)).uses == 0
    assert await shared_stores.sessions.find(replaced) is not None
    signed_in = await shared_stores.registrations.create_invited(created.token or "", new)
    session = await shared_stores.sessions.find(signed_in.token)
    assert session is not None
    assert (session.user, session.method, session.address) == (
        signed_in.user.key,
        SignInMethod.PASSWORD,
        "192.0.2.7",
    )
    assert await shared_stores.sessions.find(replaced) is None
