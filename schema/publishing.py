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
from schema.timeline import PageMixin, Timeline
from storage.publishing import records
from storage.publishing.networks import MediaKind, Network
from storage.publishing.records import MediaState, PublicationState, ScheduledPostState
from storage.timeline import Timestamp

strawberry.enum(
    ScheduledPostState,
    description=(
        "Derived from the states of the publications by the first rule that applies. All SCHEDULED: SCHEDULED. Any "
        "PUBLISHING, or some SCHEDULED and others not: PUBLISHING. Any UNKNOWN: UNKNOWN. All the same: that state. "
        "Otherwise: PARTIAL."
    ),
)
strawberry.enum(
    PublicationState,
    description=(
        "State of one publication. UNKNOWN: the network was called, but its answer was lost. The outcome is found "
        "automatically if the network allows, else by resolvePublication."
    ),
)
strawberry.enum(
    MediaState,
    description=(
        "State of the upload of media. NONE: there are no media, or they travel with the post. STALE: a change of time "
        "or content has invalidated the upload."
    ),
)


@strawberry.type(description="An account of the organization at a social network. Its credentials are never returned.")
class ConnectedAccount:
    id: ID = strawberry.field(description="Unique identifier. Treat as an opaque string.")
    network: Network = strawberry.field(description="Network of the account.")
    name: str = strawberry.field(description="Name to show in the organization.")
    connected_at: datetime = strawberry.field(description="When the account was connected.")
    disconnected_at: datetime | None = strawberry.field(
        description="When the account was disconnected. Null while it is connected."
    )


@strawberry.type(description="An image or video, by its address.")
class ScheduledMedia:
    url: str = strawberry.field(description="http or https address that it is fetched from.")
    alt_text: str = strawberry.field(description="Alternative text for people who cannot see it; may be empty.")
    kind: MediaKind = strawberry.field(description="Kind of the medium.")


@strawberry.type(description="The home feeds of the author and the author's followers.")
class HomeFeedTarget:
    author: User = field(resolvers.publishing.publications.home_author, "The author whose followers receive the post.")

    @classmethod
    def is_type_of(cls, record: Any, _info: object) -> bool:
        """Returns whether the record is of this type."""
        return isinstance(record, records.HomeFeedTarget)


@strawberry.type(description="A chat topic.")
class TopicTarget:
    topic: Topic | None = field(resolvers.publishing.publications.topic, "The topic. Null if it no longer exists.")

    @classmethod
    def is_type_of(cls, record: Any, _info: object) -> bool:
        """Returns whether the record is of this type."""
        return isinstance(record, records.TopicTarget)


@strawberry.type(description="A connected account.")
class AccountTarget:
    account: ConnectedAccount = field(resolvers.publishing.publications.account, "The account, connected or not.")

    @classmethod
    def is_type_of(cls, record: Any, _info: object) -> bool:
        """Returns whether the record is of this type."""
        return isinstance(record, records.AccountTarget)


PublicationTarget = Annotated[
    HomeFeedTarget | TopicTarget | AccountTarget,
    strawberry.union("PublicationTarget", description="Place where a post is published."),
]


@strawberry.type(description="Why a publication failed or is UNKNOWN.")
class PublicationError:
    code: str = strawberry.field(
        description=(
            "For programs: FORBIDDEN, TOO_LATE, REFUSED, UNAUTHORIZED, UNREACHABLE, MEDIA_UNAVAILABLE, MEDIA_REFUSED, "
            "QUOTA_REACHED, BAD_ADDRESS, CREDENTIALS_LOST, NOT_PUBLISHED, UNKNOWN. More may be added."
        )
    )
    message: str = strawberry.field(description="Explanation for the author, in English.")


@strawberry.type(description="One attempt to publish or upload.")
class PublicationAttempt:
    at: datetime = strawberry.field(description="When its outcome was stored.")
    outcome: str = strawberry.field(
        description="PUBLISHED, FAILED, UNKNOWN, NO_EFFECT or UPLOAD_FAILED. More may be added."
    )
    detail: str | None = strawberry.field(
        description="The network's answer, shortened, or another explanation. Null if there is none."
    )


@strawberry.type(description="One target of a scheduled post: the unit that is published exactly once.")
class Publication:
    id: ID = strawberry.field(description="Unique identifier. Treat as an opaque string.")
    scheduled_post_id: ID = strawberry.field(description="Id of the scheduled post.")
    target: PublicationTarget = strawberry.field(description="Where the post is published.")
    state: PublicationState = strawberry.field(description="State of the publication.")
    media_state: MediaState = strawberry.field(description="State of the upload of its media.")
    published_at: datetime | None = strawberry.field(
        description="When it was published, else null. For an account: when the last call began that may have done it."
    )
    lateness_ms: int | None = strawberry.field(
        description="publishedAt - dueAt in milliseconds, never negative. Null before it is published."
    )
    external_id: str | None = strawberry.field(
        description="Id of the message or post, or the network's id. Null until published or if unknown."
    )
    url: str | None = strawberry.field(description="Public address of the post. Null if the network reports none.")
    error: PublicationError | None = strawberry.field(description="Why it failed or is UNKNOWN. Null in other states.")
    attempts: list[PublicationAttempt] = strawberry.field(description="All attempts, oldest first.")


@strawberry.type(description="A post that is published at its due time, once to each of its targets.")
class ScheduledPost:
    id: ID = strawberry.field(description="Unique identifier. Treat as an opaque string.")
    timestamp: Timestamp = strawberry.field(
        description="Place on the timeline: the organization's first free microsecond at or after dueAt."
    )
    author: User = field(resolvers.publishing.posts.author, "Author of the post.")
    text: str = strawberry.field(description="Text as the author wrote it.")
    media: list[ScheduledMedia] = strawberry.field(description="Media in the order of publishing.")
    due_at: datetime = strawberry.field(description="When to publish it.")
    time_zone: str = strawberry.field(description="IANA time zone of the author.")
    max_lateness_s: int = strawberry.field(
        description="How late it may still be published if the service was down at dueAt. Later it fails. Seconds."
    )
    state: ScheduledPostState = field(
        resolvers.publishing.posts.state, "State of the post, derived from its publications."
    )
    publications: list[Publication] = field(
        resolvers.publishing.posts.publications, "The publications, one for each target."
    )
    created_at: datetime = strawberry.field(description="When the post was first scheduled.")
    revision: int = strawberry.field(description="1 at first; each update or cancel adds 1.")
    editable: bool = field(resolvers.publishing.posts.editable, "Whether an update or a cancel can still succeed.")


@strawberry.type(description="A page of scheduled posts by due time.")
class ScheduledPostTimeline(PageMixin, Timeline):
    items: list[ScheduledPost] = strawberry.field(description="The posts of the page.")
