"""Scheduled posts and their publications: pages by due time, single ones, and the ways to change them."""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import replace

from storage.batch_loader import BatchLoader
from storage.chat.changes import NewMessage
from storage.errors import NotFound
from storage.feed.changes import NewPost as NewHomePost
from storage.feed.posts import PostStore
from storage.feed.records import author_stream
from storage.idempotency import AlreadyDone, IdempotencyKey
from storage.mongo import Document, Mongo
from storage.publishing.internal import PublishMessage, PublishPost, source
from storage.publishing.records import (
    ConnectedAccount,
    Publication,
    PublicationState,
    ScheduledPost,
    ScheduledPostState,
    needed_states,
    post_record,
    post_state,
    publication_record,
)
from storage.publishing.scheduling import (
    POSTS,
    PUBLICATIONS,
    CancelPost,
    NewPost,
    PostEdit,
    SchedulePost,
    UpdatePost,
)
from storage.publishing.transitions import ClaimLost, MarkFailed, PublicationChange, ResolveUnknown, StoreUpload
from storage.streams.log import Stream, jobs_stream
from storage.streams.sequencer import Sequencer
from storage.timeline import Page, Range, read_page

FAILED_AT_ONCE = 100
PART = 100


def with_needed_states(matched: Document, states: Collection[ScheduledPostState]) -> Document:
    """A filter for publications, of one for posts: one index answers it in the order of due times."""
    return {**matched, "state": {"$in": sorted(state.value for state in needed_states(states))}}


class ScheduledPostStore:
    """Reads at majority; every change is committed with its events to the organization's jobs stream."""

    def __init__(self, mongo: Mongo, sequencer: Sequencer, posts: PostStore) -> None:
        self._home_posts = posts
        self._sequencer = sequencer
        self._posts = mongo[POSTS]
        self._publications = mongo[PUBLICATIONS]
        self._by_id: BatchLoader[str, ScheduledPost] = BatchLoader(self._load)
        self._publication_by_id: BatchLoader[str, Publication] = BatchLoader(self._load_publications)
        self._of_post: BatchLoader[str, list[Publication]] = BatchLoader(self._load_of_posts)

    async def schedule(self, new: NewPost, key: IdempotencyKey | None) -> ScheduledPost:
        """Schedules; durable when it returns. Raises: BadUserInput when it is too late, Conflict for a reused key."""
        try:
            id_ = await self._sequencer.commit(jobs_stream(new.organization_id), SchedulePost(new, key))
        except AlreadyDone as done:
            id_ = done.id
        return await self.get(new.organization_id, id_)

    async def update(self, organization_id: str, id_: str, edit: PostEdit) -> ScheduledPost:
        """Changes what has not started. Raises: NotFound, Conflict, BadUserInput."""
        await self._sequencer.commit(jobs_stream(organization_id), UpdatePost(organization_id, id_, edit))
        return await self.get(organization_id, id_)

    async def cancel(self, organization_id: str, id_: str) -> ScheduledPost:
        """Cancels what has not started. Raises: NotFound, Conflict with nothing left."""
        await self._sequencer.commit(jobs_stream(organization_id), CancelPost(organization_id, id_))
        return await self.get(organization_id, id_)

    async def resolve(self, publication: Publication, published: bool, external_id: str | None) -> Publication:
        """What a person saw on the account. Raises: NotFound, Conflict when the outcome is known."""
        change = ResolveUnknown(publication.organization_id, publication.id, published, external_id)
        return await self._sequencer.commit(jobs_stream(publication.organization_id), change)

    async def apply(self, change: PublicationChange | StoreUpload) -> Publication:
        """A step of whoever holds the publication. Raises: ClaimLost, NotYetDue."""
        return await self._sequencer.commit(jobs_stream(change.publication.organization_id), change)

    async def publish_message(self, publication: Publication, new: NewMessage) -> Publication:
        """Publishes to a topic in one transaction. Raises: ClaimLost, NotYetDue, DeadlinePassed, Unavailable."""
        change = PublishMessage(publication, replace(new, source=source(publication.id)))
        return await self._sequencer.commit(Stream("topic", new.topic_id), change)

    async def publish_post(self, publication: Publication, new: NewHomePost) -> Publication:
        """Publishes to the author's home feed, in one transaction. Raises: as publish_message."""
        change = PublishPost(publication, self._home_posts.plan(replace(new, source=source(publication.id))))
        return await self._sequencer.commit(author_stream(new.organization_id, new.author_id), change)

    async def fail_waiting(self, account: ConnectedAccount) -> int:
        """Fails what waits for a disconnected account, and returns how many those were."""
        wanted = {"target.id": account.id, "state": PublicationState.SCHEDULED.value}
        failed = 0
        while rows := await self._publications.find(wanted).limit(FAILED_AT_ONCE).to_list(None):
            changes = [
                MarkFailed(publication_record(row), "FORBIDDEN", "The account was disconnected.") for row in rows
            ]
            outcomes = await asyncio.gather(*map(self.apply, changes), return_exceptions=True)
            for outcome in outcomes:
                # What was claimed, changed or done at the same moment is looked at again.
                if isinstance(outcome, BaseException) and not isinstance(outcome, ClaimLost):
                    raise outcome
            failed += sum(isinstance(outcome, Publication) for outcome in outcomes)
        return failed

    async def find(self, organization_id: str, id_: str) -> ScheduledPost | None:
        """The organization's scheduled post of that id, or None."""
        post = await self._by_id.get(id_)
        return post if post is not None and post.organization_id == organization_id else None

    async def get(self, organization_id: str, id_: str) -> ScheduledPost:
        """The organization's scheduled post of that id. Raises: NotFound."""
        post = await self.find(organization_id, id_)
        if post is None:
            raise NotFound("scheduled post", id_)
        return post

    async def publication(self, organization_id: str, id_: str) -> Publication:
        """The organization's publication of that id. Raises: NotFound."""
        found = await self._publication_by_id.get(id_)
        if found is None or found.organization_id != organization_id:
            raise NotFound("publication", id_)
        return found

    async def publications_of(self, post_id: str) -> list[Publication]:
        """The post's publications, in the order of its targets."""
        return await self._of_post.get(post_id) or []

    async def page(
        self,
        organization_id: str,
        author_id: str | None,
        asked: Range,
        states: Collection[ScheduledPostState] | None = None,
    ) -> Page[ScheduledPost]:
        """Scheduled posts by due time: of one author or of all, in some states or in any."""
        wanted = {"org": organization_id} | ({} if author_id is None else {"author": author_id})

        async def fetch(low: int, high: int, ascending: bool, limit: int) -> list[ScheduledPost]:
            matched = {**wanted, "ts": {"$gte": low, "$lte": high}}
            if states is not None:
                return await self._in_states(matched, set(states), ascending, limit)
            cursor = self._posts.find(matched).sort("ts", 1 if ascending else -1).limit(limit)
            return [post_record(row) async for row in cursor]

        return await read_page(asked, fetch, lambda post: post.timestamp)

    async def _in_states(
        self, matched: Document, states: set[ScheduledPostState], ascending: bool, limit: int
    ) -> list[ScheduledPost]:
        """Posts with a publication in a state that is needed for it, a part of the range at a time.

        The state is what all the publications make of it, so they are looked at (ADR 15).
        """
        found: list[ScheduledPost] = []
        while len(found) < limit:
            part = max(limit, PART)
            wanted = with_needed_states(matched, states)
            cursor = self._publications.find(wanted, {"_id": 0, "post": 1, "ts": 1}).sort("ts", 1 if ascending else -1)
            rows = await cursor.limit(part).to_list(None)
            found += await self._of_states({row["post"]: row["ts"] for row in rows}, states)
            if len(rows) < part:
                break
            bound = {"$gt" if ascending else "$lt": rows[-1]["ts"]}
            matched = {**matched, "ts": {**matched["ts"], **bound}}
        return found[:limit]

    async def _of_states(self, places: dict[str, int], states: set[ScheduledPostState]) -> list[ScheduledPost]:
        """Those of the posts, by id, that are in the states and still in their places; in the order that is given."""
        posts, of_posts = await asyncio.gather(self._load(list(places)), self._load_of_posts(list(places)))
        there = [posts[id_] for id_, ts in places.items() if id_ in posts and posts[id_].timestamp == ts]
        return [post for post in there if post_state([each.state for each in of_posts[post.id]]) in states]

    async def of_events(self, organization_id: str, ids: Sequence[str]) -> dict[str, Publication]:
        """The publications that events of the organization speak of, as they are now, by id; one read."""
        return await self._load_publications(ids)

    async def _load(self, ids: Sequence[str]) -> dict[str, ScheduledPost]:
        return {row["_id"]: post_record(row) async for row in self._posts.find({"_id": {"$in": list(ids)}})}

    async def _load_publications(self, ids: Sequence[str]) -> dict[str, Publication]:
        cursor = self._publications.find({"_id": {"$in": list(ids)}})
        return {row["_id"]: publication_record(row) async for row in cursor}

    async def _load_of_posts(self, ids: Sequence[str]) -> dict[str, list[Publication]]:
        found: defaultdict[str, list[Publication]] = defaultdict(list)
        async for row in self._publications.find({"post": {"$in": list(ids)}}).sort([("post", 1), ("place", 1)]):
            found[row["post"]].append(publication_record(row))
        return found
