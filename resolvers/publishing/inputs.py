"""The input objects of publishing, as clients write them."""

from datetime import datetime

import strawberry
from strawberry import ID, UNSET

from storage.publishing.networks import MediaKind, Network

_KEY = "The same key from the same user within 24 hours returns what it made; with other arguments it is a CONFLICT."
_DUE = (
    "When to publish. Written with an offset of timeZone it is the author's local time, which must exist exactly once; "
    "in UTC (Z) it is just a moment."
)
_LATENESS = "When the service was down at dueAt: publish up to this late, else fail and notify. Seconds, 1 to 604800."
_ZONE = "IANA zone that the author thinks in, such as Asia/Tokyo."

strawberry.enum(
    Network,
    description=(
        "WEBHOOK posts a signed request to a URL of the user's own. SANDBOX is the built-in twin for trying things out."
    ),
)
strawberry.enum(MediaKind, description="What a medium is. A REEL is Instagram's own kind of video.")


@strawberry.input(description="An account of the organization's elsewhere. baseUrl replaces the network's own address.")
class ConnectAccountInput:
    network: Network = strawberry.field(description="Where the account is.")
    name: str = strawberry.field(description="What people here call it, 1 to 100 characters.")
    base_url: str | None = strawberry.field(
        default=UNSET, description="Address of the Mastodon server, or of the webhook; else the network's own."
    )
    credentials: str = strawberry.field(
        description=(
            "WEBHOOK: the secret. MASTODON: an access token. BLUESKY: handle:app-password. X: an OAuth 2 user token. "
            "INSTAGRAM: user-id:token. SANDBOX: ok, fail, lose (acts, never answers) or slow. Encrypted, never shown."
        )
    )
    idempotency_key: str | None = strawberry.field(default=UNSET, description=_KEY)


@strawberry.input(description="An image or a video by its address.")
class ScheduledMediaInput:
    url: str = strawberry.field(description="Where it is fetched from, http or https.")
    alt_text: str = strawberry.field(
        default="", description="What it shows, for who can't see it; at most 1500 characters."
    )
    kind: MediaKind = strawberry.field(default=MediaKind.IMAGE, description="What it is.")


@strawberry.input(description="A post with at least one target.")
class SchedulePostInput:
    text: str = strawberry.field(description="As long as every target takes it; may be empty where media say it all.")
    media: list[ScheduledMediaInput] = strawberry.field(default_factory=list, description="In this order.")
    to_home_feed: bool = strawberry.field(default=False, description="To the author's followers.")
    to_topic_ids: list[ID] = strawberry.field(default_factory=list, description="Topics of joined communities.")
    to_account_ids: list[ID] = strawberry.field(
        default_factory=list, description="Connected accounts; needs the role OPERATOR."
    )
    due_at: datetime = strawberry.field(description=_DUE)
    time_zone: str = strawberry.field(default="UTC", description=_ZONE)
    max_lateness_s: int = strawberry.field(default=3600, description=_LATENESS)
    idempotency_key: str | None = strawberry.field(default=UNSET, description=_KEY)


@strawberry.input(description="What is left out stays. With a revision that is no longer the newest: CONFLICT.")
class UpdateScheduledPostInput:
    text: str | None = strawberry.field(default=UNSET, description="The new text.")
    media: list[ScheduledMediaInput] | None = strawberry.field(default=UNSET, description="All media, not some.")
    due_at: datetime | None = strawberry.field(default=UNSET, description=_DUE)
    time_zone: str | None = strawberry.field(default=UNSET, description=_ZONE)
    max_lateness_s: int | None = strawberry.field(default=UNSET, description=_LATENESS)
    to_home_feed: bool | None = strawberry.field(default=UNSET, description="Whether to the author's followers.")
    to_topic_ids: list[ID] | None = strawberry.field(default=UNSET, description="All topics, not some.")
    to_account_ids: list[ID] | None = strawberry.field(default=UNSET, description="All accounts, not some.")
    revision: int | None = strawberry.field(default=UNSET, description="The revision that the change was made from.")
