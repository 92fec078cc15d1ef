"""Sessions of viewers: creation of users, caching and expiry."""

import asyncio

import pytest

from server.auth.authenticators import TokenAuthenticator
from server.auth.credentials import Credential, CredentialKind, bearer_credential
from server.auth.tokens import TokenExpired, TokenInvalid, TokenVerifier, mint
from server.auth.viewers import ViewerSessions
from storage.identity.audit import command_line_actor
from storage.identity.roles import Role
from storage.identity.users import UserStore
from storage.stores import Stores
from tests.manual_clock import ManualClock
from tests.server.auth.authenticators import token_authenticators
from tests.server.auth.identity_provider import RSA_KEY, ec_jwk, provider_token, provider_with, rsa_jwk, verifier_of
from tests.waiting import until

SECRET = "a secret of the tests, longer than 32 bytes"
NOW = 1_800_000_000.0

pytestmark = pytest.mark.anyio


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW)


@pytest.fixture
def viewers(stores: Stores, clock: ManualClock) -> ViewerSessions:
    return ViewerSessions(token_authenticators(TokenVerifier(secret=SECRET, now=clock), stores))


def bearer(user: str = "ann", org: str = "acme", **claims: object) -> Credential | None:
    """Returns the credential of a new token of the user."""
    token = mint(SECRET, user_id=user, organization_id=org, ttl_s=1e9, **claims)  # type: ignore[arg-type]
    return bearer_credential(f"Bearer {token}")


async def test_request_without_token_has_no_session(viewers: ViewerSessions) -> None:
    assert await viewers.session(None) is None


@pytest.mark.parametrize("authorization", ["Bearer garbage", "Basic YTpi", "", "Bearer "])
async def test_malformed_authorization_is_refused(viewers: ViewerSessions, authorization: str) -> None:
    with pytest.raises(TokenInvalid):
        await viewers.session(bearer_credential(authorization))


async def test_first_request_creates_user(viewers: ViewerSessions, stores: Stores) -> None:
    assert await stores.users.find("acme", "ann") is None
    session = await viewers.session(bearer(name="Ann", handle="ann_of_the_hill"))
    assert session is not None
    assert (session.user.id, session.user.name, session.user.handle) == ("ann", "Ann", "ann_of_the_hill")
    assert await stores.users.find("acme", "ann") == session.user


async def test_same_id_in_other_organization_is_other_user(viewers: ViewerSessions, stores: Stores) -> None:
    for org in ("acme", "globex"):
        session = await viewers.session(bearer(org=org, name=f"Ann of {org}"))
        assert session is not None
        assert session.user.organization_id == org
    assert (await stores.users.get("acme", "ann")).name == "Ann of acme"


async def test_session_has_roles_of_token_or_member(viewers: ViewerSessions) -> None:
    for roles, expected in [(["OPERATOR", "SERVICE"], {Role.OPERATOR, Role.SERVICE}), ([], {Role.MEMBER})]:
        session = await viewers.session(bearer(roles=roles))
        assert session is not None
        assert session.roles == expected


@pytest.mark.parametrize(
    ("roles", "expected"),
    [(["ADMIN"], {Role.MEMBER}), ([], {Role.MEMBER}), (["MEMBER", "SERVICE"], {Role.MEMBER}), (["SERVICE"], set())],
    ids=str,
)
async def test_token_gives_no_role_where_roles_are_granted_only(
    stores: Stores, roles: list[str], expected: set[Role]
) -> None:
    """Roles that tokens gave before the setting was changed count neither in requests nor in later work."""
    await stores.users.sign_in("acme", "ann", list(Role), None, None)
    users = UserStore(stores.mongo, stores.clock, has_roles_from_tokens=False)
    verifier = TokenVerifier(secret=SECRET, now=ManualClock(NOW))
    viewers = ViewerSessions({CredentialKind.TOKEN: TokenAuthenticator(verifier, users)})
    assert await users.lasting_roles("acme", "ann") == {Role.MEMBER}
    for user in ("ann", "new"):
        session = await viewers.session(bearer(user, roles=roles))
        assert session is not None
        assert session.roles == set(session.user.roles) == expected
    assert await users.lasting_roles("acme", "new") == expected


async def test_granted_role_counts_where_roles_are_granted_only(stores: Stores) -> None:
    users = UserStore(stores.mongo, stores.clock, has_roles_from_tokens=False)
    verifier = TokenVerifier(secret=SECRET, now=ManualClock(NOW))
    viewers = ViewerSessions({CredentialKind.TOKEN: TokenAuthenticator(verifier, users)})
    await users.sign_in("acme", "ann", [Role.MEMBER], None, None)
    await stores.user_administration.set_roles(command_line_actor("acme"), "ann", {Role.OPERATOR})
    for roles, expected in ((["ADMIN"], {Role.OPERATOR, Role.MEMBER}), (["MEMBER"], {Role.MEMBER})):
        session = await viewers.session(bearer(roles=roles))
        assert session is not None
        assert session.roles == expected
    assert await users.lasting_roles("acme", "ann") == {Role.OPERATOR}


async def test_changed_name_in_token_is_stored_at_once(viewers: ViewerSessions, stores: Stores) -> None:
    for name in ("Ann", "Anna"):
        session = await viewers.session(bearer(name=name))
        assert session is not None
        assert session.user.name == name
    assert (await stores.users.get("acme", "ann")).name == "Anna"


async def test_concurrent_first_requests_create_one_user(viewers: ViewerSessions) -> None:
    tokens = [bearer(name=f"Ann {n % 3}") for n in range(100)]
    sessions = await asyncio.gather(*map(viewers.session, tokens))
    assert len({session.user.handle for session in sessions if session is not None}) == 1


async def test_handle_in_use_gets_a_number(viewers: ViewerSessions) -> None:
    requests = [viewers.session(bearer(user, handle="ann")) for user in ("u1", "u2", "u3")]
    sessions = await asyncio.gather(*requests)
    assert {session.user.handle for session in sessions if session is not None} == {"ann", "ann-2", "ann-3"}


async def test_session_ends_when_token_expires(viewers: ViewerSessions, clock: ManualClock) -> None:
    clock.now = 0
    token = bearer_credential(f"Bearer {mint(SECRET, user_id='ann', organization_id='acme', ttl_s=60)}")
    session = await viewers.session(token)
    assert session is not None
    clock.now = session.expires_at - 0.001
    assert await viewers.session(token) == session
    clock.now = session.expires_at
    with pytest.raises(TokenExpired):
        await viewers.session(token)


async def test_cached_session_reads_no_user(viewers: ViewerSessions, stores: Stores) -> None:
    token = bearer()
    first = await viewers.session(token)
    await stores.mongo["users"].delete_many({})
    assert await viewers.session(token) == first
    assert await stores.mongo["users"].count_documents({}) == 0


async def test_full_cache_drops_oldest_session(stores: Stores, clock: ManualClock) -> None:
    viewers = ViewerSessions(token_authenticators(TokenVerifier(secret=SECRET, now=clock), stores), max_sessions=2)
    tokens = [bearer(user) for user in ("ann", "ben", "cem")]
    for token in tokens:
        await viewers.session(token)
    await stores.mongo["users"].delete_many({})
    for token in reversed(tokens):
        await viewers.session(token)
    assert await stores.mongo["users"].distinct("_id.id") == ["ann"]


async def test_session_beyond_max_age_reads_user_again(stores: Stores, clock: ManualClock) -> None:
    viewers = ViewerSessions(token_authenticators(TokenVerifier(secret=SECRET, now=clock), stores), max_age_s=0.0)
    token = bearer()
    await viewers.session(token)
    await stores.mongo["users"].delete_many({})
    await viewers.session(token)
    assert await stores.mongo["users"].count_documents({}) == 1


async def test_withdrawn_key_ends_cached_session(stores: Stores) -> None:
    clock = [0.0]
    async with provider_with(rsa_jwk("old")) as provider:
        verifier = verifier_of(provider, lambda: clock[0])
        viewers, token = (
            ViewerSessions(token_authenticators(verifier, stores)),
            bearer_credential(f"Bearer {provider_token(RSA_KEY, 'RS256', 'old')}"),
        )
        assert await viewers.session(token) is not None
        provider.key_set = {"keys": [ec_jwk("e")]}
        clock[0] = 301.0
        assert await viewers.session(token) is not None
        await until(lambda: verifier.generation() == 2)
        with pytest.raises(TokenInvalid, match="unknown"):
            await viewers.session(token)


async def test_kind_without_authenticator_is_refused(viewers: ViewerSessions) -> None:
    with pytest.raises(TokenInvalid):
        await viewers.session(Credential(CredentialKind.SESSION, "x"))
