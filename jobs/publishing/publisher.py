"""Claims due publications for one worker process, holds them until their moment and publishes them.

Claiming takes what is due within five seconds; the rest of the fleet does the same, and each publication goes to one.
"""

import asyncio

import structlog

from jobs.providers.social.registry import Networks
from jobs.publishing.external import ExternalPublisher
from jobs.publishing.internal import publish_internal
from jobs.publishing.uploads import Uploads
from storage.mongo.clock import DatabaseClock
from storage.publishing.records import AccountTarget, CallPhase, Publication, PublicationState, ScheduledPost
from storage.stores import Stores

CLAIMED_AT_ONCE = 500
MAX_HELD = 5000
DRAIN_S = 10.0

log = structlog.get_logger(__name__)


class PostPublisher:
    """Claims, holds and publishes. One for each worker process."""

    def __init__(self, stores: Stores, networks: Networks) -> None:
        self._stores = stores
        self._clock = DatabaseClock(stores.mongo)
        self._held: dict[asyncio.Task[None], Publication] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._looking = asyncio.Lock()
        self._next_look: asyncio.Task[int] | None = None
        self._closed = False
        self.external = ExternalPublisher(stores, networks)
        self.uploads = Uploads(stores, self.external)

    async def sweep(self) -> int:
        """Claims what is due within five seconds, and returns how many those were. They are worked on from now on.

        Who asks while somebody else's look is under way shares the next one: triggers may come by the thousand.
        """
        if self._next_look is None:
            self._next_look = asyncio.create_task(self._look(), name="publisher")
        return await asyncio.shield(self._next_look)

    async def _look(self) -> int:
        async with self._looking:
            self._next_look = None
            return await self._claim()

    async def _claim(self) -> int:
        count = 0
        while not self._closed and len(self._tasks) < MAX_HELD:
            claimed = await self._stores.claims.claim(CLAIMED_AT_ONCE)
            for publication in claimed:
                self._take(publication)
            count += len(claimed)
            if len(claimed) < CLAIMED_AT_ONCE:
                break
        return count

    def _take(self, publication: Publication) -> None:
        task = asyncio.create_task(self._work(publication), name=f"publication {publication.id}")
        self._tasks.add(task)
        if publication.state is PublicationState.SCHEDULED:
            self._held[task] = publication
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._held.pop(task, None)

    async def _work(self, publication: Publication) -> None:
        try:
            # What was edited since has another fence, so what is read ahead is what is published, or nothing is.
            post = await self._stores.scheduled_posts.get(publication.organization_id, publication.scheduled_post_id)
            await self._clock.wait_until(publication.due_at)
            task = asyncio.current_task()
            assert task is not None
            self._held.pop(task, None)
            await self.work_on(publication, post)
        except Exception as error:
            # The lease ends, and somebody takes it up from where it stands.
            log.warning("publication_delayed", publication=publication.id, error=repr(error))

    async def work_on(self, publication: Publication, post: ScheduledPost) -> None:
        """Takes a claimed publication as far as it goes now; its post was read since it was claimed."""
        if not isinstance(publication.target, AccountTarget):
            await publish_internal(self._stores, publication, post)
        elif publication.state is PublicationState.UNKNOWN:
            await self.external.settle(publication, post)
        elif publication.progress is not None and publication.progress.phase is CallPhase.CALLING:
            await self.external.doubt(publication, post)
        else:
            await self.external.publish(publication, post)

    async def idle(self) -> None:
        """Returns when nothing is being published or held."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def close(self) -> None:
        """Gives back what is only held, and lets what has begun finish for at most 10 s."""
        self._closed = True
        await self.uploads.close()
        async with self._looking:  # what is being claimed right now is given back as well
            held = dict(self._held)
        for task in held:
            task.cancel()
        await self._stores.claims.release(list(held.values()))
        begun = self._tasks - held.keys()
        if begun:
            await asyncio.wait(begun, timeout=DRAIN_S)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
