"""Sessions begin with a token that is not stored, are listed for their user only, and end once."""

import asyncio
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

import pytest

from storage.errors import AccountDeactivated, Conflict, NotFound
from storage.identity.audit import Actor
from storage.identity.records import user_document_id
from storage.identity.roles import Role
from storage.identity.session_records import NewSession, ProviderSession, SignInMethod
from storage.identity.sessions import MAX_SESSIONS_OF_USER, SessionLifetimes, SessionStore
from storage.ids import UserKey
from storage.mongo import Session
from storage.secrets.random_tokens import token_digest
from storage.stores import Stores
from tests.waiting import until

pytestmark = pytest.mark.anyio

ANN, BEN = UserKey("acme", "ann"), UserKey("acme", "ben")
TWIN = UserKey("globex", "ann")
ISSUER = "https://id.example.org"


def new_session(user: UserKey = ANN, provider: ProviderSession | None = None) -> NewSession:
    return NewSession(user, SignInMethod.OIDC, "192.0.2.1", "Browser", provider=provider)


@pytest.fixture(autouse=True)
async def people(stores: Stores) -> None:
    for user in (ANN, BEN, TWIN):
        await stores.users.sign_in(*user, [Role.MEMBER], None, None)
    await stores.users.sign_in("acme", "ada", [Role.ADMIN], None, None)


async def changed_users(stores: Stores) -> set[UserKey]:
    return await stores.access_changes.users_since(await stores.clock.now())


async def test_token_finds_its_session_and_is_not_stored(stores: Stores) -> None:
    token = await stores.sessions.begin(new_session())
    session = await stores.sessions.find(token)
    assert session is not None
    assert (session.user, session.method, session.address, session.user_agent) == (
        ANN,
        SignInMethod.OIDC,
        "192.0.2.1",
        "Browser",
    )
    assert await stores.sessions.find(session.id) is None
    assert token not in str([row async for row in stores.mongo["sessions"].find()])


async def test_user_ends_only_own_sessions(stores: Stores) -> None:
    tokens = {user: await stores.sessions.begin(new_session(user)) for user in (ANN, BEN, TWIN)}
    for other in (BEN, TWIN):
        with pytest.raises(NotFound):
            await stores.sessions.end(ANN, token_digest(tokens[other]))
    assert [each.user for each in await stores.sessions.list_of(ANN)] == [ANN]
    assert await changed_users(stores) == set()
    await stores.sessions.end(ANN, token_digest(tokens[ANN]))
    assert await changed_users(stores) == {ANN}
    assert await stores.sessions.find(tokens[ANN]) is None
    assert await stores.sessions.find(tokens[BEN]) is not None


async def test_concurrent_ends_have_one_effect(stores: Stores) -> None:
    token = await stores.sessions.begin(new_session())
    ended = await asyncio.gather(*(stores.sessions.end_token(token) for _ in range(8)))
    assert len([each for each in ended if each is not None]) == 1
    assert await stores.mongo["access_changes"].count_documents({}) == 1


async def test_ending_other_sessions_keeps_the_current_session(stores: Stores) -> None:
    tokens = [await stores.sessions.begin(new_session()) for _ in range(4)]
    assert await stores.sessions.end_all(ANN, except_id=token_digest(tokens[1])) == 3
    assert [each.id for each in await stores.sessions.list_of(ANN)] == [token_digest(tokens[1])]
    assert await stores.sessions.end_all(ANN) == 1


async def test_logout_token_with_sid_or_sub_ends_matching_sessions(stores: Stores) -> None:
    sessions = {
        name: await stores.sessions.begin(new_session(provider=provider))
        for name, provider in {
            "first": ProviderSession(ISSUER, "42", "s1"),
            "second": ProviderSession(ISSUER, "42", "s2"),
            "other person": ProviderSession(ISSUER, "43", "s3"),
            "other issuer": ProviderSession("https://other.example.org", "42", "s1"),
            "local": None,
        }.items()
    }

    async def open_sessions() -> set[str]:
        return {name for name, token in sessions.items() if await stores.sessions.find(token) is not None}

    assert await stores.sessions.log_out(ISSUER, "1", None, "s1") == 1
    assert await open_sessions() == sessions.keys() - {"first"}
    assert await stores.sessions.log_out(ISSUER, "2", "42", None) == 1
    assert await open_sessions() == sessions.keys() - {"first", "second"}


async def set_bio(stores: Stores, bio: str, session: Session) -> None:
    await stores.mongo["users"].update_one({"_id": user_document_id(*ANN)}, {"$set": {"bio": bio}}, session=session)


async def test_sign_in_ends_the_replaced_session_with_its_proof(stores: Stores) -> None:
    """The replaced session may be that of another person. A refused sign-in ends nothing and stores nothing."""
    replaced, other = await stores.sessions.begin(new_session(BEN)), await stores.sessions.begin(new_session(BEN))
    new = replace(new_session(), replaced_token=replaced)

    async def refuse(session: Session) -> None:
        await set_bio(stores, "refused", session)
        raise Conflict("refused")

    async def accept(session: Session) -> None:
        await set_bio(stores, "accepted", session)

    with pytest.raises(Conflict):
        await stores.sessions.sign_in(new, refuse)
    assert await stores.sessions.find(replaced) is not None
    assert (await stores.users.get(*ANN)).bio is None
    signed_in = await stores.sessions.sign_in(new, accept)
    assert signed_in.user.key == ANN
    found = [await stores.sessions.find(each) is not None for each in (signed_in.token, replaced, other)]
    assert found == [True, False, True]
    assert BEN in await changed_users(stores)
    assert (await stores.users.get(*ANN)).bio == "accepted"


async def test_concurrent_sign_ins_of_one_browser_all_succeed(stores: Stores) -> None:
    replaced = await stores.sessions.begin(new_session())
    new = replace(new_session(), replaced_token=replaced)
    tokens = await asyncio.gather(*(stores.sessions.begin(new) for _ in range(6)))
    assert {each.id for each in await stores.sessions.list_of(ANN)} == set(map(token_digest, tokens))


async def test_logout_token_of_provider_is_used_once(stores: Stores) -> None:
    async def log_out() -> bool:
        try:
            await stores.sessions.log_out(ISSUER, "jti", "42", None)
        except Conflict:
            return False
        return True

    assert sum(await asyncio.gather(*(log_out() for _ in range(8)))) == 1


async def test_session_beyond_limit_ends_longest_unused_one(stores: Stores) -> None:
    first = await stores.sessions.begin(new_session())
    others = [await stores.sessions.begin(new_session()) for _ in range(MAX_SESSIONS_OF_USER)]
    assert await stores.sessions.find(first) is None
    assert {each.id for each in await stores.sessions.list_of(ANN)} == set(map(token_digest, others))


async def age(stores: Stores, **days_or_hours: float) -> None:
    """Moves all sessions into the past, as if this time had passed."""
    passed_ms = int(timedelta(**days_or_hours).total_seconds() * 1000)
    times = ("at", "used_at", "until", "ends_at")
    earlier = {name: {"$subtract": [f"${name}", passed_ms]} for name in times}
    await stores.mongo["sessions"].update_many({}, [{"$set": earlier}])


async def test_session_ends_when_it_is_idle_for_seven_days(stores: Stores) -> None:
    token = await stores.sessions.begin(new_session())
    for _ in range(4):
        await age(stores, days=6, hours=23)
        session = await stores.sessions.find(token)
        assert session is not None, "A use prolongs the session."
    await age(stores, days=2, hours=5)
    assert await stores.sessions.find(token) is None, "No use prolongs a session beyond 30 days."
    idle = await stores.sessions.begin(new_session())
    await age(stores, days=7)
    assert await stores.sessions.find(idle) is None
    assert not await stores.sessions.is_open(token_digest(idle))
    assert await stores.sessions.list_of(ANN) == []


async def test_check_of_an_open_socket_prolongs_no_session(stores: Stores) -> None:
    token = await stores.sessions.begin(new_session())
    for _ in range(2):
        await age(stores, days=3)
        assert await stores.sessions.find(token, is_use=False) is not None
    await age(stores, days=1)
    assert await stores.sessions.find(token) is None


async def test_session_ends_after_the_longest_time_despite_use(stores: Stores) -> None:
    lifetimes = SessionLifetimes(idle=timedelta(days=7), longest=timedelta(milliseconds=300))
    store = SessionStore(stores.mongo, stores.clock, stores.access_changes, lifetimes)
    token = await store.begin(new_session())
    assert await store.find(token) is not None
    await asyncio.sleep(0.5)
    assert await store.find(token) is None
    assert await store.list_of(ANN) == []


ADA = Actor("acme", "ada")


async def test_sign_in_during_a_deactivation_never_revives(stores: Stores) -> None:
    """A sign-in that read the user before the deactivation may begin a session after it. Nobody can use the session."""
    administration, begun = stores.user_administration, []

    async def sign_in() -> None:
        with suppress(AccountDeactivated):
            for _ in range(60):
                begun.append(await stores.sessions.begin(new_session()))

    for _ in range(3):
        signing_in = [asyncio.create_task(sign_in()) for _ in range(3)]
        await until(lambda: len(begun) > 3)
        await administration.deactivate(ADA, "ann", "left")
        await asyncio.gather(*signing_in)
        await administration.reactivate(ADA, "ann")
        assert [await stores.sessions.find(token) for token in begun] == [None] * len(begun)
        begun.clear()


@pytest.mark.parametrize("field", ["deactivated_at", "erasing_at"])
async def test_person_without_access_begins_no_session(stores: Stores, field: str) -> None:
    await stores.mongo["users"].update_one({"_id": user_document_id(*ANN)}, {"$set": {field: await stores.mongo.now()}})
    with pytest.raises(AccountDeactivated):
        await stores.sessions.begin(new_session())
    assert await stores.mongo["sessions"].count_documents({}) == 0


async def test_reactivation_ends_sessions_of_the_time_before(stores: Stores) -> None:
    """A session may begin after the deactivation, if its sign-in read the user before."""
    token = await stores.sessions.begin(new_session())
    at = {"$set": {"deactivated_at": await stores.mongo.now()}}
    await stores.mongo["users"].update_one({"_id": user_document_id(*ANN)}, at)
    await stores.user_administration.reactivate(ADA, "ann")
    assert await stores.sessions.find(token) is None
