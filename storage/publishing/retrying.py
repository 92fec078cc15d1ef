"""The change by which a person has a publication tried again that was not published."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from storage.errors import Conflict, NotFound
from storage.idempotency import IdempotencyKey
from storage.identity.audit import Actor, AuditAction, TargetKind, put_entry
from storage.identity.rights import HasRole, IsActive, IsAuthorOr
from storage.identity.roles import Role
from storage.publishing.attention import DISCONNECTED, account_keys, remove_mark
from storage.publishing.documents import PUBLICATIONS, SCHEDULED_POSTS, PublicationDocument, ScheduledPostDocument
from storage.publishing.erasing import is_erased
from storage.publishing.records import Publication, PublicationState, publication_record
from storage.publishing.scheduling import put_due_again
from storage.publishing.transitions import is_too_late
from storage.streams.changes import Batch, Change, DocumentKey, Right

_FAILED, _NEEDS_ATTENTION = PublicationState.FAILED.value, PublicationState.NEEDS_ATTENTION.value


@dataclass(slots=True)
class RetryPublication(Change[Publication]):
    """Schedules a publication again, due at once, that is FAILED or NEEDS_ATTENTION. Nothing was published in either.

    Removes the mark of its account, so that the network is called. The account's other publications follow.
    """

    publication: Publication
    """The publication as it was read. Its account and its post do not change."""

    actor: Actor | None = None
    """The person who retries. The audit log records people who retry other people's publications."""

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
        """Puts the publication. Raises: NotFound; Conflict if it can't be tried again."""
        stored: PublicationDocument | None = batch.get(PUBLICATIONS, self.publication.id)
        post: ScheduledPostDocument | None = batch.get(SCHEDULED_POSTS, self.publication.scheduled_post_id)
        if stored is None or post is None:
            raise NotFound("publication", self.publication.id)
        if stored["state"] not in (_FAILED, _NEEDS_ATTENTION):
            raise Conflict(
                f"Only a publication that is FAILED or NEEDS_ATTENTION can be tried again; it is {stored['state']}."
            )
        check_publishable(batch, self.publication, stored, post)
        document = stored.copy()
        if document["state"] == _FAILED or is_too_late(document, batch.at):
            late_at = batch.at + timedelta(seconds=post["max_lateness_s"])
            document |= {"due": batch.at, "late_at": late_at}
        remove_mark(batch, self.publication)
        put_due_again(batch, document)
        self._audit(batch, stored)
        return publication_record(document)

    def result_id(self, result: Publication) -> str:
        """Returns the publication's id."""
        return result.id

    def _audit(self, batch: Batch, stored: PublicationDocument) -> None:
        if self.actor is not None and self.actor.user_id != stored["author"]:
            details = {"author": stored["author"], "state": stored["state"]}
            action, kind = AuditAction.PUBLICATION_RETRIED, TargetKind.PUBLICATION
            put_entry(batch, self.actor, action, kind, self.publication.id, **details)


def check_publishable(
    batch: Batch, publication: Publication, stored: PublicationDocument, post: ScheduledPostDocument
) -> None:
    """Checks that a publication of which nothing was published can still be. Raises: Conflict."""
    if is_erased(post):
        raise Conflict("The post was erased.")
    if any("disconnected_at" in (batch.get(*key) or {}) for key in account_keys(publication)):
        raise Conflict(DISCONNECTED[1])
    if "attachments" in post and "attachments" not in stored:
        raise Conflict("The publication no longer has the post's files. Schedule a new post.")
