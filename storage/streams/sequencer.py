"""Group commit: the only way to write messages and events to a stream.

Each process has at most one transaction in flight per stream. Changes that arrive meanwhile form the next batch, of at
most 100. Event numbers and timestamps are allocated on the stream's head in the transaction that writes the documents,
at majority. So numbers follow the order of commits, and a reader that sees a timestamp sees all smaller ones
(docs/semantics.md, 1; ADR 3).
"""

import asyncio
import itertools
import secrets
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import structlog
from pymongo import InsertOne

from storage.errors import DomainError, NotFound, RateLimited, Unavailable
from storage.idempotency import DuplicateRequest, IdempotencyKeyDocument, used_keys
from storage.metrics import BATCH_MEMBERS, COMMIT_RETRIES, COMMIT_SECONDS, REFUSED_CHANGES
from storage.mongo import Document, Mongo, Session, Write, unavailable
from storage.mongo.joint_finds import Find, find_jointly
from storage.streams.changes import Batch, Change, Right
from storage.streams.documents import EventDocument, EventDocumentId, HeadFields
from storage.streams.heads import head_correction, head_update, timestamp_offset_us
from storage.streams.log import Event, Stream

MAX_BATCH = 100

SHRINKING_BACKOFFS_S = (0.016, 0.008, 0.004, 0.002)
"""How long a batch waits at most after each conflict, and after all further ones.

Few processes write to one stream. The waits shrink, so the one that lost most often tries again soonest, and none
starves (ADR 88).
"""

MAX_WAITING = 2_000
"""Maximum number of changes that wait for one stream in a process. Further changes are refused."""

MAX_WAIT_S = 5.0
"""How long a change waits for its first attempt, which takes at most another 5 s. During an outage, a change is
therefore answered before the client's request times out. Changes to streams of jobs wait MAX_ADMISSION_WAIT_S."""

MAX_JOINT_DOCUMENTS = 20
"""Maximum number of documents that a batch reads from several collections with one command. They must fit in 16 MB."""

RETRY_AFTER_MS = 1_000
"""How long a refused client should wait."""

MAX_JOBS_STREAMS = 8
"""Maximum number of streams of jobs that a process writes at once. Under load, commits then get larger instead of
slower. Starts of calls depend on fast commits (ADR 20)."""

MAX_ADMISSION_WAIT_S = 20.0
"""How long changes to a stream of jobs wait before they fail with Unavailable.

This is longer than the timeouts of clients, because a client that gets an error sooner retries, which adds work.
"""

Result = TypeVar("Result")
OnCommit = Callable[[Stream, str, Sequence[Event]], None]
"""Called with a stream, its epoch and its new events."""

OnOutboxRows = Callable[[str], None]
"""Called with the name of a stream that has new outbox rows."""

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _PendingChange:
    """A submitted change with its caller, and the result or error of its last planning."""

    change: Change[Any]
    answer: asyncio.Future[Any]
    submitted_at: float
    """By the clock of the event loop."""

    rights: Sequence[Right] = ()
    result: Any = None
    error: Exception | None = None

    def answer_caller(self, error: Exception | None = None) -> None:
        """Resolves the answer, unless the caller was cancelled."""
        failure = error or self.error
        if self.answer.done():
            return
        if failure is None:
            self.answer.set_result(self.result)
        else:
            self.answer.set_exception(failure)


@dataclass(slots=True)
class _StreamQueue:
    """The changes that wait for one stream, and the task that commits them."""

    task: asyncio.Task[None] | None = None
    waiting: deque[_PendingChange] = field(default_factory=deque)
    single_commits: int = 0
    """How many of the next changes are committed one by one."""

    def next_batch(self) -> list[_PendingChange]:
        """Removes and returns the changes of the next batch, in the order of arrival."""
        size = 1 if self.single_commits else min(MAX_BATCH, len(self.waiting))
        self.single_commits -= min(1, self.single_commits)
        return [self.waiting.popleft() for _ in range(size)]

    def put_back(self, pending: list[_PendingChange]) -> None:
        """Puts the changes of a refused batch back to the front, to be committed one by one."""
        self.waiting.extendleft(reversed(pending))
        self.single_commits = len(pending)

    def refuse_older(self, submitted_before: float) -> None:
        """Answers the changes that were submitted before a time of the event loop's clock with Unavailable."""
        while self.waiting and self.waiting[0].submitted_at < submitted_before:
            self.waiting.popleft().answer_caller(Unavailable("The database does not answer. Try again."))
            self.single_commits -= min(1, self.single_commits)


class Sequencer:
    """Commits changes to streams, in batches. Each process has one; any number of processes may run."""

    def __init__(self, mongo: Mongo, on_commit: OnCommit, on_outbox_rows: OnOutboxRows) -> None:
        """Takes `on_commit` and `on_outbox_rows`, which are called after a batch is durable."""
        self._mongo = mongo
        self._on_commit = on_commit
        self._on_outbox_rows = on_outbox_rows
        self._queues: dict[Stream, _StreamQueue] = {}
        self._jobs_slots = asyncio.Semaphore(MAX_JOBS_STREAMS)

    async def commit(self, stream: Stream, change: Change[Result]) -> Result:
        """Commits the change and returns its result when it is durable.

        Raises: the errors of the change's rights and of `plan`; DuplicateRequest for a repeated idempotency key;
        NotFound for a topic that does not exist; RateLimited if too many changes of the stream are waiting; Unavailable
        if MongoDB does not answer.
        After Unavailable the outcome is unknown, and the caller may repeat the change with the same idempotency key.
        """
        queue = self._queues.setdefault(stream, _StreamQueue())
        if len(queue.waiting) >= MAX_WAITING:
            REFUSED_CHANGES.labels(stream.kind).inc()
            raise RateLimited("Too many changes are waiting to be stored. Try again later.", RETRY_AFTER_MS)
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Result] = loop.create_future()
        queue.waiting.append(_PendingChange(change, answer, loop.time(), change.rights()))
        if queue.task is None:
            queue.task = asyncio.create_task(self._drain(stream, queue), name=f"sequencer {stream.name}")
        return await answer

    async def close(self) -> None:
        """Waits until all submitted changes are answered."""
        tasks = [queue.task for queue in self._queues.values() if queue.task is not None]
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _drain(self, stream: Stream, queue: _StreamQueue) -> None:
        max_wait_s = MAX_ADMISSION_WAIT_S if stream.kind == "jobs" else MAX_WAIT_S
        while queue.waiting:
            async with self._admission(stream) as is_admitted:
                queue.refuse_older(asyncio.get_running_loop().time() - max_wait_s)
                if is_admitted and queue.waiting:
                    await self._commit_batch(stream, queue)
        del self._queues[stream]

    @asynccontextmanager
    async def _admission(self, stream: Stream) -> AsyncIterator[bool]:
        """Limits how many streams of jobs are written at once. Yields whether the stream may be written now."""
        if stream.kind != "jobs":
            yield True
            return
        try:
            async with asyncio.timeout(MAX_ADMISSION_WAIT_S):
                await self._jobs_slots.acquire()
        except TimeoutError:
            yield False
            return
        try:
            yield True
        finally:
            self._jobs_slots.release()

    async def _commit_batch(self, stream: Stream, queue: _StreamQueue) -> None:
        """Commits the next batch and answers its callers. If MongoDB refuses the batch, puts its changes back.

        They are then committed one by one.
        """
        pending = queue.next_batch()
        try:
            batch = await self._transact(stream, pending)
        except Exception as error:
            domain_error = error if isinstance(error, DomainError) else unavailable(error)
            if domain_error is None and len(pending) > 1:
                log.warning("batch_split", stream=stream.name, members=len(pending), error=repr(error))
                queue.put_back(pending)
                return
            for each in pending:
                each.answer_caller(domain_error or error)
        else:
            self._notify(batch)
            for each in pending:
                each.answer_caller()

    def _notify(self, batch: Batch) -> None:
        """Announces the batch. It is durable, so an error must neither fail its changes nor stop its stream."""
        try:
            if batch.events:
                self._on_commit(batch.stream, batch.head["epoch"], batch.events)
            for name in {row["stream"] for row in batch.outbox}:
                self._on_outbox_rows(name)
        except Exception:
            # Hubs find the events when they compare positions, sweepers find the outbox rows.
            log.exception("commit_not_announced", stream=batch.stream.name)

    async def _transact(self, stream: Stream, pending: list[_PendingChange]) -> Batch:
        tries = 0

        async def work(session: Session) -> Batch:
            nonlocal tries
            tries += 1
            return await self._write_batch(stream, pending, session)

        BATCH_MEMBERS.labels(stream.kind).observe(len(pending))
        with COMMIT_SECONDS.labels(stream.kind).time():
            batch = await self._mongo.transact(work, backoffs_s=SHRINKING_BACKOFFS_S)
        COMMIT_RETRIES.labels(stream.kind).inc(tries - 1)
        return batch

    async def _write_batch(self, stream: Stream, pending: list[_PendingChange], session: Session) -> Batch:
        timestamp_count = sum(each.change.max_timestamps for each in pending)
        event_count = sum(each.change.usual_events for each in pending)
        batch = await self._allocate(stream, timestamp_count, event_count, session)
        batch.changes = [each.change for each in pending]
        keys_in_use = await used_keys(
            self._mongo, [each.change.idempotency for each in pending if each.change.idempotency], session
        )
        await self._load(batch, pending, session)
        for each in pending:
            _plan(batch, each, keys_in_use)
        # In a topic, unused timestamps would count as messages in its heat. In other streams they leave a harmless gap.
        changes: Document = {}
        if len(batch.events) != event_count or (stream.kind == "topic" and batch.taken != timestamp_count):
            changes = head_correction(stream, batch.head, batch.last_n, batch.last_timestamp, batch.taken)
        if batch.head_changes:
            changes["$set"] = {**changes.get("$set", {}), **batch.head_changes}
        if changes:
            await self._mongo[stream.head_collection].update_one({"_id": stream.head_id}, changes, session=session)
        await self._store(batch, session)
        return batch

    async def _allocate(self, stream: Stream, timestamp_count: int, event_count: int, session: Session) -> Batch:
        """Locks the head and allocates numbers for all changes. Another transaction on this head conflicts here."""
        head: HeadFields | None = await self._mongo.find_one_and_update(
            stream.head_collection,
            {"_id": stream.head_id},
            head_update(stream, timestamp_count, event_count, secrets.token_hex(4), timestamp_offset_us(stream)),
            session,
            upsert=stream.head_collection == "streams",
        )
        if head is None:
            raise NotFound(stream.kind, stream.id)
        return Batch(stream, head, head.get("last", 0) - timestamp_count + 1, head["n"] - event_count + 1)

    async def _load(self, batch: Batch, pending: list[_PendingChange], session: Session) -> None:
        ids_by_collection: defaultdict[str, list[Any]] = defaultdict(list)
        rights = [right for each in pending for right in each.rights]
        needs = [need for right in rights for need in right.needs(batch)]
        for collection, id_ in itertools.chain(needs, *(each.change.needs() for each in pending)):
            ids_by_collection[collection].append(id_)
        for collection, documents in await self._find(batch.stream, ids_by_collection, session):
            for document in documents:
                batch.add_loaded(collection, document)
        for load in (*(right.load for right in rights), *(each.load for each in batch.changes)):
            await load(self._mongo, session, batch)

    async def _find(
        self, stream: Stream, ids_by_collection: Mapping[str, Sequence[Any]], session: Session
    ) -> Iterable[tuple[str, list[Any]]]:
        """Returns each collection with its documents. Few documents of several collections are read by one command."""
        finds = [Find(collection, {"_id": {"$in": ids}}) for collection, ids in ids_by_collection.items()]
        if len(finds) > 1 and sum(map(len, ids_by_collection.values())) <= MAX_JOINT_DOCUMENTS:
            found = await find_jointly(self._mongo, (stream.head_collection, stream.head_id), finds, session)
        else:
            found = [await self._mongo.find(each.collection, each.query, session=session) for each in finds]
        return zip(ids_by_collection, found, strict=True)

    async def _store(self, batch: Batch, session: Session) -> None:
        writes: defaultdict[str, list[Write]] = defaultdict(list)
        for (collection, _), id_ in batch.written.items():
            writes[collection].extend(batch.writes(collection, id_))
        name = batch.stream.name
        for event in batch.events:
            event_id: EventDocumentId = {"s": name, "n": event.n}
            document: EventDocument = {"_id": event_id, "kind": event.kind, "ref": event.ref, "at": event.at}
            writes["events"].append(InsertOne(document))
        writes["outbox"].extend(InsertOne(row) for row in batch.outbox)
        writes["idempotency"].extend(InsertOne(document) for document in batch.idempotency_keys)
        for collection, operations in writes.items():
            if operations:
                await self._mongo.write(collection, operations, session)


def _plan(
    batch: Batch, pending_change: _PendingChange, keys_in_use: dict[tuple[str, ...], IdempotencyKeyDocument]
) -> None:
    """Plans one change. Its DomainError fails this change only, not the batch."""
    change, key = pending_change.change, pending_change.change.idempotency
    pending_change.result = pending_change.error = None
    try:
        if key is not None and key.identity in keys_in_use:
            key.raise_duplicate(keys_in_use[key.identity])
        for right in pending_change.rights:
            right.check(batch)
        pending_change.result = change.plan(batch)
    except (DomainError, DuplicateRequest) as error:
        pending_change.error = error
        return
    if key is not None:
        document = key.document(change.result_id(pending_change.result), batch.at)
        keys_in_use[key.identity] = document
        batch.idempotency_keys.append(document)
