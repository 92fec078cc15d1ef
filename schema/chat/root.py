"""Fields of Query and Mutation about communities, topics and messages. schema/root.py adds them to the root types."""

import strawberry

import resolvers.chat.communities
import resolvers.chat.messages
import resolvers.chat.stamp_ownerships
import resolvers.chat.stamps
import resolvers.chat.thread_follows
import resolvers.chat.topics
from resolvers.limits.writes import WriteLimit
from schema.binding import NO_KEY, field, mutation
from schema.chat.communities import Community, Topic, TopicTimeline, TrendingTopic
from schema.chat.messages import Message, MessageTimeline, ReactionTimeline
from schema.chat.stamps import Stamp, StampPack, StampPackOwnership
from schema.chat.threads import FollowedThreadTimeline


@strawberry.type
class ChatQuery:
    """Reads of the chat area."""

    communities: list[Community] = field(
        resolvers.chat.communities.communities,
        "Communities of the organization that the viewer may see, ordered by name. PRIVATE ones only if the viewer has "
        "joined them.",
    )
    community: Community | None = field(
        resolvers.chat.communities.community,
        "Community with this id. NOT_FOUND if there is none that the viewer may see.",
    )
    topic: Topic | None = field(
        resolvers.chat.topics.topic, "Topic with this id. NOT_FOUND if there is none that the viewer may see."
    )
    community_topics: TopicTimeline = field(
        resolvers.chat.communities.community_topics,
        "Topics of a community, ordered by last activity.",
        is_connection=True,
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
        is_connection=True,
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
        resolvers.chat.stamps.stamps, "Stamps of the program that messages can consist of. Needs no token."
    )
    stamp_packs: list[StampPack] = field(
        resolvers.chat.stamps.stamp_packs, "Packs of stamps of the organization, the earliest first; at most 20."
    )
    stamp_pack_ownerships: list[StampPackOwnership] = field(
        resolvers.chat.stamp_ownerships.stamp_pack_ownerships,
        "Packs that a person owns because of a rule or a moderator. Needs the role ADMIN.",
        scope=NO_KEY,
    )
    followed_threads: FollowedThreadTimeline = field(
        resolvers.chat.thread_follows.followed_threads,
        "Threads that the viewer follows and may read, ordered by last activity.",
        is_connection=True,
    )
    reactions_received: ReactionTimeline = field(
        resolvers.chat.messages.reactions_received,
        "Reactions to the viewer's messages.",
        is_connection=True,
    )


@strawberry.type
class ChatMutation:
    """Changes of the chat area."""

    create_community: Community = mutation(
        resolvers.chat.communities.create_community,
        "Creates a community with the viewer as its first member and owner. CONFLICT for a viewer who owns 200 "
        "communities.",
        limit=WriteLimit.JOINS,
    )
    join_community: Community = mutation(
        resolvers.chat.communities.join_community,
        "Joins a PUBLIC community. FORBIDDEN for a LISTED one, which is joined by `requestToJoin`, for an archived "
        "one, and for a banned person, with the end of the ban. Idempotent.",
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
        "Posts a message to a topic, or to the thread of one of its messages. The message is durable when the mutation "
        "returns. FORBIDDEN for a muted member, "
        "with the end of the mute, and in an archived topic or community. RATE_LIMITED while the topic's slow mode "
        "makes the author wait.",
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
        "of members, its owners also those of moderators, an ADMIN any message of a community whose topics the ADMIN "
        "may see. Idempotent.",
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
    follow_thread: Message = mutation(
        resolvers.chat.thread_follows.follow_thread,
        "Follows the thread of a message, which is started if there is none. CONFLICT for the 101st follower. Returns "
        "the message. Idempotent.",
        limit=WriteLimit.FOLLOWS,
    )
    unfollow_thread: Message = mutation(
        resolvers.chat.thread_follows.unfollow_thread,
        "Ends the following of the thread of a message. A further reply by the viewer follows it again. Returns the "
        "message, without its content if the viewer has blocked its author. Idempotent.",
        limit=WriteLimit.FOLLOWS,
    )
    create_stamp_pack: StampPack = mutation(
        resolvers.chat.stamps.create_stamp_pack,
        "Creates an empty pack of stamps for everyone. Idempotent by its name. QUOTA_EXCEEDED for the 21st pack. Needs "
        "the role ADMIN.",
        limit=WriteLimit.OPERATIONS,
        scope=NO_KEY,
    )
    remove_stamp_pack: StampPack = mutation(
        resolvers.chat.stamps.remove_stamp_pack,
        "Removes a pack, and deletes the pictures of its stamps. Returns the removed pack. Messages and reactions with "
        "them stay. Needs the role ADMIN.",
        limit=WriteLimit.OPERATIONS,
        scope=NO_KEY,
    )
    set_stamp_pack_availability: StampPack = mutation(
        resolvers.chat.stamps.set_stamp_pack_availability,
        "Decides who may use a pack. People who own it keep it. A rule also counts what people did before. Idempotent. "
        "Needs the role ADMIN.",
        limit=WriteLimit.OPERATIONS,
        scope=NO_KEY,
    )
    give_stamp_pack: StampPack = mutation(
        resolvers.chat.stamp_ownerships.give_stamp_pack,
        "Gives a pack to a person, who is notified. Moderators and owners of a community give packs to its members, an "
        "ADMIN to everybody. CONFLICT for a pack that is not GIVEN, and for a deactivated person. Idempotent.",
        limit=WriteLimit.MODERATION,
    )
    take_back_stamp_pack: StampPack = mutation(
        resolvers.chat.stamp_ownerships.take_back_stamp_pack,
        "Takes a pack back from a person. Messages and reactions with its stamps stay. CONFLICT for a pack that is not "
        "GIVEN. Idempotent. Needs the role ADMIN.",
        limit=WriteLimit.MODERATION,
        scope=NO_KEY,
    )
    add_stamp: StampPack = mutation(
        resolvers.chat.stamps.add_stamp,
        "Adds a picture to a pack. The picture then belongs to the organization. CONFLICT if the organization has a "
        "stamp with this name. QUOTA_EXCEEDED for the 51st stamp of a pack. Idempotent. Needs the role ADMIN.",
        limit=WriteLimit.OPERATIONS,
        scope=NO_KEY,
    )
    remove_stamp: StampPack = mutation(
        resolvers.chat.stamps.remove_stamp,
        "Removes a stamp from a pack, and deletes its picture. Messages and reactions with it stay. Idempotent. Needs "
        "the role ADMIN.",
        limit=WriteLimit.OPERATIONS,
        scope=NO_KEY,
    )
    mark_read: Topic = mutation(
        resolvers.chat.topics.mark_read,
        "Moves the viewer's read mark forward. An older timestamp changes nothing.",
        limit=None,
    )
