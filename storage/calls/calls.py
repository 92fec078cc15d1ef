"""Operations on calls for brokers and telephony providers: planning, starting, reporting and polling."""

import asyncio
import math
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypedDict

from pymongo.asynchronous.collection import AsyncCollection

from storage.calls.call_changes import (
    NOT_FOUND_TRUSTED_AFTER,
    POLL_INTERVAL,
    START_LOOKAHEAD,
    UNREPORTED,
    UNTRIED,
    Call,
    FailCall,
    MarkCallUnknown,
    ReportCall,
    RequeueCall,
    StartCall,
    StartRefusal,
    latest_call,
)
from storage.calls.documents import (
    DO_NOT_CALL,
    JOBS,
    LIMITS,
    TASKS,
    CallJobDocument,
    CallLimitsDocument,
    CallTaskDocument,
    PhoneNumberId,
)
from storage.calls.job_changes import RefreshJobState, TakeOver, state_at
from storage.calls.limiter import default_limits, spacing_s
from storage.calls.records import (
    CallJobState,
    CallKey,
    CallOutcome,
    CallReportKind,
    CallTask,
    TaskKey,
    parse_call_id,
)
from storage.calls.start_timer import StartTimer
from storage.calls.wake_ups import WakeUpChannel
from storage.calls.windows import CallingWindow
from storage.errors import NotFound
from storage.mongo import Document, Mongo, due_filter, seconds_from_now
from storage.streams.log import jobs_stream
from storage.streams.sequencer import Sequencer

SOON_S = 90.0
MAX_STARTS_AT_ONCE = 8
MAX_CONCURRENT_READS = 16
MAX_CACHED_JOBS = 10_000
CANDIDATES_PER_CLAIM = 4
"""How many overdue calls a process reads for each call that it claims. Other processes read the same calls."""


@dataclass(frozen=True, slots=True)
class NextCall:
    """A number that may be called now."""

    task: TaskKey
    phone_number: str


@dataclass(frozen=True, slots=True)
class TimedStart:
    """A committed call and when to send it to the telephony service.

    The times are in seconds of this process's monotonic clock.
    """

    call: Call
    due: float
    """When to send the call."""

    plan_at: float
    """When to plan the next start. An earlier commit of another start would be refused."""


@dataclass(frozen=True, slots=True)
class WorkPlan:
    """A broker's next work."""

    has_work: bool
    """Whether the organization has jobs that run or start soon. Otherwise its broker may stop."""

    calls: Sequence[NextCall] = ()
    """Calls to start now."""

    outdated_job_ids: Sequence[str] = ()
    """Jobs whose stored state is outdated."""

    wait_s: float | None = None
    """Seconds until the broker must plan again; None if only a wake-up can change the plan."""


@dataclass(frozen=True, slots=True)
class OverdueCall:
    """A call whose report is overdue."""

    call: Call
    has_report: bool
    """Whether an earlier report said that the call was answered."""

    age_s: float
    """Seconds since the call's start."""


class _LimitsAndJobs(CallLimitsDocument):
    """The limiter, joined with the organization's open jobs and the database's clock."""

    jobs: list[CallJobDocument]
    now: datetime


class _DueTask(CallTaskDocument):
    """A task whose call is to be polled, with the database's clock."""

    now: datetime


class _JobOwner(TypedDict):
    """The projection of a job to its organization."""

    org: str


class CallStore:
    """Calls of all organizations. Every change is a commit to the organization's stream of jobs."""

    def __init__(self, mongo: Mongo, sequencer: Sequencer, wake_ups: WakeUpChannel) -> None:
        self._mongo = mongo
        self._tasks: AsyncCollection[CallTaskDocument] = mongo[TASKS]
        self._sequencer = sequencer
        self.wake_ups = wake_ups
        self._reads = asyncio.Semaphore(MAX_CONCURRENT_READS)
        self._timer = StartTimer(mongo)
        self._organizations: dict[str, str] = {}

    @property
    def _planning_lead(self) -> timedelta:
        """How long before its start time the broker plans a call. A little less than StartCall accepts, as a margin."""
        return START_LOOKAHEAD * 5 / 6 + self._timer.lead

    async def organizations_with_work(self) -> list[str]:
        """Returns organizations that need a broker: with jobs that run, wait for a window, or start within 90 s."""
        starts_soon = {"$lt": ["$start_at", seconds_from_now(SOON_S)]}
        started = [CallJobState.RUNNING.value, CallJobState.WAITING_FOR_WINDOW.value]
        has_work = [{"state": {"$in": started}}, {"state": CallJobState.SCHEDULED.value, "$expr": starts_soon}]
        pipeline: list[Document] = [{"$match": {"open": True, "$or": has_work}}, {"$group": {"_id": "$org"}}]
        return [group["_id"] for group in await self._mongo.aggregate(JOBS, pipeline)]

    async def take_over(self, organization_id: str, fence: int) -> None:
        """Lets only the broker with this fence start calls, and schedules early polls. Raises: BrokerSuperseded."""
        await self._sequencer.commit(jobs_stream(organization_id), TakeOver(organization_id, fence))
        stored: CallLimitsDocument | None = await self._mongo[LIMITS].find_one({"_id": organization_id})
        limits = stored or default_limits(organization_id)
        ids = [parse_call_id(id_).task.document_id for id_ in limits["slots"]]
        soon = {"$max": ["$$NOW", {"$add": ["$call.start_at", _ms(NOT_FOUND_TRUSTED_AFTER)]}]}
        earlier = [{"$set": {"poll_at": {"$min": ["$poll_at", soon]}}}]
        await self._tasks.update_many({"_id": {"$in": ids}, "poll_at": {"$exists": True}}, earlier)

    async def plan_work(self, organization_id: str) -> WorkPlan:
        """Returns what the organization's broker may do now."""
        async with self._reads:
            return await self._plan_work(organization_id)

    async def _plan_work(self, organization_id: str) -> WorkPlan:
        limits = await self._limits_and_jobs(organization_id)
        now = limits["now"]
        jobs = [job for job in limits["jobs"] if job["state"] != CallJobState.PAUSED.value and _starts_soon(job, now)]
        if not jobs:
            return WorkPlan(has_work=False)
        outdated = [job["_id"] for job in jobs if state_at(job, now).value != job["state"]]
        running = [job for job in jobs if job["state"] == CallJobState.RUNNING.value and job["_id"] not in outdated]
        change_times = [change for job in jobs if (change := _next_state_change(job, now)) is not None]
        calls: list[NextCall] = []
        if len(limits["slots"]) < limits["concurrent"] and running:
            if (count := _startable_call_count(limits, now, self._timer.lead)) > 0:
                calls = await self._next_calls(running, now, count)
                change_times += [] if calls else await self._next_retry_times(running, now)
            else:
                change_times.append(limits["next_at"] - self._planning_lead)
        wait_s = min((max((at - now).total_seconds(), 0.0) for at in change_times), default=None)
        return WorkPlan(True, calls, outdated, wait_s)

    async def _limits_and_jobs(self, organization_id: str) -> _LimitsAndJobs:
        """Returns the limiter, which `take_over` has stored, with the open jobs, oldest first, in one round trip."""
        open_jobs: list[Document] = [{"$match": {"org": organization_id, "open": True}}, {"$sort": {"ts": 1}}]
        pipeline: list[Document] = [
            {"$match": {"_id": organization_id}},
            {"$lookup": {"from": JOBS, "pipeline": open_jobs, "as": "jobs"}},
            {"$set": {"now": "$$NOW"}},
        ]
        documents: list[_LimitsAndJobs] = await self._mongo.aggregate(LIMITS, pipeline)
        return documents[0]

    async def _next_calls(self, running: Sequence[CallJobDocument], now: datetime, limit: int) -> list[NextCall]:
        """Returns numbers, oldest job first. In each job, due retries come before untried numbers in list order."""
        calls: list[NextCall] = []
        for job in running:
            ranges = [(UNTRIED, UNTRIED)] if job["max_attempts"] == 1 else [(UNTRIED + 1, _us(now)), (UNTRIED, UNTRIED)]
            for low, high in ranges if job["counts"]["QUEUED"] else ():
                query = {"_id.j": job["_id"], "queue": {"$gte": low, "$lte": high}}
                order = [("queue", 1), ("_id.r", 1)]
                cursor = self._tasks.find(query, {"phone": 1}).sort(order).limit(limit - len(calls))
                calls += [NextCall(TaskKey.from_id(task["_id"]), task["phone"]) async for task in cursor]
                if len(calls) >= limit:
                    return calls
        return calls

    async def _next_retry_times(self, running: Sequence[CallJobDocument], now: datetime) -> list[datetime]:
        """Returns when the first retry of each job is due. Jobs without retries are left out."""
        change_times = []
        for job in running:
            if job["max_attempts"] > 1 and job["counts"]["QUEUED"]:
                query = {"_id.j": job["_id"], "queue": {"$gt": _us(now)}}
                task = await self._tasks.find_one(query, {"queue": 1}, sort=[("queue", 1)])
                if task is not None:
                    change_times.append(now + timedelta(microseconds=task["queue"] - _us(now)))
        return change_times

    async def refresh_job_state(self, organization_id: str, job_id: str) -> None:
        """Updates a job's stored state to its state at the current time."""
        await self._sequencer.commit(jobs_stream(organization_id), RefreshJobState(organization_id, job_id))

    async def start(self, organization_id: str, next_call: NextCall, fence: int) -> TimedStart | StartRefusal:
        """Commits the intent of one call, with its slot and its start time.

        Raises: BrokerSuperseded, NotFound.
        """
        requested_at = time.monotonic()
        change = StartCall(organization_id, next_call.task, fence, next_call.phone_number, self._timer.lead)
        start = await self._sequencer.commit(jobs_stream(organization_id), change)
        if isinstance(start, StartRefusal):
            return start
        due = await self._timer.due_at(start, requested_at)
        return TimedStart(start.call, due, due + start.gap_s - self._planning_lead.total_seconds())

    async def may_still_start(self, call: Call) -> bool:
        """Returns whether a committed call may be sent: its job runs, and its number is not on the do-not-call list."""
        entry: PhoneNumberId = {"org": call.organization_id, "phone": call.phone_number}
        pipeline: list[Document] = [
            {"$match": {"_id": call.key.task.job_id, "state": CallJobState.RUNNING.value}},
            {"$project": {"_id": 1}},
            {"$lookup": {"from": DO_NOT_CALL, "pipeline": [{"$match": {"_id": entry}}], "as": "entries"}},
        ]
        running_jobs = await self._mongo.aggregate(JOBS, pipeline)
        return [job["entries"] for job in running_jobs] == [[]]

    async def report(
        self,
        call_id: str,
        sequence: int,
        kind: CallReportKind,
        outcome: CallOutcome | None,
        org: str | None = None,
        at: datetime | None = None,
    ) -> CallTask:
        """Applies a report of the telephony service. Idempotent by call and sequence number.

        With `org`, only calls of that organization are found. `at` is when the call was answered or ended, by the
        reporter's clock. Raises: NotFound, BadUserInput.
        """
        key = parse_call_id(call_id)
        organization_id = await self._organization_of(key.task.job_id)
        if organization_id is None or org not in (None, organization_id):
            raise NotFound("call", call_id)
        change = ReportCall(organization_id, key.task, key.ordinal, sequence, kind, outcome, at)
        task = await self._sequencer.commit(jobs_stream(organization_id), change)
        if kind is CallReportKind.ENDED:
            self.wake_ups.wake(organization_id)
        return task

    async def _organization_of(self, job_id: str) -> str | None:
        """Returns the organization of a job, or None if the job does not exist. Cached, since it never changes."""
        if job_id not in self._organizations:
            job: _JobOwner | None = await self._mongo[JOBS].find_one({"_id": job_id}, {"org": 1})
            if job is None:
                return None
            if len(self._organizations) >= MAX_CACHED_JOBS:
                self._organizations.clear()
            self._organizations[job_id] = job["org"]
        return self._organizations[job_id]

    async def requeue(self, call: Call, hold_off_s: float = 0.0) -> bool:
        """Queues the number of a call that provably never happened. Returns False if it is over or has a report."""
        change = RequeueCall(call.organization_id, call.key.task, call.key.ordinal, hold_off_s)
        return await self._commit_and_wake(call, change)

    async def fail(self, call: Call, error: str) -> bool:
        """Fails a call that was refused permanently. Returns False if it is over or has a report."""
        change = FailCall(call.organization_id, call.key.task, call.key.ordinal, error)
        return await self._commit_and_wake(call, change)

    async def mark_unknown(self, call: Call, error: str, keeps_slot: bool) -> bool:
        """Marks a call whose outcome is unknown. Returns False if nothing has changed, as MarkCallUnknown says."""
        change = MarkCallUnknown(call.organization_id, call.key.task, call.key.ordinal, error, keeps_slot)
        return await self._commit_and_wake(call, change)

    async def _commit_and_wake(self, call: Call, change: RequeueCall | FailCall | MarkCallUnknown) -> bool:
        has_changed = await self._sequencer.commit(jobs_stream(call.organization_id), change)
        self.wake_ups.wake(call.organization_id)
        return has_changed

    async def schedule_early_poll(self, call: Call) -> None:
        """Schedules a poll for the earliest time at which the answer "no such call" can be trusted."""
        query = {"_id": call.key.task.document_id, "call.n": call.key.ordinal, "poll_at": {"$exists": True}}
        await self._tasks.update_one(query, {"$set": {"poll_at": call.not_after + NOT_FOUND_TRUSTED_AFTER}})

    async def store_reference(self, call_id: str, reference: str) -> None:
        """Stores the telephony service's own identifier of a call, by which the call is polled, unless one is stored.

        Raises: NotFound for text that cannot be a callId.
        """
        key = parse_call_id(call_id)
        query = {"_id": key.task.document_id, "call.n": key.ordinal, "call.reference": {"$exists": False}}
        await self._tasks.update_one(query, {"$set": {"call.reference": reference}})

    async def claim_overdue_calls(self, limit: int) -> list[OverdueCall]:
        """Claims calls that are due for polling, at most `limit`. A call is claimed by one process once a minute.

        Skips calls that other processes claim meanwhile. Returns an empty list only if no call is due.
        """
        while due := await self._due_tasks(limit * CANDIDATES_PER_CLAIM):
            # Random, because other processes read the same candidates at the same time.
            candidates = random.sample(due, min(limit, len(due)))
            if claimed := [task for task in candidates if await self._claim(task)]:
                ids = list({task["_id"]["j"] for task in claimed})
                jobs: dict[str, CallJobDocument] = {}
                async for job in self._mongo[JOBS].find({"_id": {"$in": ids}}):
                    jobs[job["_id"]] = job
                return [_overdue_call(task, jobs[task["_id"]["j"]]) for task in claimed]
        return []

    async def _due_tasks(self, limit: int) -> list[_DueTask]:
        """Returns tasks that are due for polling, the longest overdue first."""
        due = due_filter("poll_at")
        pipeline: list[Document] = [
            {"$match": due},
            {"$sort": {"poll_at": 1}},
            {"$limit": limit},
            {"$set": {"now": "$$NOW"}},
        ]
        return await self._mongo.aggregate(TASKS, pipeline)

    async def _claim(self, task: _DueTask) -> bool:
        unchanged = {"_id": task["_id"], "poll_at": task["poll_at"]}
        postponement = [{"$set": {"poll_at": seconds_from_now(POLL_INTERVAL.total_seconds())}}]
        updated = await self._tasks.update_one(unchanged, postponement)
        return updated.modified_count == 1


def _overdue_call(task: _DueTask, job: CallJobDocument) -> OverdueCall:
    latest = task["call"]
    call = latest_call(CallKey(TaskKey.from_id(task["_id"]), latest["n"]), job, task, latest)
    return OverdueCall(call, latest["seq"] != UNREPORTED, (task["now"] - call.start_at).total_seconds())


def _starts_soon(job: CallJobDocument, now: datetime) -> bool:
    """Returns whether the job has started or starts within 90 s."""
    start_at = job["start_at"]
    if start_at is None or job["state"] != CallJobState.SCHEDULED.value:
        return True
    return (start_at - now).total_seconds() < SOON_S


def _next_state_change(job: CallJobDocument, now: datetime) -> datetime | None:
    """Returns when the clock changes the job's state next: at its start, or when its window opens or closes."""
    if job["start_at"] is not None and job["start_at"] > now:
        return job["start_at"]
    return None if job["window"] is None else CallingWindow.from_document(job["window"]).next_change(now)


def _startable_call_count(limits: CallLimitsDocument, now: datetime, lead: timedelta) -> int:
    """Returns how many calls may be committed now: as many as can start soon, at most the free slots."""
    wait_s = (max(limits["next_at"], now) - now).total_seconds()
    left_s = (START_LOOKAHEAD + lead).total_seconds() - wait_s
    if left_s < 0:
        return 0
    soon = 1 + math.floor(left_s / spacing_s(limits["per_second"]))
    return int(min(soon, limits["concurrent"] - len(limits["slots"]), MAX_STARTS_AT_ONCE))


def _us(instant: datetime) -> int:
    return int(instant.timestamp() * 1_000_000)


def _ms(duration: timedelta) -> int:
    return int(duration.total_seconds() * 1000)
