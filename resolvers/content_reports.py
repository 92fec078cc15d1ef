"""Reports of content: filing and deciding them, the queues of moderators, and subscriptions to a queue."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

import strawberry
from strawberry import ID, UNSET, Parent

from resolvers.access import (
    find_visible_community,
    granted_roles,
    require_member,
    require_moderator,
    require_role,
)
from resolvers.arguments import After, ListLimit, Since, checked_limit, checked_text, instant_or_none, text_or_none
from resolvers.chat.messages import require_readable
from resolvers.context import Context, Info
from resolvers.events import Event, StreamReady, ViewerEventSource, viewer_events
from storage.chat.records import Community, CommunityVisibility, Message
from storage.chat.roles import CommunityRole, Moderator, may_act_on, require_power
from storage.errors import BadUserInput, Conflict, NotFound
from storage.feed.content_reports.changes import NewReport, ReportRuling
from storage.feed.content_reports.records import (
    ContentReport,
    ContentReportCategory,
    ContentReportDecision,
    ContentReportState,
    ContentReportSubject,
    reports_stream,
)
from storage.feed.content_reports.store import ReportFilter
from storage.identity.records import User
from storage.identity.roles import Role
from storage.ids import message_key, post_key
from storage.streams.hub import HydratedEvent
from storage.streams.log import Cursor, StreamPosition, parse_cursor
from storage.timeline import instant, timeline_range

MAX_TEXT_CHARS = 1000
MAX_NOTE_CHARS = 500
MAX_MESSAGES_BEFORE = 5
"""Number of messages before a reported message of a conversation that are shown with it."""

OnlyCommunityId = Annotated[
    ID | None,
    strawberry.argument(
        description="Only reports of messages of this community. Omitted or null: all reports, which needs the role "
        "ADMIN."
    ),
]


async def report_content(
    info: Info,
    subject: Annotated[ContentReportSubject, strawberry.argument(description="Kind of the report's subject.")],
    subject_id: Annotated[
        ID, strawberry.argument(description="Id of the message, the post or the person, by `subject`.")
    ],
    category: Annotated[ContentReportCategory, strawberry.argument(description="Reason of the report.")],
    text: Annotated[str, strawberry.argument(description="Text for the moderators, at most 1000 characters.")] = "",
) -> bool:
    """Files a report."""
    viewer = require_member(info)
    checked_text("text", text, 0, MAX_TEXT_CHARS)
    if subject is ContentReportSubject.MESSAGE:
        subject_id = ID(await _content_id(info, viewer, subject_id))
    author_id, community_id, content = await _subject_content(info, viewer, subject, subject_id)
    if author_id == viewer.id:
        raise BadUserInput("subjectId", "the id of another person's content")
    new = NewReport(
        viewer.organization_id, subject, subject_id, community_id, author_id, viewer.id, category, text, content
    )
    await info.context.stores.content_reports.file(new)
    return True


async def _content_id(info: Info, viewer: User, message_id: str) -> str:
    """Returns the id of the reply that a cross-post shows, and otherwise the given id. Raises: NotFound, Forbidden."""
    key = await require_readable(info, viewer, message_id)
    return (await info.context.stores.messages.get(key)).content_key.id


async def _subject_content(
    info: Info, viewer: User, subject: ContentReportSubject, subject_id: str
) -> tuple[str, str | None, str]:
    """Returns the id of the author or reported person, the id of the community that decides, and the content.

    The content of a person is name and bio.

    The community is None if the ADMINs decide.

    Raises: NotFound, Forbidden, Conflict.
    """
    stores = info.context.stores
    if subject is ContentReportSubject.USER:
        user = await stores.users.get(viewer.organization_id, subject_id)
        return user.id, None, user.name if user.bio is None else f"{user.name}\n\n{user.bio}"
    if subject is ContentReportSubject.POST:
        post = await stores.posts.get(post_key(viewer.organization_id, subject_id))
        return post.author_id, None, post.text
    key = await require_readable(info, viewer, subject_id)
    message = await stores.messages.get(key)
    if message.deleted_at is not None:
        raise Conflict("The message was deleted.")
    topic = await stores.topics.get(viewer.organization_id, key.topic_id)
    return message.author_id, await _deciding_community(info, topic.community_id, message.author_id), message.text


async def _deciding_community(info: Info, community_id: str, author_id: str) -> str | None:
    """Returns the community whose moderators decide.

    None: the ADMINs decide, because the message is of a conversation, or of a PRIVATE community in which nobody else
    who is active may act on the author.
    """
    stores = info.context.stores
    community = await stores.communities.find(info.context.audience.organization_id, community_id)
    if community is None or community.visibility is not CommunityVisibility.PRIVATE:
        return None if community is None else community_id
    roles = [CommunityRole.OWNER]
    if not may_act_on(await stores.moderation.role(community_id, author_id), False, None):
        roles.append(CommunityRole.MODERATOR)
    return community_id if await stores.communities.active_with_role(community, *roles) - {author_id} else None


async def content_reports(
    info: Info,
    community_id: OnlyCommunityId = UNSET,
    state: Annotated[
        ContentReportState | None, strawberry.argument(description="Only reports in this state. Omitted or null: all.")
    ] = UNSET,
    subject: Annotated[
        ContentReportSubject | None, strawberry.argument(description="Only reports of this kind. Omitted or null: all.")
    ] = UNSET,
    after: After = UNSET,
    limit: ListLimit = 50,
) -> list[ContentReport]:
    """Lists reports, the oldest first."""
    viewer, stores = require_member(info), info.context.stores
    only_community_id = await _checked_queue(info, community_id)
    report_filter = ReportFilter(
        only_community_id,
        state if isinstance(state, ContentReportState) else None,
        subject if isinstance(subject, ContentReportSubject) else None,
        viewer.id,
        await stores.communities.joined_by(viewer.organization_id, viewer.id),
    )
    after_id = text_or_none(after)
    if after_id is not None:
        await _visible_report(info, after_id)
    reports = await stores.content_reports.list_reports(
        viewer.organization_id, report_filter, after_id, checked_limit(limit)
    )
    return await _of_visible_communities(info, reports)


async def _of_visible_communities(info: Info, reports: Sequence[ContentReport]) -> list[ContentReport]:
    """Returns the reports of communities that the viewer may see now. Hides those of a community just made PRIVATE."""
    ids = {report.community_id for report in reports if report.community_id is not None}
    visible = await info.context.stores.communities.visible_among(require_member(info).key, ids) if ids else {}
    return [report for report in reports if report.community_id is None or report.community_id in visible]


async def _checked_queue(info: Info, community_id: str | None) -> str | None:
    """Returns the id of the community, or None for the queue of all reports.

    Raises: NotFound; Forbidden if the viewer may not read the queue.
    """
    only_community_id = text_or_none(community_id)
    if only_community_id is None:
        require_role(info, Role.ADMIN)
    else:
        await require_moderator(info, only_community_id)
    return only_community_id


async def content_report(
    info: Info, id: Annotated[ID, strawberry.argument(description="Id of the report.")]
) -> ContentReport:
    """Returns a report that the viewer may decide."""
    return (await _visible_report(info, id))[0]


async def decide_content_report(
    info: Info,
    content_report_id: Annotated[ID, strawberry.argument(description="Id of the report.")],
    decision: Annotated[ContentReportDecision, strawberry.argument(description="What to do.")],
    note: Annotated[
        str,
        strawberry.argument(
            description="Reason, 1 to 500 characters. The other moderators see it, and with WARN the warned person."
        ),
    ],
    ban_until: Annotated[
        datetime | None,
        strawberry.argument(
            description="When a ban from a community ends, in the future. Omitted or null: it does not end."
        ),
    ] = UNSET,
) -> ContentReport:
    """Decides a report."""
    stores = info.context.stores
    report, moderator = await _visible_report(info, content_report_id)
    checked_text("note", note, 1, MAX_NOTE_CHARS)
    ends_at = instant_or_none(ban_until)
    if decision is not ContentReportDecision.DISMISS:
        await _require_power(info.context, report, moderator)
    decided = await stores.content_reports.decide(report, moderator, ReportRuling(decision, note, ends_at))
    if decided.effect_is_due:
        await stores.report_effects.carry_out(decided, info.context.actor)
    return await stores.content_reports.get(report.organization_id, report.id)


async def _require_power(context: Context, report: ContentReport, moderator: Moderator) -> None:
    """Raises Forbidden if the moderator may not act on the author of the content."""
    if report.community_id is not None:
        moderation = context.stores.moderation
        moderator_role = await moderation.role(report.community_id, moderator.user_id)
        author_role = await moderation.role(report.community_id, report.author_id)
        require_power(moderator_role, moderator.is_admin, author_role)


async def _visible_report(info: Info, id_: str) -> tuple[ContentReport, Moderator]:
    """Returns a report and the viewer as its moderator. Raises: NotFound, also if the viewer may not decide it."""
    viewer = require_member(info)
    report = await info.context.stores.content_reports.get(viewer.organization_id, id_)
    moderator = await _moderator_of(info.context, viewer, report)
    if moderator is None:
        raise NotFound("content report", id_)
    return report, moderator


async def _moderator_of(context: Context, viewer: User, report: ContentReport) -> Moderator | None:
    """Returns the viewer as a moderator who may decide the report, or None.

    Nobody may decide, or see, a report about themselves. An ADMIN does not count as a moderator of a community that
    the ADMIN may not see.
    """
    if report.author_id == viewer.id:
        return None
    is_admin = Role.ADMIN in granted_roles(context)
    if report.community_id is None:
        return Moderator(viewer.id, True, context.actor) if is_admin else None
    stores = context.stores
    role = await stores.moderation.role(report.community_id, viewer.id)
    if role is None and is_admin:
        is_admin = report.community_id in await stores.communities.visible_among(viewer.key, [report.community_id])
    return Moderator(viewer.id, is_admin, context.actor) if may_act_on(role, is_admin, None) else None


async def subject_id(root: Parent[ContentReport]) -> str:
    """Returns the id of the subject, or the report's own id in its place."""
    return root.shown_subject_id


@dataclass(frozen=True, slots=True)
class PrecedingMessage:
    """A message before a reported one. `text` is None if it is no longer as it was when the message was reported."""

    organization_id: str
    author_id: str
    posted_at: datetime
    text: str | None


async def messages_before(root: Parent[ContentReport], info: Info) -> list[PrecedingMessage] | None:
    """Returns the messages before a reported message of a conversation, the oldest first.

    None for other subjects, and once the report is decided: nobody needs them any more.
    """
    if root.subject is not ContentReportSubject.MESSAGE or root.community_id is not None:
        return None
    if root.state is ContentReportState.DECIDED:
        return None
    key, stores = message_key(root.subject_id), info.context.stores
    topic = await stores.topics.find(root.organization_id, key.topic_id)
    if topic is None or not topic.is_conversation:
        return None
    before = timeline_range(latest=key.timestamp, limit=MAX_MESSAGES_BEFORE, inclusive=False)
    page = await stores.messages.page(key.topic_id, before)
    return [_preceding(root, message) for message in reversed(page.items)]


def _preceding(report: ContentReport, message: Message) -> PrecedingMessage:
    """Returns a message as those who decide see it. What was written after the report is not for them."""
    is_edited_since = message.edited_at is not None and message.edited_at >= report.reported_at
    text = None if message.deleted_at is not None or is_edited_since else message.text
    return PrecedingMessage(report.organization_id, message.author_id, instant(message.timestamp), text)


async def preceding_author(root: Parent[PrecedingMessage], info: Info) -> User:
    """Returns the person who wrote the message."""
    return await info.context.stores.users.get(root.organization_id, root.author_id)


async def author(root: Parent[ContentReport], info: Info) -> User:
    """Returns the person who wrote the content, or who is reported."""
    return await info.context.stores.users.get(root.organization_id, root.author_id)


async def reporter(root: Parent[ContentReport], info: Info) -> User:
    """Returns the person who filed the report."""
    return await info.context.stores.users.get(root.organization_id, root.reporter_id)


async def decided_by(root: Parent[ContentReport], info: Info) -> User | None:
    """Returns the moderator who decided, or None while the report is open."""
    if root.decided_by_id is None:
        return None
    return await info.context.stores.users.find(root.organization_id, root.decided_by_id)


async def community(root: Parent[ContentReport], info: Info) -> Community | None:
    """Returns the community whose moderators decide; None if the ADMINs decide, or if the viewer cannot see it now."""
    return None if root.community_id is None else await find_visible_community(info, root.community_id)


@dataclass(frozen=True, slots=True)
class ContentReportEvent(Event):
    """A report was filed or decided."""

    kind: str
    report: ContentReport


@dataclass(frozen=True, slots=True)
class ContentReportEventSource(ViewerEventSource):
    """The events of reports that one viewer may decide now. `community_id` selects the reports of one community."""

    context: Context
    viewer: User
    since: StreamPosition | None
    community_id: str | None

    def __aiter__(self) -> AsyncGenerator[StreamReady | ContentReportEvent, None]:
        stream = reports_stream(self.viewer.organization_id)
        return viewer_events(self.context.stores.hub, stream, self.since, self._visible_record)

    async def _visible_record(self, cursor: Cursor, event: HydratedEvent) -> ContentReportEvent | None:
        """Returns the event's record, or None if the viewer may not see the report."""
        report = event.subject
        if self.community_id is not None and report.community_id != self.community_id:
            return None
        if await _moderator_of(self.context, self.viewer, report) is None:
            return None
        return ContentReportEvent(cursor, event.event.at, event.event.kind, report)


async def content_report_events(
    info: Info, community_id: OnlyCommunityId = UNSET, since: Since = UNSET
) -> ContentReportEventSource:
    """Subscribes to the reports that the viewer may decide."""
    viewer, cursor = require_member(info), text_or_none(since)
    only_community_id = await _checked_queue(info, community_id)
    position = None if cursor is None else parse_cursor(reports_stream(viewer.organization_id), cursor)
    return ContentReportEventSource(info.context, viewer, position, only_community_id)
