"""Changes that schedule, update and cancel posts. The sequencer commits them to the organization's jobs stream.

An update or a cancel raises the fence of each SCHEDULED publication, so that workers lose their claims on it.
Publications in other states are not changed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from storage.errors import BadUserInput, Conflict, NotFound
from storage.files.attachments import (
    NewAttachment,
    attach_files,
    check_attachable,
    file_keys,
    move_files,
    remove_files,
    replace_files,
)
from storage.files.uploads import FILES
from storage.idempotency import IdempotencyKey
from storage.identity.audit import Actor, AuditAction, TargetKind, put_entry
from storage.ids import UserKey, new_id
from storage.mongo import Mongo, Session
from storage.publishing.documents import (
    PUBLICATIONS,
    SCHEDULED_POSTS,
    PublicationDocument,
    ScheduledPostDocument,
    TargetDocument,
)
from storage.publishing.events import emit_changed
from storage.publishing.free_timestamps import free_timestamps
from storage.publishing.networks import BEHAVIOURS, MediaKind, Network
from storage.publishing.records import (
    MediaState,
    PublicationState,
    ScheduledMedia,
    Target,
    media_documents,
    target_document,
)
from storage.streams.changes import Batch, Change, DocumentKey

CLAIM_AHEAD_S = 5.0
"""How long before the due moment a worker claims a publication."""


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
        cannot be attached.
        """
        new = self.new
        check_not_too_late(new.due_at, new.max_lateness_s, batch.at)
        check_attachable(batch, UserKey(new.organization_id, new.author_id), new.attachments)
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
            put_scheduled(batch, _publication(post, id_, target), post, place)
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


def _publication(post: ScheduledPostDocument, id_: str, target: Target) -> PublicationDocument:
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
        "place": place,
        "fence": publication["fence"] + 1,
        "ts": post["ts"],
        "due": due,
        "late_at": due + timedelta(seconds=post["max_lateness_s"]),
        "wake_at": due - timedelta(seconds=CLAIM_AHEAD_S),
    }
    publication.pop("claim", None)
    _plan_upload(publication, post)
    batch.put(PUBLICATIONS, publication)
    emit_changed(batch, publication)


def _plan_upload(publication: PublicationDocument, post: ScheduledPostDocument) -> None:
    lead_s = upload_lead_s(publication, post)
    if lead_s is None or not post["media"]:
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
    return behaviour.video_lead_s if has_video and behaviour.video_lead_s is not None else behaviour.upload_lead_s


@dataclass(frozen=True, slots=True)
class ScheduledPostEdit:
    """The fields to change; None leaves a field as it is."""

    text: str | None = None
    media: Sequence[ScheduledMedia] | None = None
    targets: Sequence[Target] | None = None
    due_at: datetime | None = None
    time_zone: str | None = None
    max_lateness_s: int | None = None
    attachments: Sequence[NewAttachment] | None = None
    """All files of the edited post. Present files stay if they are named."""

    revision: int | None = None
    """The revision that the client edited; None: any."""


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


@dataclass(slots=True)
class UpdateScheduledPost(ScheduledPostChange):
    """Changes a post before any of its publications has started. Targets that stay keep their publications."""

    edit: ScheduledPostEdit
    new_ids: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Creates ids for new publications, which stay the same when the change is planned again."""
        self.new_ids = [new_id() for _ in self.edit.targets or ()]

    def needs(self) -> Sequence[DocumentKey]:
        """Returns the post and the files of the edit."""
        return [(SCHEDULED_POSTS, self.id), *file_keys(self.edit.attachments or ())]

    async def load(self, mongo: Mongo, session: Session, batch: Batch) -> None:
        """Reads the publications and the files and, for a new due moment, a free timestamp."""
        # Not super(), which fails here: dataclass(slots=True) creates a new class.
        await ScheduledPostChange.load(self, mongo, session, batch)
        post: ScheduledPostDocument | None = batch.get(SCHEDULED_POSTS, self.id)
        if post is not None and "attachments" in post:
            file_ids = [each["id"] for each in post["attachments"]]
            for file in await mongo.find(FILES, {"_id": {"$in": file_ids}}, session=session):
                batch.add_loaded(FILES, file)
        if self.edit.due_at is not None:
            await free_timestamps(batch).search(mongo, session, self.organization_id, self.edit.due_at)

    def plan(self, batch: Batch) -> str:
        """Updates the post.

        Raises: NotFound, BadUserInput; Conflict for an old revision, a started publication, or an attached file.
        """
        post, publications = self.read(batch)
        edit = self.edit
        if edit.revision is not None and edit.revision != post["revision"]:
            raise Conflict(f"The scheduled post has changed: its newest revision is {post['revision']}.")
        if any("held_at" in each for each in publications):
            raise Conflict("The scheduled post waits for the decision of an administrator.")
        if any(each["state"] != PublicationState.SCHEDULED.value for each in publications):
            raise Conflict("The scheduled post can no longer be changed: publishing has started.")
        new_post = self._edit_post(batch, post)
        check_not_too_late(new_post["due"], new_post["max_lateness_s"], batch.at)
        self._check_files(batch, post)
        new_publications = self._change_targets(batch, new_post, publications)
        self._replace_files(batch, new_post, new_publications)
        batch.put(SCHEDULED_POSTS, new_post)
        has_new_content = new_post["text"] != post["text"] or new_post["media"] != post["media"]
        for place, publication in enumerate(new_publications):
            invalidate_upload(publication, new_post, has_new_content)
            put_scheduled(batch, publication, new_post, place)
        return self.id

    def _edit_post(self, batch: Batch, post: ScheduledPostDocument) -> ScheduledPostDocument:
        edit, new_post = self.edit, post.copy()
        new_post["revision"] += 1
        if edit.text is not None:
            new_post["text"] = edit.text
        if edit.media is not None:
            new_post["media"] = media_documents(edit.media)
        if edit.time_zone is not None:
            new_post["zone"] = edit.time_zone
        if edit.max_lateness_s is not None:
            new_post["max_lateness_s"] = edit.max_lateness_s
        if edit.due_at is not None and edit.due_at != post["due"]:
            new_post |= {"due": edit.due_at, "ts": free_timestamps(batch).take(edit.due_at)}
        return new_post

    def _change_targets(
        self, batch: Batch, post: ScheduledPostDocument, publications: list[PublicationDocument]
    ) -> list[PublicationDocument]:
        """Returns the publications for the edit's targets, and removes the publications of dropped targets."""
        if self.edit.targets is None:
            return publications
        by_target = {_target_key(each["target"]): each for each in publications}
        new_publications: list[PublicationDocument] = []
        for id_, target in zip(self.new_ids, self.edit.targets, strict=True):
            key = _target_key(target_document(target))
            if key in by_target:
                new_publications.append(by_target.pop(key))
            else:
                move_files(batch, post.get("attachments", ()), None, publication_place(id_))
                new_publications.append(_publication(post, id_, target))
        for dropped in by_target.values():
            remove_files(batch, publication_place(dropped["_id"]), dropped.get("attachments", ()))
            batch.remove(PUBLICATIONS, dropped["_id"])
        post["publications"] = [each["_id"] for each in new_publications]
        return new_publications

    def _check_files(self, batch: Batch, post: ScheduledPostDocument) -> None:
        kept = {each["id"] for each in post.get("attachments", ())}
        check_attachable(batch, UserKey(post["org"], post["author"]), self.edit.attachments or (), kept)

    def _replace_files(
        self, batch: Batch, post: ScheduledPostDocument, publications: Sequence[PublicationDocument]
    ) -> None:
        if self.edit.attachments is None:
            return
        places = [publication_place(each["_id"]) for each in publications]
        attachments = replace_files(batch, places, post.get("attachments", ()), self.edit.attachments)
        documents: list[ScheduledPostDocument | PublicationDocument] = [post, *publications]
        for document in documents:
            document.pop("attachments", None)
            if attachments:
                document["attachments"] = attachments


def _target_key(target: TargetDocument) -> tuple[str, str]:
    return target["kind"], target["id"]


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
    """The person who cancels. The audit log records cancellations of other people's posts."""

    def plan(self, batch: Batch) -> str:
        """Cancels the publications. Raises: NotFound; Conflict if every publication has started or is finished."""
        post, publications = self.read(batch)
        scheduled = [each for each in publications if each["state"] == PublicationState.SCHEDULED.value]
        if not scheduled:
            raise Conflict("Nothing is left to cancel: every publication has started or is finished.")
        post["revision"] += 1
        batch.put(SCHEDULED_POSTS, post)
        for publication in scheduled:
            publication |= {"state": PublicationState.CANCELLED.value, "fence": publication["fence"] + 1}
            put_finished(batch, publication)
        if self.actor is not None and self.actor.user_id != post["author"]:
            action, kind = AuditAction.SCHEDULED_POST_CANCELLED, TargetKind.SCHEDULED_POST
            put_entry(batch, self.actor, action, kind, self.id, author=post["author"])
        return self.id


def put_finished(batch: Batch, publication: PublicationDocument) -> None:
    """Puts a publication that needs no more work, and emits its change. It no longer keeps the post's files."""
    remove_files(batch, publication_place(publication["_id"]), publication.pop("attachments", ()))
    publication.pop("wake_at", None)
    publication.pop("held_at", None)
    publication.pop("claim", None)
    release_upload(publication)
    batch.put(PUBLICATIONS, publication)
    emit_changed(batch, publication)
