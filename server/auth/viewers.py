"""From a token to the viewer: verifies, and provisions the user on first sight."""

import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import NamedTuple

from server.auth.tokens import Claims, TokenVerifier, bearer, digest
from storage.identity.records import User
from storage.identity.roles import Role
from storage.identity.users import UserStore

REMEMBERED_S = 60.0
MAX_REMEMBERED = 10_000


@dataclass(frozen=True, slots=True)
class Session:
    """Who asks, what they may do, and until when (Unix seconds)."""

    user: User
    roles: frozenset[Role]
    expires_at: float


class _Known(NamedTuple):
    """Whoever signed in, when by our own clock, and by which generation of the provider's keys."""

    session: Session
    signed_in_at: float
    generation: int


class Viewers:
    """Signs people in. Whoever was seen within the last minute costs no read, only a look at what they sent."""

    def __init__(self, verifier: TokenVerifier, users: UserStore) -> None:
        self._verifier = verifier
        self._users = users
        self._known: OrderedDict[bytes, _Known] = OrderedDict()

    async def session(self, authorization: str | None) -> Session | None:
        """Of an Authorization value; None without one. Raises: TokenInvalid, TokenExpired, Unavailable."""
        if authorization is None:
            return None
        place, generation = digest(authorization), self._verifier.generation()
        return self._recent(place, generation) or await self._sign_in(place, generation, authorization)

    def _recent(self, place: bytes, generation: int) -> Session | None:
        known = self._known.get(place)
        if known is None or known.generation != generation or time.monotonic() - known.signed_in_at >= REMEMBERED_S:
            return None
        self._verifier.check_expiry(known.session.expires_at)
        return known.session

    async def _sign_in(self, place: bytes, generation: int, authorization: str) -> Session | None:
        token = bearer(authorization)
        if token is None:
            return None
        claims = await self._verifier.verify(token)
        user = await self._stored(claims)
        session = Session(user, frozenset(Role(role) for role in claims.roles), claims.expires_at)
        self._remember(place, _Known(session, time.monotonic(), generation))
        return session

    async def _stored(self, claims: Claims) -> User:
        roles = sorted((Role(role) for role in claims.roles), key=lambda role: role.value)
        return await self._users.sign_in(
            claims.organization_id, claims.user_id, roles, claims.name, claims.handle, claims.email
        )

    def _remember(self, place: bytes, known: _Known) -> None:
        self._known[place] = known
        self._known.move_to_end(place)
        if len(self._known) > MAX_REMEMBERED:
            self._known.popitem(last=False)
