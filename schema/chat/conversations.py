"""GraphQL types and root fields of conversations. schema/root.py adds the fields to the root types."""

from datetime import datetime

import strawberry
from strawberry import ID

import resolvers.chat.conversations
from resolvers.limits.writes import WriteLimit
from schema.binding import field, mutation
from schema.chat.communities import Topic
from schema.identity import User
from schema.nodes import Node, own_id
from schema.timeline import ConnectionPage, Edge, Timeline
from storage.chat.conversations.records import ConversationState

strawberry.enum(
    ConversationState,
    description="JOINED: the viewer reads and writes. REQUESTED: the viewer reads, and accepts or declines.",
)


@strawberry.type(description="A person of a conversation.")
class ConversationPerson:
    user: User = field(
        resolvers.chat.conversations.person_user,
        "The person.",
        batch_resolver=resolvers.chat.conversations.person_users,
    )
    joined: bool = strawberry.field(
        description="Whether the person has joined. False for a person who has not accepted the request, and for one "
        "who has left a conversation between two people."
    )


@strawberry.type(
    description="Direct messages between two people, or in a group of at most 50. Nobody else sees that it exists."
)
class Conversation(Node):
    id: ID = own_id(
        "Conversation",
        "Unique identifier. Treat as an opaque string. Where the id of `topic` is expected, it is accepted, too.",
    )
    name: str = strawberry.field(
        description="Name of a group, at most 100 characters; may be empty. Always empty between two people."
    )
    is_group: bool = strawberry.field(
        description="Whether people can be added. False for the conversation of two people."
    )
    state: ConversationState = field(resolvers.chat.conversations.state, "Whether the viewer has joined.")
    people: list[ConversationPerson] = strawberry.field(
        description="The people, the viewer included, those who have joined first. People who have left a group are "
        "not among them."
    )
    created_at: datetime = strawberry.field(description="When the conversation was started.")
    topic: Topic = strawberry.field(
        description="The messages, with the last one, the viewer's read mark and the number of unread ones. "
        "The topic's `community` is made up from the conversation, and no other field returns it."
    )


@strawberry.type(description="A page of conversations, ordered by last activity.")
class ConversationTimeline(ConnectionPage, Timeline):
    items: list[Conversation] = strawberry.field(description="Items of the page, in the requested order.")
    edges: list[Edge[Conversation]] = strawberry.field(description="The items, the newest first.")


@strawberry.type
class ConversationQuery:
    """Reads of conversations."""

    conversation: Conversation | None = field(
        resolvers.chat.conversations.conversation,
        "Conversation with this id. NOT_FOUND unless the viewer has joined it or was asked.",
    )
    conversations: ConversationTimeline = field(
        resolvers.chat.conversations.conversations,
        "The viewer's conversations, ordered by last activity. One that somebody else has started is listed from its "
        "first message on.",
        is_connection=True,
    )


@strawberry.type
class ConversationMutation:
    """Changes of conversations."""

    start_conversation: Conversation = mutation(
        resolvers.chat.conversations.start_conversation,
        "Starts a conversation. With one person it returns the conversation that the two have, if there is one. A "
        "person who has left it is asked again. With several people it starts a new group. People who share no "
        "community with the viewer and do not follow the viewer are asked, and the others join at once. Everybody else "
        "sees the conversation from its first message on. FORBIDDEN with a block or a deactivated person, RATE_LIMITED "
        "after too many people in 24 hours.",
        limit=WriteLimit.JOINS,
    )
    accept_conversation: Conversation = mutation(
        resolvers.chat.conversations.accept_conversation,
        "Accepts a request, also one that the viewer has declined. CONFLICT if the group is full. Idempotent.",
        limit=WriteLimit.JOINS,
    )
    decline_conversation: bool = mutation(
        resolvers.chat.conversations.decline_conversation,
        "Declines a request. Nobody else notices, and the viewer is not asked again. Returns true. CONFLICT for a "
        "conversation that the viewer has joined. Idempotent.",
        limit=WriteLimit.JOINS,
    )
    leave_conversation: bool = mutation(
        resolvers.chat.conversations.leave_conversation,
        "Leaves a conversation, or declines the request. The viewer's subscriptions to its messages end within 5 "
        "seconds. Returns true. Idempotent.",
        limit=WriteLimit.JOINS,
    )
    add_to_conversation: Conversation = mutation(
        resolvers.chat.conversations.add_to_conversation,
        "Adds people to a group that the viewer has joined. They read all its messages. People who share no community "
        "with the viewer and do not follow the viewer, and those who have left the group, are asked; for those who "
        "have declined nothing happens. CONFLICT for a conversation between two people and for a full group, FORBIDDEN "
        "and RATE_LIMITED as in `startConversation`. Idempotent.",
        limit=WriteLimit.JOINS,
    )
    rename_conversation: Conversation = mutation(
        resolvers.chat.conversations.rename_conversation,
        "Renames a group that the viewer has joined. CONFLICT for a conversation between two people. Idempotent.",
        limit=WriteLimit.JOINS,
    )
