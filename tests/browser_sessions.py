"""Sessions of browsers for tests, begun in the database of a running product."""

from storage.identity.access_changes import AccessChanges
from storage.identity.roles import Role
from storage.identity.session_records import NewSession, SignInMethod
from storage.identity.sessions import SessionStore
from storage.identity.users import UserStore
from storage.ids import UserKey
from storage.mongo import Mongo, connect
from storage.mongo.clock import DatabaseClock

SESSION_COOKIE = "__Host-noroshi"
CLIENT = {"noroshi-client": "test"}


def session_headers(token: str) -> dict[str, str]:
    """Returns the headers of a request that a page of the product sends with the session's cookie."""
    return {"cookie": f"{SESSION_COOKIE}={token}", **CLIENT}


async def begin_session(
    mongodb_uri: str,
    database: str,
    user: str,
    org: str = "acme",
    roles: tuple[Role, ...] = (Role.MEMBER,),
    user_agent: str | None = None,
) -> str:
    """Signs a user in, and returns the token of the session."""
    mongo = connect(mongodb_uri, database)
    try:
        return await _begin(mongo, UserKey(org, user), roles, user_agent)
    finally:
        await mongo.close()


async def _begin(mongo: Mongo, user: UserKey, roles: tuple[Role, ...], user_agent: str | None) -> str:
    clock = DatabaseClock(mongo)
    await UserStore(mongo, clock).sign_in(*user, roles, None, None)
    sessions = SessionStore(mongo, clock, AccessChanges(mongo))
    new = NewSession(user, SignInMethod.DEMO, user_agent=user_agent, roles=frozenset(roles))
    return await sessions.begin(new)
