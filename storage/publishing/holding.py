"""Changes that hold the posts of deactivated authors, and release them for another person, who becomes responsible.

A held publication stays SCHEDULED, has no `wake_at`, and is claimed by no worker. The sequencer commits these changes
to the organization's jobs stream.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from storage.errors import Conflict
from storage.identity.audit import Actor, AuditAction, TargetKind, put_entry
from storage.identity.documents import UserDocument
from storage.identity.records import user_document_id
from storage.identity.rights import HasRole
from storage.identity.roles import Role
from storage.mongo import Document, Mongo, Session
from storage.publishing.documents import PUBLICATIONS, SCHEDULED_POSTS, PublicationDocument, ScheduledPostDocument
from storage.publishing.events import emit_changed
from storage.publishing.free_timestamps import free_timestamps
from storage.publishing.records import WAITING_STATES, PublicationState
from storage.publishing.scheduling import (
    ScheduledPostChange,
    check_not_too_late,
    invalidate_upload,
    put_scheduled,
    release_upload,
)
from storage.streams.changes import Batch, Right, SystemChange


@dataclass(slots=True)
class _HeldPostChange(ScheduledPostChange):
    """A change that depends on users, whom its transaction reads."""

    async def load_users(self, mongo: Mongo, session: Session, batch: Batch, ids: list[str]) -> None:
        """Reads these users."""
        document_ids = [user_document_id(self.organization_id, id_) for id_ in ids]
        for user in await mongo.find("users", {"_id": {"$in": document_ids}}, session=session):
            batch.add_loaded("users", user)

    def user(self, batch: Batch, id_: str) -> UserDocument | None:
        """Returns a user that was read, or None."""
        user: UserDocument | None = batch.get("users", user_document_id(self.organization_id, id_))
        return user


@dataclass(slots=True)
class HoldScheduledPost(_HeldPostChange, SystemChange[str]):
    """Holds the publications that have not started, if the author is deactivated. Idempotent.

    The fence of each publication grows, so that workers lose their claims.
    """

    author_id: str

    async def load(self, mongo: Mongo, session: Session, batch: Batch) -> None:
        """Reads the publications and the author."""
        await ScheduledPostChange.load(self, mongo, session, batch)
        await self.load_users(mongo, session, batch, [self.author_id])

    def plan(self, batch: Batch) -> str:
        """Puts the held publications. Raises: NotFound."""
        author = self.user(batch, self.author_id)
        if author is not None and "deactivated_at" in author:
            for publication in self.read(batch)[1]:
                if is_waiting(publication) and publication["author"] == self.author_id:
                    _put_held(batch, publication)
        return self.id


def is_waiting(publication: PublicationDocument) -> bool:
    """Returns whether the publication waits for its due moment, or for other credentials of its account."""
    return publication["state"] in WAITING_STATES and "held_at" not in publication


def _put_held(batch: Batch, publication: PublicationDocument) -> None:
    publication["fence"] += 1
    publication |= {"state": PublicationState.SCHEDULED.value, "held_at": batch.at}
    publication.pop("wake_at", None)
    publication.pop("claim", None)
    publication.pop("error", None)
    release_upload(publication)
    batch.put(PUBLICATIONS, publication)
    emit_changed(batch, publication)


@dataclass(slots=True)
class ReleaseScheduledPost(_HeldPostChange):
    """Schedules the held publications of a post again, with another person as their author."""

    responsible_id: str
    due_at: datetime
    actor: Actor

    def rights(self) -> Sequence[Right]:
        """Returns the role ADMIN."""
        return (HasRole(self.actor, Role.ADMIN),)

    async def load(self, mongo: Mongo, session: Session, batch: Batch) -> None:
        """Reads the publications and the responsible person, and finds a free timestamp."""
        await ScheduledPostChange.load(self, mongo, session, batch)
        await self.load_users(mongo, session, batch, [self.responsible_id])
        await free_timestamps(batch).search(mongo, session, self.organization_id, self.due_at)

    def plan(self, batch: Batch) -> str:
        """Puts the publications.

        Raises: NotFound, BadUserInput; Conflict for a post that is not held, and for a deactivated
        responsible person.
        """
        post, publications = self.read(batch)
        self._require_active_author(batch)
        held = [each for each in publications if "held_at" in each]
        if not held:
            raise Conflict("The scheduled post is not held.")
        check_not_too_late(self.due_at, post["max_lateness_s"], batch.at)
        former = post["author"]
        post |= {"author": self.responsible_id, "revision": post["revision"] + 1}
        if self.due_at != post["due"]:
            post |= {"due": self.due_at, "ts": free_timestamps(batch).take(self.due_at)}
        batch.put(SCHEDULED_POSTS, post)
        for place, publication in enumerate(publications):
            if "held_at" in publication:
                self._put_released(batch, publication, post, place)
        details = {"author": former, "responsible": self.responsible_id}
        action, kind = AuditAction.SCHEDULED_POST_RELEASED, TargetKind.SCHEDULED_POST
        put_entry(batch, self.actor, action, kind, self.id, **details)
        return self.id

    def _require_active_author(self, batch: Batch) -> None:
        responsible = self.user(batch, self.responsible_id)
        if responsible is None or "deactivated_at" in responsible:
            raise Conflict("The responsible person is deactivated. Choose another person.")

    def _put_released(
        self, batch: Batch, publication: PublicationDocument, post: ScheduledPostDocument, place: int
    ) -> None:
        del publication["held_at"]
        publication["author"] = self.responsible_id
        if publication["target"]["kind"] == "HOME_FEED":
            publication["target"] = {**publication["target"], "id": self.responsible_id}
        invalidate_upload(publication, post, has_new_content=False)
        put_scheduled(batch, publication, post, place)


def held_filter(organization_id: str) -> Document:
    """Returns the filter for an organization's held publications. `$exists` lets MongoDB use the partial index."""
    return {"org": organization_id, "held_at": {"$exists": True}}
