"""Publishes to internal targets. One transaction stores the state, the message or post, and their events.

The transaction guarantees that each message or post is published once. Its unique source (`pub:<id>`) is a second
safeguard. Publications that are due for one topic at the same moment share a group commit.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from storage.chat.changes import MESSAGES, NewMessage, PostMessage, message_place
from storage.chat.rights import MayWrite
from storage.feed.changes import POSTS, PostPlan, post_place
from storage.files.attachments import move_files
from storage.files.uploads import FILES
from storage.publishing.documents import PUBLICATIONS, PublicationDocument
from storage.publishing.events import report_late
from storage.publishing.records import Publication, PublicationState, publication_record
from storage.publishing.scheduling import publication_place, put_finished
from storage.publishing.transitions import DeadlinePassed, add_attempt, check_due, claimed_publication, is_too_late
from storage.streams.changes import Batch, Change, DocumentKey, Right, SystemChange


def publication_source(publication_id: str) -> str:
    """Returns the source of the message or post that this publication creates."""
    return f"pub:{publication_id}"


@dataclass(frozen=True, slots=True)
class MayPublish(MayWrite):
    """The author may write to the topic at the due moment. A deactivated author's posts are held, and not refused."""

    publication: Publication

    def check(self, batch: Batch) -> None:
        """Raises: Forbidden; ClaimLost, NotYetDue and DeadlinePassed, which come first."""
        due_publication(batch, self.publication)
        # Not `super()`, which fails here: `dataclass(slots=True)` creates a new class.
        MayWrite.check(self, batch)


@dataclass(slots=True)
class PublishMessage(Change[Publication]):
    """Publishes to a topic, on the topic's stream, at the due moment or later."""

    max_timestamps = 1
    publication: Publication
    new: NewMessage

    def rights(self) -> Sequence[Right]:
        """Returns the author's right to write to the topic."""
        return (MayPublish(self.new.author_id, self.publication),)

    def needs(self) -> Sequence[DocumentKey]:
        """Returns the publication and its files."""
        return [(PUBLICATIONS, self.publication.id), *_file_keys(self.publication)]

    def plan(self, batch: Batch) -> Publication:
        """Posts the message. Raises: ClaimLost, NotYetDue, DeadlinePassed, Forbidden."""
        document = due_publication(batch, self.publication)
        message = PostMessage(self.new).plan(batch)
        _move_files(batch, document, MESSAGES, message.key.document_id, message_place(message.key))
        return put_published(batch, document, message.id)


@dataclass(slots=True)
class PublishPost(SystemChange[Publication]):
    """Publishes to the author's home feed, on the author's stream, at the due moment or later."""

    max_timestamps = 1
    publication: Publication
    post: PostPlan

    def needs(self) -> Sequence[DocumentKey]:
        """Returns the publication, its files, and the documents that the post needs."""
        return [(PUBLICATIONS, self.publication.id), *_file_keys(self.publication), *self.post.needs()]

    def plan(self, batch: Batch) -> Publication:
        """Creates the post. Raises: ClaimLost, NotYetDue, DeadlinePassed."""
        document = due_publication(batch, self.publication)
        post = self.post.put(batch)
        _move_files(batch, document, POSTS, post.key.document_id, post_place(post.key))
        return put_published(batch, document, post.id)


def due_publication(batch: Batch, publication: Publication) -> PublicationDocument:
    """Returns a copy of the claimed publication if it is due. Raises: ClaimLost, NotYetDue, DeadlinePassed."""
    document = claimed_publication(batch, publication, PublicationState.SCHEDULED)
    check_due(document, batch.at)
    if is_too_late(document, batch.at):
        raise DeadlinePassed
    return document


def put_published(batch: Batch, document: PublicationDocument, external_id: str) -> Publication:
    """Sets the publication to PUBLISHED, at the time of the batch, and puts it. Notifies the author if it is late."""
    document |= {"state": PublicationState.PUBLISHED.value, "published_at": batch.at, "external_id": external_id}
    add_attempt(document, batch.at, "PUBLISHED")
    report_late(batch, document, batch.at)
    put_finished(batch, document)
    return publication_record(document)


def _file_keys(publication: Publication) -> list[DocumentKey]:
    return [(FILES, id_) for id_ in publication.file_ids]


def _move_files(batch: Batch, publication: PublicationDocument, collection: str, subject_id: Any, place: str) -> None:
    """Moves the files of a publication to the message or post that it has put."""
    attachments = publication.pop("attachments", None)
    if attachments:
        moved = move_files(batch, attachments, publication_place(publication["_id"]), place)
        batch.put(collection, {**batch.get(collection, subject_id), "attachments": moved})
