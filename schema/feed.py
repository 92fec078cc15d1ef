"""Posts, feeds, fan-outs and notifications."""

import strawberry
from strawberry import ID

import resolvers.feed.fan_outs
import resolvers.feed.notifications
import resolvers.feed.posts
from schema.binding import field, shared_field
from schema.chat import LinkPreview, Message
from schema.identity import User
from schema.publishing import Publication
from schema.timeline import PageMixin, Timeline
from storage.feed.content_reports.records import ContentReportDecision
from storage.feed.home import HomeFeedState
from storage.feed.records import FanOutState
from storage.notifications import NotificationKind
from storage.timeline import Timestamp

strawberry.enum(
    FanOutState,
    description="Progress of a fan-out: PENDING has not begun, RUNNING is in progress, COMPLETED is finished.",
)
strawberry.enum(
    HomeFeedState,
    description="READY: the feed is complete. REBUILDING: the viewer was absent for 30 days, and the feed is being "
    "rebuilt; pages hold the posts that were restored so far.",
)
strawberry.enum(
    NotificationKind,
    description="The reason for a notification. REPORT_DECIDED: moderators decided about the viewer's report. WARNING: "
    "a moderator warns the viewer.",
)


@strawberry.type(
    description="Progress of pushing a post into the followers' home feeds. Visible only to the post's author."
)
class FanOut:
    id: ID = strawberry.field(description="Unique identifier. Treat as an opaque string.")
    post_id: ID = strawberry.field(description="Id of the post.")
    state: FanOutState = strawberry.field(description="COMPLETED when each home feed has the post or was given up.")
    total: int = strawberry.field(
        description="Number of home feeds that get the post. 0 for an author with so many followers that posts are "
        "merged into home feeds when these are read."
    )
    delivered: int = strawberry.field(description="Number of home feeds that have the post.")
    failed: int = strawberry.field(description="Number of home feeds that were given up after five tries.")


@strawberry.type(description="A short text with media that a user posted to their followers.")
class Post:
    id: ID = strawberry.field(
        description="Unique identifier across organizations, safe as a client cache key. Treat as an opaque string."
    )
    timestamp: Timestamp = strawberry.field(description="When the post was created; unique within the organization.")
    author: User = shared_field(
        resolvers.feed.posts.author, "User who wrote the post.", batch_resolver=resolvers.feed.posts.authors
    )
    text: str = strawberry.field(description="The text as written; empty in the response to deletePost.")
    media_urls: list[str] = shared_field(
        resolvers.feed.posts.media_urls,
        "URLs of the post's pictures on this server's image proxy, in the order of the post.",
        batch_resolver=resolvers.feed.posts.media_urls_of_many,
    )
    mentions: list[User] = shared_field(
        resolvers.feed.posts.mentions,
        "Users that the text mentions, in order of first mention.",
        batch_resolver=resolvers.feed.posts.mentions_of_many,
    )
    hashtags: list[str] = strawberry.field(
        description="Hashtags of the text without #, in lower case, in order of first use."
    )
    link_preview: LinkPreview | None = shared_field(
        resolvers.feed.posts.link_preview,
        "Preview of the first link in the text. Null without a link, and for some seconds after posting.",
        batch_resolver=resolvers.feed.posts.link_previews,
    )
    fan_out: FanOut | None = field(
        resolvers.feed.fan_outs.fan_out,
        "Progress of pushing the post into the followers' home feeds. Null unless the viewer is the author.",
    )


@strawberry.type(description="A page of posts.")
class PostTimeline(PageMixin, Timeline):
    items: list[Post] = strawberry.field(description="The items of the page, in the requested order.")


@strawberry.type(description="A page of the viewer's home feed.")
class HomeFeedTimeline(PageMixin, Timeline):
    items: list[Post] = strawberry.field(description="The items of the page, in the requested order.")
    state: HomeFeedState = strawberry.field(description="Whether the feed is complete or is being rebuilt.")


@strawberry.type(description="Something that happened and concerns the viewer, such as a mention.")
class Notification:
    id: ID = strawberry.field(description="Unique identifier. Treat as an opaque string.")
    timestamp: Timestamp = strawberry.field(
        description="When the notification arrived; unique for the viewer, and greater than all earlier timestamps."
    )
    kind: NotificationKind = strawberry.field(description="The reason for the notification.")
    actor: User | None = field(
        resolvers.feed.notifications.actor, "User who caused the notification. Null when no user did."
    )
    message: Message | None = field(
        resolvers.feed.notifications.message,
        (
            "The message with the mention or reaction, or about which moderators decided. Null for other kinds, and "
            "when the viewer may not read it any more."
        ),
    )
    post: Post | None = field(
        resolvers.feed.notifications.post,
        "The post with the mention, or about which moderators decided. Null for other kinds, and when it was deleted.",
    )
    report_decision: ContentReportDecision | None = field(
        resolvers.feed.notifications.report_decision,
        "What moderators decided about the viewer's report. Null for other kinds, and when the report was deleted, 180 "
        "days after the decision.",
    )
    warning: str | None = field(
        resolvers.feed.notifications.warning,
        "What the moderator wrote to the viewer. Null for other kinds, and 180 days after the warning.",
    )
    publication: Publication | None = field(
        resolvers.feed.notifications.publication,
        "The publication that failed or whose outcome is unknown. Null for other kinds.",
        queries_per_object=True,
    )


@strawberry.type(description="A page of notifications.")
class NotificationTimeline(PageMixin, Timeline):
    items: list[Notification] = strawberry.field(description="The items of the page, in the requested order.")
