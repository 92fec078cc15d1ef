"""GraphQL types of scheduled posts, publications and connected accounts, and the root fields of held posts."""

from datetime import datetime
from typing import Annotated, Any

import strawberry
from strawberry import ID

import resolvers.publishing.connections
import resolvers.publishing.held_posts
import resolvers.publishing.outcome_checks
import resolvers.publishing.posts
import resolvers.publishing.publications
from resolvers.limits.writes import WriteLimit
from schema.binding import NO_KEY, field, mutation
from schema.chat.communities import Topic
from schema.files import Attachment
from schema.identity import User
from schema.nodes import Node
from schema.timeline import ConnectionPage, Edge, Timeline
from storage.publishing import records
from storage.publishing.networks import MediaKind, Network
from storage.publishing.records import MediaState, PublicationState, ScheduledPostState
from storage.publishing.reports.records import ReportReason
from storage.timeline import Timestamp

strawberry.enum(
    ScheduledPostState,
    description=(
        "State of a scheduled post, derived from the states of its publications. The first rule that applies decides. "
        "All publications are SCHEDULED: SCHEDULED. One is PUBLISHING, or some are SCHEDULED and some are not: "
        "PUBLISHING. One is UNKNOWN: UNKNOWN. One is NEEDS_ATTENTION: NEEDS_ATTENTION. All have the same state: that "
        "state. Otherwise: PARTIAL."
    ),
)
strawberry.enum(
    PublicationState,
    description=(
        "State of one publication. UNKNOWN: the network was called, but its answer was lost. The outcome is determined "
        "automatically if the network allows it, otherwise by a person with `resolvePublication`. NEEDS_ATTENTION: the "
        "account's credentials are missing or were refused, and nothing was published. It is published when they are "
        "replaced, or after `retryPublication`, or fails at `dueAt` plus `maxLatenessS`."
    ),
)
strawberry.enum(
    MediaState,
    description=(
        "State of the upload of media. NONE: there are no media, or the network receives them together with the post. "
        "STALE: a change of the due time or of the content has invalidated the upload."
    ),
)


strawberry.enum(
    ReportReason,
    name="PublicationReportReason",
    description=(
        "Why a publication is reported. FAILED: it was not published. NEEDS_ATTENTION: it waits, because the account's "
        "credentials were refused. UNKNOWN: nobody knows whether it was published, and a worker does not find out in "
        "time. LATE: it was published more than a minute late. More may be added."
    ),
)


@strawberry.type(description="Why publications to an account are NEEDS_ATTENTION: its credentials can't be used.")
class AccountAttention:
    code: str = strawberry.field(description="Code for programs: UNAUTHORIZED or CREDENTIALS_LOST. More may be added.")
    reason: str = strawberry.field(description="The network's answer, shortened, or another explanation, in English.")
    since: datetime = strawberry.field(description="When the credentials were first refused.")


@strawberry.type(description="An account of the organization at a social network. Its credentials are never returned.")
class ConnectedAccount:
    id: ID = strawberry.field(description="Unique identifier. Treat as an opaque string.")
    network: Network = strawberry.field(description="Network of the account.")
    name: str = strawberry.field(description="Display name of the account.")
    handle: str | None = strawberry.field(
        description="Name of the account at its network, such as @harbour@mastodon.example. Null for WEBHOOK and "
        "SANDBOX, and for accounts that were connected before networks were asked."
    )
    verified_at: datetime | None = strawberry.field(
        description="When the network last accepted the account's credentials: as they were connected, replaced or "
        "renewed, or when a worker asked, about once a day. Null as `handle`."
    )
    connected_at: datetime = strawberry.field(description="When the account was connected.")
    disconnected_at: datetime | None = strawberry.field(
        description="When the account was disconnected. Null while it is connected."
    )
    credentials_expire_at: datetime | None = strawberry.field(
        description="When the present credentials end. Null if they do not, or if the network did not say."
    )
    renews_credentials: bool = strawberry.field(
        description="Whether the credentials are renewed before they end, without a person."
    )
    attention: AccountAttention | None = strawberry.field(
        description="Why the account needs other credentials. Null while no refusal of its present ones is known. Its "
        "due publications are then NEEDS_ATTENTION, and the network is not called."
    )


@strawberry.type(description="A connection that waits until the person allows access at the network.")
class AccountConnection:
    url: str = strawberry.field(description="URL at the network to open in the person's browser.")
    expires_at: datetime = strawberry.field(description="When the network's answer comes too late, after 10 minutes.")


@strawberry.type(description="An image or a video, given by its URL.")
class ScheduledMedia:
    url: str = strawberry.field(description="http or https URL of the image or video.")
    alt_text: str = strawberry.field(description="Alternative text for people who cannot see it; may be empty.")
    kind: MediaKind = strawberry.field(description="Kind of the medium.")


@strawberry.type(description="A target that is the home feeds of the author and the author's followers.")
class HomeFeedTarget:
    author: User = field(
        resolvers.publishing.publications.home_author,
        "The author whose followers receive the post.",
        batch_resolver=resolvers.publishing.publications.home_authors,
    )

    @classmethod
    def is_type_of(cls, record: Any, _info: object) -> bool:
        """Returns whether the record is of this type."""
        return isinstance(record, records.HomeFeedTarget)


@strawberry.type(description="A target that is a chat topic.")
class TopicTarget:
    topic: Topic | None = field(
        resolvers.publishing.publications.topic,
        "The topic. Null if the viewer may not see it.",
        batch_resolver=resolvers.publishing.publications.topics,
    )

    @classmethod
    def is_type_of(cls, record: Any, _info: object) -> bool:
        """Returns whether the record is of this type."""
        return isinstance(record, records.TopicTarget)


@strawberry.type(description="A target that is a connected account.")
class AccountTarget:
    account: ConnectedAccount = field(
        resolvers.publishing.publications.account,
        "The account, connected or not.",
        batch_resolver=resolvers.publishing.publications.accounts,
    )

    @classmethod
    def is_type_of(cls, record: Any, _info: object) -> bool:
        """Returns whether the record is of this type."""
        return isinstance(record, records.AccountTarget)


PublicationTarget = Annotated[
    HomeFeedTarget | TopicTarget | AccountTarget,
    strawberry.union("PublicationTarget", description="Destination of a publication."),
]


@strawberry.type(description="Why a publication failed, is UNKNOWN or is NEEDS_ATTENTION.")
class PublicationError:
    code: str = strawberry.field(
        description=(
            "Code for programs: FORBIDDEN, TOO_LATE, REFUSED, UNAUTHORIZED, UNREACHABLE, MEDIA_UNAVAILABLE, "
            "MEDIA_REFUSED, QUOTA_REACHED, BAD_ADDRESS, CREDENTIALS_LOST, NOT_PUBLISHED, UNKNOWN. More may be added."
        )
    )
    message: str = strawberry.field(description="Explanation for the author, in English.")


@strawberry.type(description="One attempt to publish or upload.")
class PublicationAttempt:
    at: datetime = strawberry.field(description="When the outcome of the attempt was stored.")
    outcome: str = strawberry.field(
        description="PUBLISHED, FAILED, UNKNOWN, NEEDS_ATTENTION, NO_EFFECT or UPLOAD_FAILED. More may be added."
    )
    detail: str | None = strawberry.field(
        description="The network's answer, shortened, or another explanation. Null if there is none."
    )


@strawberry.type(
    description="What a person looks for at the account of an UNKNOWN publication, before `resolvePublication`."
)
class OutcomeCheck:
    account: ConnectedAccount = strawberry.field(description="The account at which the post may be.")
    profile_url: str | None = strawberry.field(
        description="Public page of the account at its network. Null if it has none, or `handle` is null."
    )
    text_start: str = strawberry.field(
        description="Beginning of the post's text, up to 100 characters; empty for a post without text."
    )
    first_call_at: datetime = strawberry.field(
        description="When the network was called first. The post is not older, if it is there."
    )
    last_call_at: datetime = strawberry.field(
        description="When the network was last called in a way that may have published the post."
    )
    next_lookup_at: datetime | None = strawberry.field(
        description="When the outcome is determined automatically next; a past time while this is under way. Null if "
        "only a person can find it."
    )


@strawberry.type(description="The publication of a scheduled post to one of its targets. It happens exactly once.")
class Publication:
    id: ID = strawberry.field(description="Unique identifier. Treat as an opaque string.")
    scheduled_post_id: ID = strawberry.field(description="Id of the scheduled post.")
    target: PublicationTarget = strawberry.field(description="Target of the publication.")
    state: PublicationState = strawberry.field(description="State of the publication.")
    media_state: MediaState = strawberry.field(description="State of the upload of the media.")
    published_at: datetime | None = strawberry.field(
        description="When the post was published; null before. For an account: when the last call to the network began "
        "that may have published it."
    )
    lateness_ms: int | None = strawberry.field(
        description="`publishedAt` minus `dueAt` in milliseconds, never negative. Null until published."
    )
    external_id: str | None = strawberry.field(
        description="Id of the message or post, or the network's id of the post. Null until published, or if unknown."
    )
    url: str | None = strawberry.field(description="Public address of the post. Null if the network reports none.")
    error: PublicationError | None = strawberry.field(
        description="Why the publication failed, is UNKNOWN or is NEEDS_ATTENTION. Null in other states."
    )
    attempts: list[PublicationAttempt] = strawberry.field(description="All attempts, oldest first.")
    outcome_check: OutcomeCheck | None = field(
        resolvers.publishing.outcome_checks.outcome_check,
        "What a person looks for at the account, to find out whether the post was published. Null unless UNKNOWN.",
        batch_resolver=resolvers.publishing.outcome_checks.outcome_checks,
    )


@strawberry.type(description="A post that is published at its due time, once to each of its targets.")
class ScheduledPost(Node):
    id: ID = strawberry.field(description="Unique identifier. Treat as an opaque string.")
    timestamp: Timestamp = strawberry.field(
        description="Position on the timeline: the organization's first free microsecond at or after `dueAt`."
    )
    author: User = field(
        resolvers.publishing.posts.author,
        "Author of the post.",
        batch_resolver=resolvers.publishing.posts.authors,
    )
    text: str = strawberry.field(description="Text as the author wrote it.")
    media: list[ScheduledMedia] = strawberry.field(description="Media in the order in which they are published.")
    attachments: list[Attachment] = strawberry.field(
        description="Uploaded files in their order, at most 10. Until the post is published, only its author can "
        "download them; then everybody who sees a published message or post, while one of them exists. Files that "
        "only accounts got are deleted a day after the publication."
    )
    due_at: datetime = strawberry.field(description="When the post is due to be published.")
    time_zone: str = strawberry.field(description="IANA time zone of the author.")
    max_lateness_s: int = strawberry.field(
        description="Number of seconds after `dueAt` in which the post may still be published if the service was down. "
        "After that time it fails."
    )
    state: ScheduledPostState = field(
        resolvers.publishing.posts.state,
        "State of the post, derived from its publications.",
        batch_resolver=resolvers.publishing.posts.states,
    )
    publications: list[Publication] = field(
        resolvers.publishing.posts.publications,
        "The publications, one for each target.",
        batch_resolver=resolvers.publishing.posts.publications_of_many,
    )
    created_at: datetime = strawberry.field(description="When the post was first scheduled.")
    revision: int = strawberry.field(
        description="Number of the revision: 1 at first; each update or cancellation adds 1."
    )
    held_since: datetime | None = field(
        resolvers.publishing.held_posts.held_since,
        "When the post began to wait for the decision of an ADMIN, because its author is deactivated. Its publications "
        "stay SCHEDULED and are not published. Null for a post that does not wait for a decision.",
        batch_resolver=resolvers.publishing.held_posts.held_since_of_many,
    )
    editable: bool = field(
        resolvers.publishing.posts.editable,
        "Whether at least one publication can still be cancelled: it has not started, or is NEEDS_ATTENTION. An update "
        "needs that all are so.",
        batch_resolver=resolvers.publishing.posts.editable_of_many,
    )


@strawberry.type(description="A publication that may need a person, or that was published late.")
class PublicationReport:
    reason: ReportReason = strawberry.field(description="Why the publication is reported.")
    publication: Publication = strawberry.field(description="The publication in its current state.")
    post: ScheduledPost = strawberry.field(description="The scheduled post in its current state.")


@strawberry.type(description="A page of scheduled posts, ordered by due time.")
class ScheduledPostTimeline(ConnectionPage, Timeline):
    items: list[ScheduledPost] = strawberry.field(description="The posts of the page, in the requested order.")
    edges: list[Edge[ScheduledPost]] = strawberry.field(description="The items, the newest first.")


@strawberry.type
class HeldPostQuery:
    """Lists of held posts."""

    held_scheduled_posts: list[ScheduledPost] = field(
        resolvers.publishing.held_posts.held_scheduled_posts,
        "Scheduled posts of deactivated authors, which wait for the decision of an ADMIN, ordered by due time. Needs "
        "the role ADMIN.",
        scope=NO_KEY,
    )


@strawberry.type
class HeldPostMutation:
    """Decisions about held posts."""

    release_scheduled_post: ScheduledPost = mutation(
        resolvers.publishing.held_posts.release_scheduled_post,
        "Schedules a held post again, with another user as its author, whose rights count at the due time. "
        "`cancelScheduledPost` cancels it instead. CONFLICT for a post that is not held. Needs the role ADMIN.",
        limit=WriteLimit.OPERATIONS,
        scope=NO_KEY,
    )


@strawberry.type
class AccountConnectionQuery:
    """Networks that can be connected in a browser."""

    browser_networks: list[Network] = field(
        resolvers.publishing.connections.browser_networks,
        "Networks whose accounts can be connected in a browser, because they register apps themselves or the operator "
        "has set one. Needs the role OPERATOR.",
        scope=NO_KEY,
    )


@strawberry.type
class AccountConnectionMutation:
    """Connections of accounts in a browser."""

    connect_account_in_browser: AccountConnection = mutation(
        resolvers.publishing.connections.connect_account_in_browser,
        "Begins to connect an account by OAuth. Open `url`: after the person has allowed access, the network sends the "
        "browser back to this server, which verifies and stores the account. Only the same person can finish, once, "
        "within 10 minutes, in the same session of the browser, or in any if it was begun with a token. CONFLICT for a "
        "network that is not one of `browserNetworks`. Needs the role OPERATOR.",
        limit=WriteLimit.OPERATIONS,
        scope=NO_KEY,
    )
    reconnect_account_in_browser: AccountConnection = mutation(
        resolvers.publishing.connections.reconnect_account_in_browser,
        "Begins to replace the credentials of a connected account by OAuth, as `connectAccountInBrowser`. The person "
        "must allow access to the same account. Posts that wait for it are published with the new credentials. Needs "
        "the role OPERATOR.",
        limit=WriteLimit.OPERATIONS,
        scope=NO_KEY,
    )
