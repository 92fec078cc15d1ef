"""From a token to the viewer: who is created, who is remembered, and whose session ends when."""

import asyncio

import pytest

from server.auth import viewers
from server.auth.tokens import TokenExpired, TokenInvalid, TokenVerifier, mint
from server.auth.viewers import Viewers
from storage.identity.roles import Role
from storage.stores import Stores
from tests.server.auth.test_tokens import RSA_KEY, ec_jwk, issued, provider_with, rsa_jwk, until, verifier_of

SECRET = "a secret of the tests, longer than 32 bytes"
NOW = 1_800_000_000.0

pytestmark = pytest.mark.anyio


class Clock:
    now = NOW

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def reception(stores: Stores, clock: Clock) -> Viewers:
    return Viewers(TokenVerifier(secret=SECRET, now=clock), stores.users)


def bearer(user: str = "ann", org: str = "acme", **claims: object) -> str:
    return f"Bearer {mint(SECRET, user_id=user, organization_id=org, ttl_s=1e9, **claims)}"  # type: ignore[arg-type]


async def test_without_a_token_there_is_no_session(reception: Viewers) -> None:
    assert await reception.session(None) is None


@pytest.mark.parametrize("authorization", ["Bearer garbage", "Basic YTpi", "", "Bearer "])
async def test_what_is_no_token_of_ours_is_refused(reception: Viewers, authorization: str) -> None:
    with pytest.raises(TokenInvalid):
        await reception.session(authorization)


async def test_a_user_exists_from_the_first_request(reception: Viewers, stores: Stores) -> None:
    assert await stores.users.find("acme", "ann") is None
    session = await reception.session(bearer(name="Ann", handle="ann_of_the_hill"))
    assert session is not None
    assert (session.user.id, session.user.name, session.user.handle) == ("ann", "Ann", "ann_of_the_hill")
    assert await stores.users.find("acme", "ann") == session.user


async def test_the_same_id_in_another_organization_is_somebody_else(reception: Viewers, stores: Stores) -> None:
    for org in ("acme", "globex"):
        session = await reception.session(bearer(org=org, name=f"Ann of {org}"))
        assert session is not None
        assert session.user.organization_id == org
    assert (await stores.users.get("acme", "ann")).name == "Ann of acme"


async def test_the_token_s_roles_count_and_none_means_member(reception: Viewers) -> None:
    for given, counted in [(["OPERATOR", "SERVICE"], {Role.OPERATOR, Role.SERVICE}), ([], {Role.MEMBER})]:
        session = await reception.session(bearer(roles=given))
        assert session is not None
        assert session.roles == counted


async def test_a_new_name_in_the_token_is_taken_over_at_once(reception: Viewers, stores: Stores) -> None:
    for name in ("Ann", "Anna"):
        session = await reception.session(bearer(name=name))
        assert session is not None
        assert session.user.name == name
    assert (await stores.users.get("acme", "ann")).name == "Anna"


async def test_a_hundred_first_requests_at_once_make_one_user(reception: Viewers) -> None:
    tokens = [bearer(name=f"Ann {n % 3}") for n in range(100)]
    sessions = await asyncio.gather(*map(reception.session, tokens))
    assert len({session.user.handle for session in sessions if session is not None}) == 1


async def test_users_who_want_the_same_handle_get_it_in_turn(reception: Viewers) -> None:
    wanting = [reception.session(bearer(user, handle="ann")) for user in ("u1", "u2", "u3")]
    sessions = await asyncio.gather(*wanting)
    assert {session.user.handle for session in sessions if session is not None} == {"ann", "ann-2", "ann-3"}


async def test_the_session_ends_with_the_token(reception: Viewers, clock: Clock) -> None:
    clock.now = 0
    token = f"Bearer {mint(SECRET, user_id='ann', organization_id='acme', ttl_s=60)}"
    session = await reception.session(token)
    assert session is not None
    clock.now = session.expires_at - 0.001
    assert await reception.session(token) == session
    clock.now = session.expires_at
    with pytest.raises(TokenExpired):
        await reception.session(token)


async def test_who_was_seen_within_the_last_minute_costs_no_read(reception: Viewers, stores: Stores) -> None:
    token = bearer()
    first = await reception.session(token)
    await stores.mongo["users"].delete_many({})
    assert await reception.session(token) == first
    assert await stores.mongo["users"].count_documents({}) == 0


async def test_only_so_many_are_remembered_the_latest_ones(
    reception: Viewers, stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(viewers, "MAX_REMEMBERED", 2)
    tokens = [bearer(user) for user in ("ann", "ben", "cem")]
    for token in tokens:
        await reception.session(token)
    await stores.mongo["users"].delete_many({})
    for token in reversed(tokens):
        await reception.session(token)
    assert await stores.mongo["users"].distinct("_id.id") == ["ann"]


async def test_after_a_minute_the_user_is_read_anew(
    reception: Viewers, stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(viewers, "REMEMBERED_S", 0.0)
    token = bearer()
    await reception.session(token)
    await stores.mongo["users"].delete_many({})
    await reception.session(token)
    assert await stores.mongo["users"].count_documents({}) == 1


async def test_with_its_key_withdrawn_a_token_of_somebody_just_seen_counts_no_more(stores: Stores) -> None:
    clock = [0.0]
    async with provider_with(rsa_jwk("old")) as provider:
        verifier = verifier_of(provider, lambda: clock[0])
        reception, token = Viewers(verifier, stores.users), f"Bearer {issued(RSA_KEY, 'RS256', 'old')}"
        assert await reception.session(token) is not None
        provider.document = {"keys": [ec_jwk("e")]}
        clock[0] = 301.0
        assert await reception.session(token) is not None
        await until(lambda: verifier.generation() == 2)
        with pytest.raises(TokenInvalid, match="unknown"):
            await reception.session(token)
