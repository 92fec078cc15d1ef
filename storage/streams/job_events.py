"""The stream of an organization's jobs: publications, call jobs and fan-outs. Owns its name and how it is written to.

A change to a job adds a row in the same transaction: `batch.add_outbox_row(jobs_stream(org), kind, ref)`, or
`outbox.add_rows` without a batch. Its event kinds are those of `Stores.job_subjects`, which read what the events
speak of.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import quote, unquote

from storage.streams.log import Event, Stream

ReadSubjects = Callable[[str, Sequence[Any]], Awaitable[Mapping[Any, Any]]]
"""Gives what the refs of one organization's events speak of, as it is now, by ref; without what is gone."""


@lru_cache(maxsize=1000)
def jobs_stream(organization_id: str) -> Stream:
    """The organization's stream."""
    return Stream("jobs", quote(organization_id, safe=""))


async def read_job_subjects(
    readers: Mapping[str, ReadSubjects], stream: Stream, events: Sequence[Event]
) -> dict[int, Any]:
    """What events of the stream speak of, by their numbers; one read a kind. Kinds without a reader are left out."""
    subjects: dict[int, Any] = {}
    for kind, read in readers.items():
        refs = {event.n: event.ref for event in events if event.kind == kind}
        found = await read(unquote(stream.id), list(set(refs.values()))) if refs else {}
        subjects |= {n: found[ref] for n, ref in refs.items() if ref in found}
    return subjects
