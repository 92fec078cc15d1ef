"""The change by which a person stores the outcome of an UNKNOWN publication."""

from collections.abc import Sequence
from dataclasses import dataclass

from storage.errors import Conflict, NotFound
from storage.identity.audit import Actor, AuditAction, TargetKind, put_entry
from storage.identity.rights import HasRole, IsActive, IsAuthorOr
from storage.identity.roles import Role
from storage.publishing.documents import PUBLICATIONS, PublicationDocument
from storage.publishing.records import Publication, PublicationState, publication_record
from storage.publishing.scheduling import put_finished
from storage.publishing.transitions import NOT_PUBLISHED, add_attempt
from storage.streams.changes import Batch, Change, DocumentKey, Right


@dataclass(slots=True)
class ResolveUnknown(Change[Publication]):
    """Stores the outcome that a person has found on the account."""

    organization_id: str
    id: str
    is_published: bool
    external_id: str | None
    actor: Actor | None = None
    """The person who found the outcome; None for a change without a request.

    The audit log records people who resolve other people's publications.
    """

    def rights(self) -> Sequence[Right]:
        """Returns that the person is the author, or an OPERATOR."""
        if self.actor is None:
            return ()
        own, others = IsActive(self.actor.user_id, self.organization_id), HasRole(self.actor, Role.OPERATOR)
        return (IsAuthorOr((PUBLICATIONS, self.id), self.actor.user_id, own, others),)

    def needs(self) -> Sequence[DocumentKey]:
        """Returns the publication."""
        return [(PUBLICATIONS, self.id)]

    def plan(self, batch: Batch) -> Publication:
        """Stores the outcome. Raises: NotFound; Conflict if the publication is not UNKNOWN."""
        stored: PublicationDocument | None = batch.get(PUBLICATIONS, self.id)
        if stored is None or stored["org"] != self.organization_id:
            raise NotFound("publication", self.id)
        if stored["state"] != PublicationState.UNKNOWN.value:
            raise Conflict(f"Only an UNKNOWN publication can be resolved; this one is {stored['state']}.")
        document = stored.copy()
        document["fence"] += 1
        progress = document.pop("progress")
        document.pop("error", None)
        if self.is_published:
            document |= {"state": PublicationState.PUBLISHED.value, "published_at": progress["at"]}
            document["external_id"] = self.external_id
        else:
            message = "A person looked at the account and found that the post was not published."
            document |= {"state": PublicationState.FAILED.value, "error": {"code": NOT_PUBLISHED, "message": message}}
        add_attempt(document, batch.at, document["state"], "resolved by a person")
        put_finished(batch, document)
        if self.actor is not None and self.actor.user_id != document["author"]:
            details = {"author": document["author"], "state": document["state"]}
            action, kind = AuditAction.PUBLICATION_RESOLVED, TargetKind.PUBLICATION
            put_entry(batch, self.actor, action, kind, self.id, **details)
        return publication_record(document)
