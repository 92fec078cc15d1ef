"""Scheduled posts and publications in memory, to compare every field that a change stores."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from storage.mongo import Document
from storage.publishing.documents import PUBLICATIONS, SCHEDULED_POSTS
from storage.publishing.events import NOTIFY_TEAM, REPORTED
from storage.publishing.records import Publication, publication_record
from storage.streams.changes import Change, DocumentKey
from tests.storage.in_memory_stream import BEGIN, ORG, InMemoryStream, differences, in_s

ATTEMPT = {"at": BEGIN - timedelta(hours=1), "outcome": "NO_EFFECT", "detail": "earlier"}
MEDIUM = {"url": "https://example.org/a.png", "alt": "A hill", "kind": "IMAGE"}


def stored_post(**fields: Any) -> Document:
    """Returns a stored post of Ann with one publication, with some fields replaced."""
    post: Document = {"_id": "post", "org": ORG, "author": "ann", "ts": 5, "text": "hello", "media": [MEDIUM]}
    post |= {"due": in_s(-10), "zone": "UTC", "max_lateness_s": 60, "publications": ["pub"], "at": in_s(-99)}
    return post | {"revision": 3} | fields


def stored_publication(**fields: Any) -> Document:
    """Returns a stored publication that was due 10 s ago and has everything that a change may remove."""
    target = {"kind": "ACCOUNT", "id": "account", "network": "MASTODON"}
    publication: Document = {"_id": "pub", "org": ORG, "post": "post", "author": "ann", "target": target, "place": 0}
    publication |= {"state": "SCHEDULED", "fence": 7, "ts": 5, "due": in_s(-10), "late_at": in_s(50)}
    publication |= {"attempts": [ATTEMPT], "wake_at": in_s(3), "claim": "c", "media_state": "UPLOADING"}
    return publication | {"upload": {"references": ["old"]}, "upload_at": in_s(20), "upload_claim": "u"} | fields


@dataclass
class InMemoryPosts(InMemoryStream):
    """A jobs stream in memory. Its methods return what changes of posts and publications stored."""

    result: Any = None
    """The result of the last change."""

    def put_all(self, *documents: Document) -> None:
        """Stores copies of posts and publications."""
        for each in documents:
            self.put(SCHEDULED_POSTS if "publications" in each else PUBLICATIONS, deepcopy(each))

    def change(self, build: Callable[[Publication], Change[Any]], before: Document) -> Document:
        """Commits the change of a publication, and returns the fields that differ."""
        self.put_all(before)
        self.result = self.commit(build(self.publication()))
        return differences(before, self.stored())

    def stored(self, id_: str = "pub", collection: str = PUBLICATIONS) -> Document:
        """Returns a stored document, or an empty document."""
        return self.get(collection, id_) or {}

    def ids(self) -> list[DocumentKey]:
        """Returns the collection and the id of every stored document."""
        return [(collection, each["_id"]) for (collection, _), each in self.documents.items()]

    def publication(self) -> Publication:
        """Returns the record of the publication."""
        stored: Any = self.stored()
        return publication_record(stored)

    @property
    def emitted(self) -> list[tuple[str, Any]]:
        """Kind and reference of each event, without reports."""
        return [each for each in super().emitted if each[0] != REPORTED]

    @property
    def reported(self) -> list[Any]:
        """Reference of each report."""
        return [ref for _, kind, ref in self.events if kind == REPORTED]

    @property
    def notified(self) -> list[tuple[str, str, str]]:
        """Stream, kind and publication of each notification."""
        rows = [row for row in self.rows if row["kind"] == "Notify"]
        return [(row["stream"], row["ref"]["kind"], row["ref"]["publication"]) for row in rows]

    @property
    def team_reports(self) -> list[Any]:
        """Reference of each report of which the team is notified."""
        return [row["ref"] for row in self.rows if row["kind"] == NOTIFY_TEAM]
