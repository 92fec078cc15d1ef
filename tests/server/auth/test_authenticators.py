"""A browser's session authenticates its user until it ends or stays unused, or the user is deactivated."""

from datetime import UTC, datetime, timedelta

import pytest

from server.auth.credentials import Credential, CredentialKind, SessionEnded
from server.auth.viewers import ViewerSessions
from storage.errors import AccountDeactivated
from storage.identity.audit import Actor
from storage.identity.records import user_document_id
from storage.identity.roles import Role
from storage.identity.session_records import NewSession, SignInMethod
from storage.ids import UserKey
from storage.stores import Stores
from tests.server.auth.authenticators import session_authenticators

pytestmark = pytest.mark.anyio

ADA, ANN = Actor("acme", "ada"), UserKey("acme", "ann")


@pytest.fixture
def viewers(stores: Stores) -> ViewerSessions:
    return ViewerSessions(session_authenticators(stores), max_age_s=0.0)


async def sign_in_ann(stores: Stores, *roles: Role) -> Credential:
    """Signs Ann in, and returns the credential of her session."""
    for user in ("ada", "ann"):
        await stores.users.sign_in("acme", user, [Role.MEMBER], None, None)
    new = NewSession(ANN, SignInMethod.OIDC, roles=frozenset(roles or {Role.MEMBER}))
    return Credential(CredentialKind.SESSION, await stores.sessions.begin(new))


async def test_session_has_its_roles_until_roles_are_granted(stores: Stores, viewers: ViewerSessions) -> None:
    cookie = await sign_in_ann(stores, Role.OPERATOR)
    session = await viewers.session(cookie)
    assert session is not None
    assert (session.user.id, session.roles) == ("ann", {Role.OPERATOR})
    await stores.user_administration.set_roles(ADA, "ann", {Role.ADMIN})
    session = await viewers.session(cookie)
    assert session is not None
    assert session.roles == {Role.ADMIN, Role.OPERATOR, Role.MEMBER}


async def test_unknown_and_ended_sessions_are_refused(stores: Stores, viewers: ViewerSessions) -> None:
    cookie = await sign_in_ann(stores)
    await stores.sessions.end_token(cookie.secret)
    for secret in (cookie.secret, "A" * 43):
        with pytest.raises(SessionEnded):
            await viewers.session(Credential(CredentialKind.SESSION, secret))


async def test_deactivation_ends_sessions_for_good(stores: Stores, viewers: ViewerSessions) -> None:
    cookie = await sign_in_ann(stores)
    await stores.user_administration.deactivate(ADA, "ann", "left")
    with pytest.raises(SessionEnded):
        await viewers.session(cookie)
    with pytest.raises(AccountDeactivated):
        await sign_in_ann(stores)
    await stores.user_administration.reactivate(ADA, "ann")
    with pytest.raises(SessionEnded):
        await viewers.session(cookie)


async def test_session_of_a_deactivated_user_is_refused(stores: Stores, viewers: ViewerSessions) -> None:
    """A sign-in that read the user before the deactivation may begin its session after it."""
    later = await sign_in_ann(stores)
    at = {"$set": {"deactivated_at": datetime.now(UTC)}}
    await stores.mongo["users"].update_one({"_id": user_document_id(*ANN)}, at)
    with pytest.raises(AccountDeactivated):
        await viewers.session(later)


async def test_idle_session_ends_and_its_use_defers_the_end(stores: Stores) -> None:
    viewers = ViewerSessions(session_authenticators(stores))
    cookie, sessions = await sign_in_ann(stores), stores.mongo["sessions"]
    session = await viewers.session(cookie)
    assert session is not None
    an_hour_ago = datetime.now(UTC) - timedelta(hours=1)
    await sessions.update_one({}, {"$set": {"used_at": an_hour_ago}})
    viewers.forget_all()
    checked = await viewers.session(cookie, is_use=False)
    viewers.forget_all()
    used = await viewers.session(cookie)
    assert checked is not None
    assert used is not None
    assert used.expires_at > checked.expires_at
    await sessions.update_one({}, {"$set": {"until": an_hour_ago}})
    viewers.forget_all()
    with pytest.raises(SessionEnded):
        await viewers.session(cookie)
