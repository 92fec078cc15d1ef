"""Events of calls in jobEvents: visible to operators."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from resolvers.access import granted
from resolvers.context import Context
from resolvers.events import Event, JobKind
from storage.calls.records import CallJob, CallLimits, CallTask
from storage.errors import Forbidden
from storage.identity.records import Role, User
from storage.streams.log import Cursor


@dataclass(frozen=True, slots=True)
class CallJobEvent(Event):
    """A job changed; `kind` is the event's GraphQL type."""

    kind: str
    job: CallJob


@dataclass(frozen=True, slots=True)
class CallTaskEvent(Event):
    """A number of a job changed; `kind` is the event's GraphQL type."""

    kind: str
    task: CallTask


@dataclass(frozen=True, slots=True)
class CallLimitsEvent(Event):
    """The limits were set; `kind` is the event's GraphQL type."""

    kind: str
    limits: CallLimits


def _kind(record: Callable[[Cursor, datetime, Any], Event], job_ids: Callable[[Any], Collection[str]]) -> JobKind:
    return JobKind(record, lambda _viewer, roles, _subject: Role.OPERATOR in roles, job_ids)


JOB_KINDS: dict[str, JobKind] = {
    "CallJobChanged": _kind(
        lambda cursor, at, job: CallJobEvent(cursor, at, "CallJobChanged", job), lambda job: [job.id]
    ),
    "CallTaskChanged": _kind(
        lambda cursor, at, task: CallTaskEvent(cursor, at, "CallTaskChanged", task), lambda task: [task.job_id]
    ),
    # Limits are of no job: only who listens to all hears of them.
    "CallLimitsChanged": _kind(
        lambda cursor, at, limits: CallLimitsEvent(cursor, at, "CallLimitsChanged", limits), lambda _limits: []
    ),
}


async def is_job(context: Context, viewer: User, job_id: str) -> bool:
    """Whether the id is a call job's. Raises: Forbidden for who is no operator."""
    job = await context.stores.call_jobs.find(viewer.organization_id, job_id)
    if job is not None and Role.OPERATOR not in granted(context):
        raise Forbidden("Call jobs are visible to operators.")
    return job is not None
