"""Writes the events that webhooks send: as JSON of the GraphQL types, with a fixed selection of fields.

The schema executes a subscription for each event, as for a WebSocket of the webhook's account. So a webhook shows
nothing that its account may not see.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import orjson
import strawberry
from graphql import parse
from graphql.execution import Executor

from resolvers.access import granted_roles
from resolvers.chat.events import ChatEventSource
from resolvers.context import Context
from resolvers.feed.events import post_event_record
from resolvers.job_events import ALL_JOB_EVENT_VIEWS
from server.graphql import EventExecution, Operations
from storage.chat.records import Topic
from storage.errors import Unavailable
from storage.identity.records import User
from storage.streams.hub import HydratedEvent
from storage.streams.log import Stream, StreamPosition, format_cursor

DOCUMENT = parse("""
subscription topic { event: topicEvents(topicId: "") {
  ... on Event { cursor at }
  ... on MessagePosted { message { ...message } }
  ... on MessageEdited { message { ...message } }
  ... on MessageDeleted { message { ...message } }
  ... on ReactionsChanged { message { ...message } }
  ... on ThreadChanged { message { ...message } }
  ... on MessagePinned { message { ...message } }
  ... on MessageUnpinned { message { ...message } }
} }
subscription community { event: communityEvents(communityId: "") {
  ... on Event { cursor at }
  ... on TopicCreated { topic { ...topic } }
  ... on TopicActivity { topic { ...topic } }
  ... on TopicChanged { topic { ...topic } }
  ... on CommunityChanged { community { id name description visibility memberCount archivedAt } }
} }
subscription local { event: localEvents {
  ... on Event { cursor at }
  ... on PostArrived { post { ...post } }
  ... on PostRemoved { postId }
} }
subscription jobs { event: jobEvents {
  ... on Event { cursor at }
  ... on CallJobChanged { job { ...job } }
  ... on CallTaskChanged { task { ...task } }
  ... on CallLimitsChanged { limits { concurrentCalls callsPerSecond activeCalls } }
  ... on PublicationChanged { publication { ...publication } }
  ... on PublicationReported { report {
    reason publication { ...publication } post { id text dueAt author { ...person } }
  } }
} }
fragment person on User { id handle name }
fragment file on Attachment { id name url contentType size width height altText }
fragment message on Message {
  id timestamp topicId author { ...person } text stamp { id name imageUrl } mentions { ...person }
  reactions { emoji count } thread { id replyCount } linkPreview { url title description siteName }
  attachments { ...file } quote { message { id } } threadReply { threadId message { id } } alsoInTopic editedAt
  deletedAt
}
fragment topic on Topic {
  id title parentMessageId community { id name } createdAt lastActivity archivedAt slowModeSeconds
}
fragment post on Post {
  id timestamp author { ...person } text mediaUrls attachments { ...file } mentions { ...person } hashtags
  linkPreview { url title description siteName } editedAt
  isReply inReplyTo { id } isRepost repostOf { id } isQuote quoteOf { id }
}
fragment task on CallTask {
  id jobId row phoneNumber variables { name value } state outcome attempts callId startedAt endedAt error
  recording { url contentType size }
}
fragment job on CallJob {
  id timestamp name scenario state createdAt startAt
  progress { total queued active completed failed unknown skipped cancelled outcomes { outcome count } }
}
fragment publication on Publication {
  id scheduledPostId state publishedAt latenessMs externalId url error { code message }
  target {
    __typename
    ... on HomeFeedTarget { author { ...person } }
    ... on TopicTarget { topic { id title } }
    ... on AccountTarget { account { id network name } }
  }
}
""")
"""The subscriptions by whose selections events are written, named by the kind of the stream."""


class WebhookPayloads:
    """Writes the bodies of messages to webhooks."""

    def __init__(self, schema: strawberry.Schema, new_context: Callable[..., Context]) -> None:
        """`new_context` takes keyword arguments of Context."""
        self._operations, self._new_context = Operations(schema), new_context

    async def render(
        self, account: User, stream: Stream, epoch: str, events: Sequence[HydratedEvent], job_ids: Sequence[str]
    ) -> list[bytes | None]:
        """Returns the body of each event's message. None: the account may not see the event, or it is of another job.

        `job_ids` are the jobs whose events are written; empty means all jobs.
        """
        if not events:
            return []
        context = self._new_context(viewer=account, roles=frozenset(account.roles))
        records = [_record(context, account, stream, epoch, event, job_ids) for event in events]
        execution, place = EventExecution(self._executor(context, stream)), await _place(context, account, stream)

        async def body(event: HydratedEvent, record: object | None) -> bytes | None:
            if record is None:
                return None
            data = _data(await execution.run(record))
            header = {"type": event.event.kind, "timestamp": data["at"], "organizationId": account.organization_id}
            return orjson.dumps({**header, "stream": stream.name, **place, "data": data})

        return await asyncio.gather(*map(body, events, records))

    def _executor(self, context: Context, stream: Stream) -> Executor[Any]:
        executor = self._operations.executor_class.build(
            self._operations.schema, DOCUMENT, context_value=context.of_query(), operation_name=stream.kind
        )
        # The document is a constant, and a test validates it.
        assert not isinstance(executor, list)
        return executor


def _record(
    context: Context, account: User, stream: Stream, epoch: str, event: HydratedEvent, job_ids: Sequence[str]
) -> object | None:
    """Returns the record of an event, or None if it is not sent."""
    cursor = format_cursor(stream, StreamPosition(epoch, event.event.n))
    if stream.kind == "local":
        return post_event_record(cursor, event)
    if stream.kind != "jobs":
        return ChatEventSource(context, account, stream, None, "").record(epoch, event)
    view = ALL_JOB_EVENT_VIEWS[event.event.kind]
    is_of_job = not job_ids or not set(job_ids).isdisjoint(view.job_ids(event.subject))
    if not (is_of_job and view.may_see(account, granted_roles(context), event.subject)):
        return None
    return view.record(cursor, event.event.at, event.event.kind, event.subject)


async def _place(context: Context, account: User, stream: Stream) -> dict[str, Any]:
    """Returns the topic of a stream of messages, with its title and its community."""
    if stream.kind != "topic":
        return {}
    topic: Topic | None = await context.stores.topics.find(account.organization_id, stream.id)
    if topic is None:
        return {}
    names = {"id": topic.id, "title": topic.title, "parentMessageId": topic.parent_message_id}
    return {"topic": {**names, "communityId": topic.community_id}}


def _data(payload: bytes) -> Any:
    """Returns the event of a payload. Raises: Unavailable for an event without data, so that it is written again."""
    result = orjson.loads(payload)
    data = result.get("data") or {}
    if data.get("event") is None:
        raise Unavailable(f"The event cannot be written: {result.get('errors')}")
    return data["event"]
