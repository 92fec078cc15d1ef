"""GraphQL types of threads, cross-posts and quotes."""

from typing import TYPE_CHECKING, Annotated

import strawberry
from strawberry import ID

import resolvers.chat.cross_posts
import resolvers.chat.quotes
import resolvers.chat.thread_follows
import resolvers.chat.threads
from schema.binding import field, shared_field
from schema.identity import User
from schema.nodes import Node, own_id
from schema.timeline import ConnectionPage, Edge, Timeline
from storage.timeline import Timestamp

if TYPE_CHECKING:
    from schema.chat.communities import Topic
    from schema.chat.messages import Message

# These modules import this one.
LazyMessage = Annotated["Message", strawberry.lazy("schema.chat.messages")]
LazyTopic = Annotated["Topic", strawberry.lazy("schema.chat.communities")]


@strawberry.type(
    description="The replies to a message. They are the messages of a topic of their own, without those of users whom "
    "the viewer blocked."
)
class Thread(Node):
    id: ID = own_id(
        "Thread",
        "Unique identifier. Treat as an opaque string. Where `topicId` is expected, it is accepted, too.",
    )
    topic_id: ID = strawberry.field(
        description="Id of the thread's topic, whose messages are the replies. Lists of topics do not contain it."
    )
    reply_count: int = strawberry.field(description="Number of undeleted replies, updated at most once a second.")
    last_reply_at: Timestamp | None = strawberry.field(description="Timestamp of the last reply; null without replies.")
    last_reply: LazyMessage | None = field(
        resolvers.chat.threads.last_reply,
        "The last reply. Null without replies, and up to a second after the last one was deleted.",
        batch_resolver=resolvers.chat.threads.last_replies,
        serves_audiences=True,
    )
    last_repliers: list[User] = field(
        resolvers.chat.threads.last_repliers,
        "The people who replied last, the latest first; at most 5.",
        batch_resolver=resolvers.chat.threads.last_repliers_of_many,
        serves_audiences=True,
    )
    unread_count: int = field(
        resolvers.chat.threads.unread_count,
        "Number of replies after the viewer's read mark in the thread, at most 100. The viewer's own do not count.",
        batch_resolver=resolvers.chat.threads.unread_counts,
    )
    followed: bool = field(
        resolvers.chat.threads.followed,
        "Whether the viewer follows the thread, and is notified of replies. The author of the message, and everybody "
        "who replies or is mentioned in a reply, follows it automatically.",
        batch_resolver=resolvers.chat.threads.followed_of_many,
    )


@strawberry.type(description="The message that another message quotes.")
class Quote:
    message: LazyMessage | None = field(
        resolvers.chat.quotes.quoted_message,
        "The quoted message as it is now, or its tombstone. Null if the viewer may not read it, and if the viewer has "
        "blocked its author.",
        batch_resolver=resolvers.chat.quotes.quoted_messages,
        serves_audiences=True,
    )


@strawberry.type(description="The reply of a thread that a message of a topic shows.")
class ThreadReply:
    thread_id: ID = strawberry.field(description="Id of the thread's topic.")
    message: LazyMessage = shared_field(
        resolvers.chat.cross_posts.shown_reply,
        "The reply.",
        batch_resolver=resolvers.chat.cross_posts.shown_replies,
    )
    parent_message: LazyMessage | None = field(
        resolvers.chat.cross_posts.parent,
        "The message to which people reply, or its tombstone; null if the viewer has blocked its author.",
        batch_resolver=resolvers.chat.cross_posts.parents,
        serves_audiences=True,
    )


@strawberry.type(description="A thread that the viewer follows.")
class FollowedThread:
    thread: LazyTopic = strawberry.field(description="The thread. Its messages are the replies.")
    parent_topic: LazyTopic = field(
        resolvers.chat.thread_follows.parent_topic,
        "Topic or conversation of the message to which people reply.",
        batch_resolver=resolvers.chat.thread_follows.parent_topics,
    )
    parent_message: LazyMessage | None = field(
        resolvers.chat.thread_follows.parent_message,
        "The message to which people reply; null if the viewer has blocked its author.",
        batch_resolver=resolvers.chat.thread_follows.parent_messages,
    )


@strawberry.type(description="A page of followed threads, ordered by last activity.")
class FollowedThreadTimeline(ConnectionPage, Timeline):
    items: list[FollowedThread] = strawberry.field(description="Items of the page, in the requested order.")
    edges: list[Edge[FollowedThread]] = strawberry.field(description="The items, the newest first.")
