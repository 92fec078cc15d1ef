"""The records of the publishing area: frozen, as read. Instants are aware UTC datetimes, exact to the millisecond."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any

from storage.mongo import Document
from storage.publishing.networks import MediaKind, Network
from storage.timeline import Timestamp


class PublicationState(Enum):
    """Where a publication stands (docs/publishing.md draws it)."""

    SCHEDULED = "SCHEDULED"
    PUBLISHING = "PUBLISHING"
    PUBLISHED = "PUBLISHED"
    FAILED = "FAILED"
    UNKNOWN = "UNKNOWN"
    CANCELLED = "CANCELLED"


class ScheduledPostState(Enum):
    """What its publications make of a scheduled post."""

    SCHEDULED = "SCHEDULED"
    PUBLISHING = "PUBLISHING"
    PUBLISHED = "PUBLISHED"
    PARTIAL = "PARTIAL"
    FAILED = "FAILED"
    UNKNOWN = "UNKNOWN"
    CANCELLED = "CANCELLED"


class MediaState(Enum):
    """Where the upload of a publication's media stands."""

    NONE = "NONE"
    PENDING = "PENDING"
    UPLOADING = "UPLOADING"
    READY = "READY"
    STALE = "STALE"
    FAILED = "FAILED"


class CallPhase(Enum):
    """What is being done while a publication is PUBLISHING. Only CALLING may have had an effect when it is cut off."""

    PREPARING = "PREPARING"
    CALLING = "CALLING"
    WAITING = "WAITING"


@dataclass(frozen=True, slots=True)
class ConnectedAccount:
    """An organization's account elsewhere. What opens it is not in here."""

    id: str
    organization_id: str
    network: Network
    name: str
    base_url: str | None
    connected_at: datetime
    disconnected_at: datetime | None


@dataclass(frozen=True, slots=True)
class HomeFeedTarget:
    """The author's followers, and the author's own feed."""

    author_id: str


@dataclass(frozen=True, slots=True)
class TopicTarget:
    """A topic of the chat."""

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
    """An image or a video by its address."""

    url: str
    alt_text: str
    kind: MediaKind


@dataclass(frozen=True, slots=True)
class ScheduledPost:
    """What is to be published, and when. `timestamp` is unique in the organization, at or after `due_at`."""

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


@dataclass(frozen=True, slots=True)
class PublicationError:
    """Why a publication failed, or why nobody knows."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class PublicationAttempt:
    """Something that was tried, and what came of it."""

    at: datetime
    outcome: str
    detail: str | None


@dataclass(frozen=True, slots=True)
class Upload:
    """What the network calls the uploaded media, and until when they can be used; None: until they are."""

    references: Sequence[Any]
    expires_at: datetime | None


@dataclass(frozen=True, slots=True)
class CallProgress:
    """How far a call to the outside is. `key` is the same for every try; `first_at` is when it was first called."""

    phase: CallPhase
    key: str
    tries: int
    at: datetime
    first_at: datetime | None


@dataclass(frozen=True, slots=True)
class Publication:
    """One target of a scheduled post. Whoever works on it holds it by its `fence`, which only grows."""

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
    upload: Upload | None
    progress: CallProgress | None
    published_at: datetime | None
    external_id: str | None
    url: str | None
    error: PublicationError | None
    attempts: Sequence[PublicationAttempt]

    @property
    def lateness_ms(self) -> int | None:
        """How late it was published, in milliseconds; None unless it was."""
        if self.published_at is None:
            return None
        return max(0, round((self.published_at - self.due_at).total_seconds() * 1000))


def post_state(states: Collection[PublicationState]) -> ScheduledPostState:
    """What publications in these states make of their post (ScheduledPostState)."""
    found = set(states)
    scheduled = PublicationState.SCHEDULED in found
    if found == {PublicationState.SCHEDULED}:
        return ScheduledPostState.SCHEDULED
    if PublicationState.PUBLISHING in found or scheduled:
        return ScheduledPostState.PUBLISHING
    if PublicationState.UNKNOWN in found:
        return ScheduledPostState.UNKNOWN
    return ScheduledPostState(found.pop().value) if len(found) == 1 else ScheduledPostState.PARTIAL


_P, _S = PublicationState, ScheduledPostState
_NEEDED: dict[ScheduledPostState, set[PublicationState]] = {
    _S.SCHEDULED: {_P.SCHEDULED},
    _S.PUBLISHING: {_P.PUBLISHING, _P.SCHEDULED},
    _S.PUBLISHED: {_P.PUBLISHED},
    # Of the three states that it mixes, one of these two is always there.
    _S.PARTIAL: {_P.FAILED, _P.CANCELLED},
    _S.FAILED: {_P.FAILED},
    _S.UNKNOWN: {_P.UNKNOWN},
    _S.CANCELLED: {_P.CANCELLED},
}


def needed_states(states: Collection[ScheduledPostState]) -> set[PublicationState]:
    """States of which every post in one of `states` has a publication; other posts may have one, too."""
    return {needed for state in states for needed in _NEEDED[state]}


def account_record(document: Document) -> ConnectedAccount:
    """The record of a stored account."""
    return ConnectedAccount(
        id=document["_id"],
        organization_id=document["org"],
        network=Network(document["network"]),
        name=document["name"],
        base_url=document["base_url"],
        connected_at=document["connected_at"],
        disconnected_at=document.get("disconnected_at"),
    )


def post_record(document: Document) -> ScheduledPost:
    """The record of a stored scheduled post."""
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
    )


def publication_record(document: Document) -> Publication:
    """The record of a stored publication."""
    error, upload, step = document.get("error"), document.get("upload"), document.get("step")
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
        upload=None if upload is None else Upload(upload["references"], upload.get("expires_at")),
        progress=None if step is None else _progress(step),
        published_at=document.get("published_at"),
        external_id=document.get("external_id"),
        url=document.get("url"),
        error=None if error is None else PublicationError(error["code"], error["message"]),
        attempts=[PublicationAttempt(a["at"], a["outcome"], a.get("detail")) for a in document.get("attempts", ())],
    )


def _target(document: Document) -> Target:
    target = document["target"]
    if target["kind"] == "TOPIC":
        return TopicTarget(target["id"], target["community"])
    if target["kind"] == "ACCOUNT":
        return AccountTarget(target["id"], Network(target["network"]))
    return HomeFeedTarget(document["author"])


def _progress(document: Document) -> CallProgress:
    return CallProgress(
        CallPhase(document["phase"]), document["key"], document["tries"], document["at"], document.get("first_at")
    )


def target_document(target: Target) -> Document:
    """The stored form of a target."""
    match target:
        case TopicTarget(topic_id, community_id):
            return {"kind": "TOPIC", "id": topic_id, "community": community_id}
        case AccountTarget(account_id, network):
            return {"kind": "ACCOUNT", "id": account_id, "network": network.value}
        case HomeFeedTarget(author_id):
            return {"kind": "HOME_FEED", "id": author_id}


def media_documents(media: Sequence[ScheduledMedia]) -> list[Document]:
    """The stored form of media."""
    return [{"url": each.url, "alt": each.alt_text, "kind": each.kind.value} for each in media]
