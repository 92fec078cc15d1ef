"""Authenticates requests: verifies the token and creates or updates its user."""

import hashlib
import time
from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

from cachetools import LRUCache

from server.auth.tokens import Claims, TokenVerifier, bearer_token
from storage.errors import Unauthenticated
from storage.identity.access_changes import UserKey
from storage.identity.records import User
from storage.identity.roles import Role, narrowed
from storage.identity.users import UserStore

SESSION_MAX_AGE_S = 60.0
MAX_SESSIONS = 10_000


class AccountDeactivated(Unauthenticated):
    """An administrator has deactivated the user."""

    def __init__(self) -> None:
        super().__init__("This account is deactivated. Ask an administrator of your organization.")


@dataclass(frozen=True, slots=True)
class ViewerSession:
    """An authenticated user with the roles of its requests, and the token's expiry (Unix seconds)."""

    user: User
    roles: frozenset[Role]
    expires_at: float

    @property
    def user_key(self) -> UserKey:
        """The organization and the id of the user."""
        return UserKey(self.user.organization_id, self.user.id)


class _CachedSession(NamedTuple):
    """A session, and the monotonic time at which it began."""

    session: ViewerSession
    began_at: float


class ViewerSessions:
    """The sessions of viewers, by Authorization header.

    Sessions are cached for 60 s by a hash of the header, or until the user's access changes. Requests with a cached
    session need no signature check and no database read.
    """

    def __init__(
        self,
        verifier: TokenVerifier,
        users: UserStore,
        *,
        max_sessions: int = MAX_SESSIONS,
        max_age_s: float = SESSION_MAX_AGE_S,
    ) -> None:
        self._verifier = verifier
        self._users = users
        self._max_age_s = max_age_s
        # The cache key contains the generation of the provider's keys, so that no session outlives a withdrawn key.
        self._sessions: LRUCache[tuple[int, bytes], _CachedSession] = LRUCache(max_sessions)

    async def session(self, authorization: str | None) -> ViewerSession | None:
        """Returns the session of an Authorization header; None without a header.

        Raises: TokenInvalid, TokenExpired, AccountDeactivated, Unavailable.
        """
        if authorization is None:
            return None
        key = self._verifier.generation(), hashlib.sha256(authorization.encode("utf-8", "surrogatepass")).digest()
        return self._cached(key) or await self._sign_in(key, authorization)

    def forget(self, users: Collection[UserKey]) -> None:
        """Removes the cached sessions of these users. Their next requests read the user again."""
        if not users:
            return
        for key in [key for key, cached in self._sessions.items() if cached.session.user_key in users]:
            del self._sessions[key]

    def forget_all(self) -> None:
        """Removes all cached sessions."""
        self._sessions.clear()

    def _cached(self, key: tuple[int, bytes]) -> ViewerSession | None:
        cached = self._sessions.get(key)
        if cached is None or time.monotonic() - cached.began_at >= self._max_age_s:
            return None
        self._verifier.check_expiry(cached.session.expires_at)
        return cached.session

    async def _sign_in(self, key: tuple[int, bytes], authorization: str) -> ViewerSession | None:
        token = bearer_token(authorization)
        if token is None:
            return None
        claims = await self._verifier.verify(token)
        user = await self._stored_user(claims)
        if user.is_deactivated:
            raise AccountDeactivated
        roles = narrowed(user.roles, claims.roles) if user.has_granted_roles else claims.roles
        session = ViewerSession(user, roles, claims.expires_at)
        self._sessions[key] = _CachedSession(session, time.monotonic())
        return session

    async def _stored_user(self, claims: Claims) -> User:
        roles = sorted(claims.roles, key=lambda role: role.value)
        return await self._users.sign_in(
            claims.organization_id, claims.user_id, roles, claims.name, claims.handle, claims.email
        )
