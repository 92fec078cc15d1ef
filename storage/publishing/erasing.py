"""Erasure of a scheduled post: removes its text, its media and the answers of networks, and ends its publications."""

from dataclasses import dataclass

from storage.publishing.documents import SCHEDULED_POSTS, PublicationDocument, ScheduledPostDocument
from storage.publishing.records import WAITING_STATES, PublicationState
from storage.publishing.scheduling import ScheduledPostChange, drop_mail, drop_upload, put_finished
from storage.streams.changes import Batch, SystemChange

ERASED_MESSAGE = "The author's account was erased."
_WITHOUT_OUTCOME = (PublicationState.PUBLISHING.value, PublicationState.UNKNOWN.value)


@dataclass(slots=True)
class EraseScheduledPost(ScheduledPostChange, SystemChange[str]):
    """Empties a scheduled post, cancels publications that have not started, and fails those without an outcome."""

    def plan(self, batch: Batch) -> str:
        """Empties the post and its publications. Idempotent. Raises: NotFound."""
        post, publications = self.read(batch)
        if not is_erased(post):
            post.pop("attachments", None)
            batch.put(SCHEDULED_POSTS, {**post, "text": "", "media": [], "revision": post["revision"] + 1})
            for publication in publications:
                _erase(batch, publication)
        return self.id


def is_erased(post: ScheduledPostDocument) -> bool:
    """Returns whether the post was erased. Every other post has a text, media or files."""
    return not (post["text"] or post["media"] or "attachments" in post)


def _erase(batch: Batch, publication: PublicationDocument) -> None:
    if publication["state"] in WAITING_STATES:
        publication["state"] = PublicationState.CANCELLED.value
        publication.pop("error", None)
    elif publication["state"] in _WITHOUT_OUTCOME:
        publication |= {
            "state": PublicationState.FAILED.value,
            "error": {"code": "FORBIDDEN", "message": ERASED_MESSAGE},
        }
    elif "error" in publication:
        publication["error"] = {"code": publication["error"]["code"], "message": ERASED_MESSAGE}
    publication["attempts"] = [{**attempt, "detail": None} for attempt in publication["attempts"]]
    # A worker that still holds a claim of the publication can't continue.
    publication |= {"external_id": None, "url": None, "fence": publication["fence"] + 1}
    publication.pop("progress", None)
    drop_mail(publication)
    drop_upload(publication)
    put_finished(batch, publication)
