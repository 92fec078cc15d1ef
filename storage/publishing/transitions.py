"""What happens to a publication once it is due: the state machine, as changes that are committed with their events.

scheduled -> publishing -> published | failed | unknown;  unknown -> published | failed. Every step filters on the fence
of whoever works on the publication; one that lost it changes nothing. Compared times are the batch's, the database's.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from storage.errors import Conflict, NotFound
from storage.mongo import Document
from storage.publishing.events import emit_changed, notify_failed, notify_unknown
from storage.publishing.records import CallPhase, MediaState, Publication, PublicationState, publication_record
from storage.publishing.scheduling import PUBLICATIONS, drop_upload, put_finished
from storage.streams.changes import Batch, Change, Need

MAX_TRIES = 5
LEASE_S = 8.0
"""How long somebody who does not renew keeps a publication; when it is held for its due moment, counted from then."""

CALL_LEASE_S = 6.0
"""How long after its last sign of life a call to the outside counts as cut off: renewed meanwhile (ADR 15)."""

PERSONS_LEASE_S = 15.0
"""The call lease where only a person can reconcile: longer than a call, so that no slow renewal ends it."""

NOTIFY_WITHIN_S = 60.0
"""How long after maxLateness its author hears at the latest that an outcome is unknown."""

SETTLING_MARGIN_S = 30.0
"""How long before a network forgets a key it is not sent any more: a call and a slow clock fit in."""

TOO_LATE = "TOO_LATE"
RESOLVED = "NOT_PUBLISHED"


class ClaimLost(Conflict):
    """Somebody else has the publication by now, or it was changed, cancelled or settled."""


class NotYetDue(Conflict):
    """The due moment is still to come, by so much."""

    def __init__(self, wait_s: float) -> None:
        super().__init__("It is not due yet.")
        self.wait_s = wait_s


def held(batch: Batch, publication: Publication, *states: PublicationState) -> Document:
    """A copy of the stored publication if its fence and state still match. Raises: ClaimLost."""
    found = batch.get(PUBLICATIONS, publication.id)
    if found is None or found["fence"] != publication.fence or found["state"] not in {each.value for each in states}:
        raise ClaimLost("It is somebody else's by now.")
    return dict(found)


class DeadlinePassed(Conflict):
    """It was due longer ago than its author allows."""

    def __init__(self) -> None:
        super().__init__("It was due longer ago than maxLatenessS.")


@dataclass(slots=True)
class PublicationChange(Change[Publication]):
    """A step of whoever holds the publication, by the fence that it was read with."""

    publication: Publication

    def needs(self) -> Sequence[Need]:
        """The publication itself."""
        return [(PUBLICATIONS, self.publication.id)]

    def held(self, batch: Batch, *states: PublicationState) -> Document:
        """A copy of the publication, to be changed and put back. Raises: ClaimLost."""
        return held(batch, self.publication, *states)

    def keep(self, batch: Batch, document: Document) -> Publication:
        """Puts the publication back and tells of it."""
        batch.put(PUBLICATIONS, document)
        emit_changed(batch, document)
        return publication_record(document)


def check_due(publication: Document, now: datetime) -> None:
    """Raises: NotYetDue. The state becomes publishing, or published, only at the due moment."""
    wait_s: float = (publication["due"] - now).total_seconds()
    if wait_s > 0:
        raise NotYetDue(wait_s)


def is_too_late(publication: Document, now: datetime) -> bool:
    """Whether it was due longer ago than its author allows."""
    return bool(now > publication["late_at"])


def note(document: Document, at: datetime, outcome: str, detail: str | None = None) -> None:
    """Remembers what was tried."""
    document["attempts"] = [*document["attempts"], {"at": at, "outcome": outcome, "detail": detail}]


def fail(batch: Batch, document: Document, code: str, message: str) -> None:
    """Ends a publication as failed: its author is notified, and gets a mail."""
    document |= {"state": PublicationState.FAILED.value, "error": {"code": code, "message": message}}
    document["mail_at"] = batch.at
    document.pop("step", None)
    note(document, batch.at, "FAILED", f"{code}: {message}")
    put_finished(batch, document)
    notify_failed(batch, document)


@dataclass(slots=True)
class BeginAttempt(PublicationChange):
    """The due moment: from scheduled, or from a safe place in publishing, to the next phase. Never early.

    The result is FAILED when it is too late, else PUBLISHING with the intent stored: the key, and when.
    """

    phase: CallPhase
    key: str
    lease_s: float = CALL_LEASE_S

    def plan(self, batch: Batch) -> Publication:
        """Raises: ClaimLost, NotYetDue."""
        document = self.held(batch, PublicationState.SCHEDULED, PublicationState.PUBLISHING)
        step = document.get("step")
        if step is not None and step["phase"] == CallPhase.CALLING.value:
            raise ClaimLost("It was called already.")
        check_due(document, batch.at)
        if is_too_late(document, batch.at):
            fail(batch, document, TOO_LATE, "The service was down, or the network did not take it, for too long.")
            return publication_record(document)
        document["state"] = PublicationState.PUBLISHING.value
        document["step"] = self._step(step, batch.at)
        lease_s = self.lease_s if self.phase is CallPhase.CALLING else LEASE_S
        document["wake_at"] = batch.at + timedelta(seconds=lease_s)
        return self.keep(batch, document)

    def _step(self, before: Document | None, now: datetime) -> Document:
        step = {"key": self.key, "tries": 0, **(before or {}), "phase": self.phase.value, "at": now}
        if self.phase is CallPhase.CALLING:
            step |= {"first_at": step.get("first_at", now), "tries": step["tries"] + 1}
        return step


@dataclass(slots=True)
class MarkPublished(PublicationChange):
    """The network has it. It counts as published when the last call began that may have done it: never too early."""

    external_id: str | None
    url: str | None
    detail: str | None = None

    def plan(self, batch: Batch) -> Publication:
        """Raises: ClaimLost."""
        document = self.held(batch, PublicationState.PUBLISHING, PublicationState.UNKNOWN)
        document |= {"state": PublicationState.PUBLISHED.value, "external_id": self.external_id, "url": self.url}
        document["published_at"] = document["step"]["at"]
        document.pop("error", None)
        document.pop("step")
        note(document, batch.at, "PUBLISHED", self.detail)
        put_finished(batch, document)
        return publication_record(document)


@dataclass(slots=True)
class MarkFailed(PublicationChange):
    """Nothing was published, and nothing will be."""

    code: str
    message: str

    def plan(self, batch: Batch) -> Publication:
        """Raises: ClaimLost."""
        document = self.held(batch, PublicationState.SCHEDULED, PublicationState.PUBLISHING, PublicationState.UNKNOWN)
        fail(batch, document, self.code, self.message)
        return publication_record(document)


@dataclass(slots=True)
class ScheduleRetry(PublicationChange):
    """The try provably had no effect: another one follows after `in_s`, up to five within maxLateness."""

    in_s: float
    message: str
    upload_gone: bool = False

    def plan(self, batch: Batch) -> Publication:
        """FAILED when no try is left. Raises: ClaimLost."""
        document = self.held(batch, PublicationState.PUBLISHING)
        next_at = batch.at + timedelta(seconds=self.in_s)
        step = document["step"]
        # What was to be uploaded and could not be is a try as well.
        tries = step["tries"] + (step["phase"] != CallPhase.CALLING.value)
        if tries >= MAX_TRIES or is_too_late(document, next_at):
            fail(batch, document, "UNREACHABLE", self.message)
            return publication_record(document)
        note(document, batch.at, "NO_EFFECT", self.message)
        document["step"] = {**step, "tries": tries, "phase": CallPhase.WAITING.value, "at": batch.at}
        document["wake_at"] = next_at
        if self.upload_gone:
            drop_upload(document)
            document["media_state"] = MediaState.STALE.value
        return self.keep(batch, document)


@dataclass(frozen=True, slots=True)
class ReconciliationPolicy:
    """How an unknown outcome settles: after `in_s` by itself, while the first call is not older than `within_s`.

    `in_s` None: only a person can tell. `within_s` None: however old it is.
    """

    in_s: float | None
    within_s: float | None = None

    def is_hopeless(self, step: Document, now: datetime) -> bool:
        """Whether only a person can settle it."""
        if self.in_s is None or self.within_s is None:
            return self.in_s is None
        age_s: float = (now - step["first_at"]).total_seconds()
        return age_s + self.in_s + SETTLING_MARGIN_S > self.within_s


MANUAL = ReconciliationPolicy(None)


@dataclass(slots=True)
class MarkUnknown(PublicationChange):
    """Nobody knows whether the call had an effect."""

    message: str
    settling: ReconciliationPolicy

    def plan(self, batch: Batch) -> Publication:
        """Tells the author as soon as only a person can settle it. Raises: ClaimLost."""
        document = self.held(batch, PublicationState.PUBLISHING, PublicationState.UNKNOWN)
        document |= {"state": PublicationState.UNKNOWN.value, "error": {"code": "UNKNOWN", "message": self.message}}
        note(document, batch.at, "UNKNOWN", self.message)
        if self.settling.in_s is None or self.settling.is_hopeless(document["step"], batch.at):
            return leave_to_person(batch, document)
        if is_too_late(document, batch.at):
            notify_unknown_once(batch, document)
        document["wake_at"] = self._next(document, self.settling.in_s, batch.at)
        return self.keep(batch, document)

    def _next(self, document: Document, in_s: float, now: datetime) -> datetime:
        """Not long after maxLateness has passed, since the author is told of it then."""
        latest: datetime = max(document["late_at"], now + timedelta(seconds=NOTIFY_WITHIN_S))
        at = now + timedelta(seconds=in_s)
        return at if document.get("told") else min(at, latest)


def notify_unknown_once(batch: Batch, document: Document) -> None:
    """Its author is notified that its outcome is unknown, unless that was told before."""
    if not document.get("told"):
        document["told"] = True
        notify_unknown(batch, document)


def leave_to_person(batch: Batch, document: Document) -> Publication:
    """Nothing settles it by itself any more: its author is notified."""
    notify_unknown_once(batch, document)
    put_finished(batch, document)
    return publication_record(document)


@dataclass(slots=True)
class BeginReconciliation(PublicationChange):
    """Before an unknown one is sent again (`calls`), or asked for. Its state stays; the lease is a call's."""

    settling: ReconciliationPolicy
    calls: bool = True

    def plan(self, batch: Batch) -> Publication:
        """The result has no `step` to go on with when only a person can settle it. Raises: ClaimLost."""
        document = self.held(batch, PublicationState.UNKNOWN)
        if self.settling.is_hopeless(document["step"], batch.at):
            return replace(leave_to_person(batch, document), progress=None)
        if self.calls:
            document["step"] = {**document["step"], "at": batch.at}
        document["wake_at"] = batch.at + timedelta(seconds=CALL_LEASE_S)
        batch.put(PUBLICATIONS, document)
        return publication_record(document)


@dataclass(slots=True)
class ResolveUnknown(Change[Publication]):
    """What a person saw on the account."""

    organization_id: str
    id: str
    published: bool
    external_id: str | None

    def needs(self) -> Sequence[Need]:
        """The publication itself."""
        return [(PUBLICATIONS, self.id)]

    def plan(self, batch: Batch) -> Publication:
        """Raises: NotFound, Conflict when its outcome is known."""
        found = batch.get(PUBLICATIONS, self.id)
        if found is None or found["org"] != self.organization_id:
            raise NotFound("publication", self.id)
        if found["state"] != PublicationState.UNKNOWN.value:
            raise Conflict("Its outcome is known.")
        document = {**found, "fence": found["fence"] + 1}
        step = document.pop("step")
        document.pop("error", None)
        if self.published:
            document |= {"state": PublicationState.PUBLISHED.value, "published_at": step["at"]}
            document["external_id"] = self.external_id
        else:
            message = "Somebody looked at the account: it was not published."
            document |= {"state": PublicationState.FAILED.value, "error": {"code": RESOLVED, "message": message}}
        note(document, batch.at, document["state"], "resolved by a person")
        put_finished(batch, document)
        return publication_record(document)


@dataclass(slots=True)
class StoreUpload(Change[Publication]):
    """What became of uploading the media; `references` None is a failure. By the token of whoever uploaded."""

    publication: Publication
    token: str
    references: Sequence[Any] | None
    expires_in_s: float | None = None
    message: str | None = None
    again_in_s: float | None = None

    def needs(self) -> Sequence[Need]:
        """The publication itself."""
        return [(PUBLICATIONS, self.publication.id)]

    def plan(self, batch: Batch) -> Publication:
        """Raises: ClaimLost when the content was changed meanwhile, or somebody else uploads."""
        found = batch.get(PUBLICATIONS, self.publication.id)
        if found is None or found.get("upload_claim") != self.token:
            raise ClaimLost("The upload is somebody else's by now.")
        document = dict(found)
        for field_ in ("upload_claim", "upload_at"):
            document.pop(field_, None)
        if self.references is None:
            self._failed(document, batch.at)
        else:
            document["media_state"] = MediaState.READY.value
            document["upload"] = uploaded(self.references, self.expires_in_s, batch.at)
        batch.put(PUBLICATIONS, document)
        emit_changed(batch, document)
        return publication_record(document)

    def _failed(self, document: Document, now: datetime) -> None:
        """It is tried again, at the latest at the due moment."""
        document["media_state"] = MediaState.FAILED.value
        note(document, now, "UPLOAD_FAILED", self.message)
        if self.again_in_s is not None:
            document["upload_at"] = now + timedelta(seconds=self.again_in_s)


def uploaded(references: Sequence[Any], expires_in_s: float | None, now: datetime) -> Document:
    """The stored form of an upload."""
    expires_at = None if expires_in_s is None else now + timedelta(seconds=expires_in_s)
    return {"references": list(references), "expires_at": expires_at}


@dataclass(slots=True)
class StoreUploadAndBegin(PublicationChange):
    """The media that were missing at the due moment are uploaded: the call may begin."""

    references: Sequence[Any]
    expires_in_s: float | None
    key: str
    lease_s: float = CALL_LEASE_S

    def plan(self, batch: Batch) -> Publication:
        """Stores upload and intent at once. Raises: ClaimLost."""
        document = self.held(batch, PublicationState.PUBLISHING)
        if document["step"]["phase"] == CallPhase.CALLING.value:
            raise ClaimLost("It was called already.")
        document |= {"media_state": MediaState.READY.value}
        document["upload"] = uploaded(self.references, self.expires_in_s, batch.at)
        for field_ in ("upload_claim", "upload_at"):
            document.pop(field_, None)
        batch.put(PUBLICATIONS, document)
        return BeginAttempt(self.publication, CallPhase.CALLING, self.key, self.lease_s).plan(batch)
