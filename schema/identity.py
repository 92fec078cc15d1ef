"""GraphQL types of users and roles."""

import strawberry
from strawberry import ID

import resolvers.identity
import resolvers.mutes
from resolvers.limits.writes import WriteLimit
from schema.binding import field, mutation
from schema.nodes import Node
from storage.identity.handles.changes import HANDLE_PAUSE_DAYS
from storage.identity.roles import Role

strawberry.enum(
    Role,
    description="Permission of a user or a token. ADMIN includes OPERATOR, OPERATOR includes MEMBER; SERVICE includes "
    "no other role.",
)


@strawberry.type(description="A user of the viewer's organization.")
class User(Node):
    id: ID = strawberry.field(description="Subject (`sub`) of the user's tokens, unique within the organization.")
    handle: str = strawberry.field(
        description="Name for @mentions, such as `ann-2`; unique within the organization. Only the user changes it."
    )
    name: str = strawberry.field(
        description="Display name: the one that the user chose, or else that of the newest token."
    )
    organization_id: ID = strawberry.field(description="Id of the user's organization.")
    roles: list[Role] = strawberry.field(
        description="Roles that were granted to the user; if none were ever granted, the roles of the user's newest "
        "token. Roles that they include are not listed."
    )
    is_deactivated: bool = strawberry.field(
        name="deactivated",
        description="Whether an administrator has ended the user's access. What the user wrote stays.",
    )
    is_erased: bool = strawberry.field(
        name="erased",
        description="Whether the user was erased, or is being erased. Afterwards the name is `Deleted user`, and "
        "nothing that the user wrote is left.",
    )
    is_service: bool = strawberry.field(
        name="service",
        description="Whether this is the service account of a service key. Its name is the name of the key.",
    )
    avatar_url: str | None = strawberry.field(
        description="Path of the user's avatar, relative to the server's origin; null without one. A square picture of "
        "at most 192 pixels. Each request needs the viewer's credentials: the cookie of a session, or the header "
        "Authorization. Another avatar has another path."
    )
    banner_url: str | None = strawberry.field(
        description="Path of the user's banner, relative to the server's origin; null without one. A picture three "
        "times as wide as high, at most 1500 pixels wide. It needs credentials and changes as `avatarUrl` does."
    )
    bio: str | None = strawberry.field(
        description="What the user wrote about themselves, as typed; null if nothing. Clients show it with the "
        "formatting of messages."
    )
    follower_count: int = strawberry.field(description="Number of users who follow this user.")
    following_count: int = strawberry.field(description="Number of users whom this user follows.")
    following: bool = field(
        resolvers.identity.following,
        "Whether the viewer follows this user.",
        batch_resolver=resolvers.identity.following_of_many,
    )
    blocked: bool = field(
        resolvers.identity.blocked,
        "Whether the viewer has blocked this user.",
        batch_resolver=resolvers.identity.blocked_of_many,
    )
    muted: bool = field(
        resolvers.mutes.is_user_muted,
        "Whether the viewer has muted this user (`muteUser`).",
        batch_resolver=resolvers.mutes.are_users_muted,
    )


@strawberry.type
class ProfileMutation:
    """Changes of the viewer's profile."""

    change_handle: User = mutation(
        resolvers.identity.change_handle,
        "Gives the viewer another handle, and returns the viewer. Earlier texts still mention the viewer. Nobody else "
        "gets the old handle for a year; the viewer may take it back. Idempotent. CONFLICT if the handle is not free. "
        f"RATE_LIMITED within {HANDLE_PAUSE_DAYS} days after the last change; the first change is always allowed.",
        limit=WriteLimit.FOLLOWS,
    )
    update_profile: User = mutation(
        resolvers.identity.update_profile,
        "Changes the viewer's profile, which everybody of the organization sees: all given fields, or none. Returns "
        "the viewer. Idempotent.",
        limit=WriteLimit.FOLLOWS,
    )
