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
from schema.timeline import OfPage, Timeline
from storage.feed.home import HomeFeedState
from storage.feed.records import FanOutState
from storage.notifications import NotificationKind
from storage.timeline import Timestamp

strawberry.enum(FanOutState, description="How far a post is on its way into the followers' home feeds.")
strawberry.enum(
    HomeFeedState,
    description="REBUILDING: the feed of a long-absent reader is being rebuilt; what is there so far is returned.",
)
strawberry.enum(NotificationKind, description="What somebody is told of.")


@strawberry.type(description="Progress of one post's way into the followers' home feeds. Visible to its author.")
class FanOut:
    id: ID = strawberry.field(description="Opaque.")
    post_id: ID = strawberry.field(description="The post.")
    state: FanOutState = strawberry.field(description="COMPLETED when nobody is left to be reached.")
    total: int = strawberry.field(description="How many feeds it goes to; 0 where readers merge its author instead.")
    delivered: int = strawberry.field(description="How many feeds have it.")
    failed: int = strawberry.field(description="How many were given up after five tries.")


@strawberry.type(description="What somebody posted for their followers.")
class Post:
    id: ID = strawberry.field(description="Unique across organizations, safe as a client cache key.")
    timestamp: Timestamp = strawberry.field(description="Unique within the organization.")
    author: User = shared_field(resolvers.feed.posts.author, "Who wrote it.", many=resolvers.feed.posts.authors)
    text: str = strawberry.field(description="As written; empty in the answer to deletePost.")
    media_urls: list[str] = shared_field(
        resolvers.feed.posts.media_urls,
        "Its pictures, by way of this server.",
        many=resolvers.feed.posts.media_urls_of_many,
    )
    mentions: list[User] = shared_field(
        resolvers.feed.posts.mentions,
        "Whom the text mentions, in that order.",
        many=resolvers.feed.posts.mentions_of_many,
    )
    hashtags: list[str] = strawberry.field(description="Without #, in lower case, in the order of first use.")
    link_preview: LinkPreview | None = shared_field(
        resolvers.feed.posts.link_preview,
        "Of the first link in the text; comes a moment after posting.",
        many=resolvers.feed.posts.link_previews,
    )
    fan_out: FanOut | None = field(
        resolvers.feed.fan_outs.fan_out, "Its way into the followers' home feeds; null for all but its author."
    )


@strawberry.type(description="Posts in the order of the range.")
class PostTimeline(OfPage, Timeline):
    items: list[Post] = strawberry.field(description="The page.")


@strawberry.type(description="Posts of the viewer's home feed in the order of the range.")
class HomeFeedTimeline(OfPage, Timeline):
    items: list[Post] = strawberry.field(description="The page.")
    state: HomeFeedState = strawberry.field(description="Whether the feed is whole.")


@strawberry.type(description="One thing that the viewer was told.")
class Notification:
    id: ID = strawberry.field(description="Opaque.")
    timestamp: Timestamp = strawberry.field(description="Unique and increasing for the viewer.")
    kind: NotificationKind = strawberry.field(description="What it is about.")
    actor: User | None = field(resolvers.feed.notifications.actor, "Who did it, if somebody did.")
    message: Message | None = field(
        resolvers.feed.notifications.message, "The message with the mention or reaction, while the viewer may read it."
    )
    post: Post | None = field(resolvers.feed.notifications.post, "The post with the mention, while it is there.")
    publication: Publication | None = field(
        resolvers.feed.notifications.publication,
        "The publication that failed, or whose outcome nobody knows.",
    )


@strawberry.type(description="Notifications in the order of the range.")
class NotificationTimeline(OfPage, Timeline):
    items: list[Notification] = strawberry.field(description="The page.")
