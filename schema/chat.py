"""GraphQL types of communities, topics, messages, reactions and stamps."""

from datetime import datetime
from typing import Annotated

import strawberry
from strawberry import ID

import resolvers.chat.communities
import resolvers.chat.community_settings
import resolvers.chat.cross_posts
import resolvers.chat.messages
import resolvers.chat.moderation
import resolvers.chat.quotes
import resolvers.chat.stamp_ownerships
import resolvers.chat.threads
import resolvers.chat.topics
import resolvers.mutes
from schema.binding import field, shared_field
from schema.files import Attachment, LinkPreview
from schema.identity import User
from schema.timeline import PageMixin, Timeline
from storage.chat.records import CommunityVisibility
from storage.chat.roles import CommunityRole
from storage.chat.stamps.rules import StampPackAvailability, StampRuleKind
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
    topics: list[Annotated["Topic", strawberry.lazy("schema.chat")]] = field(
        resolvers.chat.communities.latest_topics,
        "The most recently active topics that are not archived. The query `communityTopics` pages through all topics. "
        "Empty for viewers who have not joined a community that is not PUBLIC.",
        batch_resolver=resolvers.chat.communities.latest_topics_of_many,
    )


@strawberry.type(description="A picture that a message can consist of: one of the program, or of the organization.")
class Stamp:
    id: ID = strawberry.field(description="Value for `stampId` in `postMessage`.")
    name: str = strawberry.field(
        description="Name of the picture: in English for one of the program, and as the administrator named it for one "
        "of the organization."
    )
    image_url: str = strawberry.field(
        description="Path of the picture, relative to the server's origin. The picture of a stamp of the organization "
        "needs the viewer's credentials, and leads to nothing after the stamp was removed."
    )
    thumbnail_url: str = strawberry.field(
        description="Path of the picture in at most 64 pixels, for reactions and lists. For a stamp of the program, "
        "the same as `imageUrl`."
    )
    emoji: str | None = strawberry.field(
        description="The name between colons, such as `:lit:`, with which `addReaction` adds this stamp as a reaction. "
        "Null for a stamp of the program."
    )


@strawberry.type(description="What people do to earn a pack.")
class StampRule:
    kind: StampRuleKind = strawberry.field(description="What is counted.")
    threshold: int = strawberry.field(description="The count from which on a person owns the pack.")


@strawberry.type(description="Stamps that administrators have uploaded for the organization.")
class StampPack:
    id: ID = strawberry.field(description="Unique identifier. Treat as an opaque string.")
    name: str = strawberry.field(description="Name of the pack, unique in the organization.")
    stamps: list[Stamp] = strawberry.field(description="Stamps of the pack, the earliest first; at most 50.")
    availability: StampPackAvailability = strawberry.field(description="Who may use the pack.")
    rule: StampRule | None = strawberry.field(
        description="What people do to earn the pack; null unless its availability is EARNED."
    )
    owned: bool = field(
        resolvers.chat.stamp_ownerships.owned,
        "Whether the viewer may post the stamps of the pack and react with them.",
        batch_resolver=resolvers.chat.stamp_ownerships.owned_of_many,
    )
    progress: int | None = field(
        resolvers.chat.stamp_ownerships.progress,
        "The viewer's count for the rule, at most its threshold. The threshold if the viewer owns the pack; null "
        "without a rule. A viewer who reaches the threshold gets the pack usually within 20 seconds, otherwise "
        "within about a day. For MEMBER_DAYS it always takes up to a day.",
        batch_resolver=resolvers.chat.stamp_ownerships.progress_of_many,
    )


@strawberry.type(description="A pack that a person owns.")
class StampPackOwnership:
    pack: StampPack | None = field(
        resolvers.chat.stamp_ownerships.owned_pack,
        "The pack; null if it was removed meanwhile.",
        batch_resolver=resolvers.chat.stamp_ownerships.owned_packs,
    )
    owned_since: datetime = strawberry.field(description="When the person got the pack.")
    giver: User | None = field(
        resolvers.chat.stamp_ownerships.giver,
        "User who gave the pack; null if it was earned.",
        batch_resolver=resolvers.chat.stamp_ownerships.givers,
    )


@strawberry.type(
    description="An emoji of a message and the users who reacted with it, without users whom the viewer blocked."
)
class Reaction:
    emoji: str = strawberry.field(
        description="One emoji of Unicode, or the name of a stamp between colons, such as `:lit:`. `stampPacks` has "
        "its picture; show the text if the stamp was removed."
    )
    count: int = strawberry.field(description="Number of users who reacted with the emoji.")
    reacted: bool = strawberry.field(description="Whether the viewer reacted with the emoji.")
    users: list[User] = field(
        resolvers.chat.messages.reaction_users,
        "Users who reacted with the emoji, earliest first.",
        serves_audiences=True,
        queries_per_object=True,
    )


@strawberry.type(
    description="The replies to a message. They are the messages of a topic of their own, without those of users whom "
    "the viewer blocked."
)
class Thread:
    id: ID = strawberry.field(
        description="Id of the thread's topic. The fields, mutations and subscriptions of topics take it. Lists of "
        "topics do not contain it."
    )
    reply_count: int = strawberry.field(description="Number of undeleted replies, updated at most once a second.")
    last_reply_at: Timestamp | None = strawberry.field(description="Timestamp of the last reply; null without replies.")
    last_reply: Annotated["Message", strawberry.lazy("schema.chat")] | None = field(
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
    message: Annotated["Message", strawberry.lazy("schema.chat")] | None = field(
        resolvers.chat.quotes.quoted_message,
        "The quoted message as it is now, or its tombstone. Null if the viewer may not read it, and if the viewer has "
        "blocked its author.",
        batch_resolver=resolvers.chat.quotes.quoted_messages,
        serves_audiences=True,
    )


@strawberry.type(description="The reply of a thread that a message of a topic shows.")
class ThreadReply:
    thread_id: ID = strawberry.field(description="Id of the thread's topic.")
    message: Annotated["Message", strawberry.lazy("schema.chat")] = shared_field(
        resolvers.chat.cross_posts.shown_reply,
        "The reply.",
        batch_resolver=resolvers.chat.cross_posts.shown_replies,
    )
    parent_message: Annotated["Message", strawberry.lazy("schema.chat")] | None = field(
        resolvers.chat.cross_posts.parent,
        "The message to which people reply, or its tombstone; null if the viewer has blocked its author.",
        batch_resolver=resolvers.chat.cross_posts.parents,
        serves_audiences=True,
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
    author_role: CommunityRole | None = shared_field(
        resolvers.chat.messages.author_role,
        "Role of the author in the topic's community; null for an author who is no member. A viewer of a higher rank "
        "may delete the message, and mute, remove and ban the author.",
        batch_resolver=resolvers.chat.messages.author_roles,
    )
    text: str = strawberry.field(
        description="Text as written, with the markers of its formatting, such as **bold** and `code`; empty if the "
        "message has only a stamp, and on a tombstone."
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
    thread: Thread | None = field(
        resolvers.chat.threads.thread,
        "The replies to the message; null before the first one, and on a reply. It stays when the message is deleted.",
        batch_resolver=resolvers.chat.threads.threads,
        serves_audiences=True,
    )
    link_preview: LinkPreview | None = shared_field(
        resolvers.chat.messages.link_preview,
        "Preview of the first link in the text. Null without a link, and until the preview is fetched. "
        "`MessageEdited` is emitted when the preview is stored.",
        batch_resolver=resolvers.chat.messages.link_previews,
    )
    attachments: list[Attachment] = strawberry.field(
        description="Attached files in their order, at most 10; empty on a tombstone."
    )
    quote: Quote | None = strawberry.field(
        description="The quoted message; null if the message quotes none, and on a tombstone."
    )
    thread_reply: ThreadReply | None = strawberry.field(
        description="The reply that this message shows in the topic, because its author also sent it there; null for "
        "every other message, and on a tombstone. Text, stamp, files and quote are those of the reply. Edit the reply, "
        "reply or react in the thread: this message refuses it with CONFLICT or BAD_USER_INPUT. Deleting this message "
        "keeps the reply; deleting the reply deletes this message, too."
    )
    also_in_topic: bool = strawberry.field(
        description="Whether this is a reply whose author also sent it to the topic; also after it was removed there."
    )
    edited_at: datetime | None = strawberry.field(description="When the author last edited the text; null if never.")
    deleted_at: datetime | None = strawberry.field(
        description="When the message was deleted; null if it was not. A tombstone has no text, stamp, reactions or "
        "files."
    )


@strawberry.type(description="A page of messages.")
class MessageTimeline(PageMixin, Timeline):
    items: list[Message] = strawberry.field(description="Items of the page, in the requested order.")


@strawberry.type(
    description="A chat room of a community, the messages of a conversation, or a thread: the replies to a message."
)
class Topic:
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
    )


@strawberry.type(description="A page of topics, ordered by last activity.")
class TopicTimeline(PageMixin, Timeline):
    items: list[Topic] = strawberry.field(description="Items of the page, in the requested order.")


@strawberry.type(description="A topic where at least two people posted recently.")
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
    emoji: str = strawberry.field(
        description="One emoji of Unicode, or the name of a stamp between colons, such as `:lit:`. `stampPacks` has "
        "its picture; show the text if the stamp was removed."
    )
    user: User = field(resolvers.chat.messages.received_from, "User who reacted.")
    message: Message = field(
        resolvers.chat.messages.received_on,
        "Message that the user reacted to. The query `messagesAround` returns it with its neighbours.",
    )


@strawberry.type(description="A page of received reactions.")
class ReactionTimeline(PageMixin, Timeline):
    items: list[ReceivedReaction] = strawberry.field(description="Items of the page, in the requested order.")
