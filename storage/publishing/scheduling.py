"""Changes that schedule, update and cancel posts. The sequencer commits them to the organization's jobs stream.

An update or a cancel raises the fence of each publication that is SCHEDULED or NEEDS_ATTENTION, so that workers lose
their claims on it. Publications in other states are not changed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from storage.errors import BadUserInput, Conflict, NotFound
from storage.files.attachments import (
    NewAttachment,
    attach_files,
    attachment_documents,
    check_attachable,
    file_keys,
    remove_files,
)
from storage.idempotency import IdempotencyKey
from storage.identity.audit import Actor, AuditAction, TargetKind, put_entry
from storage.identity.rights import HasRole, IsActive, IsAuthorOr
from storage.identity.roles import Role
from storage.ids import UserKey, new_id
from storage.mongo import Mongo, Session
from storage.publishing.documents import (
    PUBLICATIONS,
    SCHEDULED_POSTS,
    ProgressDocument,
    PublicationDocument,
    ScheduledPostDocument,
)
from storage.publishing.events import emit_changed
from storage.publishing.free_timestamps import free_timestamps
from storage.publishing.network_files import VIDEO_TYPES, check_files
from storage.publishing.networks import BEHAVIOURS, MediaKind, Network
from storage.publishing.records import (
    WAITING_STATES,
    MediaState,
    PublicationState,
    ScheduledMedia,
    Target,
    media_documents,
    target_document,
)
from storage.streams.changes import Batch, Change, DocumentKey, Right

CLAIM_AHEAD_S = 5.0
"""How long before the due moment a worker claims a publication."""

FILES_KEPT = timedelta(days=1)
"""How long files are kept that a network got, since it may fetch them after its answer."""


@dataclass(frozen=True, slots=True)
class NewScheduledPost:
    """A validated post to schedule. `due_at` is a whole number of milliseconds."""

    organization_id: str
    author_id: str
    text: str
    media: Sequence[ScheduledMedia]
    targets: Sequence[Target]
    due_at: datetime
    time_zone: str
    max_lateness_s: int
    attachments: Sequence[NewAttachment] = ()


@dataclass(slots=True)
class SchedulePost(Change[str]):
    """Creates a scheduled post with a publication for each target. The result is the post's id."""

    new: NewScheduledPost
    idempotency: IdempotencyKey | None = None

    def rights(self) -> Sequence[Right]:
        """Returns that the author's account is active."""
        return (IsActive(self.new.author_id, self.new.organization_id),)

    id: str = field(default_factory=new_id)
    publication_ids: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Creates the publications' ids, which stay the same when the change is planned again."""
        self.publication_ids = [new_id() for _ in self.new.targets]

    def needs(self) -> Sequence[DocumentKey]:
        """Returns the files to attach."""
        return file_keys(self.new.attachments)

    async def load(self, mongo: Mongo, session: Session, batch: Batch) -> None:
        """Finds a free timestamp."""
        await free_timestamps(batch).search(mongo, session, self.new.organization_id, self.new.due_at)

    def plan(self, batch: Batch) -> str:
        """Puts the post and its publications, each of which keeps the files until it is finished.

        Raises: BadUserInput for a due moment too far in the past; NotFound, Conflict and BadUserInput for files that
        cannot be attached, or that a network does not take.
        """
        new = self.new
        check_not_too_late(new.due_at, new.max_lateness_s, batch.at)
        check_attachable(batch, UserKey(new.organization_id, new.author_id), new.attachments)
        files = attachment_documents(batch, new.attachments)
        check_files(map(target_document, new.targets), new.text, media_documents(new.media), files)
        post: ScheduledPostDocument = {
            "_id": self.id,
            "org": new.organization_id,
            "author": new.author_id,
            "ts": free_timestamps(batch).take(new.due_at),
            "text": new.text,
            "media": media_documents(new.media),
            "due": new.due_at,
            "zone": new.time_zone,
            "max_lateness_s": new.max_lateness_s,
            "publications": list(self.publication_ids),
            "at": batch.at,
            "revision": 1,
        }
        if new.attachments:
            places = [publication_place(id_) for id_ in self.publication_ids]
            post["attachments"] = attach_files(batch, places, new.attachments)
        batch.put(SCHEDULED_POSTS, post)
        for place, (id_, target) in enumerate(zip(self.publication_ids, new.targets, strict=True)):
            put_scheduled(batch, new_publication(post, id_, target), post, place)
        return self.id

    def result_id(self, result: str) -> str:
        """Returns the scheduled post's id."""
        return result


def check_not_too_late(due_at: datetime, max_lateness_s: int, now: datetime) -> None:
    """Rejects a post whose publications would all fail with TOO_LATE. Raises: BadUserInput."""
    if due_at + timedelta(seconds=max_lateness_s) < now:
        late_s = int((now - due_at).total_seconds())
        allowed = f"the future, or at most maxLatenessS ({max_lateness_s} s) ago"
        raise BadUserInput("dueAt", f"a time in {allowed}", f"dueAt must be in {allowed} (it was {late_s} s ago).")


def publication_place(publication_id: str) -> str:
    """Returns the place of the files of a publication that is not finished."""
    return f"publication:{publication_id}"


def new_publication(post: ScheduledPostDocument, id_: str, target: Target) -> PublicationDocument:
    """Returns the SCHEDULED publication of a post for one target. `put_scheduled` adds its times."""
    publication: PublicationDocument = {
        "_id": id_,
        "org": post["org"],
        "post": post["_id"],
        "author": post["author"],
        "target": target_document(target),
        "fence": 0,
        "media_state": MediaState.NONE.value,
        "attempts": [],
        "state": PublicationState.SCHEDULED.value,
        "ts": post["ts"],
        "due": post["due"],
        "late_at": post["due"],
    }
    if "attachments" in post:
        publication["attachments"] = post["attachments"]
    return publication


def put_scheduled(batch: Batch, publication: PublicationDocument, post: ScheduledPostDocument, place: int) -> None:
    """Puts a SCHEDULED publication under a new fence, with the times of its claim and its upload."""
    due = post["due"]
    publication |= {
        "state": PublicationState.SCHEDULED.value,
        "place": place,
        "fence": publication["fence"] + 1,
        "ts": post["ts"],
        "due": due,
        "late_at": due + timedelta(seconds=post["max_lateness_s"]),
        "wake_at": due - timedelta(seconds=CLAIM_AHEAD_S),
    }
    publication.pop("claim", None)
    publication.pop("error", None)
    publication.pop("late_from", None)
    if batch.at > due:
        publication["late_from"] = batch.at
    _plan_upload(publication, post)
    batch.put(PUBLICATIONS, publication)
    emit_changed(batch, publication)


def put_due_again(batch: Batch, publication: PublicationDocument, progress: ProgressDocument | None = None) -> None:
    """Puts a publication of which nothing was published back to SCHEDULED, due at once, under a new fence.

    Media are uploaded again when a worker has claimed it. `progress` has the key for its calls; None: a new key.
    """
    publication |= {"state": PublicationState.SCHEDULED.value, "fence": publication["fence"] + 1}
    publication |= {"wake_at": batch.at, "late_from": batch.at}
    publication.pop("claim", None)
    publication.pop("error", None)
    drop_mail(publication)
    drop_progress(publication)
    if progress is not None:
        publication["progress"] = progress
    batch.put(PUBLICATIONS, publication)
    emit_changed(batch, publication)


def drop_mail(publication: PublicationDocument) -> None:
    """Removes a mail that was not sent yet."""
    publication.pop("mail_at", None)
    publication.pop("mail", None)


def drop_progress(publication: PublicationDocument) -> None:
    """Removes what an attempt without effect has left. Media have to be uploaded again: other credentials own them."""
    publication.pop("progress", None)
    if publication["media_state"] in (MediaState.READY.value, MediaState.UPLOADING.value):
        publication["media_state"] = MediaState.STALE.value
    drop_upload(publication)


def _plan_upload(publication: PublicationDocument, post: ScheduledPostDocument) -> None:
    lead_s = upload_lead_s(publication, post)
    if lead_s is None or not (post["media"] or "attachments" in post):
        publication["media_state"] = MediaState.NONE.value
        drop_upload(publication)
    elif publication["media_state"] != MediaState.READY.value:
        is_stale = publication["media_state"] == MediaState.STALE.value
        drop_upload(publication)
        publication["media_state"] = (MediaState.STALE if is_stale else MediaState.PENDING).value
        publication["upload_at"] = post["due"] - timedelta(seconds=lead_s)


def drop_upload(publication: PublicationDocument) -> None:
    """Removes the upload and its claim from the document. The result of a running upload is then discarded."""
    publication.pop("upload", None)
    release_upload(publication)


def release_upload(publication: PublicationDocument) -> None:
    """Removes the claim of an upload and the time of the next upload."""
    publication.pop("upload_at", None)
    publication.pop("upload_claim", None)


def upload_lead_s(publication: PublicationDocument, post: ScheduledPostDocument) -> float | None:
    """Returns how long before the due moment to upload, in seconds; None if media are sent with the post."""
    target = publication["target"]
    if target["kind"] != "ACCOUNT":
        return None
    behaviour = BEHAVIOURS[Network(target["network"])]
    has_video = any(each["kind"] != MediaKind.IMAGE.value for each in post["media"])
    has_video = has_video or any(each["type"] in VIDEO_TYPES for each in post.get("attachments", ()))
    return behaviour.video_lead_s if has_video and behaviour.video_lead_s is not None else behaviour.upload_lead_s


@dataclass(slots=True)
class ScheduledPostChange(Change[str]):
    """A change of one scheduled post and all its publications."""

    organization_id: str
    id: str

    def needs(self) -> Sequence[DocumentKey]:
        """Returns the post."""
        return [(SCHEDULED_POSTS, self.id)]

    async def load(self, mongo: Mongo, session: Session, batch: Batch) -> None:
        """Reads the post's publications."""
        async for document in mongo[PUBLICATIONS].find({"post": self.id}, session=session):
            batch.add_loaded(PUBLICATIONS, document)

    def read(self, batch: Batch) -> tuple[ScheduledPostDocument, list[PublicationDocument]]:
        """Returns copies of the post and its publications. Raises: NotFound."""
        post: ScheduledPostDocument | None = batch.get(SCHEDULED_POSTS, self.id)
        if post is None or post["org"] != self.organization_id:
            raise NotFound("scheduled post", self.id)
        stored: list[PublicationDocument | None] = [batch.get(PUBLICATIONS, id_) for id_ in post["publications"]]
        return post.copy(), [each.copy() for each in stored if each is not None]


def invalidate_upload(publication: PublicationDocument, post: ScheduledPostDocument, has_new_content: bool) -> None:
    """Marks an upload STALE if the content has changed, if it is still running, or if it expires by the due moment."""
    upload = publication.get("upload")
    if upload is None and publication["media_state"] != MediaState.UPLOADING.value:
        return
    expires_at = None if upload is None else upload.get("expires_at")
    if has_new_content or upload is None or (expires_at is not None and expires_at <= post["due"]):
        publication["media_state"] = MediaState.STALE.value


@dataclass(slots=True)
class CancelScheduledPost(ScheduledPostChange):
    """Cancels the publications that have not started."""

    actor: Actor | None = None
    """The person who cancels; None for a change without a request.

    The audit log records cancellations of other people's posts.
    """

    def rights(self) -> Sequence[Right]:
        """Returns that the person is the author, or an OPERATOR."""
        if self.actor is None:
            return ()
        own, others = IsActive(self.actor.user_id, self.organization_id), HasRole(self.actor, Role.OPERATOR)
        return (IsAuthorOr((SCHEDULED_POSTS, self.id), self.actor.user_id, own, others),)

    def plan(self, batch: Batch) -> str:
        """Cancels the publications. Raises: NotFound; Conflict if every publication has started or is finished."""
        post, publications = self.read(batch)
        waiting = [each for each in publications if each["state"] in WAITING_STATES]
        if not waiting:
            raise Conflict("Nothing is left to cancel: every publication has started or is finished.")
        post["revision"] += 1
        batch.put(SCHEDULED_POSTS, post)
        for publication in waiting:
            publication |= {"state": PublicationState.CANCELLED.value, "fence": publication["fence"] + 1}
            publication.pop("error", None)
            put_finished(batch, publication)
        if self.actor is not None and self.actor.user_id != post["author"]:
            action, kind = AuditAction.SCHEDULED_POST_CANCELLED, TargetKind.SCHEDULED_POST
            put_entry(batch, self.actor, action, kind, self.id, author=post["author"])
        return self.id


def put_finished(batch: Batch, publication: PublicationDocument) -> None:
    """Puts a publication that is finished, and emits its change. It no longer keeps the post's files.

    Files that a network got are kept for a day more.
    """
    place, files = publication_place(publication["_id"]), publication.pop("attachments", ())
    remove_files(batch, place, files, FILES_KEPT if _has_reached_network(publication) else timedelta(0))
    put_without_work(batch, publication)


def put_without_work(batch: Batch, publication: PublicationDocument) -> None:
    """Puts a publication for which workers have nothing to do, and emits its change."""
    publication.pop("wake_at", None)
    publication.pop("held_at", None)
    publication.pop("claim", None)
    release_upload(publication)
    batch.put(PUBLICATIONS, publication)
    emit_changed(batch, publication)


def _has_reached_network(publication: PublicationDocument) -> bool:
    """Returns whether a network got the publication."""
    return publication["target"]["kind"] == "ACCOUNT" and publication["state"] == PublicationState.PUBLISHED.value
