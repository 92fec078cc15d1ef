"""Scheduled posts, publications and connected accounts."""

from datetime import datetime
from typing import Annotated, Any

import strawberry
from strawberry import ID

import resolvers.publishing.posts
import resolvers.publishing.publications
from schema.binding import field
from schema.chat import Topic
from schema.identity import User
from schema.timeline import OfPage, Timeline
from storage.publishing import records
from storage.publishing.networks import MediaKind, Network
from storage.publishing.records import MediaState, PublicationState, ScheduledPostState
from storage.timeline import Timestamp

strawberry.enum(
    ScheduledPostState,
    description=(
        "From the publications, the first that applies: all SCHEDULED; any PUBLISHING, or some started and some not: "
        "PUBLISHING; any UNKNOWN: UNKNOWN; all alike: that; else PARTIAL."
    ),
)
strawberry.enum(
    PublicationState,
    description=(
        "UNKNOWN: the network was called and nobody knows what became of it; settles by itself where the network can "
        "be asked, else by resolvePublication."
    ),
)
strawberry.enum(
    MediaState,
    description=(
        "NONE: no media, or the network takes it with the post. STALE: uploaded, then invalidated by a change of time "
        "or content."
    ),
)


@strawberry.type(description="An account of the organization's elsewhere. What opens it is never shown.")
class ConnectedAccount:
    id: ID = strawberry.field(description="Opaque.")
    network: Network = strawberry.field(description="Where it is.")
    name: str = strawberry.field(description="What people here call it.")
    connected_at: datetime = strawberry.field(description="When it was connected.")
    disconnected_at: datetime | None = strawberry.field(description="When it was disconnected, for good.")


@strawberry.type(description="An image or a video by its address.")
class ScheduledMedia:
    url: str = strawberry.field(description="Where it is fetched from.")
    alt_text: str = strawberry.field(description="What it shows, for who can't see it.")
    kind: MediaKind = strawberry.field(description="What it is.")


@strawberry.type(description="The author's followers, and the author's own home feed.")
class HomeFeedTarget:
    author: User = field(resolvers.publishing.publications.home_author, "Whose followers it reaches.")

    @classmethod
    def is_type_of(cls, record: Any, _info: object) -> bool:
        """Whether the record is of this type."""
        return isinstance(record, records.HomeFeedTarget)


@strawberry.type(description="A topic of the chat.")
class TopicTarget:
    topic: Topic | None = field(resolvers.publishing.publications.topic, "Null when it is gone.")

    @classmethod
    def is_type_of(cls, record: Any, _info: object) -> bool:
        """Whether the record is of this type."""
        return isinstance(record, records.TopicTarget)


@strawberry.type(description="A connected account.")
class AccountTarget:
    account: ConnectedAccount = field(resolvers.publishing.publications.account, "Connected or not.")

    @classmethod
    def is_type_of(cls, record: Any, _info: object) -> bool:
        """Whether the record is of this type."""
        return isinstance(record, records.AccountTarget)


PublicationTarget = Annotated[
    HomeFeedTarget | TopicTarget | AccountTarget,
    strawberry.union("PublicationTarget", description="Where something is published."),
]


@strawberry.type(description="Why a publication failed, or why nobody knows.")
class PublicationError:
    code: str = strawberry.field(
        description=(
            "For programs: FORBIDDEN, TOO_LATE, REFUSED, UNAUTHORIZED, UNREACHABLE, MEDIA_UNAVAILABLE, MEDIA_REFUSED, "
            "QUOTA_REACHED, BAD_ADDRESS, CREDENTIALS_LOST, NOT_PUBLISHED, UNKNOWN; more may come."
        )
    )
    message: str = strawberry.field(description="For the author.")


@strawberry.type(description="Something that was tried.")
class PublicationAttempt:
    at: datetime = strawberry.field(description="When its outcome was stored.")
    outcome: str = strawberry.field(
        description="PUBLISHED, FAILED, UNKNOWN, NO_EFFECT or UPLOAD_FAILED; more may come."
    )
    detail: str | None = strawberry.field(description="What the other side said, shortened.")


@strawberry.type(description="One target of a scheduled post; the unit that is published exactly once.")
class Publication:
    id: ID = strawberry.field(description="Opaque.")
    scheduled_post_id: ID = strawberry.field(description="The scheduled post.")
    target: PublicationTarget = strawberry.field(description="Where it goes.")
    state: PublicationState = strawberry.field(description="Where it stands.")
    media_state: MediaState = strawberry.field(description="Where the upload of its media stands.")
    published_at: datetime | None = strawberry.field(
        description="When it was published; of an account, when the last call began that may have done it."
    )
    lateness_ms: int | None = strawberry.field(description="publishedAt - dueAt in milliseconds; never negative.")
    external_id: str | None = strawberry.field(
        description="What it is called there: by the network, or id of the message or post."
    )
    url: str | None = strawberry.field(description="Where it can be seen, if the network says so.")
    error: PublicationError | None = strawberry.field(description="Why it failed, or why nobody knows.")
    attempts: list[PublicationAttempt] = strawberry.field(description="What was tried, the first first.")


@strawberry.type(description="A post that is published when it is due, to each of its targets once.")
class ScheduledPost:
    id: ID = strawberry.field(description="Opaque.")
    timestamp: Timestamp = strawberry.field(
        description="Its place on the timeline: the first free microsecond of the organization at or after dueAt."
    )
    author: User = field(resolvers.publishing.posts.author, "Who wrote it.")
    text: str = strawberry.field(description="As written.")
    media: list[ScheduledMedia] = strawberry.field(description="In this order.")
    due_at: datetime = strawberry.field(description="When it is due.")
    time_zone: str = strawberry.field(description="IANA zone that the author thinks in.")
    max_lateness_s: int = strawberry.field(
        description="When the service was down at dueAt: published up to this late, else failed. Seconds."
    )
    state: ScheduledPostState = field(resolvers.publishing.posts.state, "What its publications make of it.")
    publications: list[Publication] = field(resolvers.publishing.posts.publications, "One for each target.")
    created_at: datetime = strawberry.field(description="When it was scheduled first.")
    revision: int = strawberry.field(description="Grows with each change.")
    editable: bool = field(resolvers.publishing.posts.editable, "Whether an update or a cancel can still succeed.")


@strawberry.type(description="Scheduled posts by due time.")
class ScheduledPostTimeline(OfPage, Timeline):
    items: list[ScheduledPost] = strawberry.field(description="The page.")
