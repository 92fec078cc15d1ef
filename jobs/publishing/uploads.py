"""Uploads media before the due moment. A failed upload is tried again, at the latest at the due moment."""

import asyncio

import structlog

from jobs.providers.social.network import OutcomeUncertain, PublishingRefused, RetryableFailure
from jobs.publishing.calls import PublishingForbidden
from jobs.publishing.external import NetworkCaller
from jobs.publishing.leases import keep_renewing
from storage.publishing.claims import UPLOAD_LEASE_S
from storage.publishing.records import Publication
from storage.publishing.transitions import ClaimLost, StoreUploadResult
from storage.stores import Stores

MAX_UPLOADS = 8
RETRY_AFTER_S = 60.0

log = structlog.get_logger(__name__)


class MediaUploader:
    """Runs the uploads that this process has claimed. One for each worker process."""

    def __init__(self, stores: Stores, network_caller: NetworkCaller) -> None:
        self._stores = stores
        self._network_caller = network_caller
        self._running: set[asyncio.Task[None]] = set()
        self._is_closed = False

    async def start_due_uploads(self) -> int:
        """Claims and starts due uploads, at most 8 at a time, without waiting for them. Returns how many it started."""
        free_slots = MAX_UPLOADS - len(self._running)
        claimed = await self._stores.claims.claim_uploads(free_slots) if free_slots > 0 and not self._is_closed else []
        for publication, token in claimed:
            task = asyncio.create_task(self._upload(publication, token), name=f"upload {publication.id}")
            self._running.add(task)
            task.add_done_callback(self._running.discard)
        return len(claimed)

    async def wait_until_idle(self) -> None:
        """Waits until no upload is running."""
        while self._running:
            await asyncio.wait(self._running)

    async def close(self) -> None:
        """Cancels the running uploads. Their leases expire, and another worker starts them again."""
        self._is_closed = True
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    async def _upload(self, publication: Publication, token: str) -> None:
        try:
            async with keep_renewing(lambda: self._stores.claims.renew_upload(publication, token), UPLOAD_LEASE_S / 3):
                uploaded = await self._network_caller.upload_ahead(publication)
            change = StoreUploadResult(publication, token, uploaded.references, uploaded.expires_in_s)
        except (PublishingRefused, PublishingForbidden) as error:
            # Rights or media may be restored by the due moment, so only the attempt at that moment fails for good.
            change = StoreUploadResult(publication, token, None, message=str(error))
        except (RetryableFailure, OutcomeUncertain) as error:
            change = StoreUploadResult(publication, token, None, message=str(error), retry_in_s=RETRY_AFTER_S)
        except Exception as error:
            log.error("upload_failed", publication=publication.id, exc_info=error)
            change = StoreUploadResult(publication, token, None, message=f"Unexpected error: {type(error).__name__}")
        try:
            await self._stores.scheduled_posts.apply(change)
        except ClaimLost:
            return
