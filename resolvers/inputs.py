"""The input objects of mutations, as clients write them."""

import strawberry

_KEY = "The same key from the same user within 24 hours returns what it made; with other arguments it is a CONFLICT."


@strawberry.input(description="What a community is called and about.")
class CreateCommunityInput:
    name: str = strawberry.field(description="1 to 100 characters.")
    description: str = strawberry.field(default="", description="At most 2000 characters.")
    idempotency_key: str | None = strawberry.field(default=strawberry.UNSET, description=_KEY)


@strawberry.input(description="A new topic of a community that the viewer has joined.")
class CreateTopicInput:
    community_id: strawberry.ID = strawberry.field(description="The community.")
    title: str = strawberry.field(description="1 to 200 characters.")
    idempotency_key: str | None = strawberry.field(default=strawberry.UNSET, description=_KEY)


@strawberry.input(description="Text, a stamp, or both.")
class PostMessageInput:
    topic_id: strawberry.ID = strawberry.field(description="The topic; its community must be joined.")
    text: str = strawberry.field(
        default="", description="At most 4000 characters. @handle mentions somebody; the first link gets a preview."
    )
    stamp_id: strawberry.ID | None = strawberry.field(default=strawberry.UNSET, description="Id of one of `stamps`.")
    idempotency_key: str | None = strawberry.field(default=strawberry.UNSET, description=_KEY)


@strawberry.input(description="A new post for those who follow the viewer.")
class CreatePostInput:
    text: str = strawberry.field(
        description="At most 4000 characters; empty only with media. @handle mentions somebody, #tag is a hashtag; the "
        "first link gets a preview."
    )
    media_urls: list[str] = strawberry.field(
        default_factory=list, description="Up to 10 http or https addresses of pictures, shown by way of this server."
    )
    idempotency_key: str | None = strawberry.field(default=strawberry.UNSET, description=_KEY)
