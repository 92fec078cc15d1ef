"""jobEvents: publications, call jobs and fan-outs of an organization, to each viewer what they may see.

A kind of event is one line in KINDS, one in `Stores.job_subjects` and one in OUTBOX_RELAYS; ids that `jobId` may
name are known to one of FINDERS.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import strawberry
from strawberry import ID, UNSET

import resolvers.calls.events
import resolvers.feed.fan_outs
import resolvers.publishing.publications
from resolvers.access import granted, member
from resolvers.arguments import Since, given
from resolvers.calls.events import CallJobEvent, CallLimitsEvent, CallTaskEvent
from resolvers.context import Context, Info
from resolvers.events import JobKind, StreamReady, ViewerEventSource, viewer_events
from resolvers.feed.fan_outs import FanOutEvent
from resolvers.publishing.publications import PublicationEvent
from storage.errors import NotFound
from storage.identity.records import User
from storage.streams.hub import HydratedEvent
from storage.streams.job_events import jobs_stream
from storage.streams.log import Cursor, Position, parse_cursor

KINDS: Mapping[str, JobKind] = {
    "FanOutChanged": resolvers.feed.fan_outs.JOB_KIND,
    **resolvers.calls.events.JOB_KINDS,
    "PublicationChanged": resolvers.publishing.publications.JOB_KIND,
}

FINDERS: Sequence[Callable[[Context, User, str], Awaitable[bool]]] = (
    resolvers.calls.events.is_job,
    resolvers.publishing.publications.is_job,
    resolvers.feed.fan_outs.is_job,
)
"""Each says whether the id is a job of its kind. Raises: Forbidden for one that the viewer may not see."""

JobId = Annotated[
    ID | None, strawberry.argument(description="Only of this call job, scheduled post or post; of all when left out.")
]


JobEventRecord = StreamReady | FanOutEvent | PublicationEvent | CallJobEvent | CallTaskEvent | CallLimitsEvent


@dataclass(frozen=True, slots=True)
class JobEventSource(ViewerEventSource):
    """The organization's stream as one viewer may see it; of one job only when `job_id` is given."""

    context: Context
    viewer: User
    since: Position | None
    job_id: str | None

    def __aiter__(self) -> AsyncGenerator[JobEventRecord, None]:
        stream = jobs_stream(self.viewer.organization_id)
        return viewer_events(self.context.stores.hub, stream, self.since, self._show)

    def _show(self, cursor: Cursor, event: HydratedEvent) -> Any:
        kind, subject = KINDS[event.event.kind], event.subject
        is_wanted = self.job_id is None or self.job_id in kind.job_ids(subject)
        if not (is_wanted and kind.may_see(self.viewer, granted(self.context), subject)):
            return None
        return kind.record(cursor, event.event.at, subject)


async def job_events(info: Info, job_id: JobId = UNSET, since: Since = UNSET) -> JobEventSource:
    """What happens to the jobs that the viewer may see."""
    viewer, wanted, text = member(info), given(job_id), given(since)
    if wanted is not None:
        await _check(info.context, viewer, wanted)
    position = None if text is None else parse_cursor(jobs_stream(viewer.organization_id), text)
    return JobEventSource(info.context, viewer, position, wanted)


async def _check(context: Context, viewer: User, job_id: str) -> None:
    """Raises: NotFound, Forbidden."""
    for is_job in FINDERS:
        if await is_job(context, viewer, job_id):
            return
    raise NotFound("job", job_id)
