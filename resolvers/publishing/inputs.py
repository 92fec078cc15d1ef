"""Input objects of scheduled posts and connected accounts."""

from datetime import datetime

import strawberry
from strawberry import ID, UNSET

from storage.publishing.networks import MediaKind, Network

_KEY = (
    "Repeating the mutation with the same key within 24 hours returns the first result. The same key with other "
    "arguments is a CONFLICT."
)
_DUE = (
    "When to publish. With an offset that timeZone has around then, it is the author's local time, which must exist "
    "exactly once. In UTC (Z), or with any other offset, it is just an instant."
)
_LATENESS = (
    "How late the post may still be published if the service was down at dueAt. Later it fails and its author is "
    "notified. Seconds, 1 to 604800."
)
_ZONE = "IANA time zone of the author, such as Asia/Tokyo."

strawberry.enum(
    Network,
    description=(
        "WEBHOOK sends a signed request to a URL of the user's own. SANDBOX is built in, for trying things out."
    ),
)
strawberry.enum(MediaKind, description="Kind of a medium. A REEL is Instagram's own kind of video.")


@strawberry.input(
    description="An account of the organization at a social network. baseUrl replaces the network's own address."
)
class ConnectAccountInput:
    network: Network = strawberry.field(description="Network of the account.")
    name: str = strawberry.field(description="Name to show in the organization, 1 to 100 characters.")
    base_url: str | None = strawberry.field(
        default=UNSET, description="Address of the Mastodon server or the webhook. Left out: the network's own address."
    )
    credentials: str = strawberry.field(
        description=(
            "WEBHOOK: the secret. MASTODON: an access token. BLUESKY: handle:app-password. X: an OAuth 2 user token. "
            "INSTAGRAM: user-id:token. SANDBOX: ok, fail, lose (publishes, but its answer gets lost) or slow. Stored "
            "encrypted and never returned."
        )
    )
    idempotency_key: str | None = strawberry.field(default=UNSET, description=_KEY)


@strawberry.input(description="An image or video, by its address.")
class ScheduledMediaInput:
    url: str = strawberry.field(description="http or https address to fetch it from, up to 2048 characters.")
    alt_text: str = strawberry.field(
        default="", description="Alternative text for people who cannot see it, at most 1500 characters."
    )
    kind: MediaKind = strawberry.field(default=MediaKind.IMAGE, description="Kind of the medium.")


@strawberry.input(description="A post to schedule, with at least one target.")
class SchedulePostInput:
    text: str = strawberry.field(description="Text within the limit of every target. May be empty if there are media.")
    media: list[ScheduledMediaInput] = strawberry.field(
        default_factory=list, description="Media in the order to publish them, at most 20."
    )
    to_home_feed: bool = strawberry.field(default=False, description="Whether to publish to the author's followers.")
    to_topic_ids: list[ID] = strawberry.field(
        default_factory=list, description="Ids of topics of joined communities, at most 50."
    )
    to_account_ids: list[ID] = strawberry.field(
        default_factory=list, description="Ids of connected accounts, at most 50. Needs the role OPERATOR."
    )
    due_at: datetime = strawberry.field(description=_DUE)
    time_zone: str = strawberry.field(default="UTC", description=_ZONE)
    max_lateness_s: int = strawberry.field(default=3600, description=_LATENESS)
    idempotency_key: str | None = strawberry.field(default=UNSET, description=_KEY)


@strawberry.input(description="The fields to change. A field that is left out or null stays as it is.")
class UpdateScheduledPostInput:
    text: str | None = strawberry.field(default=UNSET, description="The new text.")
    media: list[ScheduledMediaInput] | None = strawberry.field(
        default=UNSET, description="All media; replaces the present ones."
    )
    due_at: datetime | None = strawberry.field(default=UNSET, description=_DUE)
    time_zone: str | None = strawberry.field(default=UNSET, description=_ZONE)
    max_lateness_s: int | None = strawberry.field(default=UNSET, description=_LATENESS)
    to_home_feed: bool | None = strawberry.field(
        default=UNSET, description="Whether to publish to the author's followers."
    )
    to_topic_ids: list[ID] | None = strawberry.field(
        default=UNSET, description="Ids of all topics; replaces the present ones."
    )
    to_account_ids: list[ID] | None = strawberry.field(
        default=UNSET, description="Ids of all accounts; replaces the present ones."
    )
    revision: int | None = strawberry.field(
        default=UNSET,
        description="The revision that the change was made from. If it is no longer the newest: CONFLICT.",
    )
