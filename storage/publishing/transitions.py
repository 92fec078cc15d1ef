"""The state machine of a due publication: changes that are committed together with their events.

SCHEDULED -> PUBLISHING -> PUBLISHED | FAILED | UNKNOWN; UNKNOWN -> PUBLISHED | FAILED. NEEDS_ATTENTION is in
storage/publishing/attention.py, answers of people are in storage/publishing/resolution.py. A worker's change fails
unless the stored fence is the fence of its claim. Times are compared with the batch's time, which is the database's
clock.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from storage.errors import Conflict
from storage.publishing.documents import (
    PUBLICATIONS,
    AttemptDocument,
    ProgressDocument,
    PublicationDocument,
    UploadDocument,
)
from storage.publishing.events import emit_changed, report_failed, report_late, report_unknown
from storage.publishing.records import MediaState, Publication, PublicationState, PublishingPhase, publication_record
from storage.publishing.scheduling import drop_upload, put_finished, put_without_work, release_upload
from storage.streams.changes import Batch, DocumentKey, SystemChange

MAX_TRIES = 5
LEASE_S = 8.0
"""How many seconds a claim lasts without a renewal, counted from the claim, or from the due moment if that is later."""

CALL_LEASE_S = 6.0
"""How many seconds after the last renewal a call counts as interrupted (ADR 15)."""

MANUAL_LEASE_S = 15.0
"""The lease of a call that only a person can reconcile. Longer than a call, so that a slow renewal does not end it."""

NOTIFY_WITHIN_S = 60.0
"""Maximum seconds after `late_at` until the author is notified that an outcome is still unknown."""

RETENTION_MARGIN_S = 30.0
"""For how many seconds before the network forgets a key the key is not sent again. A call takes time, clocks differ."""

OPEN_STATES = (
    PublicationState.SCHEDULED,
    PublicationState.PUBLISHING,
    PublicationState.UNKNOWN,
    PublicationState.NEEDS_ATTENTION,
)
"""States of publications that are not finished."""

TOO_LATE = "TOO_LATE"
NOT_PUBLISHED = "NOT_PUBLISHED"


class ClaimLost(Conflict):
    """Another worker has claimed the publication, or the publication was updated, cancelled or finished."""

    def __init__(self, message: str = "The publication was claimed by another worker, or changed.") -> None:
        super().__init__(message)


class NotYetDue(Conflict):
    """The due moment is `wait_s` seconds in the future."""

    def __init__(self, wait_s: float) -> None:
        super().__init__("The publication is not due yet.")
        self.wait_s = wait_s


class DeadlinePassed(Conflict):
    """The publication was due more than `maxLatenessS` seconds ago."""

    def __init__(self) -> None:
        super().__init__("The publication was due more than maxLatenessS ago.")


def claimed_publication(batch: Batch, publication: Publication, *states: PublicationState) -> PublicationDocument:
    """Returns a copy of the stored publication if its fence and state still match. Raises: ClaimLost."""
    stored: PublicationDocument | None = batch.get(PUBLICATIONS, publication.id)
    if stored is None or stored["fence"] != publication.fence:
        raise ClaimLost
    if stored["state"] not in {each.value for each in states}:
        raise ClaimLost
    return stored.copy()


@dataclass(slots=True)
class PublicationChange(SystemChange[Publication]):
    """A change of one publication. Raises ClaimLost if its fence, or the token of its upload, has changed meanwhile."""

    publication: Publication

    def needs(self) -> Sequence[DocumentKey]:
        """Returns the publication."""
        return [(PUBLICATIONS, self.publication.id)]

    def put(self, batch: Batch, document: PublicationDocument) -> Publication:
        """Puts the publication back, emits its change and returns its record."""
        batch.put(PUBLICATIONS, document)
        emit_changed(batch, document)
        return publication_record(document)


def check_due(publication: PublicationDocument, now: datetime) -> None:
    """Checks that the due moment has come. Raises: NotYetDue."""
    wait_s: float = (publication["due"] - now).total_seconds()
    if wait_s > 0:
        raise NotYetDue(wait_s)


def is_too_late(publication: PublicationDocument, now: datetime) -> bool:
    """Returns whether the publication was due more than `maxLatenessS` seconds ago."""
    return bool(now > publication["late_at"])


def add_attempt(document: PublicationDocument, at: datetime, outcome: str, detail: str | None = None) -> None:
    """Appends an entry to the publication's history."""
    attempt: AttemptDocument = {"at": at, "outcome": outcome, "detail": detail}
    document["attempts"] = [*document["attempts"], attempt]


def put_failed(batch: Batch, document: PublicationDocument, code: str, message: str) -> None:
    """Sets the publication to FAILED and puts it. Reports it to its author."""
    document |= {"state": PublicationState.FAILED.value, "error": {"code": code, "message": message}}
    document.pop("progress", None)
    add_attempt(document, batch.at, "FAILED", f"{code}: {message}")
    report_failed(batch, document)
    put_finished(batch, document)


@dataclass(slots=True)
class BeginAttempt(PublicationChange):
    """Begins a phase of publishing, at the due moment or later, unless the network may have been called already.

    The result is PUBLISHING with the stored intent (key and time), or FAILED if publishing is too late.
    """

    phase: PublishingPhase
    key: str
    lease_s: float = CALL_LEASE_S

    def plan(self, batch: Batch) -> Publication:
        """Stores the phase. Raises: ClaimLost, NotYetDue."""
        document = claimed_publication(batch, self.publication, PublicationState.SCHEDULED, PublicationState.PUBLISHING)
        old_progress = document.get("progress")
        if old_progress is not None and old_progress["phase"] == PublishingPhase.CALLING.value:
            raise ClaimLost("The network has been called already.")
        check_due(document, batch.at)
        if is_too_late(document, batch.at):
            message = "The post was not published within maxLatenessS after dueAt: the service or the network was down."
            put_failed(batch, document, TOO_LATE, message)
            return publication_record(document)
        document["state"] = PublicationState.PUBLISHING.value
        document["progress"] = self._progress(old_progress, batch.at)
        lease_s = self.lease_s if self.phase is PublishingPhase.CALLING else LEASE_S
        document["wake_at"] = batch.at + timedelta(seconds=lease_s)
        return self.put(batch, document)

    def _progress(self, old_progress: ProgressDocument | None, now: datetime) -> ProgressDocument:
        progress: ProgressDocument = {"key": self.key, "tries": 0, "phase": self.phase.value, "at": now}
        if old_progress is not None:
            progress = {**old_progress, "phase": self.phase.value, "at": now}
        if self.phase is PublishingPhase.CALLING:
            progress |= {"first_at": progress.get("first_at", now), "tries": progress["tries"] + 1}
        return progress


@dataclass(slots=True)
class MarkPublished(PublicationChange):
    """Stores that the network has published the post. The stored time is when the last call to the network began.

    If an earlier call published, the stored time is too late, but it is never too early. Notifies the author if the
    post is late.
    """

    external_id: str | None
    url: str | None
    detail: str | None = None

    def plan(self, batch: Batch) -> Publication:
        """Stores the state. Raises: ClaimLost."""
        document = claimed_publication(batch, self.publication, PublicationState.PUBLISHING, PublicationState.UNKNOWN)
        document |= {"state": PublicationState.PUBLISHED.value, "external_id": self.external_id, "url": self.url}
        document["published_at"] = document["progress"]["at"]
        document.pop("error", None)
        document.pop("progress")
        add_attempt(document, batch.at, "PUBLISHED", self.detail)
        report_late(batch, document, document["published_at"])
        put_finished(batch, document)
        return publication_record(document)


@dataclass(slots=True)
class MarkFailed(PublicationChange):
    """Stores that the publication failed permanently."""

    code: str
    message: str

    def plan(self, batch: Batch) -> Publication:
        """Stores the state. Raises: ClaimLost."""
        document = claimed_publication(batch, self.publication, *OPEN_STATES)
        put_failed(batch, document, self.code, self.message)
        return publication_record(document)


@dataclass(slots=True)
class ScheduleRetry(PublicationChange):
    """Schedules another try, `delay_s` seconds after a try without effect. At most five tries, none after `late_at`."""

    delay_s: float
    message: str
    must_upload_again: bool = False
    """Whether the media have to be uploaded again."""

    def plan(self, batch: Batch) -> Publication:
        """Stores the next try. Fails the publication if no try is left. Raises: ClaimLost."""
        document = claimed_publication(batch, self.publication, PublicationState.PUBLISHING)
        next_at = batch.at + timedelta(seconds=self.delay_s)
        progress = document["progress"]
        # BeginAttempt counts calls. A failed upload counts here.
        tries = progress["tries"] + (progress["phase"] != PublishingPhase.CALLING.value)
        if tries >= MAX_TRIES or is_too_late(document, next_at):
            put_failed(batch, document, "UNREACHABLE", self.message)
            return publication_record(document)
        add_attempt(document, batch.at, "NO_EFFECT", self.message)
        document["progress"] = {**progress, "tries": tries, "phase": PublishingPhase.WAITING.value, "at": batch.at}
        document["wake_at"] = next_at
        if self.must_upload_again:
            drop_upload(document)
            document["media_state"] = MediaState.STALE.value
        return self.put(batch, document)


@dataclass(frozen=True, slots=True)
class ReconciliationPolicy:
    """When to reconcile an unknown outcome: in `delay_s` seconds, but not later than `max_age_s` after the first call.

    If `delay_s` is None, only a person can reconcile. If `max_age_s` is None, there is no limit.
    """

    delay_s: float | None
    max_age_s: float | None = None

    def needs_person(self, progress: ProgressDocument, now: datetime) -> bool:
        """Returns whether only a person can find the outcome."""
        if self.delay_s is None or self.max_age_s is None:
            return self.delay_s is None
        age_s: float = (now - progress["first_at"]).total_seconds()
        return age_s + self.delay_s + RETENTION_MARGIN_S > self.max_age_s


MANUAL = ReconciliationPolicy(None)


@dataclass(slots=True)
class MarkUnknown(PublicationChange):
    """Stores that the outcome of a call is unknown, and when to reconcile it."""

    message: str
    policy: ReconciliationPolicy

    def plan(self, batch: Batch) -> Publication:
        """Stores the state. Notifies the author if only a person can find the outcome, or if it is too late to publish.

        Raises: ClaimLost.
        """
        document = claimed_publication(batch, self.publication, PublicationState.PUBLISHING, PublicationState.UNKNOWN)
        document |= {"state": PublicationState.UNKNOWN.value, "error": {"code": "UNKNOWN", "message": self.message}}
        add_attempt(document, batch.at, "UNKNOWN", self.message)
        if self.policy.delay_s is None or self.policy.needs_person(document["progress"], batch.at):
            return leave_to_person(batch, document)
        if is_too_late(document, batch.at):
            report_unknown_once(batch, document)
        document["wake_at"] = self._next_at(document, self.policy.delay_s, batch.at)
        # A claim then means that a worker is asking the network, which a person's answer must not contradict.
        document.pop("claim", None)
        return self.put(batch, document)

    def _next_at(self, document: PublicationDocument, delay_s: float, now: datetime) -> datetime:
        """Returns when to reconcile. Until the author is notified, that is at most a minute after `late_at`."""
        latest: datetime = max(document["late_at"], now + timedelta(seconds=NOTIFY_WITHIN_S))
        at = now + timedelta(seconds=delay_s)
        return at if document.get("author_notified") else min(at, latest)


def report_unknown_once(batch: Batch, document: PublicationDocument) -> None:
    """Notifies the author that the outcome is unknown, unless the author was notified before."""
    if not document.get("author_notified"):
        document["author_notified"] = True
        report_unknown(batch, document)


def leave_to_person(batch: Batch, document: PublicationDocument) -> Publication:
    """Ends automatic reconciliation and notifies the author. The files are kept, since the person may publish again."""
    report_unknown_once(batch, document)
    put_without_work(batch, document)
    return publication_record(document)


@dataclass(slots=True)
class BeginReconciliation(PublicationChange):
    """Begins to reconcile an UNKNOWN publication, and holds the lease of a call for it. The state stays UNKNOWN."""

    policy: ReconciliationPolicy
    repeats_call: bool = True
    """Whether the call is repeated. If False, the network is only queried."""

    def plan(self, batch: Batch) -> Publication:
        """Returns the publication, without `progress` if only a person can find the outcome. Raises: ClaimLost."""
        document = claimed_publication(batch, self.publication, PublicationState.UNKNOWN)
        if self.policy.needs_person(document["progress"], batch.at):
            return replace(leave_to_person(batch, document), progress=None)
        if self.repeats_call:
            document["progress"] = {**document["progress"], "at": batch.at}
        document["wake_at"] = batch.at + timedelta(seconds=CALL_LEASE_S)
        batch.put(PUBLICATIONS, document)
        return publication_record(document)


@dataclass(slots=True)
class StoreUploadResult(PublicationChange):
    """Stores the result of an upload ahead of the due moment, under the token of its claim."""

    token: str
    references: Sequence[Any] | None
    """The network's identifiers of the media; None: the upload failed."""
    expires_in_s: float | None = None
    message: str | None = None
    retry_in_s: float | None = None
    """Seconds until a failed upload is tried again; None: it is tried again at the due moment."""

    def plan(self, batch: Batch) -> Publication:
        """Stores the result. Raises: ClaimLost if the content has changed, or another worker has claimed the upload."""
        stored: PublicationDocument | None = batch.get(PUBLICATIONS, self.publication.id)
        if stored is None or stored.get("upload_claim") != self.token:
            raise ClaimLost("The upload was claimed by another worker, or the post has changed.")
        document = stored.copy()
        release_upload(document)
        if self.references is None:
            self._set_failure(document, batch.at)
        else:
            document["media_state"] = MediaState.READY.value
            document["upload"] = upload_document(self.references, self.expires_in_s, batch.at)
        return self.put(batch, document)

    def _set_failure(self, document: PublicationDocument, now: datetime) -> None:
        document["media_state"] = MediaState.FAILED.value
        add_attempt(document, now, "UPLOAD_FAILED", self.message)
        if self.retry_in_s is not None:
            document["upload_at"] = now + timedelta(seconds=self.retry_in_s)


def upload_document(references: Sequence[Any], expires_in_s: float | None, now: datetime) -> UploadDocument:
    """Returns the stored form of an upload."""
    expires_at = None if expires_in_s is None else now + timedelta(seconds=expires_in_s)
    return {"references": list(references), "expires_at": expires_at}


@dataclass(slots=True)
class StoreUploadResultAndBegin(PublicationChange):
    """Stores the result of an upload at the due moment, and begins the call."""

    references: Sequence[Any]
    expires_in_s: float | None
    key: str
    lease_s: float = CALL_LEASE_S

    def plan(self, batch: Batch) -> Publication:
        """Stores the upload and the intent in one commit. Raises: ClaimLost."""
        document = claimed_publication(batch, self.publication, PublicationState.PUBLISHING)
        if document["progress"]["phase"] == PublishingPhase.CALLING.value:
            raise ClaimLost("The network has been called already.")
        document["media_state"] = MediaState.READY.value
        document["upload"] = upload_document(self.references, self.expires_in_s, batch.at)
        release_upload(document)
        batch.put(PUBLICATIONS, document)
        return BeginAttempt(self.publication, PublishingPhase.CALLING, self.key, self.lease_s).plan(batch)
