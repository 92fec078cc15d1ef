"""The change by which a person answers what became of an UNKNOWN publication.

UNKNOWN -> PUBLISHED: the post is there. UNKNOWN -> FAILED: it is not. UNKNOWN -> SCHEDULED: it is not, and is published
again at once. The last two are refused while a worker asks the network, since that call may publish.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from storage.errors import Conflict, NotFound
from storage.idempotency import IdempotencyKey
from storage.identity.audit import Actor, AuditAction, TargetKind, put_entry
from storage.identity.rights import HasRole, IsActive, IsAuthorOr
from storage.identity.roles import Role
from storage.publishing.attention import account_keys
from storage.publishing.documents import (
    PUBLICATIONS,
    SCHEDULED_POSTS,
    ErrorDocument,
    ProgressDocument,
    PublicationDocument,
    ScheduledPostDocument,
)
from storage.publishing.networks import BEHAVIOURS, Network
from storage.publishing.records import Publication, PublicationState, PublishingPhase, publication_record
from storage.publishing.retrying import check_publishable
from storage.publishing.scheduling import drop_mail, put_due_again, put_finished
from storage.publishing.transitions import NOT_PUBLISHED, RETENTION_MARGIN_S, add_attempt
from storage.streams.changes import Batch, Change, DocumentKey, Right

NOT_FOUND_BY_PERSON = "A person looked at the account and found that the post was not published."


@dataclass(frozen=True, slots=True)
class PersonalAnswer:
    """The answer of a person who has looked for a post at its account."""

    is_published: bool
    external_id: str | None = None
    url: str | None = None
    publishes_again: bool = False
    """Whether the post is published again. Only if it is not published."""

    last_call_at: datetime | None = None
    """The beginning of the last call that the person knows of; None: not checked."""


@dataclass(slots=True)
class ResolveUnknown(Change[Publication]):
    """Stores the answer of a person who has looked at the account."""

    publication: Publication
    """The publication as it was read. Its account and its post do not change."""

    answer: PersonalAnswer
    actor: Actor | None = None
    """The person who answers; None for a change without a request.

    The audit log records people who resolve other people's publications.
    """

    idempotency: IdempotencyKey | None = None

    def rights(self) -> Sequence[Right]:
        """Returns that the person is the author, or an OPERATOR."""
        if self.actor is None:
            return ()
        own = IsActive(self.actor.user_id, self.publication.organization_id)
        others = HasRole(self.actor, Role.OPERATOR)
        return (IsAuthorOr((PUBLICATIONS, self.publication.id), self.actor.user_id, own, others),)

    def needs(self) -> Sequence[DocumentKey]:
        """Returns the publication, its post and its account."""
        post = (SCHEDULED_POSTS, self.publication.scheduled_post_id)
        return [(PUBLICATIONS, self.publication.id), post, *account_keys(self.publication)]

    def plan(self, batch: Batch) -> Publication:
        """Stores the answer. Raises: NotFound; Conflict if the publication is not UNKNOWN, or has changed since."""
        stored: PublicationDocument | None = batch.get(PUBLICATIONS, self.publication.id)
        if stored is None or stored["org"] != self.publication.organization_id:
            raise NotFound("publication", self.publication.id)
        if stored["state"] != PublicationState.UNKNOWN.value:
            raise Conflict(f"Only an UNKNOWN publication can be resolved; this one is {stored['state']}.")
        if not self.answer.is_published:
            self._check_last_call(stored)
        document = stored.copy()
        if self.answer.publishes_again:
            self._publish_again(batch, document)
        else:
            self._finish(batch, document)
        self._audit(batch, document)
        return publication_record(document)

    def result_id(self, result: Publication) -> str:
        """Returns the publication's id."""
        return result.id

    def _check_last_call(self, stored: PublicationDocument) -> None:
        """Checks that no call was made since the person looked at the account. Raises: Conflict."""
        if "claim" in stored:
            raise Conflict("The network is being asked at this moment. Look again in a few seconds.")
        if self.answer.last_call_at not in (None, stored["progress"]["at"]):
            raise Conflict("The network was called again since you looked. Look at the account again.")

    def _finish(self, batch: Batch, document: PublicationDocument) -> None:
        document["fence"] += 1
        progress = document.pop("progress")
        document.pop("error", None)
        drop_mail(document)
        if self.answer.is_published:
            document |= {"state": PublicationState.PUBLISHED.value, "published_at": progress["at"]}
            document |= {"external_id": self.answer.external_id, "url": self.answer.url}
        else:
            error: ErrorDocument = {"code": NOT_PUBLISHED, "message": NOT_FOUND_BY_PERSON}
            document |= {"state": PublicationState.FAILED.value, "error": error}
        add_attempt(document, batch.at, document["state"], "resolved by a person")
        put_finished(batch, document)

    def _publish_again(self, batch: Batch, document: PublicationDocument) -> None:
        """Schedules the publication at once, with a new deadline, under the same key. Raises: NotFound, Conflict."""
        post: ScheduledPostDocument | None = batch.get(SCHEDULED_POSTS, self.publication.scheduled_post_id)
        if post is None:
            raise NotFound("publication", self.publication.id)
        check_publishable(batch, self.publication, document, post)
        progress = _progress_before_first_try(document, batch.at)
        # The due moment is part of what some networks receive. The same key with other content could edit a post.
        document["late_at"] = batch.at + timedelta(seconds=post["max_lateness_s"])
        document.pop("author_notified", None)
        add_attempt(document, batch.at, "NO_EFFECT", NOT_FOUND_BY_PERSON)
        put_due_again(batch, document, progress)

    def _audit(self, batch: Batch, document: PublicationDocument) -> None:
        if self.actor is not None and self.actor.user_id != document["author"]:
            details = {"author": document["author"], "state": document["state"]}
            action, kind = AuditAction.PUBLICATION_RESOLVED, TargetKind.PUBLICATION
            put_entry(batch, self.actor, action, kind, self.publication.id, **details)


def _progress_before_first_try(document: PublicationDocument, now: datetime) -> ProgressDocument:
    """Returns the progress before a first try with the same key, which prevents a second post if the person erred.

    The network's retention of the key counts from the first call, unless the network has forgotten the key.
    """
    key, first_at = document["progress"]["key"], document["progress"].get("first_at")
    first: ProgressDocument = {"key": key, "tries": 0, "phase": PublishingPhase.WAITING.value, "at": now}
    retention_s = BEHAVIOURS[Network(document["target"]["network"])].retention_s
    if first_at is not None and (
        retention_s is None or (now - first_at).total_seconds() < retention_s + RETENTION_MARGIN_S
    ):
        first["first_at"] = first_at
    return first
