"""Subscription to those of an organization's publications, call jobs, fan-outs and exports that the viewer may see."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import strawberry
from strawberry import ID, UNSET

import resolvers.calls.events
import resolvers.exports
import resolvers.feed.fan_outs
import resolvers.publishing.publications
from resolvers.access import granted_roles, require_member
from resolvers.arguments import Since, text_or_none
from resolvers.calls.events import CallJobEvent, CallLimitsEvent, CallTaskEvent
from resolvers.context import Context, Info
from resolvers.events import JobEventView, StreamReady, ViewerEventSource, viewer_events
from resolvers.exports import DataExportEvent
from resolvers.feed.fan_outs import FanOutEvent
from resolvers.publishing.publications import PublicationEvent, PublicationReportEvent
from storage.errors import NotFound
from storage.identity.records import User
from storage.streams.hub import HydratedEvent
from storage.streams.log import Cursor, StreamPosition, jobs_stream, parse_cursor

ALL_JOB_EVENT_VIEWS: Mapping[str, JobEventView] = {
    **resolvers.calls.events.JOB_EVENT_VIEWS,
    **resolvers.publishing.publications.JOB_EVENT_VIEWS,
    **resolvers.feed.fan_outs.JOB_EVENT_VIEWS,
    **resolvers.exports.JOB_EVENT_VIEWS,
}
"""Access rules, filters and records by the kind of the event. storage/stores/event_kinds.py lists the kinds."""

JOB_CHECKS: Sequence[Callable[[Context, User, str], Awaitable[bool]]] = (
    resolvers.calls.events.is_visible_job,
    resolvers.publishing.publications.is_visible_job,
    resolvers.feed.fan_outs.is_visible_job,
    resolvers.exports.is_visible_job,
)
"""Each function returns whether the id is a job of its area. Raises: Forbidden if the viewer may not see the job."""

JobId = Annotated[
    ID | None,
    strawberry.argument(
        description="Only events of this call job, scheduled post, post or export. Omitted or null: all events."
    ),
]


JobEventRecord = (
    StreamReady
    | FanOutEvent
    | PublicationEvent
    | PublicationReportEvent
    | CallJobEvent
    | CallTaskEvent
    | CallLimitsEvent
    | DataExportEvent
)


@dataclass(frozen=True, slots=True)
class JobEventSource(ViewerEventSource):
    """The events of an organization's jobs that one viewer may see; with a `job_id`, only the events of this job."""

    context: Context
    viewer: User
    since: StreamPosition | None
    job_id: str | None

    def __aiter__(self) -> AsyncGenerator[JobEventRecord, None]:
        stream = jobs_stream(self.viewer.organization_id)
        return viewer_events(self.context.stores.hub, stream, self.since, self._visible_record)

    async def _visible_record(self, cursor: Cursor, event: HydratedEvent) -> Any:
        """Returns the event's record, or None if it is of another job or the viewer may not see it."""
        kind, subject = ALL_JOB_EVENT_VIEWS[event.event.kind], event.subject
        matches_job = self.job_id is None or self.job_id in kind.job_ids(subject)
        if not (matches_job and kind.may_see(self.viewer, granted_roles(self.context), subject)):
            return None
        return kind.record(cursor, event.event.at, event.event.kind, subject)


async def job_events(info: Info, job_id: JobId = UNSET, since: Since = UNSET) -> JobEventSource:
    """Subscribes to changes of the jobs that the viewer may see."""
    viewer, only_job_id, cursor = require_member(info), text_or_none(job_id), text_or_none(since)
    if only_job_id is not None:
        await _check_job(info.context, viewer, only_job_id)
    position = None if cursor is None else parse_cursor(jobs_stream(viewer.organization_id), cursor)
    return JobEventSource(info.context, viewer, position, only_job_id)


async def _check_job(context: Context, viewer: User, job_id: str) -> None:
    """Checks that the job exists and that the viewer may see it. Raises: NotFound, Forbidden."""
    for is_visible_job in JOB_CHECKS:
        if await is_visible_job(context, viewer, job_id):
            return
    raise NotFound("job", job_id)
