"""Uploading media ahead of the due moment. What fails here is tried again, at the latest when it is due."""

import asyncio

import structlog

from jobs.providers.social.network import NoEffect, Refused, Uncertain
from jobs.publishing.external import ExternalPublisher, Forbidden
from jobs.publishing.leases import keep_renewing
from storage.publishing.claims import UPLOAD_LEASE_S
from storage.publishing.records import Publication
from storage.publishing.transitions import ClaimLost, StoreUpload
from storage.stores import Stores

AT_ONCE = 8
AGAIN_S = 60.0

log = structlog.get_logger(__name__)


class Uploads:
    """Uploads what is to be uploaded by now. One for each worker process."""

    def __init__(self, stores: Stores, outside: ExternalPublisher) -> None:
        self._stores = stores
        self._external = outside
        self._running: set[asyncio.Task[None]] = set()
        self._closed = False

    async def run(self) -> int:
        """Begins as many as there are free slots, and returns how many. A slow one holds up its own slot alone."""
        free = AT_ONCE - len(self._running)
        claimed = await self._stores.claims.claim_uploads(free) if free > 0 and not self._closed else []
        for publication, token in claimed:
            task = asyncio.create_task(self._upload(publication, token), name=f"upload {publication.id}")
            self._running.add(task)
            task.add_done_callback(self._running.discard)
        return len(claimed)

    async def idle(self) -> None:
        """Returns when nothing is being uploaded."""
        while self._running:
            await asyncio.wait(self._running)

    async def close(self) -> None:
        """Stops what is being uploaded: its lease ends, and somebody else begins it anew."""
        self._closed = True
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    async def _upload(self, publication: Publication, token: str) -> None:
        try:
            async with keep_renewing(lambda: self._stores.claims.renew_upload(publication, token), UPLOAD_LEASE_S / 3):
                uploaded = await self._external.upload_ahead(publication)
            change = StoreUpload(publication, token, uploaded.references, uploaded.expires_in_s)
        except (Refused, Forbidden) as error:
            # The due moment decides: rights may be back by then, and so may the media.
            change = StoreUpload(publication, token, None, message=str(error))
        except (NoEffect, Uncertain) as error:
            change = StoreUpload(publication, token, None, message=str(error), again_in_s=AGAIN_S)
        except Exception as error:
            log.error("upload_fault", publication=publication.id, exc_info=error)
            change = StoreUpload(publication, token, None, message=f"Unexpected: {type(error).__name__}")
        try:
            await self._stores.scheduled_posts.apply(change)
        except ClaimLost:
            return
