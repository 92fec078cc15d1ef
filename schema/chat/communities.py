"""GraphQL types of communities and topics."""

from datetime import datetime
from typing import Annotated

import strawberry
from strawberry import ID

import resolvers.chat.communities
import resolvers.chat.community_settings
import resolvers.chat.moderation
import resolvers.chat.topics
import resolvers.mutes
from schema.binding import field, shared_field
from schema.chat.messages import Message, MessageTimeline
from schema.identity import User
from schema.nodes import Node
from schema.timeline import ConnectionPage, Edge, Timeline
from storage.chat.records import CommunityVisibility
from storage.chat.roles import CommunityRole
from storage.timeline import Timestamp


@strawberry.type(description="A group of users of one organization, with topics to talk in.")
class Community(Node):
    id: ID = strawberry.field(description="Unique identifier. Treat as an opaque string.")
    name: str = strawberry.field(description="Name, 1 to 100 characters.")
    description: str = strawberry.field(description="Description, at most 2000 characters; may be empty.")
    member_count: int = strawberry.field(description="Number of members.")
    visibility: CommunityVisibility = strawberry.field(description="Who sees the community, and how people join it.")
    archived_at: datetime | None = strawberry.field(
        description="When the community was archived, which makes it read-only; null if it is not."
    )
    picture_url: str | None = strawberry.field(
        description="Path of the community's picture, relative to the server's origin; null without one. A square of "
        "at most 192 pixels, for those who may see the community. Each request needs the viewer's credentials: the "
        "cookie of a session, or the header Authorization. Another picture has another path."
    )
    banner_url: str | None = strawberry.field(
        description="Path of the community's banner, relative to the server's origin; null without one. A picture "
        "three times as wide as high, at most 1500 pixels wide. It needs credentials and changes as `pictureUrl` does."
    )
    joined: bool = field(
        resolvers.chat.communities.joined, "Whether the viewer is a member.", resolvers.chat.communities.joined_of_many
    )
    viewer_role: CommunityRole | None = field(
        resolvers.chat.moderation.own_role, "The viewer's role in the community; null if the viewer has not joined it."
    )
    viewer_muted_until: datetime | None = field(
        resolvers.chat.moderation.own_mute,
        "When the viewer may post, react and edit again; null if the viewer is not muted.",
    )
    muted: bool = field(
        resolvers.mutes.is_community_muted,
        "Whether the viewer has muted this community (`muteCommunity`). `viewerMutedUntil` is a moderator's decision.",
    )
    members: list[User] = field(
        resolvers.chat.communities.members,
        "Members, ordered by handle. Empty for viewers who have not joined a community that is not PUBLIC.",
        queries_per_object=True,
    )
    topics: list[Annotated["Topic", strawberry.lazy("schema.chat.communities")]] = field(
        resolvers.chat.communities.latest_topics,
        "The most recently active topics that are not archived. The query `communityTopics` pages through all topics. "
        "Empty for viewers who have not joined a community that is not PUBLIC.",
        batch_resolver=resolvers.chat.communities.latest_topics_of_many,
    )


@strawberry.type(
    description="A chat room of a community, the messages of a conversation, or a thread: the replies to a message."
)
class Topic(Node):
    id: ID = strawberry.field(description="Unique identifier. Treat as an opaque string.")
    title: str = strawberry.field(
        description="Title, 1 to 200 characters. For a conversation its name, which may be empty. Empty for a thread."
    )
    parent_message_id: ID | None = strawberry.field(
        description="Id of the message to which the messages of a thread reply; null for all other topics."
    )
    community: Community = shared_field(
        resolvers.chat.topics.community, "Community of the topic.", batch_resolver=resolvers.chat.topics.communities
    )
    created_at: datetime = strawberry.field(description="When the topic was created.")
    last_activity: Timestamp = strawberry.field(
        description="Timestamp of the last message, or of the topic's creation if there is none."
    )
    archived_at: datetime | None = strawberry.field(
        description="When the topic was archived, which makes it read-only; null if it is not. The topics of an "
        "archived community are read-only as well."
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
    muted: bool = field(
        resolvers.mutes.is_topic_muted,
        "Whether the viewer has muted this topic (`muteTopic`). A mute of its community does not count here.",
        batch_resolver=resolvers.mutes.are_topics_muted,
    )
    messages: MessageTimeline | None = field(
        resolvers.chat.topics.messages_of,
        "Messages of the topic; null if the viewer has not joined the community.",
        queries_per_object=True,
        is_connection=True,
    )


@strawberry.type(description="A page of topics, ordered by last activity.")
class TopicTimeline(ConnectionPage, Timeline):
    items: list[Topic] = strawberry.field(description="Items of the page, in the requested order.")
    edges: list[Edge[Topic]] = strawberry.field(description="The items, the newest first.")


@strawberry.type(description="A topic where at least two people posted recently.")
class TrendingTopic:
    topic: Topic = strawberry.field(description="The topic.")
    messages_per_minute: float = strawberry.field(
        description="Messages per minute: an average that decays exponentially with a time constant of 5 minutes."
    )
    people: int = strawberry.field(description="Number of people who posted in the last 30 minutes, at most 50.")
