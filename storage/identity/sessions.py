"""Sessions of browsers: begun by a sign-in, found by the token of the cookie, and ended on every process.

The id of a session is the digest of its token. The token itself is not stored.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from pymongo.asynchronous.collection import AsyncCollection

from storage.errors import Conflict, NotFound
from storage.identity.access_changes import AccessChanges
from storage.identity.documents import ProviderLogoutDocument, SessionDocument
from storage.identity.records import user_record
from storage.identity.rights import require_access
from storage.identity.session_records import NewSession, SignedIn, UserSession, user_session
from storage.ids import UserKey
from storage.mongo import Document, Mongo, Session
from storage.mongo.clock import DatabaseClock
from storage.secrets.random_tokens import new_token, token_digest

SESSIONS = "sessions"
LOGOUTS = "provider_logouts"
SESSIONS_OF_USER = "org_1_user_1_used_at_-1"
"""The index by user and last use. Otherwise MongoDB may choose the index of expiry, and read everybody's sessions."""

MAX_SESSIONS_OF_USER = 50
"""A further sign-in ends the session that was not used for the longest time."""

IDLE_S = 7 * 86_400.0
"""How long a session lasts that is not used, unless a setting says otherwise."""

LONGEST_S = 30 * 86_400.0
"""How long a session lasts in any case, unless a setting says otherwise."""

USE_WRITTEN_EVERY = timedelta(minutes=5)
"""How often at most the use of a session is written."""

NOT_EXPIRED: Document = {"$expr": {"$gt": ["$until", "$$NOW"]}}


@dataclass(frozen=True, slots=True)
class SessionLifetimes:
    """How long sessions last: without being used, and in any case."""

    idle: timedelta = timedelta(seconds=IDLE_S)
    longest: timedelta = timedelta(seconds=LONGEST_S)


DEFAULT_LIFETIMES = SessionLifetimes()


class SessionStore:
    """Begins, finds, lists and ends sessions.

    The end of a session is a change of its user's access, so that every process drops the session within seconds.
    """

    def __init__(
        self,
        mongo: Mongo,
        clock: DatabaseClock,
        access: AccessChanges,
        lifetimes: SessionLifetimes = DEFAULT_LIFETIMES,
    ) -> None:
        self._mongo = mongo
        self._clock = clock
        self._access = access
        self._lifetimes = lifetimes
        self._sessions: AsyncCollection[SessionDocument] = mongo[SESSIONS]
        self._logouts: AsyncCollection[ProviderLogoutDocument] = mongo[LOGOUTS]

    async def sign_in(self, new: NewSession, proof: Callable[[Session], Awaitable[object]]) -> SignedIn:
        """Begins the session of a sign-in, and ends the session that it replaces, in the transaction of `proof`.

        Every way to sign in calls this. `proof` checks and stores what the way needs, such as the use of a link, a new
        account or a granted role. It may run more than once, and its exceptions refuse the sign-in. A session that is
        begun while its user is deactivated ends with the reactivation at the latest. Raises: NotFound;
        AccountDeactivated.
        """

        async def work(session: Session) -> SignedIn:
            await proof(session)
            return await self._begin(session, new)

        signed_in = await self._mongo.transact(work)
        await self._end_excess(new.user)
        return signed_in

    async def begin(self, new: NewSession) -> str:
        """Begins a session without a proof, and returns its token. Raises: as `sign_in`."""
        return (await self.sign_in(new, _no_proof)).token

    async def _begin(self, session: Session, new: NewSession) -> SignedIn:
        user = user_record(await require_access(self._mongo, new.user, session))
        if new.replaced_token is not None:
            await self._end_in_transaction(session, {"_id": token_digest(new.replaced_token)})
        token = new_token()
        document = self._document(new, token_digest(token), await self._clock.now())
        await self._sessions.insert_one(document, session=session)
        return SignedIn(user, token)

    async def find(self, token: str, *, is_use: bool = True) -> UserSession | None:
        """Returns the session of this token, or None if it has ended. A use prolongs the session."""
        query = {"_id": token_digest(token), **NOT_EXPIRED}
        rows: list[SessionDocument] = await self._mongo.find(SESSIONS, query, limit=1)
        if not rows:
            return None
        now = await self._clock.now()
        if is_use and now - rows[0]["used_at"] >= USE_WRITTEN_EVERY:
            until = min(now + self._lifetimes.idle, rows[0]["ends_at"])
            await self._sessions.update_one(query, {"$set": {"used_at": now, "until": until}})
            rows[0]["used_at"], rows[0]["until"] = now, until
        return user_session(rows[0])

    async def is_open(self, session_id: str) -> bool:
        """Returns whether the session has not ended."""
        return bool(await self._mongo.find(SESSIONS, {"_id": session_id, **NOT_EXPIRED}, {"_id": 1}, limit=1))

    async def list_of(self, user: UserKey) -> list[UserSession]:
        """Returns the open sessions of a user, the last used first."""
        query = {**_sessions_of(user), **NOT_EXPIRED}
        rows: list[SessionDocument] = await self._mongo.find(
            SESSIONS, query, sort=[("used_at", -1)], limit=MAX_SESSIONS_OF_USER, hint=SESSIONS_OF_USER
        )
        return [user_session(row) for row in rows]

    async def end(self, user: UserKey, session_id: str) -> UserSession:
        """Ends a session of a user, and returns it. Raises: NotFound if the user has no such open session."""
        ended = await self._end({"_id": session_id, **_sessions_of(user)})
        if not ended:
            raise NotFound("session", session_id)
        return ended[0]

    async def end_token(self, token: str) -> UserSession | None:
        """Ends the session of this token, and returns it; None if it has ended already."""
        ended = await self._end({"_id": token_digest(token)})
        return ended[0] if ended else None

    async def end_all(self, user: UserKey, *, except_id: str | None = None) -> int:
        """Ends the sessions of a user, all or all but one. Returns how many sessions have ended."""
        return len(await self._end({**_sessions_of(user), "_id": {"$ne": except_id}}))

    async def end_all_in_transaction(self, session: Session, user: UserKey, *, except_id: str | None = None) -> int:
        """Ends sessions of a user, all or all but one, in a transaction that also records the change of access.

        Returns how many sessions have ended.
        """
        query = {**_sessions_of(user), "_id": {"$ne": except_id}}
        return (await self._sessions.delete_many(query, session=session)).deleted_count

    async def end_in_transaction(self, session: Session, user: UserKey, session_id: str) -> None:
        """Ends a session of a user in a transaction that also records the change of access.

        Raises: NotFound if the user has no such open session.
        """
        query = {**_sessions_of(user), "_id": session_id}
        if not (await self._sessions.delete_one(query, session=session)).deleted_count:
            raise NotFound("session", session_id)

    async def log_out(self, issuer: str, logout_id: str, sub: str | None, sid: str | None) -> int:
        """Ends the sessions that began at an identity provider: by its session `sid`, or without `sid` by any session.

        With `sub`, ends sessions of this person only. Returns the number of ended sessions. Raises: Conflict if this
        logout was processed before.
        """
        provider = {"provider.issuer": issuer, "provider.sub": sub, "provider.sid": sid}
        query = {name: value for name, value in provider.items() if value is not None}
        key = token_digest(f"{issuer} {logout_id}")

        async def work(session: Session) -> int:
            if await self._logouts.find_one({"_id": key}, session=session) is not None:
                raise Conflict("This logout was done before.")
            await self._logouts.insert_one({"_id": key, "at": await self._clock.now()}, session=session)
            return len(await self._end_in_transaction(session, query))

        return await self._mongo.transact(work)

    async def _end(self, query: Document) -> list[UserSession]:
        return await self._mongo.transact(lambda session: self._end_in_transaction(session, query))

    async def _end_in_transaction(self, session: Session, query: Document) -> list[UserSession]:
        rows = await self._sessions.find(query, session=session).to_list(None)
        await self._sessions.delete_many({"_id": {"$in": [row["_id"] for row in rows]}}, session=session)
        at = await self._clock.now()
        for user in {UserKey(row["org"], row["user"]) for row in rows}:
            await self._access.record(user, at, session)
        return [user_session(row) for row in rows]

    async def _end_excess(self, user: UserKey) -> None:
        """Ends the sessions of a user beyond the limit, those that were not used for the longest time."""
        limit = MAX_SESSIONS_OF_USER + 10
        rows: list[SessionDocument] = await self._mongo.find(
            SESSIONS, _sessions_of(user), {"_id": 1}, sort=[("used_at", -1)], limit=limit
        )
        excess = [row["_id"] for row in rows[MAX_SESSIONS_OF_USER:]]
        if excess:
            await self._end({"_id": {"$in": excess}})

    def _document(self, new: NewSession, id_: str, now: datetime) -> SessionDocument:
        document: SessionDocument = {
            "_id": id_,
            "org": new.user.organization_id,
            "user": new.user.user_id,
            "method": new.method.value,
            "roles": sorted(role.value for role in new.roles),
            "at": now,
            "used_at": now,
            "until": now + min(self._lifetimes.idle, self._lifetimes.longest),
            "ends_at": now + self._lifetimes.longest,
            "address": new.address,
            "agent": new.user_agent,
        }
        if new.provider is not None:
            document["provider"] = new.provider.document()
        return document


async def _no_proof(_session: Session) -> None: ...


def _sessions_of(user: UserKey) -> Document:
    return {"org": user.organization_id, "user": user.user_id}
