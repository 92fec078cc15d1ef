"""Scheduled posts and their publications: reads by id and by due time, and changes."""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from pymongo.asynchronous.collection import AsyncCollection

from storage.chat.changes import NewMessage
from storage.errors import NotFound
from storage.feed.changes import NewPost
from storage.feed.posts import PostStore
from storage.feed.records import author_stream
from storage.idempotency import DuplicateRequest, IdempotencyKey
from storage.identity.audit import Actor
from storage.mongo import Document, Mongo
from storage.mongo.batch_loader import BatchLoader
from storage.publishing.attention import DISCONNECTED, ResumePublication
from storage.publishing.documents import PUBLICATIONS, SCHEDULED_POSTS, PublicationDocument, ScheduledPostDocument
from storage.publishing.editing import ScheduledPostEdit, UpdateScheduledPost
from storage.publishing.internal import PublishMessage, PublishPost, publication_source
from storage.publishing.records import (
    WAITING_STATES,
    ConnectedAccount,
    Publication,
    PublicationState,
    ScheduledPost,
    ScheduledPostState,
    post_record,
    post_state,
    publication_record,
    publication_states_to_search,
)
from storage.publishing.reports.records import PublicationReport, found_reports, parse_report_ref
from storage.publishing.resolution import PersonalAnswer, ResolveUnknown
from storage.publishing.retrying import RetryPublication
from storage.publishing.scheduling import CancelScheduledPost, NewScheduledPost, SchedulePost
from storage.publishing.transitions import ClaimLost, MarkFailed, PublicationChange
from storage.streams.log import Stream, jobs_stream
from storage.streams.sequencer import Sequencer
from storage.timeline import TimelinePage, TimelineRange, read_page

FAIL_BATCH_SIZE = 100
RESUME_BATCH_SIZE = 100
MIN_CHUNK_SIZE = 100


def candidate_filter(query: Document, states: Collection[ScheduledPostState]) -> Document:
    """Turns a filter for posts into a filter for publications that may belong to posts in `states`.

    Every post in `states` has at least one of these publications. Some of them belong to posts in other states, so the
    caller checks each post. One index yields the publications in the order of due times.
    """
    return {**query, "state": {"$in": sorted(state.value for state in publication_states_to_search(states))}}


def _waiting_for_attention(account_id: Any) -> Document:
    """Returns the filter for the publications to an account that wait for other credentials."""
    return {"state": PublicationState.NEEDS_ATTENTION.value, "target.id": account_id}


class ScheduledPostStore:
    """Reads and changes scheduled posts. Commits each change with its events to the organization's jobs stream."""

    def __init__(self, mongo: Mongo, sequencer: Sequencer, feed_posts: PostStore) -> None:
        self._mongo = mongo
        self._feed_posts = feed_posts
        self._sequencer = sequencer
        self._scheduled_posts: AsyncCollection[ScheduledPostDocument] = mongo[SCHEDULED_POSTS]
        self._publications: AsyncCollection[PublicationDocument] = mongo[PUBLICATIONS]
        self._by_id: BatchLoader[str, ScheduledPost] = BatchLoader(self._load)
        self._publication_by_id: BatchLoader[str, Publication] = BatchLoader(self._load_publications)
        self._publications_by_post: BatchLoader[str, list[Publication]] = BatchLoader(self._load_publications_by_post)

    async def schedule(self, new: NewScheduledPost, key: IdempotencyKey | None) -> ScheduledPost:
        """Schedules a post, which is durable on return. A repeated key returns the post that it scheduled.

        Raises: BadUserInput for a due moment too far in the past; Conflict for a key with other arguments.
        """
        try:
            id_ = await self._sequencer.commit(jobs_stream(new.organization_id), SchedulePost(new, key))
        except DuplicateRequest as duplicate:
            id_ = duplicate.result_id
        return await self.get(new.organization_id, id_)

    async def update(
        self, organization_id: str, id_: str, edit: ScheduledPostEdit, editor: Actor | None = None
    ) -> ScheduledPost:
        """Changes a scheduled post. Raises: Conflict if publishing has started; NotFound, Forbidden, BadUserInput."""
        change = UpdateScheduledPost(organization_id, id_, edit, editor)
        await self._sequencer.commit(jobs_stream(organization_id), change)
        return await self.get(organization_id, id_)

    async def cancel(self, organization_id: str, id_: str, actor: Actor | None = None) -> ScheduledPost:
        """Cancels the publications that have not started. Raises: NotFound, Conflict if all have started."""
        await self._sequencer.commit(jobs_stream(organization_id), CancelScheduledPost(organization_id, id_, actor))
        return await self.get(organization_id, id_)

    async def resolve(
        self,
        publication: Publication,
        answer: PersonalAnswer,
        actor: Actor | None = None,
        key: IdempotencyKey | None = None,
    ) -> Publication:
        """Stores the answer of a person who has looked at the account. A repeated key changes nothing.

        Raises: NotFound; Conflict if the publication is not UNKNOWN, or the network was called since.
        """
        return await self._commit_answer(ResolveUnknown(publication, answer, actor, key))

    async def apply(self, change: PublicationChange) -> Publication:
        """Commits a change of one publication to the organization's jobs stream.

        Raises: ClaimLost if another worker has claimed the publication, or if it has changed meanwhile; NotYetDue.
        """
        return await self._sequencer.commit(jobs_stream(change.publication.organization_id), change)

    async def publish_message(self, publication: Publication, new: NewMessage) -> Publication:
        """Publishes to a topic in one transaction.

        Raises: ClaimLost, NotYetDue, DeadlinePassed, Unavailable; Forbidden if the author may not post to the topic.
        """
        change = PublishMessage(publication, replace(new, source=publication_source(publication.id)))
        return await self._sequencer.commit(Stream("topic", new.topic_id), change)

    async def publish_post(self, publication: Publication, new: NewPost) -> Publication:
        """Publishes to the author's home feed in one transaction.

        Raises: ClaimLost, NotYetDue, DeadlinePassed, Unavailable.
        """
        change = PublishPost(
            publication, self._feed_posts.plan(replace(new, source=publication_source(publication.id)))
        )
        return await self._sequencer.commit(author_stream(new.organization_id, new.author_id), change)

    async def fail_scheduled(self, account: ConnectedAccount) -> int:
        """Fails the publications that wait for a disconnected account. Returns their number."""
        return sum([await self._fail_in_state(account, state) for state in sorted(WAITING_STATES)])

    async def _fail_in_state(self, account: ConnectedAccount, state: str) -> int:
        query, failed = {"target.id": account.id, "state": state}, 0
        while publications := await self._publications.find(query).limit(FAIL_BATCH_SIZE).to_list(None):
            # A publication that changed meanwhile is read again if it is still in this state.
            changes = [MarkFailed(publication_record(each), *DISCONNECTED) for each in publications]
            failed += len(await self._apply_all(changes))
        return failed

    async def resume_account(self, account: ConnectedAccount) -> int:
        """Schedules the account's publications again that are NEEDS_ATTENTION, due at once. Returns their number.

        Call it after the account's credentials were replaced. Safe to repeat, and beside workers. Publications stay
        if the present credentials were refused too.
        """
        low, resumed = "", 0
        while True:
            query = {**_waiting_for_attention(account.id), "_id": {"$gt": low}}
            found = await self._publications.find(query).sort("_id", 1).limit(RESUME_BATCH_SIZE).to_list(None)
            if not found:
                return resumed
            changed = await self._apply_all([ResumePublication(publication_record(each)) for each in found])
            resumed += sum(each.state is PublicationState.SCHEDULED for each in changed)
            low = found[-1]["_id"]

    async def find_accounts_needing_attention(self) -> list[tuple[str, str]]:
        """Returns the organization and id of each account for which a publication is NEEDS_ATTENTION."""
        accounts: list[tuple[str, str]] = []
        query, fields, order = _waiting_for_attention({"$gt": ""}), {"org": 1, "target": 1}, [("target.id", 1)]
        while found := await self._publications.find_one(query, fields, sort=order):
            accounts.append((found["org"], found["target"]["id"]))
            query = _waiting_for_attention({"$gt": found["target"]["id"]})
        return accounts

    async def retry(
        self, publication: Publication, actor: Actor | None = None, key: IdempotencyKey | None = None
    ) -> Publication:
        """Tries a publication again, due at once, that is FAILED or NEEDS_ATTENTION. A repeated key changes nothing.

        Raises: NotFound; Conflict if the publication is in another state, or can't be published any more.
        """
        return await self._commit_answer(RetryPublication(publication, actor, key))

    async def _commit_answer(self, change: ResolveUnknown | RetryPublication) -> Publication:
        organization_id = change.publication.organization_id
        try:
            return await self._sequencer.commit(jobs_stream(organization_id), change)
        except DuplicateRequest as duplicate:
            return await self.publication(organization_id, duplicate.result_id)

    async def _apply_all(self, changes: Sequence[PublicationChange]) -> list[Publication]:
        """Applies changes at once. Returns the results, without those of publications that have changed meanwhile."""
        outcomes = await asyncio.gather(*map(self.apply, changes), return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException) and not isinstance(outcome, ClaimLost):
                raise outcome
        return [outcome for outcome in outcomes if isinstance(outcome, Publication)]

    async def find(self, organization_id: str, id_: str) -> ScheduledPost | None:
        """Returns the organization's scheduled post of that id, or None."""
        post = await self._by_id.get(id_)
        return post if post is not None and post.organization_id == organization_id else None

    async def get(self, organization_id: str, id_: str) -> ScheduledPost:
        """Returns the organization's scheduled post of that id. Raises: NotFound."""
        post = await self.find(organization_id, id_)
        if post is None:
            raise NotFound("scheduled post", id_)
        return post

    async def get_many(self, ids: Sequence[str]) -> list[ScheduledPost]:
        """Returns the posts of these ids that exist, in the order of the ids."""
        return await self._by_id.get_many(ids)

    async def publication(self, organization_id: str, id_: str) -> Publication:
        """Returns the organization's publication of that id. Raises: NotFound."""
        publication = await self._publication_by_id.get(id_)
        if publication is None or publication.organization_id != organization_id:
            raise NotFound("publication", id_)
        return publication

    async def publications_of(self, post_id: str) -> list[Publication]:
        """Returns the post's publications, in the order of its targets."""
        return (await self.publications_of_many([post_id]))[0]

    async def publications_of_many(self, post_ids: Sequence[str]) -> list[list[Publication]]:
        """Returns the publications of each post, in the order of its targets."""
        found = await self._publications_by_post.find(post_ids)
        return [found.get(each, []) for each in post_ids]

    async def page(
        self,
        organization_id: str,
        author_id: str | None,
        range_: TimelineRange,
        states: Collection[ScheduledPostState] | None = None,
    ) -> TimelinePage[ScheduledPost]:
        """Returns a page of posts by due time. None for `author_id` or `states` means all."""
        query = {"org": organization_id} | ({} if author_id is None else {"author": author_id})

        async def fetch(low: int, high: int, ascending: bool, limit: int) -> list[ScheduledPost]:
            in_range = {**query, "ts": {"$gte": low, "$lte": high}}
            if states is not None:
                return await self._find_in_states(in_range, set(states), ascending, limit)
            order = [("ts", 1 if ascending else -1)]
            return [post_record(post) for post in await self._mongo.find(SCHEDULED_POSTS, in_range, None, order, limit)]

        return await read_page(range_, fetch, lambda post: post.timestamp)

    async def _find_in_states(
        self, query: Document, states: set[ScheduledPostState], ascending: bool, limit: int
    ) -> list[ScheduledPost]:
        """Returns posts in the states, reading a chunk of the range at a time.

        A post's state is derived from all its publications (ADR 15). The candidates have at least one publication in a
        matching state. All publications of each candidate are then checked.
        """
        posts: list[ScheduledPost] = []
        while len(posts) < limit:
            chunk_size = max(limit, MIN_CHUNK_SIZE)
            filter_ = candidate_filter(query, states)
            cursor = self._publications.find(filter_, {"_id": 0, "post": 1, "ts": 1})
            candidates = await cursor.sort("ts", 1 if ascending else -1).limit(chunk_size).to_list(None)
            posts += await self._load_in_states({each["post"]: each["ts"] for each in candidates}, states)
            if len(candidates) < chunk_size:
                break
            bound = {"$gt" if ascending else "$lt": candidates[-1]["ts"]}
            query = {**query, "ts": {**query["ts"], **bound}}
        return posts[:limit]

    async def _load_in_states(self, timestamps: dict[str, int], states: set[ScheduledPostState]) -> list[ScheduledPost]:
        """Returns the posts that are in the states, in the order of `timestamps`, which holds timestamps by post id.

        Leaves out posts whose timestamp has changed since the candidates were read.
        """
        posts, publications = await asyncio.gather(
            self._load(list(timestamps)), self._load_publications_by_post(list(timestamps))
        )
        current = [posts[id_] for id_, ts in timestamps.items() if id_ in posts and posts[id_].timestamp == ts]
        return [post for post in current if post_state([each.state for each in publications[post.id]]) in states]

    async def publications_by_id(self, organization_id: str, ids: Sequence[str]) -> dict[str, Publication]:
        """Returns the organization's publications as they are now, by id, with one read. Events refer to them by id."""
        publications = await self._load_publications(ids)
        return {id_: each for id_, each in publications.items() if each.organization_id == organization_id}

    async def reports_by_ref(self, organization_id: str, refs: Sequence[str]) -> dict[str, PublicationReport]:
        """Returns the organization's reports with their publications and posts as they are now, by reference."""
        publications = await self.publications_by_id(organization_id, list({parse_report_ref(ref)[0] for ref in refs}))
        posts = await self._load(list({each.scheduled_post_id for each in publications.values()}))
        return found_reports(refs, publications, posts)

    async def _load(self, ids: Sequence[str]) -> dict[str, ScheduledPost]:
        cursor = self._scheduled_posts.find({"_id": {"$in": list(ids)}})
        return {post["_id"]: post_record(post) async for post in cursor}

    async def _load_publications(self, ids: Sequence[str]) -> dict[str, Publication]:
        found = await self._mongo.find(PUBLICATIONS, {"_id": {"$in": list(ids)}})
        return {each["_id"]: publication_record(each) for each in found}

    async def _load_publications_by_post(self, ids: Sequence[str]) -> dict[str, list[Publication]]:
        publications: defaultdict[str, list[Publication]] = defaultdict(list)
        by_place = [("post", 1), ("place", 1)]
        for publication in await self._mongo.find(PUBLICATIONS, {"post": {"$in": list(ids)}}, None, by_place):
            publications[publication["post"]].append(publication_record(publication))
        return publications
