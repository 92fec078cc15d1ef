"""The viewer's notifications and how many are unread."""

from collections.abc import Sequence
from typing import Annotated

import strawberry
from strawberry import UNSET, Parent

from resolvers.access import find_visible_community, require_member
from resolvers.arguments import Inclusive, Latest, Oldest, PageLimit, checked_timestamp, page_range
from resolvers.context import Info
from storage.chat.records import Community, Message
from storage.chat.stamps.packs import StampPack
from storage.feed.content_reports.records import ContentReport, ContentReportDecision, ContentReportOutcome
from storage.feed.records import Post
from storage.identity.records import User
from storage.notifications import Notification, NotificationKind
from storage.publishing.records import Publication
from storage.timeline import TimelinePage, Timestamp


async def notifications(
    info: Info, oldest: Oldest = UNSET, latest: Latest = UNSET, limit: PageLimit = 50, inclusive: Inclusive = True
) -> TimelinePage[Notification]:
    """Returns a page of the viewer's notifications, ordered by time."""
    viewer = require_member(info)
    range_ = page_range(oldest, latest, limit, inclusive)
    hidden = await info.context.hidden_subjects()
    return await info.context.stores.notifications.page(viewer.organization_id, viewer.id, range_, hidden)


async def unread_notification_count(info: Info) -> int:
    """Returns the number of notifications after the read mark."""
    viewer = require_member(info)
    hidden = await info.context.hidden_subjects()
    return await info.context.stores.notifications.unread_count(viewer.organization_id, viewer.id, hidden)


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


async def read_up_to(root: Parent[TimelinePage[Notification]], info: Info) -> Timestamp | None:
    """Returns the viewer's read mark, or None before the first one."""
    viewer = require_member(info)
    return await info.context.stores.notifications.read_up_to(viewer.organization_id, viewer.id)


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


async def emoji(root: Parent[Notification], info: Info) -> str | None:
    """Returns the emoji of a reaction; None for other kinds, and if the viewer can't read its subject any more."""
    if root.emoji is None:
        return None
    subject = await message(root, info) if root.message is not None else await post(root, info)
    return None if subject is None else root.emoji


async def report_decision(root: Parent[Notification], info: Info) -> ContentReportDecision | None:
    """Returns what moderators decided about the viewer's report; None for other kinds, and for a deleted report."""
    report = await _report(root, info, NotificationKind.REPORT_DECIDED)
    return None if report is None else report.decision


async def report_outcome(root: Parent[Notification], info: Info) -> ContentReportOutcome | None:
    """Returns the effect of the decision about the viewer's report; None for other kinds, and for a deleted report."""
    report = await _report(root, info, NotificationKind.REPORT_DECIDED)
    return None if report is None else report.outcome


async def warning(root: Parent[Notification], info: Info) -> str | None:
    """Returns what the moderator wrote to the viewer; None for other kinds, and for a deleted report."""
    report = await _report(root, info, NotificationKind.WARNING)
    return None if report is None else report.note


async def _report(root: Notification, info: Info, kind: NotificationKind) -> ContentReport | None:
    if root.report_id is None or root.kind is not kind:
        return None
    return await info.context.stores.content_reports.find(require_member(info).organization_id, root.report_id)


async def community(root: Parent[Notification], info: Info) -> Community | None:
    """Returns the community that the viewer was added to; None for other kinds, and if the viewer cannot see it now."""
    if root.kind is not NotificationKind.ADDED_TO_COMMUNITY or root.community_id is None:
        return None
    return await find_visible_community(info, root.community_id)


async def stamp_pack(root: Parent[Notification], info: Info) -> StampPack | None:
    """Returns the pack that the viewer earned or was given; None for other kinds, and for a removed pack."""
    return (await stamp_packs([root], info))[0]


async def stamp_packs(notifications: Sequence[Notification], info: Info) -> list[StampPack | None]:
    """Returns the pack of each notification, or None."""
    if not any(each.stamp_pack_id for each in notifications):
        return [None for _ in notifications]
    packs = await info.context.stores.stamp_packs.list_packs(require_member(info).organization_id)
    by_id: dict[str | None, StampPack] = {pack.id: pack for pack in packs}
    return [by_id.get(each.stamp_pack_id) for each in notifications]


async def publication(root: Parent[Notification], info: Info) -> Publication | None:
    """Returns the notification's publication, or None if it has none or the publication was removed."""
    if root.publication_id is None:
        return None
    organization_id = require_member(info).organization_id
    return (await info.context.stores.scheduled_posts.publications_by_id(organization_id, [root.publication_id])).get(
        root.publication_id
    )
