"""Outbox relay of content reports: keeps reports in step with the visibility of their communities."""

from collections.abc import Sequence

from storage.chat.documents import CommunityDocument
from storage.chat.memberships import COMMUNITIES, stored_visibility
from storage.chat.records import CommunityVisibility
from storage.feed.content_reports.changes import CONTENT_REPORTS
from storage.mongo import Mongo, Session
from storage.streams.changes import Batch
from storage.streams.documents import OutboxDocument
from storage.streams.outbox import OutboxRelay


class CommunityVisibilityRelay(OutboxRelay):
    """Marks the reports of communities that became PRIVATE, and unmarks those of communities that are so no more.

    A report that is filed at the same time is committed to the same stream: either before, and is marked here, or
    after, and reads the new visibility itself.
    """

    async def load(self, mongo: Mongo, session: Session, rows: Sequence[OutboxDocument], batch: Batch) -> None:
        """Updates the reports of the communities by their present visibility."""
        ids, organization_id = list({row["ref"] for row in rows}), batch.stream.id
        communities: list[CommunityDocument] = await mongo.find(COMMUNITIES, {"_id": {"$in": ids}}, session=session)
        for community in communities:
            is_private = stored_visibility(community) is CommunityVisibility.PRIVATE
            reports = {"org": organization_id, "community": community["_id"], "private": None if is_private else True}
            update = {"$set": {"private": True}} if is_private else {"$unset": {"private": ""}}
            await mongo[CONTENT_REPORTS].update_many(reports, update, session=session)

    def relay(self, row: OutboxDocument, batch: Batch) -> float:
        """Emits nothing."""
        return 0.0
