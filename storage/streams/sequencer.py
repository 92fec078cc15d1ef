"""Group commit: the one way a message or an event gets its place in a stream.

For each process and stream one transaction is in flight; what arrives meanwhile forms the next batch of at most 100.
Numbers and timestamps are allocated in the transaction that writes the documents, on the stream's head, at majority: so
the order of numbers is the order of commits, and whoever sees timestamp b sees every smaller one for ever
(docs/semantics.md, 1; ADR 3).
"""

import asyncio
import secrets
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import structlog
from pymongo import InsertOne

from storage.errors import DomainError, NotFound, Unavailable
from storage.idempotency import AlreadyDone, used_keys
from storage.metrics import BATCH_MEMBERS, COMMIT_RETRIES, COMMIT_SECONDS
from storage.mongo import Document, Mongo, Session, Write, unavailable
from storage.streams.changes import Batch, Change
from storage.streams.heads import head_correction, head_update, spread_us
from storage.streams.log import Event, Stream
from storage.streams.write_leases import WriteLeases

MAX_BATCH = 100

JOBS_AT_ONCE = 8
"""Organizations' streams of jobs that a process writes at the same time. What waits meanwhile goes in one commit: with
hundreds of busy ones commits get larger, not slower, and starts of calls count on quick ones (ADR 20)."""

ADMISSION_S = 20.0
"""How long a stream of jobs waits for its turn among many. Whoever gives up tries again, which is no less work."""

Result = TypeVar("Result")
Committed = Callable[[Stream, str, Sequence[Event]], None]
Told = Callable[[str], None]
BeforeAnswer = Callable[[Batch], Awaitable[None]]

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Member:
    """A change that waits, and what became of it when it was last planned."""

    change: Change[Any]
    answer: asyncio.Future[Any]
    result: Any = None
    error: Exception | None = None

    def settle(self, error: Exception | None = None) -> None:
        """Answers whoever still waits."""
        failure = error or self.error
        if self.answer.done():
            return
        if failure is None:
            self.answer.set_result(self.result)
        else:
            self.answer.set_exception(failure)


@dataclass(slots=True)
class _Lane:
    """What waits for one stream."""

    task: asyncio.Task[None] | None = None
    waiting: deque[_Member] = field(default_factory=deque)

    def take(self) -> list[_Member]:
        """The members of the next batch, first come first."""
        return [self.waiting.popleft() for _ in range(min(MAX_BATCH, len(self.waiting)))]


class Sequencer:
    """Commits changes to streams, in batches. One for each process; safe beside any number of others."""

    def __init__(
        self,
        mongo: Mongo,
        write_leases: WriteLeases,
        committed: Committed,
        told: Told,
        before_answer: BeforeAnswer | None = None,
    ) -> None:
        """`committed` hears of a stream's new events once they are durable, `told` of streams with outbox rows.

        `before_answer` is started for a topic's batches in their order, and awaited before anyone hears that they are
        durable.
        """
        self._before_answer = before_answer
        self._mongo = mongo
        self._write_leases = write_leases
        self._committed = committed
        self._told = told
        self._lanes: dict[Stream, _Lane] = {}
        self._answering: dict[Stream, asyncio.Task[None]] = {}
        self._jobs = asyncio.Semaphore(JOBS_AT_ONCE)

    async def commit(self, stream: Stream, change: Change[Result]) -> Result:
        """The change's result, once it is durable.

        Raises: what planning raises; AlreadyDone for a repeated idempotency key; NotFound without such a stream;
        Unavailable when the outcome is open: repeat with the idempotency key.
        """
        lane = self._lanes.setdefault(stream, _Lane())
        answer: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        lane.waiting.append(_Member(change, answer))
        if lane.task is None:
            lane.task = asyncio.create_task(self._drain(stream, lane), name=f"sequencer {stream.name}")
        return await answer

    async def close(self) -> None:
        """Waits until everything that was handed in is settled."""
        tasks = [lane.task for lane in self._lanes.values() if lane.task is not None]
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*self._answering.values(), return_exceptions=True)

    async def _drain(self, stream: Stream, lane: _Lane) -> None:
        while lane.waiting:
            try:
                async with self._admitted(stream):
                    await self._settle(stream, lane.take())
            except Unavailable as error:
                for member in lane.take():
                    member.settle(error)
        del self._lanes[stream]

    @asynccontextmanager
    async def _admitted(self, stream: Stream) -> AsyncIterator[None]:
        """Waits while too many other streams of jobs are written. Raises: Unavailable when that takes too long."""
        if stream.kind != "jobs":
            yield
            return
        try:
            async with asyncio.timeout(ADMISSION_S):
                await self._jobs.acquire()
        except TimeoutError:
            raise Unavailable("The database is busy; try again with the same idempotency key.") from None
        try:
            yield
        finally:
            self._jobs.release()

    async def _settle(self, stream: Stream, members: list[_Member]) -> None:
        """Commits the members and answers each. What MongoDB refuses as a whole is tried one by one."""
        try:
            batch = await self._try(stream, members)
        except Exception as error:
            known = error if isinstance(error, DomainError) else unavailable(error)
            if known is None and len(members) > 1:
                log.warning("batch_split", stream=stream.name, members=len(members), error=repr(error))
                for member in members:
                    await self._settle(stream, [member])
                return
            for member in members:
                member.settle(known or error)
        else:
            self._announce(batch)
            previous = self._answering.get(stream)
            if self._before_answer is None or stream.kind != "topic":
                _settle_all(members)
                return
            # The next batch is committed meanwhile; answers keep the order of commits.
            task = asyncio.create_task(self._answer(previous, batch, members), name=f"answer {stream.name}")
            self._answering[stream] = task

    async def _answer(self, previous: asyncio.Task[None] | None, batch: Batch, members: list[_Member]) -> None:
        assert self._before_answer is not None
        try:
            # All at once: while Redis is away each takes as long as a pool's lease.
            await self._before_answer(batch)
            if previous is not None:
                await asyncio.wait([previous])
        finally:
            _settle_all(members)
            if self._answering.get(batch.stream) is asyncio.current_task():
                del self._answering[batch.stream]

    def _announce(self, batch: Batch) -> None:
        if batch.events:
            self._committed(batch.stream, batch.head["epoch"], batch.events)
        for name in {row["stream"] for row in batch.outbox}:
            self._told(name)

    async def _try(self, stream: Stream, members: list[_Member]) -> Batch:
        BATCH_MEMBERS.labels(stream.kind).observe(len(members))
        async with self._write_leases.acquire(stream) as lease:

            async def work(session: Session) -> Batch:
                lease.tries += 1
                return await self._write(stream, members, session)

            with COMMIT_SECONDS.labels(stream.kind).time():
                batch = await self._mongo.transact(work)
            COMMIT_RETRIES.labels(stream.kind).inc(lease.tries - 1)
            return batch

    async def _write(self, stream: Stream, members: list[_Member], session: Session) -> Batch:
        reserved = sum(member.change.timestamps for member in members)
        expected = sum(member.change.events for member in members)
        batch = await self._allocate(stream, reserved, expected, session)
        used = await used_keys(self._mongo, [m.change.idempotency for m in members if m.change.idempotency], session)
        await self._load(batch, members, session)
        for member in members:
            _plan(batch, member, used)
        # Only a topic's heat depends on unused timestamps. Elsewhere they leave a gap, which is harmless.
        if len(batch.events) != expected or (stream.kind == "topic" and batch.taken != reserved):
            correction = head_correction(stream, batch.head, batch.last_n, batch.last_timestamp, batch.taken)
            await self._mongo[stream.heads].update_one({"_id": stream.head_id}, correction, session=session)
        await self._store(batch, session)
        return batch

    async def _allocate(self, stream: Stream, timestamps: int, events: int, session: Session) -> Batch:
        """Locks the head and allocates for all members. Another transaction on this head conflicts here."""
        head = await self._mongo.find_one_and_update(
            stream.heads,
            {"_id": stream.head_id},
            head_update(stream, timestamps, events, secrets.token_hex(4), spread_us(stream)),
            session,
            upsert=stream.heads == "streams",
        )
        if head is None:
            raise NotFound(stream.kind, stream.id)
        return Batch(stream, head, head.get("last", 0) - timestamps + 1, head["n"] - events + 1)

    async def _load(self, batch: Batch, members: list[_Member], session: Session) -> None:
        needs: defaultdict[str, list[Any]] = defaultdict(list)
        for member in members:
            for collection, id_ in member.change.needs():
                needs[collection].append(id_)
        for collection, ids in needs.items():
            for document in await self._mongo.find(collection, {"_id": {"$in": ids}}, session=session):
                batch.add(collection, document)
        for member in members:
            await member.change.load(self._mongo, session, batch)

    async def _store(self, batch: Batch, session: Session) -> None:
        writes: defaultdict[str, list[Write]] = defaultdict(list)
        for (collection, _), id_ in batch.written.items():
            writes[collection].extend(batch.writes(collection, id_))
        name = batch.stream.name
        for event in batch.events:
            id_ = {"s": name, "n": event.n}
            writes["events"].append(InsertOne({"_id": id_, "kind": event.kind, "ref": event.ref, "at": event.at}))
        writes["outbox"].extend(InsertOne(row) for row in batch.outbox)
        writes["idempotency"].extend(InsertOne(row) for row in batch.keys)
        for collection, operations in writes.items():
            if operations:
                await self._mongo.write(collection, operations, session)


def _settle_all(members: Sequence[_Member]) -> None:
    for member in members:
        member.settle()


def _plan(batch: Batch, member: _Member, used: dict[tuple[str, ...], Document]) -> None:
    """Plans one member; what it raises is its own, and never its batch's."""
    change, key = member.change, member.change.idempotency
    member.result = member.error = None
    try:
        if key is not None and key.use in used:
            key.check(used[key.use])
        member.result = change.plan(batch)
    except (DomainError, AlreadyDone) as error:
        member.error = error
        return
    if key is not None:
        row = key.row(change.result_id(member.result), batch.at)
        used[key.use] = row
        batch.keys.append(row)
