"""Communities, topics, messages, reactions and stamps."""

from datetime import datetime
from typing import Annotated

import strawberry
from strawberry import ID

import resolvers.chat.communities
import resolvers.chat.messages
import resolvers.chat.topics
from schema.binding import field, shared_field
from schema.identity import User
from schema.timeline import OfPage, Timeline
from storage.timeline import Timestamp


@strawberry.type(description="A place with members and topics.")
class Community:
    id: ID = strawberry.field(description="Opaque.")
    name: str = strawberry.field(description="What it is called.")
    description: str = strawberry.field(description="What it is about; may be empty.")
    member_count: int = strawberry.field(description="How many belong to it.")
    joined: bool = field(resolvers.chat.communities.joined, "Whether the viewer belongs to it.")
    members: list[User] = field(
        resolvers.chat.communities.members, "By handle; `after` is the id of the last one seen."
    )
    topics: list[Annotated["Topic", strawberry.lazy("schema.chat")]] = field(
        resolvers.chat.communities.latest_topics,
        "The most recently active; communityTopics pages through all.",
    )


@strawberry.type(description="A small picture to answer with.")
class Stamp:
    id: ID = strawberry.field(description="To be used as stampId.")
    name: str = strawberry.field(description="What it shows.")
    image_url: str = strawberry.field(description="An SVG, relative to the server's origin.")


@strawberry.type(description="What a linked page says of itself.")
class LinkPreview:
    url: str = strawberry.field(description="The linked page.")
    title: str = strawberry.field(description="Its title.")
    description: str | None = strawberry.field(description="Its summary.")
    image_url: str | None = strawberry.field(description="Its image, by way of this server.")
    site_name: str | None = strawberry.field(description="The site that it belongs to.")


@strawberry.type(description="One emoji under a message, without those whom the viewer blocked.")
class Reaction:
    emoji: str = strawberry.field(description="One grapheme.")
    count: int = strawberry.field(description="How many reacted so.")
    reacted: bool = strawberry.field(description="Whether the viewer is among them.")
    users: list[User] = field(
        resolvers.chat.messages.reaction_users, "Who reacted so, the first ones first.", for_audiences=True
    )


@strawberry.type(description="A message of a topic, or its tombstone.")
class Message:
    id: ID = strawberry.field(description="Unique across topics, safe as a client cache key.")
    timestamp: Timestamp = strawberry.field(description="Unique and strictly increasing within the topic.")
    topic_id: ID = strawberry.field(description="The topic that it stands in.")
    author: User = shared_field(resolvers.chat.messages.author, "Who wrote it.", many=resolvers.chat.messages.authors)
    text: str = strawberry.field(description="As written; empty where there is only a stamp, and on a tombstone.")
    stamp: Stamp | None = shared_field(
        resolvers.chat.messages.stamp, "The stamp, if any.", many=resolvers.chat.messages.stamps_of_many
    )
    mentions: list[User] = shared_field(
        resolvers.chat.messages.mentions,
        "Whom the text mentions, in that order.",
        many=resolvers.chat.messages.mentions_of_many,
    )
    reactions: list[Reaction] = field(
        resolvers.chat.messages.reactions,
        "At most 30 different ones, in the order of first use.",
        many=resolvers.chat.messages.reactions_of_many,
        for_audiences=True,
    )
    link_preview: LinkPreview | None = shared_field(
        resolvers.chat.messages.link_preview,
        "Of the first link in the text; comes a moment after posting, as a MessageEdited event.",
        many=resolvers.chat.messages.link_previews,
    )
    edited_at: datetime | None = strawberry.field(description="When the author changed it last.")
    deleted_at: datetime | None = strawberry.field(
        description="A deleted message stays as a tombstone: empty text, no stamp, no reactions."
    )


@strawberry.type(description="Messages in the order of the range.")
class MessageTimeline(OfPage, Timeline):
    items: list[Message] = strawberry.field(description="The page.")


@strawberry.type(description="A chat room of a community.")
class Topic:
    id: ID = strawberry.field(description="Opaque.")
    title: str = strawberry.field(description="What it is about.")
    community: Community = shared_field(resolvers.chat.topics.community, "The community that it belongs to.")
    created_at: datetime = strawberry.field(description="When it was opened.")
    last_activity: Timestamp = strawberry.field(description="Of the last message, or of its creation.")
    last_message: Message | None = field(
        resolvers.chat.topics.last_message,
        "Null for those who have not joined, as are readUpTo and messages.",
        many=resolvers.chat.topics.last_messages,
    )
    unread_count: int = field(
        resolvers.chat.topics.unread_count,
        "Messages after the viewer's read mark, counted up to 100.",
        many=resolvers.chat.topics.unread_counts,
    )
    read_up_to: Timestamp | None = field(
        resolvers.chat.topics.read_up_to, "The viewer's read mark.", many=resolvers.chat.topics.read_marks
    )
    messages: MessageTimeline | None = field(resolvers.chat.topics.messages_of, "Its timeline.")


@strawberry.type(description="Topics by last activity.")
class TopicTimeline(OfPage, Timeline):
    items: list[Topic] = strawberry.field(description="The page.")


@strawberry.type(description="A topic that is posted to a lot right now.")
class TrendingTopic:
    topic: Topic = strawberry.field(description="The topic.")
    messages_per_minute: float = strawberry.field(description="Its posting rate, decaying over some minutes.")


@strawberry.type(description="Somebody reacted to a message of the viewer's.")
class ReceivedReaction:
    timestamp: Timestamp = strawberry.field(description="Unique and increasing for the viewer.")
    emoji: str = strawberry.field(description="One grapheme.")
    user: User = field(resolvers.chat.messages.received_from, "Who reacted.")
    message: Message = field(resolvers.chat.messages.received_on, "What they reacted to; messagesAround shows it.")


@strawberry.type(description="Received reactions by time.")
class ReactionTimeline(OfPage, Timeline):
    items: list[ReceivedReaction] = strawberry.field(description="The page.")
