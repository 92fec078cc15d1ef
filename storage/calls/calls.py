"""Calls as brokers and the telephony side see them: what may be dialled next, starting, reporting, asking."""

import asyncio
import math
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from storage.calls.call_changes import (
    DO_NOT_CALL,
    NOT_FOUND_TRUSTED_AFTER,
    POLL_INTERVAL,
    START_LOOKAHEAD,
    TASKS,
    UNREPORTED,
    UNTRIED,
    Call,
    FailCall,
    MarkCallUnknown,
    ReportCall,
    RequeueCall,
    StartCall,
    StartRefusal,
    call_of,
)
from storage.calls.job_changes import JOBS, RefreshJobState, TakeOver, state_at
from storage.calls.limiter import LIMITS, default_limits, spacing_s
from storage.calls.records import (
    CallJobState,
    CallKey,
    CallOutcome,
    CallReportEvent,
    CallTask,
    TaskKey,
    call_key,
)
from storage.calls.start_timer import StartTimer
from storage.calls.wake_ups import WakeUpChannel
from storage.calls.windows import CallingWindow
from storage.errors import NotFound
from storage.mongo import Document, Mongo
from storage.streams.log import jobs_stream
from storage.streams.sequencer import Sequencer

SOON_S = 90.0
MAX_STARTS_AT_ONCE = 8
MAX_CONCURRENT_READS = 16
MAX_CACHED_JOBS = 10_000
EXPECTED_PROCESSES = 4
"""Among the calls of so many times its share a process chooses those that it asks for."""


@dataclass(frozen=True, slots=True)
class NextCall:
    """A number that may be dialled now."""

    task: TaskKey
    phone_number: str


@dataclass(frozen=True, slots=True)
class TimedStart:
    """A call that has its slot, to be handed over at `moment`; before `look_at` no other start can be committed.

    Both in seconds of this process's monotonic clock.
    """

    call: Call
    moment: float
    look_at: float


@dataclass(frozen=True, slots=True)
class WorkPlan:
    """What a broker sees: what to dial now, which jobs the clock moved, and when to look again.

    `wait_s` is None when only news can change something. Without work the broker may end.
    """

    has_work: bool
    calls: Sequence[NextCall] = ()
    moved_job_ids: Sequence[str] = ()
    wait_s: float | None = None


@dataclass(frozen=True, slots=True)
class OverdueCall:
    """A call that nothing was heard of for too long; `asked_for_s` since it began."""

    call: Call
    is_waiting: bool
    asked_for_s: float


class CallStore:
    """The dialling side of the area. Every change is a commit to the organization's stream of jobs."""

    def __init__(self, mongo: Mongo, sequencer: Sequencer, wakes: WakeUpChannel) -> None:
        self._mongo = mongo
        self._sequencer = sequencer
        self._wake_ups = wakes
        self._reading = asyncio.Semaphore(MAX_CONCURRENT_READS)
        self._timer = StartTimer(mongo)
        self._organizations: dict[str, str] = {}

    @property
    def _ahead(self) -> timedelta:
        """How long before the next start to look for it: nearly as early as it may be committed."""
        return START_LOOKAHEAD * 5 / 6 + self._timer.lead

    async def organizations_with_work(self) -> list[str]:
        """Organizations that need a broker: something is running, waits for its window, or starts within 90 s."""
        soon = {"$lt": ["$start_at", {"$add": ["$$NOW", int(SOON_S * 1000)]}]}
        working = [CallJobState.RUNNING.value, CallJobState.WAITING_FOR_WINDOW.value]
        needed = [{"state": {"$in": working}}, {"state": CallJobState.SCHEDULED.value, "$expr": soon}]
        pipeline: list[Document] = [{"$match": {"open": True, "$or": needed}}, {"$group": {"_id": "$org"}}]
        return [row["_id"] for row in await self._mongo.aggregate(JOBS, pipeline)]

    async def take_over(self, organization_id: str, fence: int) -> None:
        """From here on only the holder of this fence dials. Calls under way are asked for soon. Raises: Superseded."""
        await self._sequencer.commit(jobs_stream(organization_id), TakeOver(organization_id, fence))
        limits = await self._mongo[LIMITS].find_one({"_id": organization_id}) or default_limits(organization_id)
        ids = [call_key(id_).task.document_id for id_ in limits["slots"]]
        soon = {"$max": ["$$NOW", {"$add": ["$call.start_at", _ms(NOT_FOUND_TRUSTED_AFTER)]}]}
        earlier = [{"$set": {"ask_at": {"$min": ["$ask_at", soon]}}}]
        await self._mongo[TASKS].update_many({"_id": {"$in": ids}, "ask_at": {"$exists": True}}, earlier)

    async def plan_work(self, organization_id: str) -> WorkPlan:
        """What may be done for the organization now."""
        async with self._reading:
            return await self._plan_work(organization_id)

    async def _plan_work(self, organization_id: str) -> WorkPlan:
        limits = await self._limits_and_jobs(organization_id)
        now: datetime = limits["now"]
        jobs = [job for job in limits["jobs"] if job["state"] != CallJobState.PAUSED.value and _is_soon(job, now)]
        if not jobs:
            return WorkPlan(has_work=False)
        moved = [job["_id"] for job in jobs if state_at(job, now).value != job["state"]]
        running = [job for job in jobs if job["state"] == CallJobState.RUNNING.value and job["_id"] not in moved]
        moments = [moment for job in jobs if (moment := _next_moment(job, now)) is not None]
        calls: list[NextCall] = []
        if len(limits["slots"]) < limits["concurrent"] and running:
            if (room := _room(limits, now, self._timer.lead)) > 0:
                calls = await self._next_calls(running, now, room)
                moments += [] if calls else await self._next_retries(running, now)
            else:
                moments.append(limits["next_at"] - self._ahead)
        wait_s = min((max((moment - now).total_seconds(), 0.0) for moment in moments), default=None)
        return WorkPlan(True, calls, moved, wait_s)

    async def _limits_and_jobs(self, organization_id: str) -> Document:
        """The limiter, which who took over has written, with the open jobs, oldest first, in one round trip."""
        open_jobs: list[Document] = [{"$match": {"org": organization_id, "open": True}}, {"$sort": {"ts": 1}}]
        pipeline: list[Document] = [
            {"$match": {"_id": organization_id}},
            {"$lookup": {"from": JOBS, "pipeline": open_jobs, "as": "jobs"}},
            {"$set": {"now": "$$NOW"}},
        ]
        (found,) = await self._mongo.aggregate(LIMITS, pipeline)
        return found

    async def _next_calls(self, running: Sequence[Document], now: datetime, room: int) -> list[NextCall]:
        """In list order, oldest job first. Numbers that were tried stand before those that were not."""
        found: list[NextCall] = []
        for job in running:
            queues = [(UNTRIED, UNTRIED)] if job["max_attempts"] == 1 else [(UNTRIED + 1, _us(now)), (UNTRIED, UNTRIED)]
            for low, high in queues if job["counts"]["QUEUED"] else ():
                wanted = {"_id.j": job["_id"], "queue": {"$gte": low, "$lte": high}}
                order = [("queue", 1), ("_id.r", 1)]
                cursor = self._mongo[TASKS].find(wanted, {"phone": 1}).sort(order).limit(room - len(found))
                found += [NextCall(_task_key(row), row["phone"]) async for row in cursor]
                if len(found) >= room:
                    return found
        return found

    async def _next_retries(self, running: Sequence[Document], now: datetime) -> list[datetime]:
        """When the next number may be tried again, of each job that has any."""
        moments = []
        for job in running:
            if job["max_attempts"] > 1 and job["counts"]["QUEUED"]:
                wanted = {"_id.j": job["_id"], "queue": {"$gt": _us(now)}}
                row = await self._mongo[TASKS].find_one(wanted, {"queue": 1}, sort=[("queue", 1)])
                if row is not None:
                    moments.append(now + timedelta(microseconds=row["queue"] - _us(now)))
        return moments

    async def refresh_job_state(self, organization_id: str, job_id: str) -> None:
        """Brings a job in line with the clock."""
        await self._sequencer.commit(jobs_stream(organization_id), RefreshJobState(organization_id, job_id))

    async def start(self, organization_id: str, next_call: NextCall, fence: int) -> TimedStart | StartRefusal:
        """Commits the intent of one call, with its slot and its moment.

        Raises: Superseded, NotFound.
        """
        begun = time.monotonic()
        change = StartCall(organization_id, next_call.task, fence, next_call.phone_number, self._timer.lead)
        dial = await self._sequencer.commit(jobs_stream(organization_id), change)
        if isinstance(dial, StartRefusal):
            return dial
        moment = await self._timer.due_at(dial, begun)
        return TimedStart(dial.call, moment, moment + dial.gap_s - self._ahead.total_seconds())

    async def may_still_start(self, call: Call) -> bool:
        """Whether a call that was committed may still be handed over: what was paused since or blocked, may not."""
        blocked = {"org": call.organization_id, "phone": call.phone_number}
        pipeline: list[Document] = [
            {"$match": {"_id": call.key.task.job_id, "state": CallJobState.RUNNING.value}},
            {"$project": {"_id": 1}},
            {"$lookup": {"from": DO_NOT_CALL, "pipeline": [{"$match": {"_id": blocked}}], "as": "blocked"}},
        ]
        return [found["blocked"] for found in await self._mongo.aggregate(JOBS, pipeline)] == [[]]

    async def report(
        self,
        call_id: str,
        sequence: int,
        event: CallReportEvent,
        outcome: CallOutcome | None,
        org: str | None = None,
        at: datetime | None = None,
    ) -> CallTask:
        """What the telephony side told; idempotent by (call, sequence). `org`: only a call of this organization.

        `at` is when it happened by the sender's clock. Raises: NotFound, BadUserInput.
        """
        key = call_key(call_id)
        organization_id = await self._organization_of(key.task.job_id)
        if organization_id is None or org not in (None, organization_id):
            raise NotFound("call", call_id)
        change = ReportCall(organization_id, key.task, key.number, sequence, event, outcome, at)
        task = await self._sequencer.commit(jobs_stream(organization_id), change)
        if event is CallReportEvent.ENDED:
            self._wake_ups.wake(organization_id)
        return task

    async def _organization_of(self, job_id: str) -> str | None:
        """Whose job it is, which never changes; None without such a job."""
        if job_id not in self._organizations:
            job = await self._mongo[JOBS].find_one({"_id": job_id}, {"org": 1})
            if job is None:
                return None
            if len(self._organizations) >= MAX_CACHED_JOBS:
                self._organizations.clear()
            self._organizations[job_id] = job["org"]
        return self._organizations[job_id]

    async def requeue(self, call: Call, hold_off_s: float = 0.0) -> bool:
        """The call provably never happened: its number is queued again. False when it is otherwise by now."""
        change = RequeueCall(call.organization_id, call.key.task, call.key.number, hold_off_s)
        return await self._settle(call, change)

    async def fail(self, call: Call, error: str) -> bool:
        """The call was refused for good. False when it is otherwise by now."""
        return await self._settle(call, FailCall(call.organization_id, call.key.task, call.key.number, error))

    async def lose(self, call: Call, error: str, keeps_slot: bool) -> bool:
        """What became of the call is not known; without an answer it keeps its slot. False when that is no news."""
        change = MarkCallUnknown(call.organization_id, call.key.task, call.key.number, error, keeps_slot)
        return await self._settle(call, change)

    async def _settle(self, call: Call, change: RequeueCall | FailCall | MarkCallUnknown) -> bool:
        is_news = await self._sequencer.commit(jobs_stream(call.organization_id), change)
        self._wake_ups.wake(call.organization_id)
        return is_news

    async def poll_early(self, call: Call) -> None:
        """Whether the call began is not known: asks once the answer can be believed."""
        wanted = {"_id": call.key.task.document_id, "call.n": call.key.number, "ask_at": {"$exists": True}}
        await self._mongo[TASKS].update_one(wanted, {"$set": {"ask_at": call.not_after + NOT_FOUND_TRUSTED_AFTER}})

    async def store_reference(self, call_id: str, reference: str) -> None:
        """Keeps the service's own name of a call, by which it can be asked for. The first one stays.

        Raises: NotFound for what can't be a callId.
        """
        key = call_key(call_id)
        wanted = {"_id": key.task.document_id, "call.n": key.number, "call.reference": {"$exists": False}}
        await self._mongo[TASKS].update_one(wanted, {"$set": {"call.reference": reference}})

    async def take_overdue_calls(self, limit: int) -> list[OverdueCall]:
        """Takes calls that must be asked for by now, at most `limit`; each is taken once a minute by one process.

        Empty only when none is due: what others took meanwhile is looked past.
        """
        while due := await self._due(limit * EXPECTED_PROCESSES):
            # Others read the same ones at the same time.
            chosen = random.sample(due, min(limit, len(due)))
            if taken := [task for task in chosen if await self._take(task)]:
                ids = list({task["_id"]["j"] for task in taken})
                jobs = {job["_id"]: job async for job in self._mongo[JOBS].find({"_id": {"$in": ids}})}
                return [_overdue_call(task, jobs[task["_id"]["j"]]) for task in taken]
        return []

    async def _due(self, limit: int) -> list[Document]:
        """Those that are due for the longest time."""
        due = {"ask_at": {"$exists": True}, "$expr": {"$lte": ["$ask_at", "$$NOW"]}}
        pipeline: list[Document] = [
            {"$match": due},
            {"$sort": {"ask_at": 1}},
            {"$limit": limit},
            {"$set": {"now": "$$NOW"}},
        ]
        return await self._mongo.aggregate(TASKS, pipeline)

    async def _take(self, task: Document) -> bool:
        unchanged = {"_id": task["_id"], "ask_at": task["ask_at"]}
        later = [{"$set": {"ask_at": {"$add": ["$$NOW", _ms(POLL_INTERVAL)]}}}]
        taken = await self._mongo[TASKS].update_one(unchanged, later)
        return bool(taken.modified_count == 1)


def _overdue_call(task: Document, job: Document) -> OverdueCall:
    call = call_of(CallKey(_task_key(task), task["call"]["n"]), job, task)
    return OverdueCall(call, task["call"]["seq"] == UNREPORTED, (task["now"] - call.start_at).total_seconds())


def _task_key(document: Document) -> TaskKey:
    return TaskKey(document["_id"]["j"], document["_id"]["r"])


def _is_soon(job: Document, now: datetime) -> bool:
    start_at = job["start_at"]
    return bool(job["state"] != CallJobState.SCHEDULED.value or (start_at - now).total_seconds() < SOON_S)


def _next_moment(job: Document, now: datetime) -> datetime | None:
    """When the clock moves the job next: its start, or an end of its window."""
    if job["start_at"] is not None and job["start_at"] > now:
        start_at: datetime = job["start_at"]
        return start_at
    return None if job["window"] is None else CallingWindow.of_document(job["window"]).next_change(now)


def _room(limits: Document, now: datetime, lead: timedelta) -> int:
    """How many calls may be committed now: of those whose moment is near, as many as there are slots."""
    ahead_s = (max(limits["next_at"], now) - now).total_seconds()
    left_s = (START_LOOKAHEAD + lead).total_seconds() - ahead_s
    if left_s < 0:
        return 0
    near = 1 + math.floor(left_s / spacing_s(limits["per_second"]))
    return int(min(near, limits["concurrent"] - len(limits["slots"]), MAX_STARTS_AT_ONCE))


def _us(instant: datetime) -> int:
    return int(instant.timestamp() * 1_000_000)


def _ms(duration: timedelta) -> int:
    return int(duration.total_seconds() * 1000)
