"""Input objects of the mutations of communities, topics, messages and posts."""

import strawberry

from resolvers.idempotency import KEY_DESCRIPTION
from storage.chat.records import CommunityVisibility
from storage.feed.content_reports.records import ContentReportDecision

strawberry.enum(
    CommunityVisibility,
    description="PUBLIC: everybody in the organization sees the community and may join. LISTED: everybody sees name, "
    "description and number of members; moderators approve who joins. PRIVATE: only members see that it exists; "
    "moderators add people.",
)

strawberry.enum(
    ContentReportDecision,
    description="DISMISS: nothing happens. REMOVE: the message or post is deleted. WARN: the author gets a "
    "notification with the note. BAN: the author of a message is banned from the community; the author of a post and a "
    "reported person are deactivated, as by `deactivateUser`.",
)


@strawberry.input(description="A new community.")
class CreateCommunityInput:
    name: str = strawberry.field(description="Name, 1 to 100 characters.")
    description: str = strawberry.field(default="", description="Description, at most 2000 characters.")
    visibility: CommunityVisibility = strawberry.field(
        default=CommunityVisibility.PUBLIC, description="Who sees the community, and how people join it."
    )
    idempotency_key: str | None = strawberry.field(default=strawberry.UNSET, description=KEY_DESCRIPTION)


@strawberry.input(description="A new topic of a community.")
class CreateTopicInput:
    community_id: strawberry.ID = strawberry.field(description="Id of a community that the viewer has joined.")
    title: str = strawberry.field(description="Title, 1 to 200 characters.")
    idempotency_key: str | None = strawberry.field(default=strawberry.UNSET, description=KEY_DESCRIPTION)


@strawberry.input(description="A file to attach.")
class AttachmentInput:
    upload_id: strawberry.ID = strawberry.field(
        description="Id of an upload of the viewer that is READY, and not attached or in the viewer's library."
    )
    alt_text: str = strawberry.field(
        default="",
        description="Text that describes the file to people who can't see it, at most 1500 characters. Required for "
        "pictures.",
    )


@strawberry.input(description="A new message: a text, a stamp, files, or several of them.")
class PostMessageInput:
    topic_id: strawberry.ID = strawberry.field(description="Id of a topic whose community the viewer has joined.")
    reply_to: strawberry.ID | None = strawberry.field(
        default=strawberry.UNSET,
        description="Id of a message of the topic. The new message is then posted to the thread of that message. A "
        "reply has no thread of its own.",
    )
    also_to_topic: bool = strawberry.field(
        default=False,
        description="Whether a reply is also shown in the topic of the message to which it replies, as a message with "
        "`threadReply`. Only for replies: with `replyTo`, or with the id of a thread as `topicId`.",
    )
    text: str = strawberry.field(
        default="",
        description="Text, at most 4000 characters; empty only with a stamp or files. @handle mentions a user; the "
        "first link gets a preview; neither counts in `code`. Clients show **bold**, *italic*, > quotes and - lists.",
    )
    stamp_id: strawberry.ID | None = strawberry.field(
        default=strawberry.UNSET, description="Id of a stamp from `stamps` or `stampPacks`."
    )
    quoted_message_id: strawberry.ID | None = strawberry.field(
        default=strawberry.UNSET,
        description="Id of a message to quote, of this or another topic. The viewer must be able to read it now, and "
        "it must not be deleted.",
    )
    attachments: list[AttachmentInput] | None = strawberry.field(
        default=strawberry.UNSET, description="Files of the message, at most 10, each once."
    )
    idempotency_key: str | None = strawberry.field(default=strawberry.UNSET, description=KEY_DESCRIPTION)


@strawberry.input(description="A new conversation.")
class StartConversationInput:
    user_ids: list[strawberry.ID] = strawberry.field(
        description="Ids of the other people: one for a conversation between two people, 2 to 49 for a group."
    )
    group_name: str = strawberry.field(
        default="", description="Name of a group, at most 100 characters; empty for a conversation between two people."
    )
    idempotency_key: str | None = strawberry.field(default=strawberry.UNSET, description=KEY_DESCRIPTION)


@strawberry.input(description="A new post for the viewer's followers.")
class CreatePostInput:
    text: str = strawberry.field(
        description="Text, at most 4000 characters; empty only with media or files. @handle mentions a user, #tag is a "
        "hashtag; the first link gets a preview; none of them counts in `code`. Clients show **bold**, *italic*, > "
        "quotes and - lists."
    )
    media_urls: list[str] = strawberry.field(
        default_factory=list,
        description="Up to 10 http or https URLs of images. In `Post.mediaUrls` they are replaced by URLs of this "
        "server's image proxy.",
    )
    attachments: list[AttachmentInput] | None = strawberry.field(
        default=strawberry.UNSET, description="Files of the post, at most 10, each once."
    )
    in_reply_to: strawberry.ID | None = strawberry.field(
        default=strawberry.UNSET,
        description="Id of the post that the new post replies to. With the id of a repost, the new post replies to the "
        "original. FORBIDDEN if the author of that post has blocked the viewer.",
    )
    quote_of: strawberry.ID | None = strawberry.field(
        default=strawberry.UNSET,
        description="Id of the post that the new post quotes. With the id of a repost, the new post quotes the "
        "original. FORBIDDEN if the author of that post has blocked the viewer. A reply cannot quote.",
    )
    idempotency_key: str | None = strawberry.field(default=strawberry.UNSET, description=KEY_DESCRIPTION)
