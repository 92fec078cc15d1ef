"""The change by which an author edits a scheduled post."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from storage.errors import Conflict
from storage.files.attachments import (
    NewAttachment,
    attachment_documents,
    check_attachable,
    file_keys,
    move_files,
    remove_files,
    replace_files,
)
from storage.files.uploads import FILES
from storage.identity.audit import Actor
from storage.identity.rights import IsActive, IsAuthorOr, Never
from storage.ids import UserKey, new_id
from storage.mongo import Mongo, Session
from storage.publishing.documents import (
    PUBLICATIONS,
    SCHEDULED_POSTS,
    PublicationDocument,
    ScheduledPostDocument,
    TargetDocument,
)
from storage.publishing.free_timestamps import free_timestamps
from storage.publishing.network_files import check_files
from storage.publishing.records import (
    WAITING_STATES,
    ScheduledMedia,
    Target,
    media_documents,
    target_document,
)
from storage.publishing.scheduling import (
    ScheduledPostChange,
    check_not_too_late,
    invalidate_upload,
    new_publication,
    publication_place,
    put_scheduled,
)
from storage.streams.changes import Batch, DocumentKey, Right


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
class UpdateScheduledPost(ScheduledPostChange):
    """Changes a post before any of its publications has started. Targets that stay keep their publications."""

    edit: ScheduledPostEdit
    editor: Actor | None = None
    """The person who edits; None for an edit without a request."""

    new_ids: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Creates ids for new publications, which stay the same when the change is planned again."""
        self.new_ids = [new_id() for _ in self.edit.targets or ()]

    def rights(self) -> Sequence[Right]:
        """Returns that the editor is the author."""
        if self.editor is None:
            return ()
        own = IsActive(self.editor.user_id, self.organization_id)
        others = Never("Only the author of a scheduled post can change it.")
        return (IsAuthorOr((SCHEDULED_POSTS, self.id), self.editor.user_id, own, others),)

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
        if any(each["state"] not in WAITING_STATES for each in publications):
            raise Conflict("The scheduled post can no longer be changed: publishing has started.")
        new_post = self._edit_post(batch, post)
        check_not_too_late(new_post["due"], new_post["max_lateness_s"], batch.at)
        self._check_files(batch, new_post, publications)
        new_publications = self._change_targets(batch, new_post, publications)
        self._replace_files(batch, new_post, new_publications)
        batch.put(SCHEDULED_POSTS, new_post)
        has_new_content = any(new_post.get(name) != post.get(name) for name in ("text", "media", "attachments"))
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
                new_publications.append(new_publication(post, id_, target))
        for dropped in by_target.values():
            remove_files(batch, publication_place(dropped["_id"]), dropped.get("attachments", ()))
            batch.remove(PUBLICATIONS, dropped["_id"])
        post["publications"] = [each["_id"] for each in new_publications]
        return new_publications

    def _check_files(
        self, batch: Batch, post: ScheduledPostDocument, publications: Sequence[PublicationDocument]
    ) -> None:
        """Checks the files that the edited post will have. `post` has those of before."""
        files = post.get("attachments", [])
        new_files = self.edit.attachments
        if new_files is not None:
            check_attachable(batch, UserKey(post["org"], post["author"]), new_files, {each["id"] for each in files})
            files = attachment_documents(batch, new_files)
        targets = [each["target"] for each in publications]
        if self.edit.targets is not None:
            targets = [target_document(each) for each in self.edit.targets]
        check_files(targets, post["text"], post["media"], files)

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
