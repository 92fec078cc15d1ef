"""Scheduling posts, changing and cancelling them, and the timeline of what is due when."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated

import strawberry
from strawberry import ID, UNSET, Parent

from resolvers.access import granted, member
from resolvers.arguments import Inclusive, Latest, Oldest, PageLimit, given, page_range, text
from resolvers.context import Info
from resolvers.publishing.addresses import web_address
from resolvers.publishing.arguments import account_targets, check_targets, topic_targets
from resolvers.publishing.inputs import ScheduledMediaInput, SchedulePostInput, UpdateScheduledPostInput
from resolvers.publishing.times import due_moment, max_lateness, time_zone
from storage.errors import BadUserInput, Conflict, Forbidden
from storage.idempotency import idempotency_key
from storage.identity.records import Role, User
from storage.publishing.records import (
    AccountTarget,
    HomeFeedTarget,
    Publication,
    PublicationState,
    ScheduledMedia,
    ScheduledPost,
    ScheduledPostState,
    Target,
    TopicTarget,
    media_documents,
    post_state,
    target_document,
)
from storage.publishing.scheduling import NewPost, PostEdit
from storage.queue import PUBLISHING
from storage.timeline import Page

MAX_TEXT = 10_000
MAX_ALT_TEXT = 1500
MAX_MEDIA = 20
WAKE_WITHIN_S = 10.0
PATIENCE = 3

PostId = Annotated[ID, strawberry.argument(description="The scheduled post's id.")]


async def scheduled_post(info: Info, id: PostId) -> ScheduledPost:
    """One scheduled post."""
    return await _seen(info, member(info), id)


async def scheduled_posts(
    info: Info,
    states: Annotated[
        list[ScheduledPostState] | None, strawberry.argument(description="Only in these states; in any when left out.")
    ] = UNSET,
    oldest: Oldest = UNSET,
    latest: Latest = UNSET,
    limit: PageLimit = 50,
    inclusive: Inclusive = True,
) -> Page[ScheduledPost]:
    """By due time: the viewer's own, to an OPERATOR the organization's."""
    viewer = member(info)
    asked = page_range(oldest, latest, limit, inclusive)
    author_id = None if Role.OPERATOR in granted(info.context) else viewer.id
    wanted = states if isinstance(states, list) else None
    return await info.context.stores.scheduled_posts.page(viewer.organization_id, author_id, asked, wanted)


async def schedule_post(
    info: Info, input: Annotated[SchedulePostInput, strawberry.argument(description="The post.")]
) -> ScheduledPost:
    """Schedules a post."""
    viewer = member(info)
    zone = time_zone(input.time_zone)
    media = _media(input.media)
    targets: list[Target] = [HomeFeedTarget(viewer.id)] if input.to_home_feed else []
    targets += await topic_targets(info, input.to_topic_ids)
    targets += await account_targets(info, input.to_account_ids)
    new = NewPost(
        organization_id=viewer.organization_id,
        author_id=viewer.id,
        text=_text(input.text, media),
        media=media,
        targets=targets,
        due_at=due_moment(input.due_at, zone),
        time_zone=zone,
        max_lateness_s=max_lateness(input.max_lateness_s),
    )
    check_targets(targets, new.text, media)
    key = idempotency_key(
        viewer.organization_id, viewer.id, "schedulePost", given(input.idempotency_key), _arguments(new)
    )
    return await _woken(info, await info.context.stores.scheduled_posts.schedule(new, key))


def _arguments(new: NewPost) -> dict[str, object]:
    return {
        "text": new.text,
        "media": media_documents(new.media),
        "targets": [target_document(each) for each in new.targets],
        "dueAt": new.due_at.isoformat(),
        "timeZone": new.time_zone,
        "maxLatenessS": new.max_lateness_s,
    }


async def update_scheduled_post(
    info: Info,
    id: PostId,
    input: Annotated[UpdateScheduledPostInput, strawberry.argument(description="What to change.")],
) -> ScheduledPost:
    """Changes a post of the viewer's of which nothing has started."""
    viewer = member(info)
    for tries_left in reversed(range(PATIENCE)):
        post = await _seen(info, viewer, id)
        if post.author_id != viewer.id:
            raise Forbidden("Only its author changes a scheduled post.")
        if isinstance(input.revision, int) and input.revision != post.revision:
            raise Conflict(f"The newest revision is {post.revision}.")
        edit = await _edit(info, viewer, post, input)
        try:
            updated = await info.context.stores.scheduled_posts.update(viewer.organization_id, id, edit)
        except Conflict:
            # Somebody else's change came between, unless it has started.
            if not tries_left or (await _seen(info, viewer, id)).revision == post.revision:
                raise
        else:
            return await _woken(info, updated)
    raise AssertionError("unreachable")


async def _edit(info: Info, viewer: User, post: ScheduledPost, input: UpdateScheduledPostInput) -> PostEdit:
    """The change, checked as a whole: what it makes of the post must fit all its targets."""
    zone = time_zone(input.time_zone) if isinstance(input.time_zone, str) else None
    media = _media(input.media) if isinstance(input.media, list) else None
    body = input.text if isinstance(input.text, str) else None
    targets = await _targets(info, viewer, post, input)
    due_at = due_moment(input.due_at, zone or post.time_zone) if isinstance(input.due_at, datetime) else None
    now_media = post.media if media is None else media
    now_text = _text(post.text if body is None else body, now_media)
    check_targets(targets, now_text, now_media)
    lateness = max_lateness(input.max_lateness_s) if isinstance(input.max_lateness_s, int) else None
    return PostEdit(body, media, targets, due_at, zone, lateness, revision=post.revision)


async def _targets(info: Info, viewer: User, post: ScheduledPost, input: UpdateScheduledPostInput) -> list[Target]:
    """The targets that the post is to have; those of a kind that was left out stay."""
    now = [each.target for each in await info.context.stores.scheduled_posts.publications_of(post.id)]
    home: Sequence[Target] = [each for each in now if isinstance(each, HomeFeedTarget)]
    topics: Sequence[Target] = [each for each in now if isinstance(each, TopicTarget)]
    accounts: Sequence[Target] = [each for each in now if isinstance(each, AccountTarget)]
    if isinstance(input.to_home_feed, bool):
        home = [HomeFeedTarget(viewer.id)] if input.to_home_feed else []
    if isinstance(input.to_topic_ids, list):
        topics = await topic_targets(info, input.to_topic_ids)
    if isinstance(input.to_account_ids, list):
        accounts = await account_targets(info, input.to_account_ids)
    return [*home, *topics, *accounts]


async def cancel_scheduled_post(info: Info, id: PostId) -> ScheduledPost:
    """Cancels what has not started."""
    viewer = member(info)
    await _seen(info, viewer, id)
    return await info.context.stores.scheduled_posts.cancel(viewer.organization_id, id)


async def author(root: Parent[ScheduledPost], info: Info) -> User:
    """Who wrote it."""
    return await info.context.stores.users.get(root.organization_id, root.author_id)


async def publications(root: Parent[ScheduledPost], info: Info) -> list[Publication]:
    """One for each target."""
    return await info.context.stores.scheduled_posts.publications_of(root.id)


async def state(root: Parent[ScheduledPost], info: Info) -> ScheduledPostState:
    """What its publications make of it."""
    found = await info.context.stores.scheduled_posts.publications_of(root.id)
    return post_state([each.state for each in found])


async def editable(root: Parent[ScheduledPost], info: Info) -> bool:
    """Whether something has not started."""
    found = await info.context.stores.scheduled_posts.publications_of(root.id)
    return any(each.state is PublicationState.SCHEDULED for each in found)


def may_see(viewer: User, roles: frozenset[Role], author_id: str) -> bool:
    """The author sees the own posts and publications, an OPERATOR the organization's."""
    return author_id == viewer.id or Role.OPERATOR in roles


async def _seen(info: Info, viewer: User, id_: str) -> ScheduledPost:
    """A scheduled post that the viewer may see. Raises: NotFound, Forbidden."""
    post = await info.context.stores.scheduled_posts.get(viewer.organization_id, id_)
    if not may_see(viewer, granted(info.context), post.author_id):
        raise Forbidden("A scheduled post is visible to its author and to an OPERATOR.")
    return post


async def _woken(info: Info, post: ScheduledPost) -> ScheduledPost:
    """The post, of which a worker hears at once when it is due soon. A hint: sweepers find it anyway."""
    if post.due_at - datetime.now(UTC) < timedelta(seconds=WAKE_WITHIN_S):
        await info.context.stores.queue.enqueue(PUBLISHING, "publishing.wake", post.id, post.revision)
    return post


def _text(value: str, media: Sequence[ScheduledMedia]) -> str:
    return text("text", value, 0 if media else 1, MAX_TEXT)


def _media(given_media: Sequence[ScheduledMediaInput]) -> list[ScheduledMedia]:
    if len(given_media) > MAX_MEDIA:
        raise BadUserInput("media", f"at most {MAX_MEDIA}")
    return [
        ScheduledMedia(web_address("url", each.url), text("altText", each.alt_text, 0, MAX_ALT_TEXT), each.kind)
        for each in given_media
    ]
