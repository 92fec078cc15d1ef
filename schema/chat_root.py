"""Fields of Query and Mutation about communities, topics and messages. schema/root.py adds them to the root types."""

import strawberry

import resolvers.chat.communities
import resolvers.chat.messages
import resolvers.chat.stamps
import resolvers.chat.topics
from resolvers.write_limits import WriteLimit
from schema.binding import field, mutation
from schema.chat import (
    Community,
    Message,
    MessageTimeline,
    ReactionTimeline,
    Stamp,
    Topic,
    TopicTimeline,
    TrendingTopic,
)


@strawberry.type
class ChatQuery:
    """Reads of the chat area."""

    communities: list[Community] = field(
        resolvers.chat.communities.communities,
        "Communities of the organization that the viewer may see, ordered by name. PRIVATE ones only if the viewer has "
        "joined them.",
    )
    community: Community | None = field(
        resolvers.chat.communities.community, "Community with this id. NOT_FOUND if the viewer may see none."
    )
    topic: Topic | None = field(
        resolvers.chat.topics.topic, "Topic with this id. NOT_FOUND if the viewer may see none."
    )
    community_topics: TopicTimeline = field(
        resolvers.chat.communities.community_topics, "Topics of a community, ordered by last activity."
    )
    message: Message | None = field(
        resolvers.chat.messages.message,
        "Message with this id. NOT_FOUND if there is none, or if the viewer blocked its author. FORBIDDEN if the "
        "viewer has not joined the community.",
    )
    messages: MessageTimeline = field(
        resolvers.chat.topics.messages,
        "Messages of a topic. FORBIDDEN if the viewer has not joined the community.",
        serves_audiences=True,
    )
    messages_around: MessageTimeline = field(
        resolvers.chat.topics.messages_around,
        "At most `limit` messages around a timestamp, in ascending order. Up to half of them are older than the "
        "timestamp. FORBIDDEN if the viewer has not joined the community.",
        serves_audiences=True,
    )
    trending_topics: list[TrendingTopic] = field(
        resolvers.chat.communities.trending_topics,
        "Topics that the viewer may see and where at least two people posted recently. Most people first.",
    )
    stamps: list[Stamp] = field(
        resolvers.chat.stamps.stamps, "Catalogue of stamps that messages can consist of. Needs no token."
    )
    reactions_received: ReactionTimeline = field(
        resolvers.chat.messages.reactions_received, "Reactions to the viewer's messages."
    )


@strawberry.type
class ChatMutation:
    """Changes of the chat area."""

    create_community: Community = mutation(
        resolvers.chat.communities.create_community,
        "Creates a community with the viewer as its first member and owner.",
        limit=WriteLimit.JOINS,
    )
    join_community: Community = mutation(
        resolvers.chat.communities.join_community,
        "Joins a PUBLIC community. FORBIDDEN for a LISTED one, which is joined by `requestToJoin`, and for a banned "
        "person, with the end of the ban. Idempotent.",
        limit=WriteLimit.JOINS,
    )
    leave_community: Community = mutation(
        resolvers.chat.communities.leave_community,
        "Leaves a community, or withdraws the request to join it. The viewer's subscriptions to its topics end within "
        "5 seconds. CONFLICT for the last owner. Idempotent.",
        limit=WriteLimit.JOINS,
    )
    create_topic: Topic = mutation(
        resolvers.chat.communities.create_topic,
        "Creates a topic in a community that the viewer has joined.",
        limit=WriteLimit.JOINS,
    )
    post_message: Message = mutation(
        resolvers.chat.messages.post_message,
        "Posts a message to a topic. The message is durable when the mutation returns. FORBIDDEN for a muted member, "
        "with the end of the mute, and in an archived community. RATE_LIMITED while the topic's slow mode makes the "
        "author wait.",
        limit=WriteLimit.MESSAGES,
    )
    edit_message: Message = mutation(
        resolvers.chat.messages.edit_message,
        "Replaces the text of the viewer's own message.",
        limit=WriteLimit.MESSAGES,
    )
    delete_message: Message = mutation(
        resolvers.chat.messages.delete_message,
        "Deletes a message and leaves a tombstone. Users delete their own messages, moderators of the community those "
        "of members, its owners also those of moderators, an ADMIN any message. Idempotent.",
        limit=WriteLimit.MESSAGES,
    )
    add_reaction: Message = mutation(
        resolvers.chat.messages.add_reaction, "Adds a reaction to a message. Idempotent.", limit=WriteLimit.REACTIONS
    )
    remove_reaction: Message = mutation(
        resolvers.chat.messages.remove_reaction,
        "Removes the viewer's reaction from a message. Idempotent.",
        limit=WriteLimit.REACTIONS,
    )
    mark_read: Topic = mutation(
        resolvers.chat.topics.mark_read,
        "Moves the viewer's read mark forward. An older timestamp changes nothing.",
        limit=None,
    )
