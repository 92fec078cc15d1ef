"""GraphQL types of messages and reactions."""

from datetime import datetime

import strawberry
from strawberry import ID

import resolvers.chat.messages
import resolvers.chat.threads
from schema.binding import field, shared_field
from schema.chat.stamps import Stamp
from schema.chat.threads import Quote, Thread, ThreadReply
from schema.files import Attachment, LinkPreview
from schema.identity import User
from schema.nodes import Node
from schema.timeline import ConnectionPage, Edge, Timeline
from storage.chat.roles import CommunityRole
from storage.timeline import Timestamp

strawberry.enum(
    CommunityRole,
    description="Role in one community. OWNER sets roles and acts on moderators, MODERATOR acts on members.",
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


@strawberry.type(description="A message of a topic, or the tombstone of a deleted one.")
class Message(Node):
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
class MessageTimeline(ConnectionPage, Timeline):
    items: list[Message] = strawberry.field(description="Items of the page, in the requested order.")
    edges: list[Edge[Message]] = strawberry.field(description="The items, the newest first.")


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
class ReactionTimeline(ConnectionPage, Timeline):
    items: list[ReceivedReaction] = strawberry.field(description="Items of the page, in the requested order.")
    edges: list[Edge[ReceivedReaction]] = strawberry.field(description="The items, the newest first.")
