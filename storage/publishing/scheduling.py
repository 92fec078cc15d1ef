"""Scheduling, changing and cancelling, as changes that the sequencer commits to the organization's jobs stream.

What is waiting belongs to its author: an update or a cancel raises the fence of every publication that it touches, so
whoever holds one of them has lost it. What has started is never touched.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from storage.errors import BadUserInput, Conflict, NotFound
from storage.idempotency import IdempotencyKey
from storage.ids import new_id
from storage.mongo import Document, Mongo, Session
from storage.publishing.events import emit_changed
from storage.publishing.networks import BEHAVIOURS, MediaKind, Network
from storage.publishing.records import (
    MediaState,
    PublicationState,
    ScheduledMedia,
    Target,
    media_documents,
    target_document,
)
from storage.streams.changes import Batch, Change, Need

POSTS = "scheduled_posts"
PUBLICATIONS = "publications"

CLAIM_AHEAD_S = 5.0
PLACES_READ = 1000


@dataclass(frozen=True, slots=True)
class NewPost:
    """What a scheduled post is made of, checked. `due_at` is a whole number of milliseconds."""

    organization_id: str
    author_id: str
    text: str
    media: Sequence[ScheduledMedia]
    targets: Sequence[Target]
    due_at: datetime
    time_zone: str
    max_lateness_s: int


def microseconds(at: datetime) -> int:
    """The instant as a timestamp."""
    return int(at.timestamp()) * 1_000_000 + at.microsecond


async def free_place(mongo: Mongo, session: Session, organization_id: str, at: datetime) -> int:
    """The first timestamp of the organization at or after the instant that no scheduled post has."""
    free = microseconds(at)
    while True:
        wanted = {"org": organization_id, "ts": {"$gte": free}}
        rows = mongo[POSTS].find(wanted, {"_id": 0, "ts": 1}, session=session).sort("ts", 1)
        taken = [row["ts"] for row in await rows.limit(PLACES_READ).to_list(None)]
        for ts in taken:
            if ts != free:
                return free
            free += 1
        if len(taken) < PLACES_READ:
            return free


def _place(batch: Batch, organization_id: str, free: int) -> int:
    """The first place at or after `free` that the members before have not taken."""
    taken = {each["ts"] for each in batch.changed(POSTS) if each["org"] == organization_id}
    while free in taken:
        free += 1
    return free


@dataclass(slots=True)
class SchedulePost(Change[str]):
    """A new scheduled post with a publication for each target. The result is its id."""

    new: NewPost
    idempotency: IdempotencyKey | None = None
    id: str = field(default_factory=new_id)
    publication_ids: list[str] = field(default_factory=list)
    _free: int = 0

    def __post_init__(self) -> None:
        """Ids are given once, whatever how often it is planned."""
        self.publication_ids = [new_id() for _ in self.new.targets]

    async def load(self, mongo: Mongo, session: Session, batch: Batch) -> None:
        """Looks for a free place."""
        self._free = await free_place(mongo, session, self.new.organization_id, self.new.due_at)

    def plan(self, batch: Batch) -> str:
        """Raises: BadUserInput when it would be too late already."""
        new = self.new
        check_not_missed(new.due_at, new.max_lateness_s, batch.at)
        post = {
            "_id": self.id,
            "org": new.organization_id,
            "author": new.author_id,
            "ts": _place(batch, new.organization_id, self._free),
            "text": new.text,
            "media": media_documents(new.media),
            "due": new.due_at,
            "zone": new.time_zone,
            "max_lateness_s": new.max_lateness_s,
            "publications": list(self.publication_ids),
            "at": batch.at,
            "revision": 1,
        }
        batch.put(POSTS, post)
        for place, (id_, target) in enumerate(zip(self.publication_ids, new.targets, strict=True)):
            put_waiting(batch, _publication(post, id_, target) | {"place": place}, post)
        return self.id

    def result_id(self, result: str) -> str:
        """The scheduled post's id."""
        return result


def check_not_missed(due_at: datetime, max_lateness_s: int, now: datetime) -> None:
    """Raises: BadUserInput for what could only fail."""
    if due_at + timedelta(seconds=max_lateness_s) < now:
        raise BadUserInput("dueAt", "a time to come; this one is further back than maxLatenessS allows")


def _publication(post: Document, id_: str, target: Target) -> Document:
    return {
        "_id": id_,
        "org": post["org"],
        "post": post["_id"],
        "author": post["author"],
        "target": target_document(target),
        "fence": 0,
        "media_state": MediaState.NONE.value,
        "attempts": [],
    }


def put_waiting(batch: Batch, publication: Document, post: Document) -> None:
    """Puts a publication that waits for the due moment of its post, with what has to be uploaded before."""
    due: datetime = post["due"]
    publication |= {
        "state": PublicationState.SCHEDULED.value,
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


def _plan_upload(publication: Document, post: Document) -> None:
    lead_s = upload_lead_s(publication, post)
    if lead_s is None or not post["media"]:
        publication["media_state"] = MediaState.NONE.value
        drop_upload(publication)
    elif publication["media_state"] != MediaState.READY.value:
        stale = publication["media_state"] == MediaState.STALE.value
        drop_upload(publication)
        publication["media_state"] = (MediaState.STALE if stale else MediaState.PENDING).value
        publication["upload_at"] = post["due"] - timedelta(seconds=lead_s)


def drop_upload(publication: Document) -> None:
    """Forgets what was uploaded, and takes the work from whoever is at it."""
    for field_ in ("upload", "upload_at", "upload_claim"):
        publication.pop(field_, None)


def upload_lead_s(publication: Document, post: Document) -> float | None:
    """How long before the due time the target wants the post's media; None where they go along."""
    target = publication["target"]
    if target["kind"] != "ACCOUNT":
        return None
    behaviour = BEHAVIOURS[Network(target["network"])]
    has_video = any(each["kind"] != MediaKind.IMAGE.value for each in post["media"])
    return behaviour.video_lead_s if has_video and behaviour.video_lead_s is not None else behaviour.upload_lead_s


@dataclass(frozen=True, slots=True)
class PostEdit:
    """What to change; None stays."""

    text: str | None = None
    media: Sequence[ScheduledMedia] | None = None
    targets: Sequence[Target] | None = None
    due_at: datetime | None = None
    time_zone: str | None = None
    max_lateness_s: int | None = None
    revision: int | None = None


@dataclass(slots=True)
class _PostChange(Change[str]):
    """A change of one scheduled post and all its publications."""

    organization_id: str
    id: str

    def needs(self) -> Sequence[Need]:
        """The post."""
        return [(POSTS, self.id)]

    async def load(self, mongo: Mongo, session: Session, batch: Batch) -> None:
        """Reads its publications."""
        async for document in mongo[PUBLICATIONS].find({"post": self.id}, session=session):
            batch.add(PUBLICATIONS, document)

    def read(self, batch: Batch) -> tuple[Document, list[Document]]:
        """Copies of the post and its publications. Raises: NotFound."""
        post = batch.get(POSTS, self.id)
        if post is None or post["org"] != self.organization_id:
            raise NotFound("scheduled post", self.id)
        found = [batch.get(PUBLICATIONS, id_) for id_ in post["publications"]]
        return dict(post), [dict(each) for each in found if each is not None]


@dataclass(slots=True)
class UpdatePost(_PostChange):
    """Changes a post of which nothing has started. Targets that stay keep their publications."""

    edit: PostEdit
    new_ids: list[str] = field(default_factory=list)
    _free: int = 0

    def __post_init__(self) -> None:
        """Ids are given once, whatever how often it is planned."""
        self.new_ids = [new_id() for _ in self.edit.targets or ()]

    async def load(self, mongo: Mongo, session: Session, batch: Batch) -> None:
        """Reads its publications, and looks for a free place at the new time."""
        # Not super(): a dataclass with slots is another class than the one that was written.
        await _PostChange.load(self, mongo, session, batch)
        if self.edit.due_at is not None:
            self._free = await free_place(mongo, session, self.organization_id, self.edit.due_at)

    def plan(self, batch: Batch) -> str:
        """Raises: NotFound, Conflict for an old revision or when something has started, BadUserInput."""
        post, publications = self.read(batch)
        edit = self.edit
        if edit.revision is not None and edit.revision != post["revision"]:
            raise Conflict(f"The newest revision is {post['revision']}.")
        if any(each["state"] != PublicationState.SCHEDULED.value for each in publications):
            raise Conflict("It is being published already, or is done.")
        changed = self._changed(batch, post)
        check_not_missed(changed["due"], changed["max_lateness_s"], batch.at)
        kept = self._retarget(batch, changed, publications)
        batch.put(POSTS, changed)
        stale = changed["text"] != post["text"] or changed["media"] != post["media"]
        for place, publication in enumerate(kept):
            _invalidate(publication, changed, stale)
            put_waiting(batch, publication | {"place": place}, changed)
        return self.id

    def _changed(self, batch: Batch, post: Document) -> Document:
        edit, changed = self.edit, {**post, "revision": post["revision"] + 1}
        if edit.text is not None:
            changed["text"] = edit.text
        if edit.media is not None:
            changed["media"] = media_documents(edit.media)
        if edit.time_zone is not None:
            changed["zone"] = edit.time_zone
        if edit.max_lateness_s is not None:
            changed["max_lateness_s"] = edit.max_lateness_s
        if edit.due_at is not None and edit.due_at != post["due"]:
            changed |= {"due": edit.due_at, "ts": _place(batch, self.organization_id, self._free)}
        return changed

    def _retarget(self, batch: Batch, post: Document, publications: list[Document]) -> list[Document]:
        """The publications that the post has from now on; those whose target was dropped go away."""
        if self.edit.targets is None:
            return publications
        by_target = {_target_key(each["target"]): each for each in publications}
        kept: list[Document] = []
        for id_, target in zip(self.new_ids, self.edit.targets, strict=True):
            key = _target_key(target_document(target))
            kept.append(by_target.pop(key) if key in by_target else _publication(post, id_, target))
        for dropped in by_target.values():
            batch.remove(PUBLICATIONS, dropped["_id"])
        post["publications"] = [each["_id"] for each in kept]
        return kept


def _target_key(target: Document) -> tuple[str, str]:
    return target["kind"], target["id"]


def _invalidate(publication: Document, post: Document, stale: bool) -> None:
    """An upload of other content, or one that will have expired by then, is none."""
    upload = publication.get("upload")
    expires_at = upload and upload.get("expires_at")
    if upload is None and publication["media_state"] != MediaState.UPLOADING.value:
        return
    if stale or upload is None or (expires_at is not None and expires_at <= post["due"]):
        publication["media_state"] = MediaState.STALE.value


@dataclass(slots=True)
class CancelPost(_PostChange):
    """Cancels what has not started."""

    def plan(self, batch: Batch) -> str:
        """Raises: NotFound, Conflict with nothing left to cancel."""
        post, publications = self.read(batch)
        waiting = [each for each in publications if each["state"] == PublicationState.SCHEDULED.value]
        if not waiting:
            raise Conflict("Nothing is left to cancel: it is being published already, or is done.")
        batch.put(POSTS, {**post, "revision": post["revision"] + 1})
        for publication in waiting:
            publication |= {"state": PublicationState.CANCELLED.value, "fence": publication["fence"] + 1}
            put_finished(batch, publication)
        return self.id


def put_finished(batch: Batch, publication: Document) -> None:
    """Puts a publication that nobody has to look at any more, and tells of it."""
    for field_ in ("wake_at", "upload_at", "upload_claim", "claim"):
        publication.pop(field_, None)
    batch.put(PUBLICATIONS, publication)
    emit_changed(batch, publication)
