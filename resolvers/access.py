"""Who may do what (docs/semantics.md, 8). Every resolver that needs somebody asks here first."""

from resolvers.context import Context, Info
from storage.chat.records import Community, Topic
from storage.errors import Forbidden, Unauthenticated
from storage.identity.records import Role, User, with_included


def granted(context: Context) -> frozenset[Role]:
    """The viewer's roles and those that they include."""
    return with_included(context.roles)


def signed_in(info: Info) -> User:
    """The viewer, whatever the role. Raises: Unauthenticated."""
    viewer = info.context.viewer
    if viewer is None:
        raise Unauthenticated
    return viewer


def member(info: Info) -> User:
    """The viewer, as somebody who may chat. Raises: Unauthenticated, Forbidden."""
    return require(info, Role.MEMBER)


def require(info: Info, *roles: Role) -> User:
    """The viewer, if they have one of the roles. Raises: Unauthenticated, Forbidden."""
    viewer = signed_in(info)
    if granted(info.context).isdisjoint(roles):
        raise Forbidden(f"This needs the role {' or '.join(role.value for role in roles)}.")
    return viewer


async def joined_topic(info: Info, viewer: User, topic_id: str) -> Topic:
    """A topic of a community that the viewer, or who stays in the crowd, belongs to. Raises: NotFound, Forbidden."""
    topic = await info.context.stores.topics.get(viewer.organization_id, topic_id)
    await admit(info, viewer, topic)
    return topic


async def admit(info: Info, viewer: User, topic: Topic) -> None:
    """Parts a crowd from those who don't belong to the topic's community. Raises: Forbidden for a single viewer."""
    crowd = info.context.crowd
    if crowd is not None:
        crowd.keep(await info.context.stores.communities.members_among(topic.community_id, crowd.ids))
    elif not await info.context.stores.communities.is_member(topic.community_id, viewer.id):
        raise Forbidden("Join the community first.")


async def joined_community(info: Info, viewer: User, community_id: str) -> Community:
    """A community that the viewer belongs to. Raises: NotFound, Forbidden."""
    community = await info.context.stores.communities.get(viewer.organization_id, community_id)
    if not await info.context.stores.communities.is_member(community.id, viewer.id):
        raise Forbidden("Join the community first.")
    return community
