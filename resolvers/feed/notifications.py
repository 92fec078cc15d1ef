"""The viewer's notifications and how many are unread."""

import asyncio
from collections.abc import Sequence
from typing import Annotated

import strawberry
from strawberry import UNSET, Parent

from resolvers.access import granted_roles, require_member, visible_communities
from resolvers.arguments import Inclusive, Latest, Oldest, PageLimit, checked_timestamp, page_range
from resolvers.context import Info
from resolvers.publishing.posts import may_see
from storage.chat.conversations.records import Conversation
from storage.chat.records import Community, Message
from storage.chat.stamps.packs import StampPack
from storage.feed.content_reports.records import ContentReport, ContentReportDecision, ContentReportOutcome
from storage.feed.records import Post
from storage.identity.records import User
from storage.identity.roles import Role
from storage.notifications import CONVERSATION_KINDS, Notification, NotificationKind
from storage.publishing.records import ConnectedAccount, Publication
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
    return (await actors([root], info))[0]


async def actors(notifications: Sequence[Notification], info: Info) -> list[User | None]:
    """Returns the user who caused each notification, or None."""
    ids = [each.actor_id for each in notifications]
    return await info.context.stores.users.find_or_none(require_member(info).organization_id, ids)


async def message(root: Parent[Notification], info: Info) -> Message | None:
    """Returns the notification's message, or None if it has none or the viewer may no longer read the message."""
    return (await messages([root], info))[0]


async def messages(notifications: Sequence[Notification], info: Info) -> list[Message | None]:
    """Returns the message of each notification, or None if the viewer may no longer read it.

    Reads topics, memberships and messages at the same time.
    """
    viewer, stores = require_member(info), info.context.stores
    keys = {each.message for each in notifications if each.message is not None}
    named = {each.community_id for each in notifications if each.message is not None and each.community_id is not None}
    topics, joined, found = await asyncio.gather(
        stores.topics.find_many({key.topic_id for key in keys}),
        info.context.joined_communities(named),
        stores.messages.find_many(list(keys)),
    )
    own = {id_: each.community_id for id_, each in topics.items() if each.organization_id == viewer.organization_id}
    # A notification of an earlier release does not name the community.
    unnamed = set(own.values()) - named
    joined |= await info.context.joined_communities(unnamed)
    readable = {key: found.get(key) for key in keys if own.get(key.topic_id) in joined}
    return [None if each.message is None else readable.get(each.message) for each in notifications]


async def post(root: Parent[Notification], info: Info) -> Post | None:
    """Returns the notification's post, or None if it has none or the post was deleted."""
    return (await posts([root], info))[0]


async def posts(notifications: Sequence[Notification], info: Info) -> list[Post | None]:
    """Returns the post of each notification, or None if it has none or the post was deleted."""
    found = await info.context.stores.posts.find_many({each.post for each in notifications if each.post is not None})
    return [None if each.post is None else found.get(each.post) for each in notifications]


async def emoji(root: Parent[Notification], info: Info) -> str | None:
    """Returns the emoji of a reaction; None for other kinds, and if the viewer can't read its subject any more."""
    return (await emojis([root], info))[0]


async def emojis(notifications: Sequence[Notification], info: Info) -> list[str | None]:
    """Returns the emoji of each reaction; None for other kinds, and if the viewer can't read its subject any more."""
    reactions = [each for each in notifications if each.emoji is not None]
    subjects = await asyncio.gather(messages(reactions, info), posts(reactions, info))
    readable = {each.id for each, *found in zip(reactions, *subjects, strict=True) if any(found)}
    return [each.emoji if each.id in readable else None for each in notifications]


async def report_decision(root: Parent[Notification], info: Info) -> ContentReportDecision | None:
    """Returns what moderators decided about the viewer's report; None for other kinds, and for a deleted report."""
    return (await report_decisions([root], info))[0]


async def report_decisions(notifications: Sequence[Notification], info: Info) -> list[ContentReportDecision | None]:
    """Returns what moderators decided about the report of each notification, or None."""
    reports = await _reports(notifications, info, NotificationKind.REPORT_DECIDED)
    return [None if each is None else each.decision for each in reports]


async def report_outcome(root: Parent[Notification], info: Info) -> ContentReportOutcome | None:
    """Returns the effect of the decision about the viewer's report; None for other kinds, and for a deleted report."""
    return (await report_outcomes([root], info))[0]


async def report_outcomes(notifications: Sequence[Notification], info: Info) -> list[ContentReportOutcome | None]:
    """Returns the effect of the decision about the report of each notification, or None."""
    reports = await _reports(notifications, info, NotificationKind.REPORT_DECIDED)
    return [None if each is None else each.outcome for each in reports]


async def warning(root: Parent[Notification], info: Info) -> str | None:
    """Returns what the moderator wrote to the viewer; None for other kinds, and for a deleted report."""
    return (await warnings([root], info))[0]


async def warnings(notifications: Sequence[Notification], info: Info) -> list[str | None]:
    """Returns what the moderator wrote to the viewer with each notification, or None."""
    reports = await _reports(notifications, info, NotificationKind.WARNING)
    return [None if each is None else each.note for each in reports]


async def _reports(
    notifications: Sequence[Notification], info: Info, kind: NotificationKind
) -> list[ContentReport | None]:
    """Returns the report of each notification of the kind; None for other kinds, and for a deleted report."""
    organization_id = require_member(info).organization_id
    ids = [each.report_id if each.kind is kind else None for each in notifications]
    found = await info.context.stores.content_reports.by_id([id_ for id_ in ids if id_ is not None])
    own = {id_: report for id_, report in found.items() if report.organization_id == organization_id}
    return [None if id_ is None else own.get(id_) for id_ in ids]


async def community(root: Parent[Notification], info: Info) -> Community | None:
    """Returns the community that the viewer was added to; None for other kinds, and if the viewer cannot see it now."""
    return (await communities([root], info))[0]


async def communities(notifications: Sequence[Notification], info: Info) -> list[Community | None]:
    """Returns the community that the viewer was added to, by each notification; None for other kinds."""
    is_shown = NotificationKind.ADDED_TO_COMMUNITY
    ids = [each.community_id if each.kind is is_shown else None for each in notifications]
    found = await visible_communities(info, [id_ for id_ in ids if id_ is not None])
    return [None if id_ is None else found.get(id_) for id_ in ids]


async def conversation(root: Parent[Notification], info: Info) -> Conversation | None:
    """Returns the conversation of a direct message or a request; None if the viewer does not see it any more."""
    return (await conversations([root], info))[0]


async def conversations(notifications: Sequence[Notification], info: Info) -> list[Conversation | None]:
    """Returns the conversation of each notification about direct messages or a request; None for other kinds."""
    keys = [each.message if each.kind in CONVERSATION_KINDS else None for each in notifications]
    ids = [None if key is None else key.topic_id for key in keys]
    named = {id_ for id_ in ids if id_ is not None}
    found = await info.context.stores.conversations.find_many(require_member(info), named) if named else {}
    return [None if id_ is None else found.get(id_) for id_ in ids]


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
    """Returns the notification's publication. None without one, if it was removed, or if the viewer may not see it."""
    return (await publications([root], info))[0]


async def publications(notifications: Sequence[Notification], info: Info) -> list[Publication | None]:
    """Returns the publication of each notification. None as in `publication`.

    People of the team are notified of publications of others, and may have lost their role since.
    """
    viewer, roles = require_member(info), granted_roles(info.context)
    ids = {each.publication_id for each in notifications if each.publication_id is not None}
    if not ids:
        return [None for _ in notifications]
    found = await info.context.stores.scheduled_posts.publications_by_id(viewer.organization_id, list(ids))
    visible = {id_: each for id_, each in found.items() if may_see(viewer, roles, each.author_id)}
    return [None if each.publication_id is None else visible.get(each.publication_id) for each in notifications]


async def account(root: Parent[Notification], info: Info) -> ConnectedAccount | None:
    """Returns the notification's connected account, or None if it has none or the viewer is no OPERATOR."""
    return (await accounts([root], info))[0]


async def accounts(notifications: Sequence[Notification], info: Info) -> list[ConnectedAccount | None]:
    """Returns the connected account of each notification, or None if it has none or the viewer is no OPERATOR."""
    viewer = require_member(info)
    if Role.OPERATOR not in granted_roles(info.context):
        return [None for _ in notifications]
    ids = {each.account_id for each in notifications if each.account_id is not None}
    found = await asyncio.gather(*(info.context.stores.accounts.find(viewer.organization_id, id_) for id_ in ids))
    by_id = {each.id: each for each in found if each is not None}
    return [None if each.account_id is None else by_id.get(each.account_id) for each in notifications]
