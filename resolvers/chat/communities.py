"""Communities and their topics: listing, creating, joining and leaving."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Annotated

import strawberry
from strawberry import ID, UNSET, Parent

from resolvers.access import (
    has_visible_topics,
    require_joined_community,
    require_member,
    require_visible_topics,
    visible_community,
    with_visible_topics,
)
from resolvers.arguments import (
    After,
    Inclusive,
    Latest,
    ListLimit,
    Oldest,
    PageLimit,
    checked_limit,
    checked_text,
    page_range,
    text_or_none,
)
from resolvers.context import Info
from resolvers.idempotency import input_key
from resolvers.inputs import CreateCommunityInput, CreateTopicInput
from storage.chat.communities import NewCommunity
from storage.chat.records import Community, Topic, TrendingTopic
from storage.identity.records import User
from storage.timeline import TimelinePage

MAX_NAME_CHARS = 100
MAX_DESCRIPTION_CHARS = 2000
MAX_TITLE_CHARS = 200

CommunityId = Annotated[ID, strawberry.argument(description="Id of the community.")]


async def communities(
    info: Info,
    joined: Annotated[
        bool | None,
        strawberry.argument(
            description="true: only communities that the viewer has joined. false: only communities that the viewer "
            "has not joined. Omitted or null: all communities."
        ),
    ] = UNSET,
    after: After = UNSET,
    limit: ListLimit = 50,
    include_archived: Annotated[
        bool, strawberry.argument(description="Whether archived communities are listed as well.")
    ] = False,
) -> list[Community]:
    """Lists the organization's communities by name."""
    viewer = require_member(info)
    joined_or_none = joined if isinstance(joined, bool) else None
    return await info.context.stores.communities.list_communities(
        viewer.organization_id,
        viewer.id,
        joined_or_none,
        text_or_none(after),
        checked_limit(limit),
        include_archived,
    )


async def community(info: Info, id: CommunityId) -> Community:
    """Returns a community that the viewer may see. Raises: NotFound."""
    return await visible_community(info, id)


async def joined(root: Parent[Community], info: Info) -> bool:
    """Returns whether the viewer is a member."""
    return (await joined_of_many([root], info))[0]


async def joined_of_many(communities: Sequence[Community], info: Info) -> list[bool]:
    """Returns for each community whether the viewer is a member."""
    require_member(info)
    found = await info.context.joined_communities({each.id for each in communities})
    return [each.id in found for each in communities]


async def members(root: Parent[Community], info: Info, after: After = UNSET, limit: ListLimit = 50) -> list[User]:
    """Lists the community's members by handle."""
    if not await has_visible_topics(info, root):
        return []
    users = info.context.stores.users
    last_handle = await users.last_handle(root.organization_id, text_or_none(after))
    ids = await info.context.stores.communities.member_ids(root.id, last_handle, checked_limit(limit))
    return await users.find_many(root.organization_id, ids)


async def latest_topics(root: Parent[Community], info: Info, limit: ListLimit = 20) -> list[Topic]:
    """Lists the most recently active topics that are not archived."""
    return (await latest_topics_of_many([root], info, limit))[0]


async def latest_topics_of_many(communities: Sequence[Community], info: Info, limit: int = 20) -> list[list[Topic]]:
    """Lists the most recently active topics of each community. Reads rights and topics at the same time."""
    checked = checked_limit(limit)
    visible, topics = await asyncio.gather(
        with_visible_topics(info, communities),
        info.context.stores.topics.newest({each.id for each in communities}, checked),
    )
    return [topics[each.id] if each.id in visible else [] for each in communities]


async def create_community(
    info: Info,
    input: Annotated[CreateCommunityInput, strawberry.argument(description="Name and description of the community.")],
) -> Community:
    """Creates a community with the viewer as its first member and owner."""
    viewer = require_member(info)
    new = NewCommunity(
        viewer.organization_id,
        checked_text("name", input.name, 1, MAX_NAME_CHARS),
        checked_text("description", input.description, 0, MAX_DESCRIPTION_CHARS),
        input.visibility,
    )
    key = input_key(viewer, "createCommunity", input)
    return await info.context.stores.communities.create(new, viewer, key)


async def join_community(info: Info, community_id: CommunityId) -> Community:
    """Joins a community."""
    viewer = require_member(info)
    community = await visible_community(info, community_id)
    return await info.context.stores.communities.join(community, viewer)


async def leave_community(info: Info, community_id: CommunityId) -> Community:
    """Leaves a community, or withdraws the request to join it."""
    viewer = require_member(info)
    community = await visible_community(info, community_id)
    return await info.context.stores.communities.leave(community, viewer.id)


async def create_topic(
    info: Info, input: Annotated[CreateTopicInput, strawberry.argument(description="Community and title of the topic.")]
) -> Topic:
    """Creates a topic."""
    viewer = require_member(info)
    title = checked_text("title", input.title, 1, MAX_TITLE_CHARS)
    community = await require_joined_community(info, input.community_id)
    key = input_key(viewer, "createTopic", input)
    return await info.context.stores.topics.create(community, viewer.id, title, key)


async def community_topics(
    info: Info,
    community_id: CommunityId,
    oldest: Oldest = UNSET,
    latest: Latest = UNSET,
    limit: PageLimit = 50,
    inclusive: Inclusive = True,
    archived: Annotated[
        bool | None,
        strawberry.argument(
            description="false: only topics that are not archived. true: only archived topics. null: all topics."
        ),
    ] = False,
) -> TimelinePage[Topic]:
    """Returns a page of a community's topics, ordered by last activity."""
    range_ = page_range(oldest, latest, limit, inclusive)
    community = await require_visible_topics(info, community_id)
    return await info.context.stores.topics.page(community.id, range_, archived)


async def trending_topics(info: Info, limit: ListLimit = 10) -> list[TrendingTopic]:
    """Lists topics where at least two people posted recently, most people first."""
    viewer, stores = require_member(info), info.context.stores
    filter_communities = partial(stores.communities.with_visible_topics, find_joined=info.context.joined_communities)
    return await stores.topics.trending(viewer.organization_id, checked_limit(limit), filter_communities)
