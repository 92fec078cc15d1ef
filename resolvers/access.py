"""Access rules (docs/semantics.md, 8): sign-in, roles and membership. Resolvers call these checks before they act."""

from collections.abc import Sequence

from resolvers.context import Context, Info
from storage.chat.moderation_changes import Moderator
from storage.chat.records import Community, Message, Topic
from storage.chat.roles import CommunityRole, may_act_on
from storage.errors import Forbidden, Unauthenticated
from storage.identity.records import User
from storage.identity.roles import Role, with_included


def granted_roles(context: Context) -> frozenset[Role]:
    """Returns the viewer's roles, with the roles that they include."""
    return with_included(context.roles)


def require_signed_in(info: Info) -> User:
    """Returns the viewer, with any role. Raises: Unauthenticated."""
    viewer = info.context.viewer
    if viewer is None:
        raise Unauthenticated
    return viewer


def require_member(info: Info) -> User:
    """Returns the viewer, who must have the role MEMBER. Raises: Unauthenticated, Forbidden."""
    return require_role(info, Role.MEMBER)


def require_role(info: Info, *roles: Role) -> User:
    """Returns the viewer, who must have one of the roles. Raises: Unauthenticated, Forbidden."""
    viewer = require_signed_in(info)
    if granted_roles(info.context).isdisjoint(roles):
        raise Forbidden(f"This needs the role {' or '.join(role.value for role in roles)}.")
    return viewer


async def require_joined_topic(info: Info, topic_id: str) -> Topic:
    """Returns a topic, and excludes viewers who are not members of its community.

    Raises: NotFound; Forbidden when no viewer of the audience is a member.
    """
    topic = await info.context.stores.topics.get(info.context.audience.organization_id, topic_id)
    await restrict_to_members(info, topic.community_id)
    return topic


async def restrict_to_members(info: Info, community_id: str) -> None:
    """Excludes viewers who are not members of the community. Raises: Forbidden when no viewer is a member."""
    audience = info.context.audience
    members = await info.context.stores.communities.members_among(community_id, audience.viewer_ids)
    if not members:
        raise Forbidden("Join the community first.")
    audience.exclude(audience.viewer_ids - members)


async def exclude_reacting_viewers(info: Info, messages: Sequence[Message]) -> None:
    """Excludes viewers who reacted to any of the messages, because `Reaction.reacted` differs for them.

    Does nothing for a single viewer.
    """
    audience = info.context.audience
    if not audience.is_single:
        audience.exclude(await info.context.stores.reactions.possible_reactors(messages, audience.viewer_ids))


async def require_joined_community(info: Info, community_id: str) -> Community:
    """Returns a community, and excludes viewers who are not members.

    Raises: NotFound; Forbidden when no viewer of the audience is a member.
    """
    community = await info.context.stores.communities.get(info.context.audience.organization_id, community_id)
    await restrict_to_members(info, community.id)
    return community


async def viewer_role(info: Info, community_id: str) -> CommunityRole | None:
    """Returns the viewer's role in the community, or None for a viewer who has not joined it."""
    return await info.context.stores.moderation.role(community_id, require_member(info).id)


async def require_moderator(info: Info, community_id: str) -> tuple[Community, Moderator]:
    """Returns a community and the viewer as its moderator: an owner, a moderator, or an ADMIN of the organization.

    Raises: NotFound, Forbidden.
    """
    viewer = require_member(info)
    community = await info.context.stores.communities.get(viewer.organization_id, community_id)
    is_admin = Role.ADMIN in granted_roles(info.context)
    if not may_act_on(await viewer_role(info, community.id), is_admin, None):
        raise Forbidden("Only moderators and owners of the community can do this.")
    return community, Moderator(viewer.id, is_admin, info.context.actor)
