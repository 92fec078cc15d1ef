"""Claims due publications for one worker process, holds them until their due moment and publishes them.

A worker claims publications that are due within five seconds. Each publication is claimed by one worker only.
"""

import asyncio

import structlog

from jobs.providers.social.registry import NetworkClients
from jobs.publishing.attached_media import SignMedia
from jobs.publishing.external import NetworkCaller
from jobs.publishing.internal import publish_internal
from jobs.publishing.uploads import MediaUploader
from storage.publishing.records import AccountTarget, Publication, PublicationState, PublishingPhase, ScheduledPost
from storage.stores import Stores

CLAIM_LIMIT = 500
MAX_CLAIMED = 5000
DRAIN_S = 10.0

log = structlog.get_logger(__name__)


class PostPublisher:
    """Publishes the publications that this process has claimed. One for each worker process."""

    def __init__(self, stores: Stores, networks: NetworkClients, sign_media: SignMedia | None = None) -> None:
        """`sign_media` is None if this server has no public address, from which networks could fetch files."""
        self._stores = stores
        self._clock = stores.clock
        self._waiting: dict[asyncio.Task[None], Publication] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._claim_lock = asyncio.Lock()
        self._next_claim: asyncio.Task[int] | None = None
        self._is_closed = False
        self.network_caller = NetworkCaller(stores, networks, sign_media)
        self.uploads = MediaUploader(stores, self.network_caller)

    async def sweep(self) -> int:
        """Claims publications that are due within five seconds, starts to publish them, and returns their number.

        Calls during a claim share one further claim, because thousands of wake-ups may arrive together.
        """
        if self._next_claim is None:
            self._next_claim = asyncio.create_task(self._claim(), name="claim_publications")
        return await asyncio.shield(self._next_claim)

    async def upload_media(self) -> int:
        """Starts due uploads of media, and returns how many."""
        return await self.uploads.start_due_uploads()

    async def _claim(self) -> int:
        async with self._claim_lock:
            self._next_claim = None
            return await self._claim_all()

    async def _claim_all(self) -> int:
        count = 0
        while not self._is_closed and len(self._tasks) < MAX_CLAIMED:
            claimed = await self._stores.claims.claim(CLAIM_LIMIT)
            for publication in claimed:
                self._start(publication)
            count += len(claimed)
            if len(claimed) < CLAIM_LIMIT:
                break
        return count

    def _start(self, publication: Publication) -> None:
        task = asyncio.create_task(self._publish_when_due(publication), name=f"publication {publication.id}")
        self._tasks.add(task)
        if publication.state is PublicationState.SCHEDULED:
            self._waiting[task] = publication
        task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._waiting.pop(task, None)

    async def _publish_when_due(self, publication: Publication) -> None:
        try:
            # The post may be read early: an edit raises the fence, so an outdated post is never published.
            post = await self._stores.scheduled_posts.get(publication.organization_id, publication.scheduled_post_id)
            await self._clock.wait_until(publication.due_at)
            task = asyncio.current_task()
            assert task is not None
            self._waiting.pop(task, None)
            await self.publish(publication, post)
        except Exception as error:
            # After the lease has expired, any worker continues from the stored state.
            log.warning("publication_delayed", publication=publication.id, error=repr(error))

    async def publish(self, publication: Publication, post: ScheduledPost) -> None:
        """Continues a claimed publication from its stored state. `post` must have been read after the claim."""
        if not isinstance(publication.target, AccountTarget):
            await publish_internal(self._stores, publication, post)
        elif publication.state is PublicationState.UNKNOWN:
            await self.network_caller.reconcile(publication, post)
        elif publication.state is PublicationState.NEEDS_ATTENTION:
            await self.network_caller.fail_with_refusal(publication)
        elif publication.progress is not None and publication.progress.phase is PublishingPhase.CALLING:
            await self.network_caller.mark_unknown(publication, post)
        else:
            await self.network_caller.publish(publication, post)

    async def wait_until_idle(self) -> None:
        """Waits until this process has no claimed publication left."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def close(self) -> None:
        """Releases publications that have not started, and waits at most 10 s for publications that have."""
        self._is_closed = True
        await self.uploads.close()
        async with self._claim_lock:  # waits for a running claim, whose publications are released too
            waiting = dict(self._waiting)
        for task in waiting:
            task.cancel()
        await self._stores.claims.release(list(waiting.values()))
        started = self._tasks - waiting.keys()
        if started:
            await asyncio.wait(started, timeout=DRAIN_S)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
