"""Authenticators: each verifies one kind of credential and returns the session of its viewer."""

import time
from dataclasses import dataclass
from typing import Protocol

from resolvers.context import Context
from server.auth.credentials import SessionEnded
from server.auth.tokens import TokenClaims, TokenVerifier
from storage.errors import AccountDeactivated, MissingScope
from storage.identity.keys.recognition import KeyExpired, KeyRecognizer
from storage.identity.keys.scopes import roles_of_scopes
from storage.identity.records import User
from storage.identity.roles import Role, narrow_roles, with_included
from storage.identity.sessions import SessionStore
from storage.identity.users import UserStore
from storage.ids import UserKey
from storage.mongo.clock import DatabaseClock


@dataclass(frozen=True, slots=True)
class ViewerSession:
    """An authenticated user with the roles of its requests, and the expiry of the credential (Unix seconds)."""

    user: User
    roles: frozenset[Role]
    expires_at: float
    id: str | None = None
    """Id of the browser's session; None for a token or a key."""

    scopes: frozenset[str] | None = None
    """The scopes of a service key; None for a token or a session of a browser."""

    @property
    def is_service(self) -> bool:
        """Whether the user has the role SERVICE."""
        return Role.SERVICE in self.roles

    @property
    def user_key(self) -> UserKey:
        """The organization and the id of the user."""
        return self.user.key

    def sign_in(self, context: Context) -> None:
        """Makes the user of the session the viewer of the context."""
        context.viewer, context.roles = self.user, self.roles
        context.session_id, context.scopes = self.id, self.scopes

    def require_scope(self, scope: str) -> None:
        """Raises Forbidden for a service key without the scope."""
        if self.scopes is not None and scope not in self.scopes:
            raise MissingScope(scope)


class Authenticator(Protocol):
    """Verifies the credentials of one kind."""

    def generation(self) -> int:
        """Returns a number that changes when earlier verifications become invalid. Called for every request."""

    def is_current(self, session: ViewerSession) -> bool:
        """Returns whether a cached session may be used now. Raises: Unauthenticated if its credential has expired."""

    async def authenticate(self, secret: str, *, is_use: bool) -> ViewerSession:
        """Returns the session of a credential. `is_use` is False when an open socket is checked again.

        Raises: Unauthenticated, Unavailable.
        """


class TokenAuthenticator:
    """Verifies tokens. The first request of a user creates the user."""

    def __init__(self, verifier: TokenVerifier, users: UserStore) -> None:
        self._verifier = verifier
        self._users = users

    def generation(self) -> int:
        """Returns the generation of the provider's keys, so that no session outlives a withdrawn key."""
        return self._verifier.generation()

    def is_current(self, session: ViewerSession) -> bool:
        """Returns True. Raises: TokenExpired."""
        self._verifier.check_expiry(session.expires_at)
        return True

    async def authenticate(self, secret: str, *, is_use: bool) -> ViewerSession:
        """Verifies a token, and stores its claims. Raises: TokenInvalid, TokenExpired, AccountDeactivated."""
        claims = await self._verifier.verify(secret)
        user = await self._stored_user(claims)
        if user.is_deactivated:
            raise AccountDeactivated
        return ViewerSession(user, self._users.roles_of_request(user, claims.roles), claims.expires_at)

    async def _stored_user(self, claims: TokenClaims) -> User:
        roles = sorted(claims.roles, key=lambda role: role.value)
        return await self._users.sign_in(
            claims.organization_id,
            claims.user_id,
            roles,
            claims.name,
            claims.handle,
            claims.email,
            is_email_verified=claims.is_email_verified,
        )


class SessionAuthenticator:
    """Finds the session of a cookie, and its user."""

    def __init__(self, sessions: SessionStore, users: UserStore, clock: DatabaseClock) -> None:
        self._sessions = sessions
        self._users = users
        self._clock = clock

    def generation(self) -> int:
        """Returns 0: no signing key is involved."""
        return 0

    def is_current(self, session: ViewerSession) -> bool:
        """Returns False when the cached expiry has passed. Another process may have prolonged the session meanwhile."""
        return session.expires_at > time.time()

    async def authenticate(self, secret: str, *, is_use: bool) -> ViewerSession:
        """Returns the session of a cookie. Raises: SessionEnded, AccountDeactivated."""
        found = await self._sessions.find(secret, is_use=is_use)
        if found is None:
            raise SessionEnded
        user = await self._users.get(*found.user)
        if user.is_deactivated:
            raise AccountDeactivated
        roles = with_included(user.roles) if user.has_granted_roles else found.roles
        left_s = (found.expires_at - await self._clock.now()).total_seconds()
        return ViewerSession(user, roles, time.time() + left_s, found.id)


class ServiceKeyAuthenticator:
    """Finds a service key, and its service account."""

    def __init__(self, keys: KeyRecognizer) -> None:
        self._keys = keys

    def generation(self) -> int:
        """Returns 0: no signing key is involved."""
        return 0

    def is_current(self, session: ViewerSession) -> bool:
        """Returns True. Raises: KeyExpired."""
        if session.expires_at <= time.time():
            raise KeyExpired
        return True

    async def authenticate(self, secret: str, *, is_use: bool) -> ViewerSession:
        """Returns the session of a service key. Raises: KeyInvalid, KeyExpired, AccountDeactivated."""
        key = await self._keys.recognize(secret, is_use=is_use)
        if key.account.is_deactivated:
            raise AccountDeactivated
        roles = narrow_roles(key.account.roles, roles_of_scopes(key.scopes))
        return ViewerSession(key.account, roles, time.time() + key.valid_s, scopes=key.scopes)
