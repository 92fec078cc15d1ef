"""GraphQL types of communities, topics, messages, reactions and stamps."""

from datetime import datetime
from typing import Annotated

import strawberry
from strawberry import ID

import resolvers.chat.communities
import resolvers.chat.community_settings
import resolvers.chat.messages
import resolvers.chat.moderation
import resolvers.chat.topics
from schema.binding import field, shared_field
from schema.identity import User
from schema.timeline import PageMixin, Timeline
from storage.chat.roles import CommunityRole
from storage.chat.visibility import CommunityVisibility
from storage.timeline import Timestamp

strawberry.enum(
    CommunityRole,
    description="Role in one community. OWNER sets roles and acts on moderators, MODERATOR acts on members.",
)


@strawberry.type(description="A group of users of one organization, with topics to talk in.")
class Community:
    id: ID = strawberry.field(description="Unique identifier. Treat as an opaque string.")
    name: str = strawberry.field(description="Name, 1 to 100 characters.")
    description: str = strawberry.field(description="Description, at most 2000 characters; may be empty.")
    member_count: int = strawberry.field(description="Number of members.")
    visibility: CommunityVisibility = strawberry.field(description="Who sees the community, and how people join it.")
    archived_at: datetime | None = strawberry.field(
        description="When the community was archived, which makes it read-only; null if it is not."
    )
    joined: bool = field(resolvers.chat.communities.joined, "Whether the viewer is a member.")
    viewer_role: CommunityRole | None = field(
        resolvers.chat.moderation.own_role, "The viewer's role in the community; null if the viewer has not joined it."
    )
    viewer_muted_until: datetime | None = field(
        resolvers.chat.moderation.own_mute,
        "When the viewer may post, react and edit again; null if the viewer is not muted.",
    )
    members: list[User] = field(
        resolvers.chat.communities.members,
        "Members, ordered by handle. Empty for viewers who have not joined a community that is not PUBLIC.",
        queries_per_object=True,
    )
    topics: list[Annotated["Topic", strawberry.lazy("schema.chat")]] = field(
        resolvers.chat.communities.latest_topics,
        "The most recently active topics. The query `communityTopics` pages through all topics. Empty for viewers who "
        "have not joined a community that is not PUBLIC.",
        queries_per_object=True,
    )


@strawberry.type(description="A picture from the catalogue that a message can consist of.")
class Stamp:
    id: ID = strawberry.field(description="Value for `stampId` in `postMessage`.")
    name: str = strawberry.field(description="Name of the picture, in English.")
    image_url: str = strawberry.field(description="Path of an SVG file, relative to the server's origin.")


@strawberry.type(description="Title, summary and image of a linked page.")
class LinkPreview:
    url: str = strawberry.field(description="URL of the linked page.")
    title: str = strawberry.field(description="Title of the page.")
    description: str | None = strawberry.field(description="Summary of the page; null if it has none.")
    image_url: str | None = strawberry.field(
        description="URL of the page's image on this server's image proxy; null if it has none."
    )
    site_name: str | None = strawberry.field(description="Name of the page's site; null if it has none.")


@strawberry.type(
    description="An emoji of a message and the users who reacted with it, without users whom the viewer blocked."
)
class Reaction:
    emoji: str = strawberry.field(description="One emoji: a single grapheme.")
    count: int = strawberry.field(description="Number of users who reacted with the emoji.")
    reacted: bool = strawberry.field(description="Whether the viewer reacted with the emoji.")
    users: list[User] = field(
        resolvers.chat.messages.reaction_users,
        "Users who reacted with the emoji, earliest first.",
        serves_audiences=True,
        queries_per_object=True,
    )


@strawberry.type(description="A message of a topic, or the tombstone of a deleted one.")
class Message:
    id: ID = strawberry.field(description="Unique identifier across all topics. Treat as an opaque string.")
    timestamp: Timestamp = strawberry.field(
        description="Position in the topic. It is unique, and later messages have greater timestamps."
    )
    topic_id: ID = strawberry.field(description="Id of the topic.")
    author: User = shared_field(
        resolvers.chat.messages.author, "User who wrote the message.", batch_resolver=resolvers.chat.messages.authors
    )
    text: str = strawberry.field(
        description="Text as written; empty if the message has only a stamp, and on a tombstone."
    )
    stamp: Stamp | None = shared_field(
        resolvers.chat.messages.stamp,
        "Stamp of the message; null if it has none.",
        batch_resolver=resolvers.chat.messages.stamps_of_many,
    )
    mentions: list[User] = shared_field(
        resolvers.chat.messages.mentions,
        "Users whom the text mentions, in the order of mention; at most 50.",
        batch_resolver=resolvers.chat.messages.mentions_of_many,
    )
    reactions: list[Reaction] = field(
        resolvers.chat.messages.reactions,
        "Reactions in the order of first use; at most 30 different emojis.",
        batch_resolver=resolvers.chat.messages.reactions_of_many,
        serves_audiences=True,
    )
    link_preview: LinkPreview | None = shared_field(
        resolvers.chat.messages.link_preview,
        "Preview of the first link in the text. Null without a link, and until the preview is fetched. "
        "`MessageEdited` is emitted when the preview is stored.",
        batch_resolver=resolvers.chat.messages.link_previews,
    )
    edited_at: datetime | None = strawberry.field(description="When the author last edited the text; null if never.")
    deleted_at: datetime | None = strawberry.field(
        description="When the message was deleted; null if it was not. A tombstone has no text, stamp or reactions."
    )


@strawberry.type(description="A page of messages.")
class MessageTimeline(PageMixin, Timeline):
    items: list[Message] = strawberry.field(description="Items of the page, in the requested order.")


@strawberry.type(description="A chat room of a community.")
class Topic:
    id: ID = strawberry.field(description="Unique identifier. Treat as an opaque string.")
    title: str = strawberry.field(description="Title, 1 to 200 characters.")
    community: Community = shared_field(resolvers.chat.topics.community, "Community of the topic.")
    created_at: datetime = strawberry.field(description="When the topic was created.")
    last_activity: Timestamp = strawberry.field(
        description="Timestamp of the last message, or of the topic's creation if there is none."
    )
    slow_mode_seconds: int = strawberry.field(
        description="Seconds that a person has to wait between two messages; 0 without slow mode."
    )
    pinned_messages: list[Message] = field(
        resolvers.chat.community_settings.pinned_messages,
        "Pinned messages that are not by blocked users, the latest pin first; at most 50. Empty if the viewer has not "
        "joined the community.",
        batch_resolver=resolvers.chat.community_settings.pinned_messages_of_many,
    )
    last_message: Message | None = field(
        resolvers.chat.topics.last_message,
        "Newest message that is not by a blocked user; null if there is none, or if the viewer has not "
        "joined the community.",
        batch_resolver=resolvers.chat.topics.last_messages,
    )
    unread_count: int = field(
        resolvers.chat.topics.unread_count,
        "Number of messages after the viewer's read mark, at most 100. Deleted messages, messages of the viewer "
        "and messages of blocked users do not count. 0 if the viewer has not joined the community.",
        batch_resolver=resolvers.chat.topics.unread_counts,
    )
    read_up_to: Timestamp | None = field(
        resolvers.chat.topics.read_up_to,
        "Timestamp of the viewer's read mark; null if there is none, or if the viewer has not joined the community.",
        batch_resolver=resolvers.chat.topics.read_marks,
    )
    messages: MessageTimeline | None = field(
        resolvers.chat.topics.messages_of,
        "Messages of the topic; null if the viewer has not joined the community.",
        queries_per_object=True,
    )


@strawberry.type(description="A page of topics, ordered by last activity.")
class TopicTimeline(PageMixin, Timeline):
    items: list[Topic] = strawberry.field(description="Items of the page, in the requested order.")


@strawberry.type(description="A topic with a high posting rate.")
class TrendingTopic:
    topic: Topic = strawberry.field(description="The topic.")
    messages_per_minute: float = strawberry.field(
        description="Messages per minute: an average that decays exponentially with a time constant of 5 minutes."
    )
    people: int = strawberry.field(description="Number of people who posted in the last 30 minutes, at most 50.")


@strawberry.type(description="A reaction to one of the viewer's messages.")
class ReceivedReaction:
    timestamp: Timestamp = strawberry.field(
        description="Position on the viewer's timeline of reactions. It is unique, and later reactions have greater "
        "timestamps."
    )
    emoji: str = strawberry.field(description="One emoji: a single grapheme.")
    user: User = field(resolvers.chat.messages.received_from, "User who reacted.")
    message: Message = field(
        resolvers.chat.messages.received_on,
        "Message that the user reacted to. The query `messagesAround` returns it with its neighbours.",
    )


@strawberry.type(description="A page of received reactions.")
class ReactionTimeline(PageMixin, Timeline):
    items: list[ReceivedReaction] = strawberry.field(description="Items of the page, in the requested order.")
