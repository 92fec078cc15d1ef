"""The viewer's notifications and how many are unread."""

from typing import Annotated

import strawberry
from strawberry import UNSET, Parent

from resolvers.access import require_member
from resolvers.arguments import Inclusive, Latest, Oldest, PageLimit, checked_timestamp, page_range
from resolvers.context import Info
from storage.chat.records import Message
from storage.feed.content_reports.records import ContentReport, ContentReportDecision
from storage.feed.records import Post
from storage.identity.records import User
from storage.notifications import Notification, NotificationKind
from storage.publishing.records import Publication
from storage.timeline import Page, Timestamp


async def notifications(
    info: Info, oldest: Oldest = UNSET, latest: Latest = UNSET, limit: PageLimit = 50, inclusive: Inclusive = True
) -> Page[Notification]:
    """Returns a page of the viewer's notifications, ordered by time."""
    viewer = require_member(info)
    range_ = page_range(oldest, latest, limit, inclusive)
    blocked = (await info.context.viewer_blocks()).blocked
    return await info.context.stores.notifications.page(viewer.organization_id, viewer.id, range_, blocked)


async def unread_notification_count(info: Info) -> int:
    """Returns the number of notifications after the read mark."""
    viewer = require_member(info)
    blocked = (await info.context.viewer_blocks()).blocked
    return await info.context.stores.notifications.unread_count(viewer.organization_id, viewer.id, blocked)


async def mark_notifications_read(
    info: Info,
    timestamp: Annotated[
        Timestamp, strawberry.argument(description="Timestamp of the newest notification that was read.")
    ],
) -> int:
    """Moves the read mark forward, at most to the newest notification. Returns how many are still unread."""
    viewer = require_member(info)
    read_up_to = checked_timestamp("timestamp", timestamp)
    await info.context.stores.notifications.mark_read(viewer.organization_id, viewer.id, read_up_to)
    return await unread_notification_count(info)


async def actor(root: Parent[Notification], info: Info) -> User | None:
    """Returns the user who caused the notification, or None."""
    viewer = require_member(info)
    return (
        None if root.actor_id is None else await info.context.stores.users.find(viewer.organization_id, root.actor_id)
    )


async def message(root: Parent[Notification], info: Info) -> Message | None:
    """Returns the notification's message, or None if it has none or the viewer may no longer read the message."""
    viewer, stores = require_member(info), info.context.stores
    if root.message is None:
        return None
    topic = await stores.topics.find(viewer.organization_id, root.message.topic_id)
    if topic is None or not await stores.communities.is_member(topic.community_id, viewer.id):
        return None
    return await stores.messages.find(root.message)


async def post(root: Parent[Notification], info: Info) -> Post | None:
    """Returns the notification's post, or None if it has none or the post was deleted."""
    return None if root.post is None else await info.context.stores.posts.find(root.post)


async def report_decision(root: Parent[Notification], info: Info) -> ContentReportDecision | None:
    """Returns what moderators decided about the viewer's report, or None."""
    report = await _report(root, info, NotificationKind.REPORT_DECIDED)
    return None if report is None else report.decision


async def warning(root: Parent[Notification], info: Info) -> str | None:
    """Returns what the moderator wrote to the viewer, or None."""
    report = await _report(root, info, NotificationKind.WARNING)
    return None if report is None else report.note


async def _report(root: Notification, info: Info, kind: NotificationKind) -> ContentReport | None:
    if root.report_id is None or root.kind is not kind:
        return None
    return await info.context.stores.content_reports.find(require_member(info).organization_id, root.report_id)


async def publication(root: Parent[Notification], info: Info) -> Publication | None:
    """Returns the notification's publication, or None if it has none or the publication was removed."""
    if root.publication_id is None:
        return None
    organization_id = require_member(info).organization_id
    return (await info.context.stores.scheduled_posts.publications_by_id(organization_id, [root.publication_id])).get(
        root.publication_id
    )
