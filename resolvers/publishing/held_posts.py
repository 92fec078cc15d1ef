"""Posts of deactivated authors: listing them for administrators, and releasing them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

import strawberry
from strawberry import ID, UNSET, Parent

from resolvers.access import require_role
from resolvers.arguments import After, ListLimit, checked_limit, text_or_none
from resolvers.context import Info
from resolvers.publishing.posts import wake_worker
from resolvers.publishing.times import LocalDateTime, new_due_moment
from storage.errors import BadUserInput
from storage.identity.records import User
from storage.identity.roles import Role, with_included
from storage.publishing.records import AccountTarget, Publication, ScheduledPost, TopicTarget


async def held_scheduled_posts(info: Info, after: After = UNSET, limit: ListLimit = 50) -> list[ScheduledPost]:
    """Lists posts that wait for a decision, by due time."""
    viewer = require_role(info, Role.ADMIN)
    return await info.context.stores.held_posts.list_held(
        viewer.organization_id, text_or_none(after), checked_limit(limit)
    )


async def release_scheduled_post(
    info: Info,
    held_post_id: Annotated[ID, strawberry.argument(description="Id of the scheduled post.")],
    responsible_user_id: Annotated[
        ID, strawberry.argument(description="Id of the user who becomes the author. May be a reactivated author.")
    ],
    due_at: Annotated[
        datetime | None,
        strawberry.argument(
            description="New due time, with Z or with the offset of the post's time zone at that instant. Omitted or "
            "null, as `dueAtLocal` is: the due time stays, or is now if it has passed."
        ),
    ] = UNSET,
    due_at_local: Annotated[
        LocalDateTime | None,
        strawberry.argument(
            description="New due time as clocks in the post's time zone show it. Only one of `dueAt` and `dueAtLocal` "
            "may be given. BAD_USER_INPUT if clock changes skip or repeat that local time."
        ),
    ] = UNSET,
) -> ScheduledPost:
    """Schedules a held post again."""
    viewer, stores = require_role(info, Role.ADMIN), info.context.stores
    post = await stores.scheduled_posts.get(viewer.organization_id, held_post_id)
    responsible = await stores.users.get(viewer.organization_id, responsible_user_id)
    for publication in await stores.scheduled_posts.publications_of(post.id):
        if publication.held_at is not None:
            await _require_right(info, responsible, publication)
    moment = new_due_moment(due_at, due_at_local, post.time_zone)
    released = await stores.held_posts.release(info.context.actor, post, responsible.id, moment)
    return await wake_worker(info, released)


async def _require_right(info: Info, user: User, publication: Publication) -> None:
    """Raises BadUserInput unless the user may publish to the target now."""
    stores, target = info.context.stores, publication.target
    roles = with_included(await stores.users.lasting_roles(user.organization_id, user.id))
    role = Role.OPERATOR if isinstance(target, AccountTarget) else Role.MEMBER
    if role not in roles:
        raise BadUserInput("responsibleUserId", f"an active user with the role {role.value}, which a target needs")
    if isinstance(target, TopicTarget) and not await stores.communities.is_member(target.community_id, user.id):
        raise BadUserInput("responsibleUserId", "a member of the communities whose topics are targets")


async def held_since(root: Parent[ScheduledPost], info: Info) -> datetime | None:
    """Returns when the post began to wait for a decision, or None."""
    return (await held_since_of_many([root], info))[0]


async def held_since_of_many(posts: Sequence[ScheduledPost], info: Info) -> list[datetime | None]:
    """Returns when each post began to wait for a decision, or None."""
    publications = await info.context.stores.scheduled_posts.publications_of_many([each.id for each in posts])
    return [min((each.held_at for each in found if each.held_at is not None), default=None) for found in publications]
