"""Picture and banner of a community, committed to the community's stream."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar

from storage.chat.memberships import COMMUNITIES, community_stream
from storage.chat.moderation_changes import OwnerChange
from storage.chat.records import Community
from storage.chat.roles import Moderator
from storage.files.community_pictures import give_picture, load_picture, picture_keys, release_picture
from storage.files.records import UploadPurpose
from storage.identity.audit import AuditAction, TargetKind
from storage.ids import UserKey
from storage.mongo import Mongo, Session
from storage.streams.changes import Batch, DocumentKey
from storage.streams.sequencer import Sequencer


class CommunityPicture(Enum):
    """A picture that a community shows. The value is the field of its document that holds the id of the file."""

    PICTURE = "picture"
    BANNER = "banner"


PURPOSES = {CommunityPicture.PICTURE: UploadPurpose.AVATAR, CommunityPicture.BANNER: UploadPurpose.BANNER}
"""The purpose that an upload must have. A community's picture is cut as an avatar is."""


@dataclass(slots=True)
class SetCommunityPicture(OwnerChange[None]):
    """Replaces a picture by one that the owner has uploaded. None removes it. Idempotent. Emits CommunityChanged."""

    act: ClassVar[str] = "change it"
    uploader: UserKey
    picture: CommunityPicture
    file_id: str | None

    def needs(self) -> Sequence[DocumentKey]:
        """Returns what every change of a membership needs, and the new file."""
        return [*OwnerChange.needs(self), *(picture_keys(self.uploader, self.file_id) if self.file_id else ())]

    async def load(self, mongo: Mongo, session: Session, batch: Batch) -> None:
        """Reads the memberships, and the file of the earlier picture."""
        # Not `super()`, which fails here: `dataclass(slots=True)` creates a new class.
        await OwnerChange.load(self, mongo, session, batch)
        community: Any = batch.get(COMMUNITIES, self.community_id)
        if community is not None and (earlier := community.get(self.picture.value)) is not None:
            await load_picture(mongo, session, batch, earlier)

    def plan(self, batch: Batch) -> None:
        """Puts the community and both files.

        Raises: NotFound, also for a file of somebody else; Forbidden for people who are not owners; BadUserInput for a
        file that is not ready, or was uploaded for another purpose; Conflict for a file that is shown elsewhere.
        """
        community: Any = self.copy_community(batch)
        earlier = community.pop(self.picture.value, None)
        if earlier == self.file_id:
            return
        if self.file_id is not None:
            give_picture(batch, self.uploader, self.file_id, PURPOSES[self.picture], self.community_id)
            community[self.picture.value] = self.file_id
        if earlier is not None:
            release_picture(batch, earlier)
        batch.put(COMMUNITIES, community)
        batch.emit("CommunityChanged", self.community_id)
        details = {self.picture.value: "removed" if self.file_id is None else "changed"}
        self.audit_target(batch, AuditAction.COMMUNITY_CHANGED, TargetKind.COMMUNITY, self.community_id, **details)


class CommunityPictureStore:
    """Commits pictures of communities. The commit itself checks the right of the owner."""

    def __init__(self, sequencer: Sequencer) -> None:
        self._sequencer = sequencer

    async def set(self, community: Community, owner: Moderator, picture: CommunityPicture, file_id: str | None) -> None:
        """Replaces or removes a picture, and lets the file of the earlier one expire. Idempotent.

        Raises: NotFound for a file of somebody else; Forbidden for people who are not owners; BadUserInput for a file
        that is not ready, or was uploaded for another purpose; Conflict for a file that is shown elsewhere.
        """
        uploader = UserKey(community.organization_id, owner.user_id)
        change = SetCommunityPicture(community.id, owner.user_id, owner, uploader, picture, file_id)
        await self._sequencer.commit(community_stream(community.id), change)
