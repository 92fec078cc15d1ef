"""Events of calls in `jobEvents`. Only operators see them."""

from dataclasses import dataclass

from resolvers.access import granted_roles
from resolvers.context import Context
from resolvers.events import Event, JobEventView
from storage.calls.records import CallJob, CallLimits, CallTask
from storage.errors import Forbidden
from storage.identity.records import User
from storage.identity.roles import Role


@dataclass(frozen=True, slots=True)
class CallJobEvent(Event):
    """A changed job. `kind` is the event's GraphQL type."""

    kind: str
    job: CallJob


@dataclass(frozen=True, slots=True)
class CallTaskEvent(Event):
    """A changed task, which is one phone number of a call job. `kind` is the event's GraphQL type."""

    kind: str
    task: CallTask


@dataclass(frozen=True, slots=True)
class CallLimitsEvent(Event):
    """Changed call limits. `kind` is the event's GraphQL type."""

    kind: str
    limits: CallLimits


def _is_operator(_viewer: User, roles: frozenset[Role], _subject: object) -> bool:
    return Role.OPERATOR in roles


JOB_EVENT_VIEWS = {
    "CallJobChanged": JobEventView(CallJobEvent, _is_operator, lambda job: [job.id]),
    "CallTaskChanged": JobEventView(CallTaskEvent, _is_operator, lambda task: [task.job_id]),
    # Limits belong to no job: only subscriptions to all jobs receive them.
    "CallLimitsChanged": JobEventView(CallLimitsEvent, _is_operator, lambda _limits: []),
}


async def is_visible_job(context: Context, viewer: User, job_id: str) -> bool:
    """Returns whether the id is a call job's. Raises: Forbidden if it is one and the viewer is no operator."""
    job = await context.stores.call_jobs.find(viewer.organization_id, job_id)
    if job is not None and Role.OPERATOR not in granted_roles(context):
        raise Forbidden("Call jobs are visible to operators only.")
    return job is not None
