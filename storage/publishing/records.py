"""Records of the publishing area, as read from the database. Instants are aware UTC datetimes, to the millisecond."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any

from storage.files.attachments import Attachment, attachment_record
from storage.publishing.documents import (
    AccountDocument,
    MediaDocument,
    ProgressDocument,
    PublicationDocument,
    ScheduledPostDocument,
    TargetDocument,
)
from storage.publishing.networks import MediaKind, Network
from storage.timeline import Timestamp


class PublicationState(Enum):
    """State of a publication. docs/publishing.md has a diagram of the transitions."""

    SCHEDULED = "SCHEDULED"
    PUBLISHING = "PUBLISHING"
    PUBLISHED = "PUBLISHED"
    FAILED = "FAILED"
    UNKNOWN = "UNKNOWN"
    CANCELLED = "CANCELLED"
    NEEDS_ATTENTION = "NEEDS_ATTENTION"
    """The account's credentials were refused. Nothing was published."""


WAITING_STATES = frozenset({PublicationState.SCHEDULED.value, PublicationState.NEEDS_ATTENTION.value})
"""States in which nothing was published and no worker is publishing, so a person can edit or cancel."""


class ScheduledPostState(Enum):
    """State of a scheduled post, derived from its publications by `post_state`."""

    SCHEDULED = "SCHEDULED"
    PUBLISHING = "PUBLISHING"
    PUBLISHED = "PUBLISHED"
    PARTIAL = "PARTIAL"
    FAILED = "FAILED"
    UNKNOWN = "UNKNOWN"
    CANCELLED = "CANCELLED"
    NEEDS_ATTENTION = "NEEDS_ATTENTION"


class MediaState(Enum):
    """State of the upload of a publication's media."""

    NONE = "NONE"
    PENDING = "PENDING"
    UPLOADING = "UPLOADING"
    READY = "READY"
    STALE = "STALE"
    FAILED = "FAILED"


class PublishingPhase(Enum):
    """The phase of publishing to an account. If a worker dies, only CALLING may have had an effect."""

    PREPARING = "PREPARING"
    CALLING = "CALLING"
    WAITING = "WAITING"


@dataclass(frozen=True, slots=True)
class AccountAttention:
    """Why an account needs other credentials: code and message of the refusal, and when it was stored."""

    code: str
    reason: str
    since: datetime


@dataclass(frozen=True, slots=True)
class ConnectedAccount:
    """An organization's account at a network, without its credentials."""

    id: str
    organization_id: str
    network: Network
    name: str
    base_url: str | None
    connected_at: datetime
    disconnected_at: datetime | None
    handle: str | None = None
    """Name of the account at its network, such as @harbour@mastodon.example."""

    network_id: str | None = None
    """Id of the account at its network."""

    verified_at: datetime | None = None
    """When the network last accepted the credentials. None for networks that cannot be asked, and for accounts that
    were connected before their networks were asked."""

    attention: AccountAttention | None = None
    """Set while the account's present credentials count as refused."""

    credentials_expire_at: datetime | None = None
    """When the present credentials end. None if they do not, or if the network did not say."""

    renews_credentials: bool = False
    """Whether workers renew the credentials before they end."""


@dataclass(frozen=True, slots=True)
class VerifiedAccount:
    """The account that a network names for credentials that it accepts. Empty for a network that cannot be asked."""

    id: str | None = None
    """Id that the account keeps when its handle changes."""

    handle: str | None = None
    """Name that people know, such as @harbour@mastodon.example."""


NOT_VERIFIED = VerifiedAccount()


@dataclass(frozen=True, slots=True)
class HomeFeedTarget:
    """The home feeds of the author and the author's followers."""

    author_id: str


@dataclass(frozen=True, slots=True)
class TopicTarget:
    """A chat topic."""

    topic_id: str
    community_id: str


@dataclass(frozen=True, slots=True)
class AccountTarget:
    """A connected account."""

    account_id: str
    network: Network


Target = HomeFeedTarget | TopicTarget | AccountTarget


@dataclass(frozen=True, slots=True)
class ScheduledMedia:
    """An image or video, by its address."""

    url: str
    alt_text: str
    kind: MediaKind


@dataclass(frozen=True, slots=True)
class ScheduledPost:
    """A post and its due moment. `timestamp` is unique in the organization, at or after `due_at`."""

    id: str
    organization_id: str
    timestamp: Timestamp
    author_id: str
    text: str
    media: Sequence[ScheduledMedia]
    due_at: datetime
    time_zone: str
    max_lateness_s: int
    created_at: datetime
    revision: int
    attachments: Sequence[Attachment] = ()


@dataclass(frozen=True, slots=True)
class PublicationError:
    """Why a publication failed, is unknown or needs attention."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class PublicationAttempt:
    """One attempt to publish or upload, and its outcome."""

    at: datetime
    outcome: str
    detail: str | None


@dataclass(frozen=True, slots=True)
class StoredMediaUpload:
    """The network's references to uploaded media. `expires_at` None: they do not expire."""

    references: Sequence[Any]
    expires_at: datetime | None


@dataclass(frozen=True, slots=True)
class PublishingProgress:
    """Progress of publishing to an account."""

    phase: PublishingPhase
    key: str
    """Idempotency key; the same for every call."""

    tries: int
    at: datetime
    """When the phase began; in the phase CALLING, when the last call began."""

    first_at: datetime | None
    """When the first call began; None before it."""


@dataclass(frozen=True, slots=True)
class Publication:
    """One target of a scheduled post. Each claim increases `fence`, which the claimant's changes must carry."""

    id: str
    organization_id: str
    scheduled_post_id: str
    author_id: str
    target: Target
    state: PublicationState
    fence: int
    due_at: datetime
    late_at: datetime
    media_state: MediaState
    upload: StoredMediaUpload | None
    progress: PublishingProgress | None
    published_at: datetime | None
    external_id: str | None
    url: str | None
    error: PublicationError | None
    attempts: Sequence[PublicationAttempt]
    held_at: datetime | None = None
    """When the publication began to wait for an administrator; None if it does not wait."""

    file_ids: Sequence[str] = ()
    """Ids of the files that the publication keeps until it is finished."""

    wake_at: datetime | None = None
    """When a worker continues; None if the publication needs no work, or if only a person can find its outcome."""

    @property
    def lateness_ms(self) -> int | None:
        """How late the post was published, in milliseconds; None unless PUBLISHED."""
        if self.published_at is None:
            return None
        return max(0, round((self.published_at - self.due_at).total_seconds() * 1000))


def post_state(states: Collection[PublicationState]) -> ScheduledPostState:
    """Returns the state of a post whose publications are in these states."""
    distinct = set(states)
    if distinct == {PublicationState.SCHEDULED}:
        return ScheduledPostState.SCHEDULED
    if PublicationState.PUBLISHING in distinct or PublicationState.SCHEDULED in distinct:
        return ScheduledPostState.PUBLISHING
    if PublicationState.UNKNOWN in distinct:
        return ScheduledPostState.UNKNOWN
    if PublicationState.NEEDS_ATTENTION in distinct:
        return ScheduledPostState.NEEDS_ATTENTION
    return ScheduledPostState(distinct.pop().value) if len(distinct) == 1 else ScheduledPostState.PARTIAL


_P, _S = PublicationState, ScheduledPostState
_STATES_TO_SEARCH: dict[ScheduledPostState, set[PublicationState]] = {
    _S.SCHEDULED: {_P.SCHEDULED},
    _S.PUBLISHING: {_P.PUBLISHING, _P.SCHEDULED},
    _S.PUBLISHED: {_P.PUBLISHED},
    # The publications of a PARTIAL post have at least two of the states PUBLISHED, FAILED and CANCELLED. At least one
    # publication is therefore FAILED or CANCELLED.
    _S.PARTIAL: {_P.FAILED, _P.CANCELLED},
    _S.FAILED: {_P.FAILED},
    _S.UNKNOWN: {_P.UNKNOWN},
    _S.CANCELLED: {_P.CANCELLED},
    _S.NEEDS_ATTENTION: {_P.NEEDS_ATTENTION},
}


def publication_states_to_search(states: Collection[ScheduledPostState]) -> set[PublicationState]:
    """Returns the publication states to search for.

    Every post whose state is in `states` has at least one publication in one of them.
    """
    return {candidate for state in states for candidate in _STATES_TO_SEARCH[state]}


def account_record(document: AccountDocument) -> ConnectedAccount:
    """Returns the record of a stored account."""
    return ConnectedAccount(
        id=document["_id"],
        organization_id=document["org"],
        network=Network(document["network"]),
        name=document["name"],
        base_url=document["base_url"],
        connected_at=document["connected_at"],
        disconnected_at=document.get("disconnected_at"),
        handle=document.get("handle"),
        network_id=document.get("network_id"),
        verified_at=document.get("verified_at"),
        attention=account_attention(document),
        credentials_expire_at=document.get("expires_at"),
        renews_credentials="renew_at" in document,
    )


def account_attention(document: AccountDocument) -> AccountAttention | None:
    """Returns why the account's credentials count as refused; None if they do not, or were replaced since."""
    attention, credentials = document.get("attention"), document.get("credentials")
    if attention is None or credentials is None or attention["nonce"] != credentials["nonce"]:
        return None
    return AccountAttention(attention["code"], attention["message"], attention["since"])


def post_record(document: ScheduledPostDocument) -> ScheduledPost:
    """Returns the record of a stored scheduled post."""
    return ScheduledPost(
        id=document["_id"],
        organization_id=document["org"],
        timestamp=Timestamp(document["ts"]),
        author_id=document["author"],
        text=document["text"],
        media=[ScheduledMedia(each["url"], each["alt"], MediaKind(each["kind"])) for each in document["media"]],
        due_at=document["due"],
        time_zone=document["zone"],
        max_lateness_s=document["max_lateness_s"],
        created_at=document["at"],
        revision=document["revision"],
        attachments=tuple(attachment_record(each) for each in document.get("attachments", ())),
    )


def publication_record(document: PublicationDocument) -> Publication:
    """Returns the record of a stored publication."""
    error, upload, progress = document.get("error"), document.get("upload"), document.get("progress")
    return Publication(
        id=document["_id"],
        organization_id=document["org"],
        scheduled_post_id=document["post"],
        author_id=document["author"],
        target=_target(document),
        state=PublicationState(document["state"]),
        fence=document["fence"],
        due_at=document["due"],
        late_at=document["late_at"],
        media_state=MediaState(document["media_state"]),
        upload=None if upload is None else StoredMediaUpload(upload["references"], upload.get("expires_at")),
        progress=None if progress is None else _progress(progress),
        published_at=document.get("published_at"),
        external_id=document.get("external_id"),
        url=document.get("url"),
        error=None if error is None else PublicationError(error["code"], error["message"]),
        attempts=[PublicationAttempt(a["at"], a["outcome"], a.get("detail")) for a in document.get("attempts", ())],
        held_at=document.get("held_at"),
        wake_at=document.get("wake_at"),
        file_ids=tuple(each["id"] for each in document.get("attachments", ())),
    )


def _target(document: PublicationDocument) -> Target:
    target = document["target"]
    if target["kind"] == "TOPIC":
        return TopicTarget(target["id"], target["community"])
    if target["kind"] == "ACCOUNT":
        return AccountTarget(target["id"], Network(target["network"]))
    return HomeFeedTarget(document["author"])


def _progress(document: ProgressDocument) -> PublishingProgress:
    return PublishingProgress(
        PublishingPhase(document["phase"]), document["key"], document["tries"], document["at"], document.get("first_at")
    )


def target_document(target: Target) -> TargetDocument:
    """Returns the stored form of a target."""
    match target:
        case TopicTarget(topic_id, community_id):
            return {"kind": "TOPIC", "id": topic_id, "community": community_id}
        case AccountTarget(account_id, network):
            return {"kind": "ACCOUNT", "id": account_id, "network": network.value}
        case HomeFeedTarget(author_id):
            return {"kind": "HOME_FEED", "id": author_id}


def media_documents(media: Sequence[ScheduledMedia]) -> list[MediaDocument]:
    """Returns the stored form of media."""
    return [{"url": each.url, "alt": each.alt_text, "kind": each.kind.value} for each in media]
