"""Sessions of browsers as read from the database."""

from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from storage.identity.documents import ProviderSessionDocument, SessionDocument
from storage.identity.records import User
from storage.identity.roles import Role
from storage.ids import UserKey


class SignInMethod(Enum):
    """How the person of a session signed in. The value is stored."""

    OIDC = "OIDC"
    PASSWORD = "PASSWORD"  # noqa: S105 - not a password
    PASSKEY = "PASSKEY"
    DEMO = "DEMO"


@dataclass(frozen=True, slots=True)
class ProviderSession:
    """The session at the identity provider from which a session came. `sid` is None if the provider named none."""

    issuer: str
    sub: str
    sid: str | None = None

    def document(self) -> ProviderSessionDocument:
        """Returns the stored form."""
        document: ProviderSessionDocument = {"issuer": self.issuer, "sub": self.sub}
        if self.sid is not None:
            document["sid"] = self.sid
        return document


@dataclass(frozen=True, slots=True)
class NewSession:
    """A session to begin, and the browser that signed in."""

    user: UserKey
    method: SignInMethod
    address: str | None = None
    user_agent: str | None = None
    roles: frozenset[Role] = frozenset({Role.MEMBER})
    """Roles of the sign-in. They count until roles are granted to the user."""

    provider: ProviderSession | None = None
    replaced_token: str | None = None
    """The token of the session that the browser had before, which ends."""


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A person who has signed in, and the token of the new session, which can't be read from the database later."""

    user: User
    token: str


@dataclass(frozen=True, slots=True)
class UserSession:
    """A session of a browser. `id` is no secret: the cookie's token can't be computed from it."""

    id: str
    user: UserKey
    method: SignInMethod
    roles: frozenset[Role]
    started_at: datetime
    last_used_at: datetime
    expires_at: datetime
    """When the session ends unless it is used before."""

    address: str | None
    user_agent: str | None
    provider: ProviderSession | None


def user_session(document: SessionDocument) -> UserSession:
    """Returns the record of a stored session."""
    provider = document.get("provider")
    return UserSession(
        id=document["_id"],
        user=UserKey(document["org"], document["user"]),
        method=SignInMethod(document["method"]),
        roles=frozenset(map(Role, document["roles"])),
        started_at=document["at"],
        last_used_at=document["used_at"],
        expires_at=document["until"],
        address=document["address"],
        user_agent=document["agent"],
        provider=provider and ProviderSession(provider["issuer"], provider["sub"], provider.get("sid")),
    )
