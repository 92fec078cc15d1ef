"""Input objects of the mutations of communities, topics, messages and posts."""

import strawberry

from resolvers.idempotency import KEY_DESCRIPTION
from storage.chat.visibility import CommunityVisibility
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


@strawberry.input(description="A new message: a text, a stamp, or both.")
class PostMessageInput:
    topic_id: strawberry.ID = strawberry.field(description="Id of a topic whose community the viewer has joined.")
    text: str = strawberry.field(
        default="",
        description="Text, at most 4000 characters; empty only with a stamp. @handle mentions a user; the first link "
        "gets a preview.",
    )
    stamp_id: strawberry.ID | None = strawberry.field(
        default=strawberry.UNSET, description="Id of a stamp from the query `stamps`."
    )
    idempotency_key: str | None = strawberry.field(default=strawberry.UNSET, description=KEY_DESCRIPTION)


@strawberry.input(description="A new post for the viewer's followers.")
class CreatePostInput:
    text: str = strawberry.field(
        description="Text, at most 4000 characters; empty only with media. @handle mentions a user, #tag is a "
        "hashtag; the first link gets a preview."
    )
    media_urls: list[str] = strawberry.field(
        default_factory=list,
        description="Up to 10 http or https URLs of images. In `Post.mediaUrls` they are replaced by URLs of this "
        "server's image proxy.",
    )
    idempotency_key: str | None = strawberry.field(default=strawberry.UNSET, description=KEY_DESCRIPTION)
