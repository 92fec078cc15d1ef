"""Input objects of scheduled posts and connected accounts."""

from datetime import datetime

import strawberry
from strawberry import ID, UNSET

from resolvers.idempotency import KEY_DESCRIPTION
from resolvers.inputs import AttachmentInput
from resolvers.publishing.times import LocalDateTime
from storage.publishing.networks import MediaKind, Network

_DUE = (
    "When to publish, as an instant. With Z or +00:00 it is an instant in any time zone. Any other offset must be the "
    "offset of `timeZone` at that instant, unless `timeZone` is UTC; otherwise BAD_USER_INPUT."
)
_DUE_LOCAL = (
    "When to publish, as clocks in `timeZone` show it. BAD_USER_INPUT, with both possible instants, if clock changes "
    "skip or repeat that local time."
)
_LATENESS = (
    "Number of seconds after `dueAt` in which the post may still be published if the service was down, 1 to 604800. "
    "After that time it fails, and its author is notified."
)
_CREDENTIALS = (
    "Depends on the network. WEBHOOK: the secret. MASTODON: an access token with the scopes profile (or "
    "read:accounts), write:statuses and write:media. BLUESKY: handle:app-password. X: an OAuth 2 user token with the "
    "scopes users.read, tweet.read, tweet.write and media.write. INSTAGRAM: user-id:token. SANDBOX: ok, fail, lose "
    "(publishes, but its answer gets lost) or slow. Stored encrypted and never returned."
)
_ZONE = "IANA time zone of the author, such as Asia/Tokyo."

strawberry.enum(
    Network,
    description=(
        "Destination of posts outside Noroshi. WEBHOOK: posts are sent as signed requests to the account's URL. "
        "SANDBOX: a built-in network for tests, whose posts nobody sees."
    ),
)
strawberry.enum(MediaKind, description="Kind of a medium. A REEL is Instagram's own kind of video.")


@strawberry.input(description="An account of the organization at a social network.")
class ConnectAccountInput:
    network: Network = strawberry.field(description="Network of the account.")
    name: str = strawberry.field(description="Name to show in the organization, 1 to 100 characters.")
    base_url: str | None = strawberry.field(
        default=UNSET,
        description="URL of the Mastodon server or of the webhook. Omitted or null: the network's own URL.",
    )
    credentials: str = strawberry.field(
        description=f"{_CREDENTIALS} The network must accept them: otherwise BAD_USER_INPUT with its reason, and "
        "UNAVAILABLE if it does not answer."
    )
    idempotency_key: str | None = strawberry.field(default=UNSET, description=KEY_DESCRIPTION)


@strawberry.input(description="An account to connect in the browser, without its credentials.")
class ConnectAccountInBrowserInput:
    network: Network = strawberry.field(description="Network of the account, one of `browserNetworks`.")
    name: str = strawberry.field(description="Name to show in the organization, 1 to 100 characters.")
    base_url: str | None = strawberry.field(
        default=UNSET, description="URL of the Mastodon server. Omitted or null for other networks."
    )


@strawberry.input(description="New credentials of a connected account.")
class ReplaceAccountCredentialsInput:
    account_id: ID = strawberry.field(description="Id of the account, which must be connected.")
    credentials: str = strawberry.field(
        description=f"{_CREDENTIALS} The network must accept them, and name the same account as before: otherwise "
        "BAD_USER_INPUT, and UNAVAILABLE if it does not answer. The present credentials then stay."
    )
    idempotency_key: str | None = strawberry.field(default=UNSET, description=KEY_DESCRIPTION)


@strawberry.input(description="An image or a video, given by its URL.")
class ScheduledMediaInput:
    url: str = strawberry.field(description="http or https URL of the image or video, up to 2048 characters.")
    alt_text: str = strawberry.field(
        default="", description="Alternative text for people who cannot see it, at most 1500 characters."
    )
    kind: MediaKind = strawberry.field(default=MediaKind.IMAGE, description="Kind of the medium.")


@strawberry.input
class NewScheduledPostInput:
    """The fields of a post to schedule, except for its due time. Not an input of the schema by itself."""

    text: str = strawberry.field(
        description="Text within the limit of every target. May be empty if there are media or files."
    )
    media: list[ScheduledMediaInput] = strawberry.field(
        default_factory=list, description="Media in the order in which they are published, at most 20."
    )
    attachments: list[AttachmentInput] | None = strawberry.field(
        default=UNSET,
        description="Files of the post, at most 10, each once. Accounts take images and videos within the limits of "
        "their networks, after the media.",
    )
    to_home_feed: bool = strawberry.field(default=False, description="Whether to publish to the author's followers.")
    to_topic_ids: list[ID] = strawberry.field(
        default_factory=list, description="Ids of topics in communities that the author has joined, at most 50."
    )
    to_account_ids: list[ID] = strawberry.field(
        default_factory=list, description="Ids of connected accounts, at most 50. Needs the role OPERATOR."
    )
    max_lateness_s: int = strawberry.field(default=3600, description=_LATENESS)
    idempotency_key: str | None = strawberry.field(default=UNSET, description=KEY_DESCRIPTION)


@strawberry.input(description="A post to schedule for an instant, with at least one target.")
class SchedulePostInput(NewScheduledPostInput):
    due_at: datetime = strawberry.field(description=_DUE)
    time_zone: str = strawberry.field(default="UTC", description=_ZONE)


@strawberry.input(description="A post to schedule for a local time, with at least one target.")
class SchedulePostAtLocalTimeInput(NewScheduledPostInput):
    due_at_local: LocalDateTime = strawberry.field(description=_DUE_LOCAL)
    time_zone: str = strawberry.field(description=_ZONE)


@strawberry.input(description="The fields to change. A field that is left out or null stays as it is.")
class UpdateScheduledPostInput:
    text: str | None = strawberry.field(default=UNSET, description="The new text.")
    media: list[ScheduledMediaInput] | None = strawberry.field(
        default=UNSET, description="The new media, which replace all present media."
    )
    attachments: list[AttachmentInput] | None = strawberry.field(
        default=UNSET,
        description="The new files, at most 10, which replace all present files. A present file stays if its id is in "
        "the list, with the alternative text that is given here. Files that are left out are deleted after "
        "a day, unless they are attached elsewhere before.",
    )
    due_at: datetime | None = strawberry.field(default=UNSET, description=_DUE)
    due_at_local: LocalDateTime | None = strawberry.field(
        default=UNSET, description=f"{_DUE_LOCAL} Only one of `dueAt` and `dueAtLocal` may be given."
    )
    time_zone: str | None = strawberry.field(
        default=UNSET, description=f"{_ZONE} A new time zone alone does not move the post."
    )
    max_lateness_s: int | None = strawberry.field(default=UNSET, description=_LATENESS)
    to_home_feed: bool | None = strawberry.field(
        default=UNSET, description="Whether to publish to the author's followers."
    )
    to_topic_ids: list[ID] | None = strawberry.field(
        default=UNSET, description="Ids of the new topics, which replace all present topics."
    )
    to_account_ids: list[ID] | None = strawberry.field(
        default=UNSET, description="Ids of the new accounts, which replace all present accounts."
    )
    revision: int | None = strawberry.field(
        default=UNSET,
        description="Revision of the post that the author has seen. CONFLICT if the post has a newer revision.",
    )
