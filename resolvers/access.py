"""Access rules (docs/semantics.md, 8): sign-in, roles and membership. Resolvers call these checks before they act."""

from collections.abc import Collection, Sequence

from resolvers.context import Context, Info
from storage.chat.records import Community, CommunityVisibility, Message, Topic
from storage.chat.roles import CommunityRole, Moderator, may_act_on
from storage.errors import Forbidden, NotFound, Unauthenticated
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


async def require_joined_topic(info: Info, topic_id: str, not_found: NotFound | None = None) -> Topic:
    """Returns a topic, and excludes viewers who are not members of its community.

    Raises: NotFound for an unknown topic. If no viewer of the audience is a member, raises Forbidden in a public
    community, and `not_found` (by default NotFound) in all others.
    """
    topic = await info.context.stores.topics.get(info.context.audience.organization_id, topic_id)
    await restrict_to_members(info, topic.community_id, not_found or NotFound("topic", topic_id))
    return topic


async def restrict_to_members(info: Info, community_id: str, not_found: NotFound) -> None:
    """Excludes viewers who are not members of the community.

    If no viewer is a member, raises Forbidden in a public community, and `not_found` in a community or conversation
    whose topics only members see.
    """
    audience = info.context.audience
    members = await info.context.stores.communities.members_among(community_id, audience.viewer_ids)
    if not members:
        # A conversation has no community.
        community = await info.context.stores.communities.find(audience.organization_id, community_id)
        is_public = community is not None and community.visibility is CommunityVisibility.PUBLIC
        raise _join_first() if is_public else not_found
    audience.exclude(audience.viewer_ids - members)


async def visible_community(info: Info, community_id: str) -> Community:
    """Returns a community that the viewer may see. Raises: NotFound, also for a private one without membership."""
    community = await find_visible_community(info, community_id)
    if community is None:
        raise NotFound("community", community_id)
    return community


async def find_visible_community(info: Info, community_id: str) -> Community | None:
    """Returns a community that the viewer may see, or None."""
    return (await visible_communities(info, [community_id])).get(community_id)


async def visible_communities(info: Info, community_ids: Collection[str]) -> dict[str, Community]:
    """Returns those of the communities that the viewer may see, by id."""
    viewer, communities = require_member(info), info.context.stores.communities
    return await communities.visible_among(viewer.key, community_ids, info.context.joined_communities)


async def find_community_without_owner(info: Info, community_id: str) -> Community | None:
    """Returns the community, also a PRIVATE one, if the viewer is an ADMIN and nobody who is active owns it.

    An ADMIN may appoint an owner there. A community without members has nobody to be appointed: None.
    """
    viewer, communities = require_member(info), info.context.stores.communities
    community = await communities.find(viewer.organization_id, community_id)
    if community is None or not community.member_count or Role.ADMIN not in granted_roles(info.context):
        return None
    return None if await communities.has_owner(community) else community


async def require_visible_topics(info: Info, community_id: str) -> Community:
    """Returns a community whose topics and members the viewer may see.

    Raises: NotFound for a community that the viewer may not see; Forbidden for a listed one without membership.
    """
    community = await visible_community(info, community_id)
    if not await has_visible_topics(info, community):
        raise _join_first()
    return community


async def has_visible_topics(info: Info, community: Community) -> bool:
    """Returns whether the viewer may see the community's topics and members."""
    return community.id in await with_visible_topics(info, [community])


async def with_visible_topics(info: Info, communities: Sequence[Community]) -> set[str]:
    """Returns the ids of those of the communities whose topics and members the viewer may see."""
    require_member(info)
    public = {each.id for each in communities if each.visibility is CommunityVisibility.PUBLIC}
    return public | await info.context.joined_communities({each.id for each in communities})


async def find_visible_topic(info: Info, topic_id: str) -> Topic | None:
    """Returns a topic that the viewer may see, or None. Concurrent calls are batched."""
    viewer, stores = require_member(info), info.context.stores
    topic = await stores.topics.find(viewer.organization_id, topic_id)
    if topic is None:
        return None
    visible = await stores.communities.with_visible_topics([topic.community_id], info.context.joined_communities)
    return topic if visible else None


async def visible_topics(info: Info, topic_ids: Collection[str]) -> dict[str, Topic]:
    """Returns those of the topics that the viewer may see, by id."""
    viewer, stores = require_member(info), info.context.stores
    topics = await stores.topics.by_id(topic_ids)
    own_topics = {id_: topic for id_, topic in topics.items() if topic.organization_id == viewer.organization_id}
    visible_ids = await stores.communities.with_visible_topics(
        {topic.community_id for topic in own_topics.values()}, info.context.joined_communities
    )
    return {id_: topic for id_, topic in own_topics.items() if topic.community_id in visible_ids}


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
    community = await require_visible_topics(info, community_id)
    await restrict_to_members(info, community.id, NotFound("community", community_id))
    return community


async def participants_among(context: Context, organization_id: str, id_: str, user_ids: Collection[str]) -> set[str]:
    """Returns those of the users who have joined the community or the conversation with this id.

    People who were asked to join a conversation are not among them.
    """
    stores = context.stores
    joined = await stores.conversations.joined_people(organization_id, id_)
    if joined is not None:
        return joined.intersection(user_ids)
    if await stores.communities.find(organization_id, id_) is None:
        return set()
    return await stores.communities.members_among(id_, user_ids)


async def require_participant(info: Info, id_: str) -> User:
    """Returns the viewer, who must have joined the community or the conversation with this id.

    Raises: NotFound; Forbidden for a community that the viewer may see.
    """
    viewer = require_member(info)
    if await participants_among(info.context, viewer.organization_id, id_, [viewer.id]):
        return viewer
    await visible_community(info, id_)
    raise _join_first()


async def viewer_role(info: Info, community_id: str) -> CommunityRole | None:
    """Returns the viewer's role in the community, or None for a viewer who has not joined it."""
    return await info.context.stores.moderation.role(community_id, require_member(info).id)


async def require_moderator(info: Info, community_id: str) -> tuple[Community, Moderator]:
    """Returns a community and the viewer as its moderator: an owner, a moderator, or an ADMIN of the organization.

    Raises: NotFound, Forbidden.
    """
    viewer = require_member(info)
    community = await visible_community(info, community_id)
    is_admin = Role.ADMIN in granted_roles(info.context)
    if not may_act_on(await viewer_role(info, community.id), is_admin, None):
        raise Forbidden("Only moderators and owners of the community can do this.")
    return community, Moderator(viewer.id, is_admin, info.context.actor)


def _join_first() -> Forbidden:
    return Forbidden("Join the community first.")
