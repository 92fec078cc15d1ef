"""Authenticates requests: dispatches credentials to their authenticators, and caches the sessions of their viewers."""

import hashlib
import time
from collections.abc import Collection, Mapping
from typing import NamedTuple

from cachetools import LRUCache

from server.auth.authenticators import Authenticator, ViewerSession
from server.auth.credentials import Credential, CredentialKind
from server.auth.tokens import TokenInvalid
from storage.errors import AccountDeactivated
from storage.ids import UserKey

__all__ = ["AccountDeactivated", "ViewerSession", "ViewerSessions"]

SESSION_MAX_AGE_S = 60.0
MAX_SESSIONS = 10_000

_CacheKey = tuple[CredentialKind, int, bytes]


class _CachedSession(NamedTuple):
    """A session, and the monotonic time at which it was cached."""

    session: ViewerSession
    began_at: float


class ViewerSessions:
    """The sessions of viewers, by credential.

    Sessions are cached for 60 s by a hash of the credential, or until the user's access changes. Requests with a cached
    session need no signature check and no database read.
    """

    def __init__(
        self,
        authenticators: Mapping[CredentialKind, Authenticator],
        *,
        max_sessions: int = MAX_SESSIONS,
        max_age_s: float = SESSION_MAX_AGE_S,
    ) -> None:
        self._authenticators = authenticators
        self._max_age_s = max_age_s
        # The key contains the generation of the authenticator, so that no session outlives a withdrawn key.
        self._sessions: LRUCache[_CacheKey, _CachedSession] = LRUCache(max_sessions)

    async def session(self, credential: Credential | None, *, is_use: bool = True) -> ViewerSession | None:
        """Returns the session of a credential; None without one. `is_use` is False for a check of an open socket.

        Raises: Unauthenticated, Unavailable.
        """
        if credential is None:
            return None
        authenticator = self._authenticators.get(credential.kind)
        if authenticator is None:
            raise TokenInvalid("credentials of its kind are not accepted")
        digest = hashlib.sha256(credential.secret.encode("utf-8", "surrogatepass")).digest()
        key = credential.kind, authenticator.generation(), digest
        session = self._cached(key, authenticator)
        if session is None:
            session = await authenticator.authenticate(credential.secret, is_use=is_use)
            self._sessions[key] = _CachedSession(session, time.monotonic())
        return session

    def forget(self, users: Collection[UserKey]) -> None:
        """Removes the cached sessions of these users. Their next requests read the user again."""
        if not users:
            return
        for key in [key for key, cached in self._sessions.items() if cached.session.user_key in users]:
            del self._sessions[key]

    def forget_all(self) -> None:
        """Removes all cached sessions."""
        self._sessions.clear()

    def _cached(self, key: _CacheKey, authenticator: Authenticator) -> ViewerSession | None:
        cached = self._sessions.get(key)
        if cached is None or time.monotonic() - cached.began_at >= self._max_age_s:
            return None
        return cached.session if authenticator.is_current(cached.session) else None
