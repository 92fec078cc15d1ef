"""GraphQL types and root fields of administrators: users, roles and the audit log."""

from datetime import datetime

import strawberry
from strawberry import ID

import resolvers.administration.audit
import resolvers.administration.users
from resolvers.limits.writes import WriteLimit
from schema.binding import field, mutation
from schema.identity import User
from schema.sessions import Session
from storage.identity.audit import AuditAction, TargetKind

strawberry.enum(
    AuditAction,
    description="What an administrator or a moderator did. USER_ROLES_SET: replaced a user's roles. USER_DEACTIVATED "
    "and USER_REACTIVATED: ended a user's access, and gave it back. USER_SESSIONS_ENDED: signed a user out of "
    "browsers, and the detail `sessions` counts them. COMMUNITY_…: an act of an owner or moderator of "
    "the community that the detail `community` names. TOPIC_…: a moderator's change of a topic. "
    "MESSAGE_DELETED: deleted another person's message. "
    "CONTENT_REPORT_DECIDED: decided a report about the user. "
    "USER_ERASED: requested the erasure of a user. "
    "RETENTION_RULE_SET: set how long a kind of data is kept. "
    "PRESENCE_SET: turned presence on or off for the organization. "
    "STAMP_…: created or removed a pack of stamps or a stamp of one, decided who may use a pack, gave it to a "
    "person, or took it back. "
    "FIRST_ADMIN_CREATED: became the first ADMIN by the link of the first start. INVITATION_…: created, revoked or "
    "accepted an invitation. PASSWORD_CHANGED: changed or reset the actor's password. "
    "PASSKEY_ADDED and PASSKEY_REMOVED: added or removed one of the actor's passkeys. "
    "SERVICE_KEY_…: created, rotated or revoked a service key. WEBHOOK_…: created, changed, replayed or deleted a "
    "webhook. POST_DELETED, SCHEDULED_POST_… and "
    "PUBLICATION_…: something that another person is the author of. ACCOUNT_…, CALL_…, DO_NOT_CALL_… and "
    "MAIL_…: a change by an operator or an administrator.",
)
strawberry.enum(TargetKind, description="Kind of the object that a change is about.", name="AuditTargetKind")


@strawberry.type(description="A value that describes a change, such as the roles before it.")
class AuditDetail:
    name: str = strawberry.field(description="Name of the value, such as `before`, `after` or `reason`.")
    value: str = strawberry.field(description="The value as text.")


@strawberry.type(description="An entry of the audit log: one administrative change. It is deleted after two years.")
class AuditEntry:
    id: ID = strawberry.field(description="Id of the entry.")
    at: datetime = strawberry.field(description="When the change was made.")
    actor_id: ID = strawberry.field(
        description="Id of the user who made the change: a person or a service account. `command-line` for the command "
        "`noroshi`."
    )
    actor: User | None = field(
        resolvers.administration.audit.actor,
        "User who made the change. Null for the command line, and if the user does not exist any more.",
        batch_resolver=resolvers.administration.audit.actors,
    )
    action: AuditAction = strawberry.field(description="Kind of the change.")
    target_kind: TargetKind = strawberry.field(description="Kind of the object that was changed.")
    target_id: ID = strawberry.field(
        description="Id of the object that was changed. `hidden` for a private community that the viewer has not "
        "joined."
    )
    target_user: User | None = field(
        resolvers.administration.audit.target_user,
        "User that was changed. Null for objects of other kinds, and if the user does not exist any more.",
        batch_resolver=resolvers.administration.audit.target_users,
    )
    details: list[AuditDetail] = strawberry.field(
        description="Values that describe the change; may be empty. They hold no credentials, mail addresses or phone "
        "numbers. Of an act in a private community that the viewer has not joined, only `community` "
        "is left, with the value `hidden`."
    )
    address: str | None = strawberry.field(
        description="IP address of the client that sent the request. Null for the command line."
    )
    user_agent: str | None = strawberry.field(
        description="Header User-Agent of the request, at most 300 characters. Null if there was none."
    )


@strawberry.type
class AdministrationQuery:
    organization_users: list[User] = field(
        resolvers.administration.users.organization_users,
        "Users of the organization, deactivated ones too, ordered by handle. Needs the role ADMIN.",
    )
    user_sessions: list[Session] = field(
        resolvers.administration.users.user_sessions,
        "Browsers in which a user of the organization is signed in, the last used first; at most 50. Bearer tokens are "
        "not listed. NOT_FOUND if there is no such user. Needs the role ADMIN.",
    )
    audit_log: list[AuditEntry] = field(
        resolvers.administration.audit.audit_log,
        "Administrative changes of the organization, the newest first. Needs the role ADMIN.",
    )


@strawberry.type
class AdministrationMutation:
    set_user_roles: User = mutation(
        resolvers.administration.users.set_user_roles,
        "Replaces a user's roles. The user's later tokens can narrow the roles, but neither add nor remove one. "
        "Open subscriptions of the user end within 10 seconds and can be started again. Idempotent. Needs the role "
        "ADMIN.",
        limit=WriteLimit.OPERATIONS,
    )
    deactivate_user: User = mutation(
        resolvers.administration.users.deactivate_user,
        "Ends a user's access: within 10 seconds every request is refused, and every socket is closed. The user's "
        "messages and posts stay. Idempotent. Needs the role ADMIN.",
        limit=WriteLimit.OPERATIONS,
    )
    end_user_sessions: int = mutation(
        resolvers.administration.users.end_user_sessions,
        "Signs a user out of all browsers, or of one, and returns their number: within 10 seconds requests by these "
        "sessions are refused, and their sockets are closed. The user keeps access and may sign in again. Bearer "
        "tokens stay valid. Without `sessionId` it is idempotent. With it, NOT_FOUND if the user has no such session, "
        "or if it has ended. Needs the role ADMIN.",
        limit=WriteLimit.OPERATIONS,
    )
    reactivate_user: User = mutation(
        resolvers.administration.users.reactivate_user,
        "Lets a deactivated user sign in again, with the roles from before. Idempotent. Needs the role ADMIN.",
        limit=WriteLimit.OPERATIONS,
    )
