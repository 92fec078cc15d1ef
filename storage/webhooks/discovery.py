"""Searches the event log for events that webhooks send, and records them in the positions of the webhooks.

Two searches follow the log by time. The first one reads up to now, and finds an event within a second. It may miss an
event whose commit takes longer. The second one reads what is older than SETTLED_S, by which all commits are visible,
and misses none. Nothing is written when a message is posted.
"""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import unquote

from pymongo.asynchronous.collection import AsyncCollection

from storage.chat.communities import CommunityStore
from storage.chat.topics import TopicStore
from storage.mongo import Document, Mongo
from storage.streams.documents import EventDocument
from storage.streams.log import EventLog, Stream, jobs_stream_owner, parse_stream_name
from storage.webhooks.claims import WebhookClaims
from storage.webhooks.documents import WebhookDocument, WebhookSearchDocument
from storage.webhooks.event_types import EVENT_TYPES
from storage.webhooks.positions import FoundEvents, StreamStart, WebhookPositions
from storage.webhooks.records import Webhook, WebhookFilter
from storage.webhooks.store import WEBHOOKS

SEARCHES = "webhook_searches"
SEARCH_ID = "events"
SETTLED_S = 10.0
"""Age of the events of which the second search finds all. A transaction ends within 5 s."""

PAGE_SIZE = 2000
ENABLED: Document = {"disabled_at": None}

_Events = Mapping[Stream, Sequence[EventDocument]]


@dataclass(frozen=True, slots=True)
class StreamPlace:
    """The place of a stream. `topic_ids` has a thread and its topic; jobs and posts belong to no community."""

    organization_id: str
    community_id: str | None = None
    topic_ids: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class WebhookReader:
    """An enabled webhook, as far as a search needs it."""

    start: StreamStart
    organization_id: str
    filter: WebhookFilter


class WebhookDiscovery:
    """Searches the log. One worker at a time does so, since a second one would only repeat the work."""

    def __init__(
        self,
        mongo: Mongo,
        events: EventLog,
        topics: TopicStore,
        communities: CommunityStore,
        positions: WebhookPositions,
        claims: WebhookClaims,
    ) -> None:
        self._mongo, self._events, self._positions, self._claims = mongo, events, positions, claims
        self._topics, self._communities = topics, communities
        self._searches: AsyncCollection[WebhookSearchDocument] = mongo[SEARCHES]

    async def readers(self) -> list[WebhookReader]:
        """Returns all enabled webhooks."""
        fields = {"org": 1, "types": 1, "communities": 1, "topics": 1, "jobs": 1, "start": 1}
        return [_reader(row) for row in await self._mongo.find(WEBHOOKS, ENABLED, fields)]

    async def settled_at(self, readers: Sequence[WebhookReader]) -> datetime:
        """Returns the instant up to which the second search has found everything that the webhooks send."""
        found: list[WebhookSearchDocument] = await self._mongo.find(SEARCHES, {"_id": SEARCH_ID}, limit=1)
        earliest = min(reader.start.since for reader in readers)
        return max(found[0]["at"], earliest) if found else earliest

    async def search_new(self, readers: Sequence[WebhookReader], after: datetime) -> datetime:
        """Finds the events after an instant that are visible now. Returns the instant of the last one."""
        return await self._search(readers, after, await self._mongo.now())

    async def search_settled(self, readers: Sequence[WebhookReader]) -> datetime:
        """Finds all events that are older than SETTLED_S. Returns the instant up to which everything was found."""
        after = await self.settled_at(readers)
        until = await self._mongo.now() - timedelta(seconds=SETTLED_S)
        if until <= after:
            return after
        end = await self._search(readers, after, until)
        end = max(end, until)
        # After the search, so that the next worker repeats the search of a worker that was killed.
        await self._searches.update_one({"_id": SEARCH_ID}, {"$max": {"at": end}}, upsert=True)
        return end

    async def search_for(
        self, webhook: Webhook, since: datetime, rewinds: bool, after_page: Callable[[], Awaitable[None]]
    ) -> None:
        """Finds the events since an instant for one webhook, also those that were delivered.

        Calls `after_page` after each page of the log.
        """
        reader = WebhookReader(StreamStart(webhook.id, since), webhook.organization_id, webhook.filter)
        after, until, rewound = since - timedelta(milliseconds=1), await self._mongo.now(), set[Stream]()
        while after < until:
            page, after = await self._events.page_by_time(after, until, PAGE_SIZE)
            found = await self._found_by([reader], _by_stream(page))
            for start, streams in found.items():
                first = {stream: events for stream, events in streams.items() if rewinds and stream not in rewound}
                await self._positions.mark({start: first}, rewinds=True)
                await self._positions.mark({start: streams})
                rewound |= first.keys()
            await after_page()

    async def _search(self, readers: Sequence[WebhookReader], after: datetime, until: datetime) -> datetime:
        """Finds events after an instant. Returns the instant of the last one, or `after` without one."""
        last_at, end = after, after
        while end < until:
            page, end = await self._events.page_by_time(end, until, PAGE_SIZE)
            if page:
                last_at = page[-1]["at"]
                await self._mark(readers, _by_stream(page))
        return last_at

    async def _mark(self, readers: Sequence[WebhookReader], events: _Events) -> None:
        found = await self._found_by(readers, events)
        await self._claims.make_due(await self._positions.mark(found))

    async def _found_by(
        self, readers: Sequence[WebhookReader], events: _Events
    ) -> dict[StreamStart, dict[Stream, FoundEvents]]:
        """Returns the events that each webhook sends. Webhooks that send none of them are left out."""
        places = await self._places(list(events))
        found = {reader.start: _matching(reader, events, places) for reader in readers}
        return {start: streams for start, streams in found.items() if streams}

    async def _places(self, streams: Sequence[Stream]) -> dict[Stream, StreamPlace]:
        """Returns what each stream belongs to. Conversations are left out: they belong to their people only."""
        topics = await self._topics.by_id([stream.id for stream in streams if stream.kind == "topic"])
        communities = await self._communities.by_id([stream.id for stream in streams if stream.kind == "community"])
        places = {stream: place for stream in streams if (place := _place_by_name(stream)) is not None}
        for id_, topic in topics.items():
            if not topic.is_conversation:
                parents = [] if topic.thread_parent is None else [topic.thread_parent.topic_id]
                place = StreamPlace(topic.organization_id, topic.community_id, [id_, *parents])
                places[Stream("topic", id_)] = place
        for id_, community in communities.items():
            places[Stream("community", id_)] = StreamPlace(community.organization_id, id_)
        return places


def _reader(row: WebhookDocument) -> WebhookReader:
    filter_ = WebhookFilter(row["types"], row["communities"], row["topics"], row["jobs"])
    return WebhookReader(StreamStart(row["_id"], row["start"]), row["org"], filter_)


def _by_stream(page: Sequence[EventDocument]) -> _Events:
    """Returns those events that webhooks may send, by stream."""
    events: defaultdict[Stream, list[EventDocument]] = defaultdict(list)
    for event in page:
        event_type = EVENT_TYPES.get(event["kind"])
        stream = parse_stream_name(event["_id"]["s"])
        if event_type is not None and event_type.stream_kind == stream.kind:
            events[stream].append(event)
    return events


def _place_by_name(stream: Stream) -> StreamPlace | None:
    """Returns what a stream belongs to whose name says so, or None."""
    match stream.kind:
        case "jobs":
            return StreamPlace(jobs_stream_owner(stream))
        case "local":
            return StreamPlace(unquote(stream.id))
        case _:
            return None


def _matching(
    reader: WebhookReader, events: _Events, places: Mapping[Stream, StreamPlace]
) -> dict[Stream, FoundEvents]:
    """Returns the events that the webhook sends. Whether a job's event is of one of its jobs is not known here."""
    found: dict[Stream, FoundEvents] = {}
    for stream, place in places.items():
        if place.organization_id != reader.organization_id or not _includes(reader.filter, stream, place):
            continue
        own = [event for event in events[stream] if event["kind"] in reader.filter.types]
        if own:
            first_at = min(event["at"] for event in own)
            found[stream] = FoundEvents(max(event["_id"]["n"] for event in own), first_at)
    return found


def _includes(filter_: WebhookFilter, stream: Stream, place: StreamPlace) -> bool:
    if stream.kind == "jobs":
        return not filter_.is_limited or bool(filter_.job_ids)
    return filter_.includes_place(place.community_id, place.topic_ids)
