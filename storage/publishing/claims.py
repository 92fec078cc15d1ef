"""Claims: leases on publications that need work by a worker. All times are by the database's clock.

`wake_at` is when a publication needs work next. That is five seconds before the due moment, when a lease expires, at
the next try, or when an unknown outcome is to be reconciled. A sweep reads an index of `wake_at`, so waiting
publications do not slow it down.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from pymongo.asynchronous.collection import AsyncCollection
from pymongo.results import UpdateResult

from storage.mongo import Document, Mongo, due_filter
from storage.mongo.leases import claim_token, lease_filter
from storage.publishing.documents import PUBLICATIONS, PublicationDocument
from storage.publishing.records import MediaState, Publication, PublicationState, PublishingPhase, publication_record
from storage.publishing.reports.records import ReportMail, report_mail
from storage.publishing.scheduling import CLAIM_AHEAD_S
from storage.publishing.transitions import LEASE_S, MANUAL_LEASE_S

UpdateClaims = Callable[..., Awaitable[UpdateResult]]

UPLOAD_LEASE_S = 30.0
MAIL_RETRY_S = 120.0
_MS = 1000
_MAX_LEASE_S = max(CLAIM_AHEAD_S + LEASE_S, MANUAL_LEASE_S)

_IS_LEASED: Document = {
    "$or": [
        {
            "state": PublicationState.PUBLISHING.value,
            "progress.phase": {"$in": [PublishingPhase.PREPARING.value, PublishingPhase.CALLING.value]},
        },
        {"$expr": {"$eq": ["$wake_at", "$leased_until"]}},
    ]
}
"""Filter for publications whose `wake_at` ends a lease. Others wait for their next try, or for a reconciliation."""


class PublicationClaims:
    """Claims publications. If several workers claim at the same time, each publication goes to one of them."""

    def __init__(self, mongo: Mongo, worker: str = "") -> None:
        """`worker` is the name by which the claims of this process are released when it has died."""
        self._mongo = mongo
        self._worker = worker
        self._publications: AsyncCollection[PublicationDocument] = mongo[PUBLICATIONS]

    async def claim(self, limit: int) -> list[Publication]:
        """Claims publications whose `wake_at` has come, in the order of due moments, each under a new fence.

        The lease lasts `LEASE_S` from now, or from the due moment if that is later.
        """
        ids = await self._ids("wake_at", limit)
        if not ids:
            return []
        token = claim_token(self._worker)
        lease_end = {"$add": [{"$max": ["$$NOW", "$due"]}, int(LEASE_S * _MS)]}
        fields = {"claim": token, "fence": {"$add": ["$fence", 1]}, "wake_at": lease_end, "leased_until": lease_end}
        query = {"_id": {"$in": ids}, **due_filter("wake_at")}
        await self._write(self._publications.update_many, query, [{"$set": fields}])
        return await self._claimed({"_id": {"$in": ids}, "claim": token})

    async def renew(self, publication: Publication, lease_s: float = LEASE_S) -> bool:
        """Renews the lease of a claim; returns False if another worker has claimed the publication."""
        lease_end = {"$add": ["$$NOW", int(lease_s * _MS)]}
        renewal = {"$set": {"wake_at": lease_end, "leased_until": lease_end}}
        query = {"_id": publication.id, "fence": publication.fence, "wake_at": {"$exists": True}}
        return bool((await self._write(self._publications.update_one, query, [renewal])).matched_count)

    async def release(self, publications: Sequence[Publication]) -> None:
        """Releases claims on publications whose publishing has not begun, so that other workers claim them at once."""
        for publication in publications:
            query = {"_id": publication.id, "fence": publication.fence, "state": PublicationState.SCHEDULED.value}
            await self._write(self._publications.update_one, query, [{"$set": {"wake_at": "$$NOW"}}])

    async def release_of(self, worker: str) -> int:
        """Ends the leases of a dead worker, also those of uploads, and returns how many.

        Any worker then continues from the stored state, as after the end of a lease: an interrupted call is UNKNOWN.
        """
        claims = {"$and": [lease_filter(worker, "wake_at", _MAX_LEASE_S), _IS_LEASED]}
        uploads = lease_filter(worker, "upload_at", UPLOAD_LEASE_S, "upload_claim")
        update = self._publications.update_many
        ended = await self._write(update, claims, [{"$set": {"wake_at": "$$NOW"}}])
        ended_uploads = await self._write(update, uploads, [{"$set": {"upload_at": "$$NOW"}}])
        return ended.modified_count + ended_uploads.modified_count

    async def claim_uploads(self, limit: int) -> list[tuple[Publication, str]]:
        """Claims publications whose media are to be uploaded now, each with the token of its claim."""
        ids = await self._ids("upload_at", limit)
        if not ids:
            return []
        token = claim_token(self._worker)
        lease_end = {"$add": ["$$NOW", int(UPLOAD_LEASE_S * _MS)]}
        fields = {"upload_claim": token, "upload_at": lease_end, "media_state": MediaState.UPLOADING.value}
        query = {"_id": {"$in": ids}, **due_filter("upload_at")}
        await self._write(self._publications.update_many, query, [{"$set": fields}])
        return [(each, token) for each in await self._claimed({"_id": {"$in": ids}, "upload_claim": token})]

    async def renew_upload(self, publication: Publication, token: str) -> bool:
        """Renews the claim of an upload; returns False if another worker claimed it or no upload is needed any more."""
        renewal = {"$set": {"upload_at": {"$add": ["$$NOW", int(UPLOAD_LEASE_S * _MS)]}}}
        query = {"_id": publication.id, "upload_claim": token}
        return bool((await self._write(self._publications.update_one, query, [renewal])).matched_count)

    async def claim_mails(self, limit: int) -> list[ReportMail]:
        """Claims mails to authors that are due."""
        ids = await self._ids("mail_at", limit)
        claimed: list[ReportMail] = []
        for id_ in ids:
            retry = {"$set": {"mail_at": {"$add": ["$$NOW", int(MAIL_RETRY_S * _MS)]}}}
            claim = partial(self._publications.find_one_and_update, {"_id": id_, **due_filter("mail_at")}, [retry])
            document = await self._mongo.write_past_orphans(claim)
            claimed += [] if document is None else [report_mail(document)]
        return claimed

    async def mark_mailed(self, mail: ReportMail) -> None:
        """Stores that the mail was sent, or can never be sent. Keeps the mail of a later report."""
        query = {"_id": mail.publication.id, "mail": mail.stored}
        await self._write(self._publications.update_one, query, {"$unset": {"mail_at": "", "mail": ""}})

    async def _write(self, write: UpdateClaims, query: Document, update: Any) -> UpdateResult:
        """Executes the write. Ends a dead worker's transaction if it still locks one of the documents."""
        return await self._mongo.write_past_orphans(lambda: write(query, update))

    async def _ids(self, field: str, limit: int) -> list[str]:
        cursor = self._publications.find(due_filter(field), {"_id": 1}).sort(field, 1).limit(limit)
        return [each["_id"] for each in await cursor.to_list(None)]

    async def _claimed(self, query: Document) -> list[Publication]:
        return [publication_record(each) async for each in self._publications.find(query).sort("due", 1)]
