"""The viewer's mutes of users, topics, communities and the conversations of posts."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

import strawberry
from strawberry import ID, UNSET, Parent

from resolvers.access import find_visible_community, find_visible_topic, require_member, visible_community
from resolvers.arguments import After, ListLimit, checked_limit, instant_or_none, text_or_none
from resolvers.context import Info
from resolvers.feed.responses import PostId, find_original
from storage.chat.records import Community, Topic
from storage.errors import BadUserInput, NotFound
from storage.feed.records import Post
from storage.identity.mutes import HiddenSubjects, Mute, MuteSubject
from storage.identity.records import User
from storage.ids import UserKey, post_key

UserId = Annotated[ID, strawberry.argument(description="Id of the user.")]
TopicId = Annotated[ID, strawberry.argument(description="Id of the topic.")]
CommunityId = Annotated[ID, strawberry.argument(description="Id of the community.")]
Until = Annotated[
    datetime | None,
    strawberry.argument(
        description="When the mute ends, in the future. Omitted or null: it lasts until the viewer ends it."
    ),
]


async def my_mutes(
    info: Info,
    of: Annotated[
        MuteSubject | None,
        strawberry.argument(description="Only mutes of users, topics, communities or posts. Omitted or null: all."),
    ] = UNSET,
    after: After = UNSET,
    limit: ListLimit = 50,
) -> list[Mute]:
    """Lists the viewer's mutes by kind and id of the subject."""
    owner, subject = _owner(info), of if isinstance(of, MuteSubject) else None
    return await info.context.stores.mutes.list_mutes(owner, subject, text_or_none(after), checked_limit(limit))


async def mute_user(info: Info, user_id: UserId, until: Until = UNSET) -> Mute:
    """Mutes another user."""
    viewer = require_member(info)
    if user_id == viewer.id:
        raise BadUserInput("userId", "the id of another user; you cannot mute yourself")
    user = await info.context.stores.users.get(viewer.organization_id, user_id)
    if user.is_erased:
        raise NotFound("user", user_id)
    return await _mute(info, MuteSubject.USER, user_id, until)


async def unmute_user(info: Info, user_id: UserId) -> User:
    """Ends the mute of a user."""
    user = await info.context.stores.users.get(require_member(info).organization_id, user_id)
    await _unmute(info, MuteSubject.USER, user_id)
    return user


async def mute_topic(info: Info, topic_id: TopicId, until: Until = UNSET) -> Mute:
    """Mutes a topic that the viewer may see."""
    if await find_visible_topic(info, topic_id) is None:
        raise NotFound("topic", topic_id)
    return await _mute(info, MuteSubject.TOPIC, topic_id, until)


async def unmute_topic(info: Info, topic_id: TopicId) -> Topic | None:
    """Ends the mute of a topic. Returns None if the viewer may not see the topic any more."""
    topic = await find_visible_topic(info, topic_id)
    if not await _unmute(info, MuteSubject.TOPIC, topic_id) and topic is None:
        raise NotFound("topic", topic_id)
    return topic


async def mute_community(info: Info, community_id: CommunityId, until: Until = UNSET) -> Mute:
    """Mutes a community that the viewer may see."""
    await visible_community(info, community_id)
    return await _mute(info, MuteSubject.COMMUNITY, community_id, until)


async def unmute_community(info: Info, community_id: CommunityId) -> Community | None:
    """Ends the mute of a community. Returns None if the viewer may not see the community any more."""
    community = await find_visible_community(info, community_id)
    if not await _unmute(info, MuteSubject.COMMUNITY, community_id) and community is None:
        raise NotFound("community", community_id)
    return community


async def mute_post(info: Info, post_id: PostId, until: Until = UNSET) -> Mute:
    """Mutes the conversation of a post that the viewer may see."""
    post = await find_original(info, post_id)
    mute = await _mute(info, MuteSubject.POST, post.root_key.id, until)
    if await info.context.stores.posts.find(post.key) is None:
        # The deletion of a post ends the mutes that exist by then, so one that came later ends here.
        await _unmute(info, MuteSubject.POST, post.key.id)
        raise NotFound("post", post_id)
    return mute


async def unmute_post(info: Info, post_id: PostId) -> Post | None:
    """Ends the mute of a post's conversation. Returns None if the viewer may not see the post any more."""
    key = post_key(require_member(info).organization_id, post_id)
    found = await info.context.stores.posts.find(key)
    root_key = key if found is None else found.root_key
    visible = await _visible(info, found)
    if not await _unmute(info, MuteSubject.POST, root_key.id) and visible is None:
        raise NotFound("post", post_id)
    return visible


async def is_user_muted(root: Parent[User], info: Info) -> bool:
    """Returns whether the viewer has muted the user."""
    return root.id in (await _muted(info)).users


async def are_users_muted(users: Sequence[User], info: Info) -> list[bool]:
    """Returns for each user whether the viewer has muted the user."""
    muted = (await _muted(info)).users
    return [each.id in muted for each in users]


async def is_topic_muted(root: Parent[Topic], info: Info) -> bool:
    """Returns whether the viewer has muted the topic itself. A mute of its community does not count."""
    return root.id in (await _muted(info)).topics


async def are_topics_muted(topics: Sequence[Topic], info: Info) -> list[bool]:
    """Returns for each topic whether the viewer has muted the topic itself."""
    muted = (await _muted(info)).topics
    return [each.id in muted for each in topics]


async def is_community_muted(root: Parent[Community], info: Info) -> bool:
    """Returns whether the viewer has muted the community."""
    return root.id in (await _muted(info)).communities


async def is_post_muted(root: Parent[Post], info: Info) -> bool:
    """Returns whether the viewer has muted the post's conversation."""
    return root.root_key.id in (await _muted(info)).posts


async def are_posts_muted(posts: Sequence[Post], info: Info) -> list[bool]:
    """Returns for each post whether the viewer has muted its conversation."""
    muted = (await _muted(info)).posts
    return [bool(muted) and each.root_key.id in muted for each in posts]


async def _muted(info: Info) -> HiddenSubjects:
    """Returns what the viewer has muted; nothing without a viewer. Concurrent calls share one read."""
    viewer = info.context.viewer
    if viewer is None:
        return HiddenSubjects()
    return await info.context.stores.mutes.muted_by(viewer.organization_id, viewer.id)


async def user(root: Parent[Mute], info: Info) -> User | None:
    """Returns the muted user, or None for another subject."""
    if root.subject is not MuteSubject.USER:
        return None
    return await info.context.stores.users.find(require_member(info).organization_id, root.subject_id)


async def topic(root: Parent[Mute], info: Info) -> Topic | None:
    """Returns the muted topic, or None for another subject and for a topic that the viewer may not see any more."""
    return await find_visible_topic(info, root.subject_id) if root.subject is MuteSubject.TOPIC else None


async def community(root: Parent[Mute], info: Info) -> Community | None:
    """Returns the muted community, or None for another subject and for one that the viewer may not see any more."""
    return await find_visible_community(info, root.subject_id) if root.subject is MuteSubject.COMMUNITY else None


async def post(root: Parent[Mute], info: Info) -> Post | None:
    """Returns the first post of the muted conversation, or None for another subject and for one that is not visible."""
    if root.subject is not MuteSubject.POST:
        return None
    key = post_key(require_member(info).organization_id, root.subject_id)
    return await _visible(info, await info.context.stores.posts.find(key))


async def _visible(info: Info, post: Post | None) -> Post | None:
    """Returns the post, or None if the viewer has blocked its author."""
    is_hidden = post is None or post.author_id in (await info.context.viewer_blocks()).blocked
    return None if is_hidden else post


async def _mute(info: Info, subject: MuteSubject, subject_id: str, until: datetime | None) -> Mute:
    ends_at = instant_or_none(until)
    return await info.context.stores.mutes.mute(_owner(info), subject, subject_id, ends_at)


async def _unmute(info: Info, subject: MuteSubject, subject_id: str) -> bool:
    return await info.context.stores.mutes.unmute(_owner(info), subject, subject_id)


def _owner(info: Info) -> UserKey:
    return require_member(info).key
