"""Posts, fan-outs and pages of posts, and the mutations of posts."""

from datetime import datetime

import strawberry
from strawberry import ID

import resolvers.feed.fan_outs
import resolvers.feed.posts
import resolvers.feed.reactions
import resolvers.feed.responses
import resolvers.mutes
from resolvers.limits.writes import WriteLimit
from schema.binding import field, mutation, shared_field
from schema.files import Attachment, LinkPreview
from schema.identity import User
from schema.nodes import Node, own_id
from schema.timeline import ConnectionPage, Edge, Timeline
from storage.feed.home import HomeFeedState
from storage.feed.records import FanOutState
from storage.timeline import Timestamp

strawberry.enum(
    FanOutState,
    description="Progress of a fan-out: PENDING has not begun, RUNNING is in progress, COMPLETED is finished.",
)
strawberry.enum(
    HomeFeedState,
    description="READY: the page has every post that belongs on it. REBUILDING: the viewer was absent for 30 days, or "
    "posts were removed while older ones exist. The feed is being rebuilt; read the page again after a few seconds.",
)


@strawberry.type(
    description="Progress of pushing a post into the followers' home feeds. Visible only to the post's author."
)
class FanOut(Node):
    id: ID = own_id("FanOut", "Unique identifier. Treat as an opaque string.")
    post_id: ID = strawberry.field(description="Id of the post.")
    state: FanOutState = strawberry.field(description="COMPLETED when each home feed has the post or counts as failed.")
    total: int = strawberry.field(
        description="Number of home feeds that get the post. 0 for an author with so many followers that posts are "
        "merged into home feeds when these are read."
    )
    delivered: int = strawberry.field(description="Number of home feeds that have the post.")
    failed: int = strawberry.field(description="Number of home feeds that count as failed after five retries.")


@strawberry.type(
    description="An emoji of a post and the users who reacted with it, without users whom the viewer blocked."
)
class PostReaction:
    emoji: str = strawberry.field(
        description="One emoji of Unicode, or the name of a stamp between colons, such as `:lit:`. `stampPacks` has "
        "its picture; show the text if the stamp was removed."
    )
    count: int = strawberry.field(description="Number of users who reacted with the emoji.")
    reacted: bool = strawberry.field(description="Whether the viewer reacted with the emoji.")
    users: list[User] = field(
        resolvers.feed.reactions.reaction_users,
        "Users who reacted with the emoji, earliest first.",
        queries_per_object=True,
    )


@strawberry.type(description="A text that a post had before an edit.")
class PostVersion:
    text: str = strawberry.field(description="The earlier text.")
    written_at: datetime = strawberry.field(description="When the text was written.")


@strawberry.type(
    description="A short text with media that a user posted to their followers, or a repost of such a post."
)
class Post(Node):
    id: ID = strawberry.field(
        description="Unique identifier across organizations, safe as a client cache key. Treat as an opaque string."
    )
    timestamp: Timestamp = strawberry.field(description="When the post was created; unique within the organization.")
    author: User = shared_field(
        resolvers.feed.posts.author, "User who wrote the post.", batch_resolver=resolvers.feed.posts.authors
    )
    text: str = strawberry.field(
        description="The text as written, with the markers of its formatting, such as **bold** and `code`; empty for a "
        "repost, and in the response to deletePost."
    )
    media_urls: list[str] = shared_field(
        resolvers.feed.posts.media_urls,
        "URLs of the post's pictures on this server's image proxy, in the order of the post.",
        batch_resolver=resolvers.feed.posts.media_urls_of_many,
    )
    attachments: list[Attachment] = strawberry.field(
        description="Attached files in their order, at most 10; empty in the response to deletePost."
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
        batch_resolver=resolvers.feed.fan_outs.fan_outs,
    )
    edited_at: datetime | None = strawberry.field(description="When the text was last edited; null if it never was.")
    versions: list[PostVersion] = shared_field(
        resolvers.feed.posts.versions,
        "Earlier texts of the post, oldest first, at most 50; empty if it was never edited.",
        queries_per_object=True,
    )
    is_reply: bool = strawberry.field(description="Whether the post is a reply to another post.")
    in_reply_to: "Post | None" = field(
        resolvers.feed.responses.in_reply_to,
        "The post that this post replies to. Null if this post is no reply, and if the other post was deleted or the "
        "viewer blocked its author.",
        batch_resolver=resolvers.feed.responses.in_reply_to_of_many,
    )
    replies: "PostTimeline" = field(
        resolvers.feed.responses.replies,
        "Replies to the post, without those of users whom the viewer blocked. Replies to replies are not included.",
        queries_per_object=True,
        is_connection=True,
    )
    reply_count: int = field(
        resolvers.feed.responses.reply_count,
        "Number of replies to the post, without those of users whom the viewer blocked. A new reply is counted "
        "shortly after it was created.",
        batch_resolver=resolvers.feed.responses.reply_counts,
    )
    is_repost: bool = strawberry.field(description="Whether the post only repeats another post.")
    repost_of: "Post | None" = field(
        resolvers.feed.responses.repost_of,
        "The post that this post repeats. Null if this post is no repost, and if the other post was deleted or the "
        "viewer blocked its author.",
        batch_resolver=resolvers.feed.responses.repost_of_many,
    )
    repost_count: int = field(
        resolvers.feed.responses.repost_count,
        "Number of users who reposted the post, without users whom the viewer blocked. A new repost is counted shortly "
        "after it was created.",
        batch_resolver=resolvers.feed.responses.repost_counts,
    )
    is_quote: bool = strawberry.field(description="Whether the post quotes another post.")
    quote_of: "Post | None" = field(
        resolvers.feed.responses.quote_of,
        "The post that this post quotes. Null if this post quotes none, and if the other post was deleted or the "
        "viewer blocked its author.",
        batch_resolver=resolvers.feed.responses.quote_of_many,
    )
    quote_count: int = field(
        resolvers.feed.responses.quote_count,
        "Number of posts that quote the post, without those of users whom the viewer blocked. A new quote is counted "
        "shortly after it was created.",
        batch_resolver=resolvers.feed.responses.quote_counts,
    )
    reposted: bool = field(
        resolvers.feed.responses.reposted,
        "Whether the viewer has reposted the post.",
        batch_resolver=resolvers.feed.responses.reposted_of_many,
    )
    muted: bool = field(
        resolvers.mutes.is_post_muted,
        "Whether the viewer has muted the post's conversation (`mutePost`).",
        batch_resolver=resolvers.mutes.are_posts_muted,
    )
    reactions: list[PostReaction] = field(
        resolvers.feed.reactions.reactions,
        "Reactions in the order of first use; at most 30 different emojis.",
        batch_resolver=resolvers.feed.reactions.reactions_of_many,
    )


@strawberry.type(description="A page of posts.")
class PostTimeline(ConnectionPage, Timeline):
    items: list[Post] = strawberry.field(description="The items of the page, in the requested order.")
    edges: list[Edge[Post]] = strawberry.field(description="The items, the newest first.")


@strawberry.type(description="A page of the viewer's home feed.")
class HomeFeedTimeline(ConnectionPage, Timeline):
    items: list[Post] = strawberry.field(description="The items of the page, in the requested order.")
    edges: list[Edge[Post]] = strawberry.field(description="The items, the newest first.")
    state: HomeFeedState = strawberry.field(description="Whether the feed is complete or is being rebuilt.")


@strawberry.type
class PostMutation:
    """Posts, replies, reposts and reactions to posts."""

    create_post: Post = mutation(
        resolvers.feed.posts.create_post,
        "Creates a post. When the mutation returns, the post is durable and in the author's own feed. Workers add it "
        "to the followers' feeds.",
        limit=WriteLimit.POSTS,
    )
    delete_post: Post = mutation(
        resolvers.feed.posts.delete_post,
        "Deletes a post from every feed. Users delete their own posts, an ADMIN any post.",
        limit=WriteLimit.POSTS,
    )
    edit_post: Post = mutation(
        resolvers.feed.posts.edit_post,
        "Replaces the text of the viewer's own post. Mentions, hashtags, link preview and search follow the new text. "
        "The earlier text stays in `Post.versions`. CONFLICT after 50 edits, and for a repost.",
        limit=WriteLimit.POSTS,
    )
    repost: Post = mutation(
        resolvers.feed.responses.repost,
        "Reposts a post: adds it to the home feeds of the viewer's followers, under the viewer's name. Idempotent: "
        "returns the viewer's repost. FORBIDDEN if the post's author has blocked the viewer.",
        limit=WriteLimit.POSTS,
    )
    undo_repost: Post = mutation(
        resolvers.feed.responses.undo_repost,
        "Deletes the viewer's repost of a post. Idempotent. Returns the post.",
        limit=WriteLimit.POSTS,
    )
    add_post_reaction: Post = mutation(
        resolvers.feed.reactions.add_post_reaction,
        "Adds the viewer's reaction to a post. Idempotent. FORBIDDEN if the post's author has blocked the viewer, "
        "CONFLICT for a 31st emoji.",
        limit=WriteLimit.REACTIONS,
    )
    remove_post_reaction: Post = mutation(
        resolvers.feed.reactions.remove_post_reaction,
        "Removes the viewer's reaction from a post. Idempotent.",
        limit=WriteLimit.REACTIONS,
    )
