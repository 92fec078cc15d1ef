"""Users and roles."""

import strawberry
from strawberry import ID

import resolvers.identity
from schema.binding import field
from storage.identity.roles import Role

strawberry.enum(Role, description="ADMIN includes OPERATOR includes MEMBER; SERVICE stands alone.")


@strawberry.type(description="Somebody of the viewer's organization.")
class User:
    id: ID = strawberry.field(description="The subject of their tokens; unique within the organization.")
    handle: str = strawberry.field(description="What @mentions name; given once, unique within the organization.")
    name: str = strawberry.field(description="What people call them.")
    organization_id: ID = strawberry.field(description="The organization that they belong to.")
    roles: list[Role] = strawberry.field(description="What they may do, as of their newest token.")
    follower_count: int = strawberry.field(description="How many follow them.")
    following_count: int = strawberry.field(description="How many they follow.")
    following: bool = field(resolvers.identity.following, "Whether the viewer follows this user.")
    blocked: bool = field(resolvers.identity.blocked, "Whether the viewer has blocked this user.")
