"""Scheduled posts: scheduling, updating and cancelling them, and the timeline of posts by due time."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated

import strawberry
from strawberry import ID, UNSET, Parent

from resolvers.access import granted_roles, require_member
from resolvers.arguments import Inclusive, Latest, Oldest, PageLimit, checked_time_zone, page_range
from resolvers.context import Info
from resolvers.idempotency import input_key
from resolvers.publishing.arguments import new_scheduled_post, scheduled_post_edit
from resolvers.publishing.inputs import SchedulePostAtLocalTimeInput, SchedulePostInput, UpdateScheduledPostInput
from resolvers.publishing.times import due_moment, local_due_moment
from storage.errors import Conflict, Forbidden
from storage.idempotency import IdempotencyKey
from storage.identity.records import User
from storage.identity.roles import Role
from storage.publishing.records import (
    WAITING_STATES,
    Publication,
    ScheduledPost,
    ScheduledPostState,
    post_state,
)
from storage.publishing.scheduling import NewScheduledPost
from storage.redis.queue import PUBLISHING
from storage.timeline import TimelinePage

WAKE_WITHIN_S = 10.0
"""A post that is due within this time wakes a worker at once. A sweeper finds posts that are due later."""

UPDATE_ATTEMPTS = 3

ScheduledPostId = Annotated[ID, strawberry.argument(description="Id of the scheduled post.")]


async def scheduled_post(info: Info, id: ScheduledPostId) -> ScheduledPost:
    """Returns a scheduled post that the viewer may see."""
    return await _visible_post(info, require_member(info), id)


async def scheduled_posts(
    info: Info,
    states: Annotated[
        list[ScheduledPostState] | None,
        strawberry.argument(description="Only posts in one of these states. Omitted or null: posts in any state."),
    ] = UNSET,
    oldest: Oldest = UNSET,
    latest: Latest = UNSET,
    limit: PageLimit = 50,
    inclusive: Inclusive = True,
) -> TimelinePage[ScheduledPost]:
    """Returns a page, ordered by due time, of the viewer's posts or, for an OPERATOR, of the organization's posts."""
    viewer = require_member(info)
    range_ = page_range(oldest, latest, limit, inclusive)
    author_id = None if Role.OPERATOR in granted_roles(info.context) else viewer.id
    only_states = states if isinstance(states, list) else None
    return await info.context.stores.scheduled_posts.page(viewer.organization_id, author_id, range_, only_states)


async def schedule_post(
    info: Info, input: Annotated[SchedulePostInput, strawberry.argument(description="The post to schedule.")]
) -> ScheduledPost:
    """Schedules a post for an instant."""
    viewer, zone = require_member(info), checked_time_zone(input.time_zone)
    new_post = await new_scheduled_post(info, viewer, input, due_moment(input.due_at, zone), zone)
    return await _schedule(info, new_post, input_key(viewer, "schedulePost", input))


async def schedule_post_at_local_time(
    info: Info,
    input: Annotated[SchedulePostAtLocalTimeInput, strawberry.argument(description="The post to schedule.")],
) -> ScheduledPost:
    """Schedules a post for a local time."""
    viewer, zone = require_member(info), checked_time_zone(input.time_zone)
    new_post = await new_scheduled_post(info, viewer, input, local_due_moment(input.due_at_local, zone), zone)
    return await _schedule(info, new_post, input_key(viewer, "schedulePostAtLocalTime", input))


async def _schedule(info: Info, new_post: NewScheduledPost, key: IdempotencyKey | None) -> ScheduledPost:
    return await wake_worker(info, await info.context.stores.scheduled_posts.schedule(new_post, key))


async def update_scheduled_post(
    info: Info,
    id: ScheduledPostId,
    input: Annotated[UpdateScheduledPostInput, strawberry.argument(description="The fields to change.")],
) -> ScheduledPost:
    """Changes the viewer's own post while none of its publications has started."""
    viewer = require_member(info)
    for attempts_left in reversed(range(UPDATE_ATTEMPTS)):
        post = await _visible_post(info, viewer, id)
        if post.author_id != viewer.id:
            raise Forbidden("Only the author of a scheduled post can change it.")
        if isinstance(input.revision, int) and input.revision != post.revision:
            raise Conflict(f"The scheduled post has changed: its newest revision is {post.revision}.")
        edit = await scheduled_post_edit(info, viewer, post, input)
        try:
            updated = await info.context.stores.scheduled_posts.update(
                viewer.organization_id, id, edit, info.context.actor
            )
        except Conflict:
            # If the revision has changed, the edit is validated again. Otherwise publishing has started.
            if not attempts_left or (await _visible_post(info, viewer, id)).revision == post.revision:
                raise
        else:
            return await wake_worker(info, updated)
    raise AssertionError("unreachable")


async def cancel_scheduled_post(info: Info, id: ScheduledPostId) -> ScheduledPost:
    """Cancels the publications that have not started."""
    viewer = require_member(info)
    await _visible_post(info, viewer, id)
    return await info.context.stores.scheduled_posts.cancel(viewer.organization_id, id, info.context.actor)


async def author(root: Parent[ScheduledPost], info: Info) -> User:
    """Returns the author."""
    return (await authors([root], info))[0]


async def authors(posts: Sequence[ScheduledPost], info: Info) -> list[User]:
    """Returns the author of each post."""
    ids = [each.author_id for each in posts]
    return await info.context.stores.users.get_all(require_member(info).organization_id, ids)


async def publications(root: Parent[ScheduledPost], info: Info) -> list[Publication]:
    """Returns the publications, one for each target."""
    return (await publications_of_many([root], info))[0]


async def publications_of_many(posts: Sequence[ScheduledPost], info: Info) -> list[list[Publication]]:
    """Returns the publications of each post. Fields that need them share one read."""
    return await info.context.stores.scheduled_posts.publications_of_many([each.id for each in posts])


async def state(root: Parent[ScheduledPost], info: Info) -> ScheduledPostState:
    """Returns the state, derived from the publications."""
    return (await states([root], info))[0]


async def states(posts: Sequence[ScheduledPost], info: Info) -> list[ScheduledPostState]:
    """Returns the state of each post, derived from its publications."""
    return [post_state([each.state for each in found]) for found in await publications_of_many(posts, info)]


async def editable(root: Parent[ScheduledPost], info: Info) -> bool:
    """Returns whether at least one publication has not started or needs attention, so that it can be cancelled.

    An update needs that all do.
    """
    return (await editable_of_many([root], info))[0]


async def editable_of_many(posts: Sequence[ScheduledPost], info: Info) -> list[bool]:
    """Returns for each post whether at least one publication has not started or needs attention."""
    publications = await publications_of_many(posts, info)
    return [any(each.state.value in WAITING_STATES for each in found) for found in publications]


def may_see(viewer: User, roles: frozenset[Role], author_id: str) -> bool:
    """Returns whether the viewer may see the author's posts: authors see their own posts, OPERATORs all posts."""
    return author_id == viewer.id or Role.OPERATOR in roles


async def _visible_post(info: Info, viewer: User, id_: str) -> ScheduledPost:
    """Returns a scheduled post that the viewer may see. Raises: NotFound, Forbidden."""
    post = await info.context.stores.scheduled_posts.get(viewer.organization_id, id_)
    if not may_see(viewer, granted_roles(info.context), post.author_id):
        raise Forbidden("A scheduled post is visible only to its author and to an OPERATOR.")
    return post


async def wake_worker(info: Info, post: ScheduledPost) -> ScheduledPost:
    """Enqueues a job that wakes a worker if the post is due soon, and returns the post.

    If the job is lost, a sweeper finds the post.
    """
    if post.due_at - await info.context.stores.clock.now() < timedelta(seconds=WAKE_WITHIN_S):
        await info.context.stores.queue.enqueue(PUBLISHING, "publishing.wake", post.id, post.revision)
    return post
