"""Sign-ins by an identity provider: user, roles, audit log, invitation and session are committed together."""

import asyncio
from dataclasses import replace

import pytest
from pymongo.errors import WriteError

from storage.errors import AccountDeactivated, Conflict, Forbidden
from storage.identity.accounts.invitations import InvitationState
from storage.identity.accounts.tokens import LinkInvalid
from storage.identity.audit import Actor, AuditAction, AuditFilter
from storage.identity.provider_logins import PersonClaims
from storage.identity.roles import Role
from storage.identity.session_records import NewSession, SignedIn, SignInMethod
from storage.ids import UserKey
from storage.stores import Stores
from tests.databases import refusing_documents
from tests.storage.identity.accounts.conftest import new_invitation

pytestmark = pytest.mark.anyio

ORG = "acme"
ADA = PersonClaims("ada", ORG, frozenset({Role.MEMBER, Role.ADMIN}), "Ada", "ada", "ada@example.org", True)
MEMBER_ADA = replace(ADA, roles=frozenset({Role.MEMBER}))
NEW = NewSession(UserKey(ORG, "ada"), SignInMethod.OIDC, "192.0.2.7", "Firefox")


async def sign_in(
    stores: Stores, person: PersonClaims = ADA, invitation: str | None = None, new: NewSession = NEW
) -> SignedIn:
    return await stores.provider_logins.sign_in(person, new, invitation)


async def grants(stores: Stores) -> list[tuple[str, str, str, str | None]]:
    """Returns the actor, the roles before and after, and the client of each grant, the earliest first."""
    entries = await stores.audit.list_entries(ORG, AuditFilter(action=AuditAction.USER_ROLES_SET), None, 10)
    return [
        (each.actor_id, details["before"], details["after"], each.address)
        for each in reversed(entries)
        for details in [{detail.name: detail.value for detail in each.details}]
    ]


@pytest.fixture
async def boss(stores: Stores) -> Actor:
    await stores.users.sign_in(ORG, "boss", [Role.ADMIN], "Boss", None)
    return Actor(ORG, "boss")


async def test_each_change_of_roles_is_in_the_audit_log(stores: Stores) -> None:
    """The first login creates the user, and grants more than a new user has."""
    for person in (ADA, ADA, MEMBER_ADA, ADA):
        signed_in = await sign_in(stores, person)
        assert frozenset(signed_in.user.roles) == person.roles
        assert signed_in.user.has_granted_roles
    assert await grants(stores) == [
        ("ada", "MEMBER", "ADMIN, MEMBER", "192.0.2.7"),
        ("ada", "ADMIN, MEMBER", "MEMBER", "192.0.2.7"),
        ("ada", "MEMBER", "ADMIN, MEMBER", "192.0.2.7"),
    ]


async def test_login_that_takes_a_role_of_a_token_is_audited(stores: Stores) -> None:
    """Roles that a token brought count as roles before the grant."""
    await stores.users.sign_in(ORG, "ada", [Role.ADMIN], "Ada", None)
    created = await stores.invitations.create(Actor(ORG, "ada"), new_invitation(Role.ADMIN), None)
    assert (await sign_in(stores, MEMBER_ADA)).user.roles == (Role.MEMBER,)
    assert await grants(stores) == [("ada", "ADMIN", "MEMBER", "192.0.2.7")]
    revoked = await stores.invitations.get(ORG, created.invitation.id)
    assert (revoked.state, revoked.revoked_at is None) == (InvitationState.REVOKED, False)


async def test_login_without_a_role_map_grants_nothing(stores: Stores) -> None:
    signed_in = await sign_in(stores, replace(ADA, roles=None))
    assert (signed_in.user.roles, signed_in.user.has_granted_roles) == ((Role.MEMBER,), False)
    assert await grants(stores) == []


@pytest.mark.parametrize("collection", ["audit", "sessions"])
async def test_sign_in_is_committed_as_a_whole(stores: Stores, boss: Actor, collection: str) -> None:
    created = await stores.invitations.create(boss, new_invitation(Role.OPERATOR), None)
    replaced = await stores.sessions.begin(NewSession(UserKey(ORG, "boss"), SignInMethod.DEMO))
    new = replace(NEW, replaced_token=replaced)
    async with refusing_documents(stores.mongo, collection):
        with pytest.raises(WriteError):
            await sign_in(stores, ADA, created.token, new)
    assert await stores.users.find(ORG, "ada") is None
    assert await grants(stores) == []
    assert (await stores.invitations.get(ORG, created.invitation.id)).uses == 0
    assert await stores.sessions.find(replaced) is not None
    signed_in = await sign_in(stores, ADA, created.token, new)
    assert set(signed_in.user.roles) == {Role.MEMBER, Role.ADMIN}
    assert (await stores.invitations.get(ORG, created.invitation.id)).uses == 1
    assert await stores.sessions.find(replaced) is None


async def test_refused_invitation_leaves_neither_user_nor_session(stores: Stores, boss: Actor) -> None:
    used_up = await stores.invitations.create(boss, new_invitation(), None)
    await stores.mongo["invitations"].update_one({"_id": used_up.invitation.id}, {"$set": {"users": ["zed"]}})
    others = await stores.invitations.create(boss, new_invitation(address="cyd@example.org"), None)
    unverified = await stores.invitations.create(boss, new_invitation(address="ada@example.org"), None)
    attempts = [("unknown", LinkInvalid, ADA), (used_up.token, Conflict, ADA), (others.token, Forbidden, ADA)]
    attempts.append((unverified.token, Forbidden, replace(ADA, is_email_verified=False)))
    for token, refusal, person in attempts:
        with pytest.raises(refusal):
            await sign_in(stores, person, token)
    assert await stores.users.find(ORG, "ada") is None
    assert await stores.mongo["sessions"].count_documents({}) == 0
    assert Role.ADMIN in (await sign_in(stores, ADA, unverified.token)).user.roles


async def test_concurrent_first_logins_create_one_user(stores: Stores) -> None:
    signed_in = await asyncio.gather(*(sign_in(stores) for _ in range(6)))
    assert {each.user.id for each in signed_in} == {"ada"}
    assert len(await stores.sessions.list_of(NEW.user)) == 6
    assert len(await grants(stores)) == 1


async def test_people_of_one_handle_get_different_handles(stores: Stores) -> None:
    people = [replace(ADA, user_id=f"ada{n}") for n in range(4)]
    new = [replace(NEW, user=UserKey(ORG, each.user_id)) for each in people]
    logins = [sign_in(stores, person, None, session) for person, session in zip(people, new, strict=True)]
    assert {each.user.handle for each in await asyncio.gather(*logins)} == {"ada", "ada-2", "ada-3", "ada-4"}


@pytest.mark.parametrize("field", ["deactivated_at", "erasing_at"])
async def test_person_without_access_gets_nothing(stores: Stores, boss: Actor, field: str) -> None:
    await sign_in(stores, MEMBER_ADA)
    await stores.mongo["users"].update_one({"_id.id": "ada"}, {"$set": {field: await stores.mongo.now()}})
    before = await stores.mongo["users"].find_one({"_id.id": "ada"})
    created = await stores.invitations.create(boss, new_invitation(Role.OPERATOR), None)
    with pytest.raises(AccountDeactivated):
        await sign_in(stores, replace(ADA, name="Other"), created.token)
    assert await stores.mongo["users"].find_one({"_id.id": "ada"}) == before
    assert await grants(stores) == []
