"""GraphQL types and root fields of service keys. schema/root.py adds them to the root types."""

from datetime import datetime

import strawberry
from strawberry import ID

import resolvers.administration.service_keys
from resolvers.limits.writes import WriteLimit
from schema.binding import field, mutation
from schema.identity import User
from schema.nodes import Node, own_id
from storage.identity.keys.scopes import SCOPES


@strawberry.type(
    description="A key by which a service, such as a mail server or a bot, sends requests without a person. Services "
    "send it as `Authorization: Bearer nrk_…`. A key is deleted 90 days after it has expired or was revoked."
)
class ServiceKey(Node):
    id: ID = own_id(
        "ServiceKey",
        "Unique identifier: `ServiceKey:` and the part of the key between `nrk_` and the secret. Not confidential.",
    )
    name: str = strawberry.field(description="Name of the key and of its service account.")
    account: User = field(
        resolvers.administration.service_keys.account,
        "The service account. It is the author of what the service writes, and the actor in the audit log. Its id is "
        "that of the key without `ServiceKey:`.",
        batch_resolver=resolvers.administration.service_keys.accounts,
    )
    scopes: list[str] = strawberry.field(
        description="What the key may be used for, such as `chat:read`: an area and an action, in alphabetical order. "
        f"They never change. Possible are {', '.join(f'`{scope}`' for scope in SCOPES)}."
    )
    is_active: bool = strawberry.field(
        name="active", description="Whether the key is accepted: it has neither expired nor been revoked."
    )
    created_at: datetime = strawberry.field(description="When the key was created.")
    created_by_id: ID = strawberry.field(
        description="Id of the administrator who created the key; `command-line` for the command `noroshi`."
    )
    created_by: User | None = field(
        resolvers.administration.service_keys.created_by,
        "Administrator who created the key. The key stays valid when this person is deactivated or erased. Null for "
        "the command `noroshi`.",
        batch_resolver=resolvers.administration.service_keys.created_by_each,
    )
    needs_rotation: bool = field(
        resolvers.administration.service_keys.needs_rotation,
        "Whether the key should be rotated: the person who was shown its newest secret is no ADMIN any more, and may "
        "have kept the secret. The key stays valid, so that the service goes on. False for a key that has ended.",
        batch_resolver=resolvers.administration.service_keys.need_rotation,
    )
    expires_at: datetime | None = strawberry.field(description="When the key expires. Null if it does not expire.")
    last_used_at: datetime | None = strawberry.field(
        description="When the key was last used, to about a minute. Null before the first use."
    )
    previous_secret_until: datetime | None = strawberry.field(
        description="Until when a secret from before a rotation is valid. Null if only the newest secret is valid."
    )
    revoked_at: datetime | None = strawberry.field(
        description="When an administrator revoked the key. Null if nobody did."
    )


@strawberry.type(description="A service key with its new secret.")
class IssuedServiceKey:
    key: ServiceKey = strawberry.field(description="The key.")
    secret: str | None = strawberry.field(
        description="The whole key, which the service sends: `nrk_`, the id, and the secret. It is shown only here and "
        "cannot be read again. Null when the mutation is repeated with the same `idempotencyKey`."
    )


@strawberry.type
class ServiceKeyQuery:
    """Lists of service keys."""

    service_keys: list[ServiceKey] = field(
        resolvers.administration.service_keys.service_keys,
        "Service keys of the organization, the newest first. Needs the role ADMIN.",
    )


@strawberry.type
class ServiceKeyMutation:
    """Changes of service keys."""

    create_service_key: IssuedServiceKey = mutation(
        resolvers.administration.service_keys.create_service_key,
        "Creates a service key and its service account. The account has the role SERVICE and those roles that the "
        "scopes need, never ADMIN. CONFLICT for 100 active keys. Needs the role ADMIN.",
        limit=WriteLimit.OPERATIONS,
    )
    rotate_service_key: IssuedServiceKey = mutation(
        resolvers.administration.service_keys.rotate_service_key,
        "Issues a new secret for a service key. The present one stays valid for `graceS` seconds, so that the service "
        "can be changed without an interruption. CONFLICT for a key that has ended, and while 4 earlier secrets are "
        "valid. Needs the role ADMIN.",
        limit=WriteLimit.OPERATIONS,
    )
    revoke_service_key: ServiceKey = mutation(
        resolvers.administration.service_keys.revoke_service_key,
        "Ends a service key for good: within 10 seconds every request is refused, and every socket is closed. What the "
        "service wrote stays. Idempotent. Needs the role ADMIN.",
        limit=WriteLimit.OPERATIONS,
    )
