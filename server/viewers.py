"""From a token to the viewer: verifies, and provisions the user on first sight."""

import time
from collections import OrderedDict
from dataclasses import dataclass

from server.tokens import Claims, TokenVerifier, bearer
from storage.identity import Role, User, UserStore

REMEMBERED_S = 60.0
MAX_REMEMBERED = 10_000


@dataclass(frozen=True, slots=True)
class Session:
    """Who asks, what they may do, and until when (Unix seconds)."""

    user: User
    roles: frozenset[Role]
    expires_at: float


class Viewers:
    """Signs people in. Whoever was seen within the last minute costs no read."""

    def __init__(self, verifier: TokenVerifier, users: UserStore) -> None:
        self._verifier = verifier
        self._users = users
        self._seen: OrderedDict[Claims, tuple[float, User]] = OrderedDict()

    async def session(self, authorization: str | None) -> Session | None:
        """Of an Authorization value; None without one. Raises: TokenInvalid, TokenExpired, Unavailable."""
        token = bearer(authorization)
        if token is None:
            return None
        claims = await self._verifier.verify(token)
        user = self._recent(claims) or await self._sign_in(claims)
        return Session(user, frozenset(Role(role) for role in claims.roles), claims.expires_at)

    def _recent(self, claims: Claims) -> User | None:
        seen = self._seen.get(claims)
        return seen[1] if seen is not None and time.monotonic() - seen[0] < REMEMBERED_S else None

    async def _sign_in(self, claims: Claims) -> User:
        roles = sorted((Role(role) for role in claims.roles), key=lambda role: role.value)
        user = await self._users.sign_in(
            claims.organization_id, claims.user_id, roles, claims.name, claims.handle, claims.email
        )
        self._seen[claims] = time.monotonic(), user
        self._seen.move_to_end(claims)
        if len(self._seen) > MAX_REMEMBERED:
            self._seen.popitem(last=False)
        return user
