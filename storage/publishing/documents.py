"""Stored documents of the publishing area, by collection. Instants are UTC datetimes, exact to the millisecond."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NotRequired, TypedDict

from storage.files.documents import AttachmentDocument
from storage.secrets.credentials import SealedSecret

SCHEDULED_POSTS = "scheduled_posts"
PUBLICATIONS = "publications"
ACCOUNT_CONNECTIONS = "account_connections"
PROBLEMS = "publication_problems"
SUMMARIES = "publication_summaries"


class AttentionDocument(TypedDict):
    """Refused credentials of an account. Void once the account has other credentials."""

    code: str
    message: str
    since: datetime
    nonce: bytes
    """The nonce of the credentials that were refused."""
    of_renewal: NotRequired[bool]
    """True if the network does not renew the credentials: a verification then does not remove the mark."""
    mailed: NotRequired[list[str]]
    """Ids of the authors who got a mail that a post waits for the account, each once."""


class VerificationDocument(TypedDict):
    """A worker's claim on the verification of an account's credentials."""

    claim: str
    """Token of the claim."""


class RenewalDocument(TypedDict):
    """A worker's claim on the renewal of an account's credentials."""

    claim: str
    """Token of the claim; empty after a failed try, until the next one."""
    nonce: bytes
    """The nonce of the credentials that the claim renews."""
    unanswered: int
    """Number of calls for these credentials of which no answer is known, with the call of this claim."""


class AccountDocument(TypedDict):
    """`accounts`: one connected account. Kept after disconnection, without its credentials."""

    _id: str
    org: str
    """Organization id."""
    network: str
    """`Network` value."""
    name: str
    base_url: str | None
    """Address of the account's server or webhook; None for a network with a single address."""
    connected_at: datetime
    handle: NotRequired[str]
    """Name of the account at its network; absent if the network was not asked, or does not say."""
    network_id: NotRequired[str]
    """Id of the account at its network, which stays when the handle changes; absent as `handle`."""
    verified_at: NotRequired[datetime]
    """When the network last accepted the credentials; absent as `handle`."""
    connected_by: NotRequired[str]
    """Id of the user who gave the present credentials; absent for accounts of earlier versions."""
    credentials: NotRequired[SealedSecret]
    """Encrypted credentials (storage/secrets/credentials.py); removed on disconnection."""
    refresh_token: NotRequired[SealedSecret]
    """Encrypted secret that renews the credentials; absent if they renew themselves, or never end."""
    expires_at: NotRequired[datetime]
    """When the credentials end; absent if they do not, or if the network did not say."""
    renew_at: NotRequired[datetime]
    """When a worker renews the credentials; during a renewal, the end of its lease. Absent if none is possible."""
    renewal: NotRequired[RenewalDocument]
    """The last claim on a renewal that was not finished."""
    verify_at: NotRequired[datetime]
    """When a worker asks the network about the credentials next; during a verification, the end of its lease.

    Absent for accounts of earlier releases, which are due at once, and after disconnection.
    """
    verification: NotRequired[VerificationDocument]
    """The claim on a verification that was not finished."""
    warn_at: NotRequired[datetime]
    """When the person who gave the credentials is warned next of their end. Absent if no warning is left."""
    warned_days: NotRequired[int]
    """Days before the end of the credentials of the last warning; absent before the first one."""
    disconnected_at: NotRequired[datetime]
    failing: NotRequired[bool]
    """True from disconnection until every publication that waited for the account has failed."""
    attention: NotRequired[AttentionDocument]
    """Why due publications are held: the credentials were refused. Removed by a retry and on disconnection."""


class AccountConnectionDocument(TypedDict):
    """`account_connections`: a person is at a network to allow access. Deleted by the answer, or when it expires."""

    _id: str
    """Digest of the state that the network returns."""
    org: str
    """Organization id."""
    user: str
    """Id of the user who began."""
    session: str | None
    """Id of the browser's session in which the user began; None if the user began with a token."""
    network: str
    """`Network` value."""
    name: str
    """Name of the new account, or of the account that is connected again."""
    base_url: str | None
    """Address of the account's server; None for a network with a single address."""
    account: NotRequired[str]
    """Id of the account that gets other credentials; absent for a new account."""
    sealed: SealedSecret
    """Encrypted verifier of PKCE, and id and secret of the app at the network."""
    expires_at: datetime
    """When the answer comes too late, by the database's clock."""


class MediaDocument(TypedDict):
    """One medium of a scheduled post."""

    url: str
    alt: str
    """Alternative text; may be empty."""
    kind: str
    """`MediaKind` value."""


class ScheduledPostDocument(TypedDict):
    """`scheduled_posts`: text, media and due moment. Never deleted. Its state is derived from its publications."""

    _id: str
    org: str
    """Organization id."""
    author: str
    """User id."""
    ts: int
    """Timestamp on the organization's timeline: unique microseconds since the Unix epoch, at or after `due`."""
    text: str
    media: list[MediaDocument]
    attachments: NotRequired[list[AttachmentDocument]]
    """Uploaded files in their order, at most 10; absent without one."""
    due: datetime
    zone: str
    """IANA time zone of the author."""
    max_lateness_s: int
    publications: list[str]
    """Publication ids, in the order of the targets."""
    at: datetime
    """When the post was first scheduled."""
    revision: int
    """1 at first; each update or cancel adds 1."""


class TargetDocument(TypedDict):
    """Target of a publication."""

    kind: str
    """HOME_FEED, TOPIC or ACCOUNT."""
    id: str
    """Id of the author, the topic or the account."""
    community: NotRequired[str]
    """TOPIC only: the topic's community."""
    network: NotRequired[str]
    """ACCOUNT only: `Network` value."""


class UploadDocument(TypedDict):
    """Media that the network holds."""

    references: list[Any]
    """The network's identifiers of the media, in the order of the media."""
    expires_at: NotRequired[datetime | None]
    """None: does not expire."""


class ProgressDocument(TypedDict):
    """Progress of publishing to an account."""

    phase: str
    """`PublishingPhase` value."""
    key: str
    """Idempotency key; the same for every call of the publication."""
    tries: int
    """Number of calls that began, plus uploads that failed at the due moment."""
    at: datetime
    """When the phase began; in the phase CALLING, when the last call began."""
    first_at: NotRequired[datetime]
    """When the first call began. The network's retention of the key counts from this time."""


class ErrorDocument(TypedDict):
    """Why a publication failed, is unknown or needs attention."""

    code: str
    message: str


class AttemptDocument(TypedDict):
    """One entry of a publication's history."""

    at: datetime
    outcome: str
    """PUBLISHED, FAILED, UNKNOWN, NEEDS_ATTENTION, NO_EFFECT or UPLOAD_FAILED."""
    detail: str | None


class ReportMailDocument(TypedDict):
    """A mail to the author that is due."""

    reason: str
    """`ReportReason` value."""
    attempt: int
    """Number of attempts of the publication when it was reported."""


class PublicationDocument(TypedDict):
    """`publications`: one target of a scheduled post. Deleted only if an update removes the target."""

    _id: str
    org: str
    """Organization id."""
    post: str
    """Scheduled post id."""
    author: str
    """User id."""
    target: TargetDocument
    place: NotRequired[int]
    """Position among the post's targets, from 0."""
    state: str
    """`PublicationState` value."""
    attachments: NotRequired[list[AttachmentDocument]]
    """The post's files, which this publication keeps until it is finished; absent afterwards, and without files.

    UNKNOWN is not finished. Earlier releases removed them when the outcome was left to a person.
    """
    fence: int
    """Grows with every claim, and with every change by a person. A worker's change under an older fence is rejected."""
    ts: int
    """The post's `ts`, so that one index yields publications in the order of due times."""
    due: datetime
    late_at: datetime
    """`due` plus the post's `max_lateness_s`: publishing may not begin later.

    After a person's answer that the post be published again, `max_lateness_s` counts from the answer.
    """
    late_from: NotRequired[datetime]
    """When the publication was last scheduled, if its due moment had passed by then: by a person, or after a wait.

    The author is notified of a late publication only if it is late from this moment on, too.
    """
    attempts: Sequence[AttemptDocument]
    wake_at: NotRequired[datetime]
    """When the publication needs work next: 5 s before `due`, when a lease expires, at the next try or reconciliation.

    In NEEDS_ATTENTION, `late_at`: the publication fails then. Absent if the publication is finished or held, and if
    only a person can find its outcome.
    """
    claim: NotRequired[str]
    """Token of the last claim (`storage.mongo.leases.claim_token`). In UNKNOWN: a worker is asking the network."""
    leased_until: NotRequired[datetime]
    """When the lease of the last claim, or of its last renewal, ends. `wake_at` differs if the claim has set it since.

    Absent before the first claim, and in documents of earlier releases.
    """
    held_at: NotRequired[datetime]
    """When the publication began to wait for an administrator, because its author is deactivated. Absent otherwise."""
    media_state: str
    """`MediaState` value."""
    upload: NotRequired[UploadDocument]
    """Present while `media_state` is READY."""
    upload_at: NotRequired[datetime]
    """When to start the upload, or when the lease of the running upload expires. Absent when no upload is needed."""
    upload_claim: NotRequired[str]
    """Token of the claim of the running upload (`storage.mongo.leases.claim_token`)."""
    progress: NotRequired[ProgressDocument]
    """Progress of publishing to an account. Present in PUBLISHING and UNKNOWN.

    Also in SCHEDULED after a person's answer that the post be published again: the key stays the same.
    """
    error: NotRequired[ErrorDocument]
    """Present in FAILED, UNKNOWN and NEEDS_ATTENTION."""
    author_notified: NotRequired[bool]
    """True once the author was notified of the unknown outcome. Removed when a person has it published again."""
    attention_notified: NotRequired[bool]
    """True once the author was notified that the account's credentials were refused."""
    mail_at: NotRequired[datetime]
    """When to send the mail about the last report next. Absent once it is sent or refused."""
    mail: NotRequired[ReportMailDocument]
    """The mail that is due at `mail_at`; absent for failures that were reported by an earlier release."""
    published_at: NotRequired[datetime]
    external_id: NotRequired[str | None]
    """Internal target: id of the message or post. ACCOUNT: the network's id of the post, None if it reports none."""
    url: NotRequired[str | None]
    """Public address, if the network reports one."""


class PublicationProblemsDocument(TypedDict):
    """`publication_problems`: an organization with reports. Deleted by a worker when nothing is to be summarized."""

    _id: str
    """Organization id."""
    since: datetime
    """When the first of them was made."""
    reports: int
    """Their number. It tells a worker that another report was made."""
    due: datetime
    """When a worker next looks whom to mail a summary."""


class PublicationSummaryId(TypedDict):
    """Key of the last summary of a person."""

    o: str
    """Organization id."""
    u: str
    """User id."""


class PublicationSummaryDocument(TypedDict):
    """`publication_summaries`: the last summary that a person got by mail. Deleted 30 days after it."""

    _id: PublicationSummaryId
    day: str
    """Local day of the person, such as 2026-11-22; empty if the last try to send one failed."""
    at: datetime
    """When it was sent."""


class SandboxPostId(TypedDict):
    """Key of a sandbox post."""

    account: str
    """Account id."""
    key: str
    """Idempotency key."""


class SandboxPostDocument(TypedDict):
    """`sandbox_posts`: posts that the built-in sandbox network has published. Deleted by an erasure of the author."""

    _id: SandboxPostId
    id: str
    """External id."""
    text: str
    at: datetime
    """When it was published."""
