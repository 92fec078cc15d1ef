"""Posts of deactivated authors, which wait for an administrator's decision."""

from datetime import datetime

from pymongo.asynchronous.collection import AsyncCollection

from storage.identity.audit import Actor
from storage.mongo import Mongo
from storage.publishing.documents import PUBLICATIONS, PublicationDocument
from storage.publishing.holding import HoldScheduledPost, ReleaseScheduledPost, held_filter
from storage.publishing.posts import ScheduledPostStore
from storage.publishing.records import WAITING_STATES, ScheduledPost
from storage.streams.log import jobs_stream
from storage.streams.sequencer import Sequencer

HOLD_AT_ONCE = 100
"""Publications of a deactivated author that are read at a time."""


class HeldPostStore:
    """Holds, lists and releases posts of deactivated authors."""

    def __init__(self, mongo: Mongo, sequencer: Sequencer, posts: ScheduledPostStore) -> None:
        self._mongo = mongo
        self._sequencer = sequencer
        self._posts = posts
        self._publications: AsyncCollection[PublicationDocument] = mongo[PUBLICATIONS]

    async def hold(self, organization_id: str, post_id: str, author_id: str) -> None:
        """Holds publications that have not started, if the author is deactivated. Idempotent. Raises: NotFound."""
        change = HoldScheduledPost(organization_id, post_id, author_id)
        await self._sequencer.commit(jobs_stream(organization_id), change)

    async def hold_posts_of(self, organization_id: str, author_id: str) -> None:
        """Holds all posts of a deactivated author. After an interruption, workers hold the remaining posts when due."""
        low = 0
        query = {"org": organization_id, "state": {"$in": sorted(WAITING_STATES)}, "author": author_id}
        while True:
            waiting = {**query, "ts": {"$gt": low}, "held_at": {"$exists": False}}
            fields = {"post": 1, "ts": 1}
            rows = await self._mongo.find(PUBLICATIONS, waiting, fields, [("ts", 1)], HOLD_AT_ONCE)
            if not rows:
                return
            for post_id in dict.fromkeys(row["post"] for row in rows):
                await self.hold(organization_id, post_id, author_id)
            low = rows[-1]["ts"]

    async def list_held(self, organization_id: str, after: str | None, limit: int) -> list[ScheduledPost]:
        """Returns held posts by due time: those after the post `after`, or from the first if it is None.

        Raises: NotFound if `after` does not exist.
        """
        low = 0 if after is None else (await self._posts.get(organization_id, after)).timestamp
        ids: dict[str, None] = {}
        while len(ids) < limit:
            query = {**held_filter(organization_id), "ts": {"$gt": low}}
            rows = await self._mongo.find(PUBLICATIONS, query, {"post": 1, "ts": 1}, [("ts", 1)], limit)
            ids |= dict.fromkeys(row["post"] for row in rows)
            if len(rows) < limit:
                break
            low = rows[-1]["ts"]
        return await self._posts.get_many(list(ids)[:limit])

    async def release(
        self, actor: Actor, post: ScheduledPost, responsible_id: str, due_at: datetime | None
    ) -> ScheduledPost:
        """Schedules a held post again for `due_at`; None: for the post's due moment, or for now if that has passed.

        Raises: Conflict for a post that is not held, and for a deactivated responsible person; NotFound, Forbidden,
        BadUserInput.
        """
        organization_id = post.organization_id
        moment = due_at or max(post.due_at, await self._mongo.now())
        change = ReleaseScheduledPost(organization_id, post.id, responsible_id, moment, actor)
        await self._sequencer.commit(jobs_stream(organization_id), change)
        return await self._posts.get(organization_id, post.id)
