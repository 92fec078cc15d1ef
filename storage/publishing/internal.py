"""Publishing to targets inside: one transaction that moves the publication, adds the message or post, and tells of it.

Exactly once by atomicity; the unique source `pub:<id>` of what is published is the second line. Those due for one
topic at the same moment share a group commit.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from storage.chat.changes import NewMessage, PostMessage
from storage.feed.changes import PostPlan
from storage.mongo import Document
from storage.publishing.records import Publication, PublicationState, publication_record
from storage.publishing.scheduling import PUBLICATIONS, put_finished
from storage.publishing.transitions import DeadlinePassed, check_due, held, is_too_late, note
from storage.streams.changes import Batch, Change, Need


def source(publication_id: str) -> str:
    """What says of a message or post that this publication made it."""
    return f"pub:{publication_id}"


@dataclass(slots=True)
class PublishMessage(Change[Publication]):
    """The due moment of a publication to a topic, on the topic's stream. Never early."""

    timestamps = 1
    publication: Publication
    new: NewMessage

    def needs(self) -> Sequence[Need]:
        """The publication."""
        return [(PUBLICATIONS, self.publication.id)]

    def plan(self, batch: Batch) -> Publication:
        """Raises: ClaimLost, NotYetDue, DeadlinePassed."""
        document = due_publication(batch, self.publication)
        message = PostMessage(self.new).plan(batch)
        return published(batch, document, message.id)


@dataclass(slots=True)
class PublishPost(Change[Publication]):
    """The due moment of a publication to the author's home feed, on the author's stream. Never early."""

    timestamps = 1
    publication: Publication
    post: PostPlan

    def needs(self) -> Sequence[Need]:
        """The publication, and what the post needs."""
        return [(PUBLICATIONS, self.publication.id), *self.post.needs()]

    def plan(self, batch: Batch) -> Publication:
        """Raises: ClaimLost, NotYetDue, DeadlinePassed."""
        document = due_publication(batch, self.publication)
        return published(batch, document, self.post.put(batch).id)


def due_publication(batch: Batch, publication: Publication) -> Document:
    """A copy of the publication, which is held and due. Raises: ClaimLost, NotYetDue, DeadlinePassed."""
    document = held(batch, publication, PublicationState.SCHEDULED)
    check_due(document, batch.at)
    if is_too_late(document, batch.at):
        raise DeadlinePassed
    return document


def published(batch: Batch, document: Document, external_id: str) -> Publication:
    """Puts the publication as done."""
    document |= {"state": PublicationState.PUBLISHED.value, "published_at": batch.at, "external_id": external_id}
    note(document, batch.at, "PUBLISHED")
    put_finished(batch, document)
    return publication_record(document)
