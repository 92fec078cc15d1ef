"""GraphQL types of content reports, and their root fields. schema/root.py adds them to the root types."""

from datetime import datetime

import strawberry
from strawberry import ID

import resolvers.content_reports
from resolvers.limits.writes import WriteLimit
from schema.binding import field, mutation
from schema.chat.communities import Community
from schema.identity import User
from schema.nodes import Node
from storage.feed.content_reports.records import (
    ContentReportCategory,
    ContentReportDecision,
    ContentReportOutcome,
    ContentReportState,
    ContentReportSubject,
)

strawberry.enum(
    ContentReportSubject,
    description="Kind of a report's subject: a message of a community or a conversation, a post, or a person.",
)
strawberry.enum(
    ContentReportCategory,
    description="Reason of a report. PRIVACY: it shows another person's private data. OTHER: the text says why.",
)
strawberry.enum(
    ContentReportState,
    description="OPEN: the report waits for a decision. DECIDED: a moderator has decided.",
)

strawberry.enum(
    ContentReportOutcome,
    description="Effect of a decision about a report. As the decision says, except that a ban outside of communities "
    "is DEACTIVATE: the person loses access to the organization.",
)


@strawberry.type(description="A message before a reported message of a conversation.")
class PrecedingMessage:
    author: User = field(resolvers.content_reports.preceding_author, "Person who wrote the message.")
    posted_at: datetime = strawberry.field(description="When the message was posted.")
    text: str | None = strawberry.field(
        description="Text of the message when the later message was reported; may be empty. Null if the message was "
        "deleted, or was edited after the report."
    )


@strawberry.type(description="A report of a message, a post or a person, as its moderators see it.")
class ContentReport(Node):
    id: ID = strawberry.field(description="Id of the report.")
    subject: ContentReportSubject = strawberry.field(description="Kind of the report's subject.")
    subject_id: ID = field(
        resolvers.content_reports.subject_id,
        "Id of the message, the post or the person. For a message without `community` it is the id of the report, so "
        "that it does not show the conversation or the PRIVATE community of the message.",
    )
    community: Community | None = field(
        resolvers.content_reports.community,
        "Community of the message. Null if the ADMINs decide: for posts, people, messages of conversations, and "
        "messages of a PRIVATE community in which nobody else who is active may act on the author.",
    )
    author: User = field(resolvers.content_reports.author, "Person who wrote the message or post, or who is reported.")
    reporter: User = field(resolvers.content_reports.reporter, "Person who filed the report.")
    category: ContentReportCategory = strawberry.field(description="Reason of the report.")
    text: str = strawberry.field(description="What the reporter wrote, at most 1000 characters; may be empty.")
    content_text: str = strawberry.field(
        description="Text of the message or post, or name and bio of the person, when it was reported. It stays "
        "although the content is edited or deleted."
    )
    messages_before: list[PrecedingMessage] | None = field(
        resolvers.content_reports.messages_before,
        "For a message of a conversation, at most 5 messages that were posted just before it in the same conversation "
        "or thread, the oldest first. Null for all other subjects, and once the report is decided.",
        queries_per_object=True,
    )
    reported_at: datetime = strawberry.field(description="When the report was filed.")
    state: ContentReportState = strawberry.field(description="Whether a moderator has decided.")
    decision: ContentReportDecision | None = strawberry.field(
        description="The decision; null while the report is open."
    )
    outcome: ContentReportOutcome | None = strawberry.field(
        description="Effect of the decision; null while the report is open."
    )
    note: str | None = strawberry.field(
        description="The moderator's reason, 1 to 500 characters; null while the report is open."
    )
    decided_by: User | None = field(
        resolvers.content_reports.decided_by, "Moderator who decided; null while the report is open."
    )
    decided_at: datetime | None = strawberry.field(
        description="When the moderator decided; null while the report is open."
    )
    ban_until: datetime | None = strawberry.field(
        description="When the ban ends; null if it does not end by itself, and for other decisions."
    )
    failure: str | None = strawberry.field(
        description="Why the decision could not be carried out, in English, for example because the content no longer "
        "exists. Null if it was carried out, or if nothing had to be done."
    )


@strawberry.type
class ContentReportQuery:
    """Queues of moderators."""

    content_reports: list[ContentReport] = field(
        resolvers.content_reports.content_reports,
        "Reports, the oldest first. With `communityId`, those of the community's messages: needs a moderator or owner "
        "of the community, or the role ADMIN. Without, all reports of the organization, except those of PRIVATE "
        "communities that the viewer has not joined: needs the role ADMIN. Reports about the viewer are left "
        "out. Blocks hide no report.",
    )
    content_report: ContentReport | None = field(
        resolvers.content_reports.content_report,
        "Report with this id. NOT_FOUND if there is none that the viewer may decide.",
    )


@strawberry.type
class ContentReportMutation:
    """Filing and deciding reports."""

    report_content: bool = mutation(
        resolvers.content_reports.report_content,
        "Reports another person's message or post, or a person, to the moderators of the community or the ADMINs. "
        "Always true. A person reports the same subject once: repetitions change nothing. The reporter is notified of "
        "the decision. CONFLICT for a deleted message, and when 50 reports of the subject are open. RATE_LIMITED when "
        "100 reports of the viewer are open.",
        limit=WriteLimit.REPORTS,
    )
    decide_content_report: ContentReport = mutation(
        resolvers.content_reports.decide_content_report,
        "Decides a report and all other open reports of the same subject. Each report is decided once: CONFLICT if "
        "another moderator was faster. NOT_FOUND for a report about the viewer. FORBIDDEN, unless the decision is "
        "DISMISS, for one about a person of equal or higher rank. The same decision of the same moderator may be "
        "repeated.",
        limit=WriteLimit.MODERATION,
    )
