"""Who works on what is due: leases on publications, by the database's clock alone.

A publication has `wake_at`, the moment at which somebody has to look at it: five seconds before it is due, when a lease
ends, when a lost answer may be asked for. One index of that moment is all that a sweep reads, however much waits.
"""

import secrets
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from pymongo import ReturnDocument
from pymongo.results import UpdateResult

from storage.mongo import Document, Mongo
from storage.publishing.records import MediaState, Publication, PublicationState, publication_record
from storage.publishing.scheduling import PUBLICATIONS
from storage.publishing.transitions import LEASE_S

Write = Callable[..., Awaitable[UpdateResult]]

UPLOAD_LEASE_S = 30.0
MAIL_AGAIN_S = 120.0
_MS = 1000


def moment_reached(field: str) -> Document:
    """A filter for documents whose moment has come. The first condition lets the partial index answer."""
    return {field: {"$exists": True}, "$expr": {"$lte": [f"${field}", "$$NOW"]}}


class ClaimStore:
    """Leases. Claiming twice, or from several processes at once, is harmless: each publication goes to one."""

    def __init__(self, mongo: Mongo) -> None:
        self._mongo = mongo
        self._publications = mongo[PUBLICATIONS]

    async def claim(self, limit: int) -> list[Publication]:
        """Takes publications that somebody has to look at, those due first; each with a fence of its own.

        The lease of one that is due only later counts from its due moment.
        """
        ids = await self._ids("wake_at", limit)
        if not ids:
            return []
        token = secrets.token_hex(8)
        until = {"$add": [{"$max": ["$$NOW", "$due"]}, int(LEASE_S * _MS)]}
        taken = {"claim": token, "fence": {"$add": ["$fence", 1]}, "wake_at": until}
        await self._write(
            self._publications.update_many, {"_id": {"$in": ids}, **moment_reached("wake_at")}, [{"$set": taken}]
        )
        return await self._taken({"_id": {"$in": ids}, "claim": token})

    async def renew(self, publication: Publication, lease_s: float = LEASE_S) -> bool:
        """Keeps a publication for another lease; False when it is somebody else's."""
        until = {"$set": {"wake_at": {"$add": ["$$NOW", int(lease_s * _MS)]}}}
        held = {"_id": publication.id, "fence": publication.fence, "wake_at": {"$exists": True}}
        return bool((await self._write(self._publications.update_one, held, [until])).matched_count)

    async def release(self, publications: Sequence[Publication]) -> None:
        """Gives up what was claimed and not begun, so that others find it at once."""
        for publication in publications:
            held = {"_id": publication.id, "fence": publication.fence, "state": PublicationState.SCHEDULED.value}
            await self._write(self._publications.update_one, held, [{"$set": {"wake_at": "$$NOW"}}])

    async def claim_uploads(self, limit: int) -> list[tuple[Publication, str]]:
        """Takes publications whose media are to be uploaded now, each with the token that the upload is kept by."""
        ids = await self._ids("upload_at", limit)
        if not ids:
            return []
        token = secrets.token_hex(8)
        until = {"$add": ["$$NOW", int(UPLOAD_LEASE_S * _MS)]}
        taken = {"upload_claim": token, "upload_at": until, "media_state": MediaState.UPLOADING.value}
        await self._write(
            self._publications.update_many, {"_id": {"$in": ids}, **moment_reached("upload_at")}, [{"$set": taken}]
        )
        return [(each, token) for each in await self._taken({"_id": {"$in": ids}, "upload_claim": token})]

    async def renew_upload(self, publication: Publication, token: str) -> bool:
        """Keeps an upload for another lease; False when it is somebody else's, or no longer wanted."""
        until = {"$set": {"upload_at": {"$add": ["$$NOW", int(UPLOAD_LEASE_S * _MS)]}}}
        held = {"_id": publication.id, "upload_claim": token}
        return bool((await self._write(self._publications.update_one, held, [until])).matched_count)

    async def claim_mails(self, limit: int) -> list[Publication]:
        """Takes publications of whose failure the author is to be told by mail now."""
        ids = await self._ids("mail_at", limit)
        taken: list[Publication] = []
        for id_ in ids:
            again = {"$set": {"mail_at": {"$add": ["$$NOW", int(MAIL_AGAIN_S * _MS)]}}}
            row: Document | None = await self._publications.find_one_and_update(
                {"_id": id_, **moment_reached("mail_at")}, [again], return_document=ReturnDocument.AFTER
            )
            taken += [] if row is None else [publication_record(row)]
        return taken

    async def mailed(self, publication: Publication) -> None:
        """The author was told, or never can be."""
        await self._write(self._publications.update_one, {"_id": publication.id}, {"$unset": {"mail_at": ""}})

    async def _write(
        self, write: Callable[..., Awaitable[UpdateResult]], wanted: Document, change: Any
    ) -> UpdateResult:
        """What one dead worker left locked must not keep everybody from everything else."""
        return await self._mongo.past_orphans(lambda: write(wanted, change))

    async def _ids(self, field: str, limit: int) -> list[str]:
        cursor = self._publications.find(moment_reached(field), {"_id": 1}).sort(field, 1).limit(limit)
        return [row["_id"] for row in await cursor.to_list(None)]

    async def _taken(self, wanted: Document) -> list[Publication]:
        return [publication_record(row) async for row in self._publications.find(wanted).sort("due", 1)]
