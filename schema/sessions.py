"""GraphQL types and root fields of the viewer's sessions and passkeys."""

from datetime import datetime

import strawberry
from strawberry import ID

import resolvers.passkeys
import resolvers.sessions
from resolvers.limits.writes import WriteLimit
from schema.binding import field, mutation
from storage.identity.session_records import SignInMethod

strawberry.enum(
    SignInMethod,
    description="How the person of a session signed in. OIDC: at an identity provider. PASSWORD and PASSKEY: with a "
    "local account. DEMO: as a demo user.",
)


@strawberry.type(description="A browser in which a person is signed in.")
class Session:
    id: ID = strawberry.field(description="Unique identifier. Treat as an opaque string; it gives no access.")
    method: SignInMethod = strawberry.field(description="How the person signed in.")
    started_at: datetime = strawberry.field(description="When the person signed in.")
    last_used_at: datetime = strawberry.field(description="When the session was last used, up to five minutes ago.")
    expires_at: datetime = strawberry.field(description="When the session ends unless it is used before.")
    address: str | None = strawberry.field(
        description="IP address of the browser at the sign-in. Null if it is unknown."
    )
    user_agent: str | None = strawberry.field(
        description="Header User-Agent of the browser at the sign-in, at most 300 characters. Null if there was none."
    )
    current: bool = field(
        resolvers.sessions.is_current, "Whether this request belongs to the session. False for bearer tokens."
    )


@strawberry.type(description="A passkey by which the viewer signs in without a password.")
class Passkey:
    id: ID = strawberry.field(description="Unique identifier. Treat as an opaque string; it gives no access.")
    name: str = strawberry.field(description="Name that the viewer gave the passkey: 1 to 100 characters.")
    synced: bool = strawberry.field(
        description="Whether the passkey may be copied to the viewer's other devices, as password managers do. False "
        "for a passkey that stays on one device, such as a security key."
    )
    created_at: datetime = strawberry.field(description="When the passkey was added.")
    last_used_at: datetime | None = strawberry.field(
        description="When the viewer last signed in with the passkey. Null before the first time."
    )


@strawberry.type
class SessionQuery:
    my_sessions: list[Session] = field(
        resolvers.sessions.my_sessions,
        "Browsers in which the viewer is signed in, the last used first; at most 50. Bearer tokens are not listed. "
        "Needs no role.",
    )


@strawberry.type
class SessionMutation:
    end_session: Session = mutation(
        resolvers.sessions.end_session,
        "Signs the viewer out in a browser: within 10 seconds its requests are refused, and its sockets are closed. "
        "NOT_FOUND if the viewer has no such session, or if it has ended. Needs no role.",
        limit=None,
    )
    end_other_sessions: int = mutation(
        resolvers.sessions.end_other_sessions,
        "Signs the viewer out in all browsers but this one, and returns their number. With a bearer token: in all "
        "browsers. Idempotent. Needs no role.",
        limit=None,
    )


@strawberry.type
class PasskeyQuery:
    my_passkeys: list[Passkey] = field(
        resolvers.passkeys.my_passkeys,
        "Passkeys by which the viewer signs in, the oldest first; at most 20. A browser adds them by "
        "`POST /accounts/passkeys`. Needs no role.",
    )


@strawberry.type
class PasskeyMutation:
    rename_passkey: Passkey = mutation(
        resolvers.passkeys.rename_passkey,
        "Gives a passkey of the viewer another name. Idempotent. NOT_FOUND if the viewer has no such passkey. Needs no "
        "role.",
        limit=WriteLimit.OPERATIONS,
    )
    remove_passkey: Passkey = mutation(
        resolvers.passkeys.remove_passkey,
        "Removes a passkey of the viewer, and signs the viewer out in all other browsers within 10 seconds. Nobody "
        "signs in with the passkey any more. CONFLICT for the last passkey of an account without a password. NOT_FOUND "
        "if the viewer has no such passkey, or has removed it. Needs no role.",
        limit=WriteLimit.OPERATIONS,
    )
