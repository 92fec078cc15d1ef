"""Registry of event kinds: how to read the objects that events refer to, and how outbox rows become events.

To add a kind of job event, add a line to JOB_EVENT_KINDS. Other kinds of outbox rows are in OUTBOX_RELAYS, and kinds of
streams in SUBJECT_READERS.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from storage.calls.jobs import CallJobStore
from storage.calls.relays import CallJobRelay, CallTaskRelay
from storage.chat.communities import CommunityStore
from storage.chat.conversations.relays import (
    ConversationActiveRelay,
    ConversationActivityRelay,
    ConversationChangedRelay,
    ConversationNotificationRelay,
)
from storage.chat.conversations.store import ConversationStore
from storage.chat.messages import MessageStore
from storage.chat.relays import (
    InvitedMemberRelay,
    MemberRemovedRelay,
    ReactionRelay,
    TopicActivityRelay,
    TopicChangedRelay,
)
from storage.chat.threads.cross_posts import CrossPostRelay
from storage.chat.threads.relays import ThreadActivityRelay
from storage.chat.topics import TopicStore
from storage.feed.content_reports.relays import CommunityVisibilityRelay
from storage.feed.content_reports.store import ContentReportStore
from storage.feed.fan_outs import FanOutStore
from storage.feed.posts import PostStore
from storage.feed.relays import (
    ListedPostArrivedRelay,
    ListedPostRemovedRelay,
    MergedPostArrivedRelay,
    MergedPostRemovedRelay,
    PostArrivedRelay,
    PostListedRelay,
    PostRemovedRelay,
    PostResponseRelay,
    PostUnlistedRelay,
)
from storage.identity.records import stream_owner
from storage.mail.rate_events import BounceRateRelay
from storage.mail.rates import BounceRates
from storage.notifications import (
    NotificationRelay,
    NotificationStore,
    NotificationWithdrawnRelay,
    RemovedNotification,
    notification_id,
)
from storage.privacy.exports import ExportStore
from storage.publishing.posts import ScheduledPostStore
from storage.publishing.reports.team import TeamNotificationRelay
from storage.streams.log import Event, Stream, jobs_stream_owner
from storage.streams.outbox import EventRelay, OutboxRelay, OutboxRelays


@dataclass(frozen=True, slots=True)
class EventSubjectReader:
    """Reads the current state of the objects that events refer to. Deleted objects are left out."""

    communities: CommunityStore
    topics: TopicStore
    messages: MessageStore
    posts: PostStore
    notifications: NotificationStore
    fan_outs: FanOutStore
    call_jobs: CallJobStore
    scheduled_posts: ScheduledPostStore
    exports: ExportStore
    content_reports: ContentReportStore
    conversations: ConversationStore
    bounce_rates: BounceRates

    async def __call__(self, stream: Stream, events: Sequence[Event]) -> Mapping[int, Any]:
        """Returns the subjects of events of one stream, by event number."""
        return await SUBJECT_READERS[stream.kind](self, stream, events)


ReadByRef = Callable[[str, Sequence[Any]], Awaitable[Mapping[Any, Any]]]
"""Reads an organization's objects by the refs of events."""


@dataclass(frozen=True, slots=True)
class JobEventKind:
    """A kind of event in an organization's stream of jobs.

    `name` is also the name of its GraphQL type and the `kind` of its outbox rows. Kinds without a relay have no outbox
    rows. resolvers/job_events.py decides which viewers may see the event.
    """

    name: str
    reader: Callable[[EventSubjectReader], ReadByRef]
    relay: type[OutboxRelay] | None = None


JOB_EVENT_KINDS: Sequence[JobEventKind] = (
    JobEventKind("FanOutChanged", lambda stores: stores.fan_outs.by_timestamp, EventRelay),
    JobEventKind("CallJobChanged", lambda stores: stores.call_jobs.jobs_by_id, CallJobRelay),
    JobEventKind("CallTaskChanged", lambda stores: stores.call_jobs.tasks_by_id, CallTaskRelay),
    JobEventKind("CallLimitsChanged", lambda stores: stores.call_jobs.limits_by_id),
    JobEventKind("PublicationChanged", lambda stores: stores.scheduled_posts.publications_by_id, EventRelay),
    JobEventKind("PublicationReported", lambda stores: stores.scheduled_posts.reports_by_ref, EventRelay),
    JobEventKind("DataExportChanged", lambda stores: stores.exports.by_user_id, EventRelay),
)

OUTBOX_RELAYS: OutboxRelays = {
    "TopicActivity": TopicActivityRelay,
    "TopicChanged": TopicChangedRelay,
    "CommunityVisibility": CommunityVisibilityRelay,
    "ThreadActivity": ThreadActivityRelay,
    "CrossPost": CrossPostRelay,
    "ConversationActivity": ConversationActivityRelay,
    "ConversationActive": ConversationActiveRelay,
    "ConversationChanged": ConversationChangedRelay,
    "ConversationNotification": ConversationNotificationRelay,
    "Reaction": ReactionRelay,
    "MemberRemoved": MemberRemovedRelay,
    "InvitedMember": InvitedMemberRelay,
    "Notify": NotificationRelay,
    "NotificationWithdrawn": NotificationWithdrawnRelay,
    "NotifyTeam": TeamNotificationRelay,
    "PostArrived": PostArrivedRelay,
    "PostRemoved": PostRemovedRelay,
    "PostResponse": PostResponseRelay,
    "PostListed": PostListedRelay,
    "PostUnlisted": PostUnlistedRelay,
    "ListedPostArrived": ListedPostArrivedRelay,
    "ListedPostRemoved": ListedPostRemovedRelay,
    "MergedPostArrived": MergedPostArrivedRelay,
    "MergedPostRemoved": MergedPostRemovedRelay,
    "BounceRateChanged": BounceRateRelay,
    **{kind.name: kind.relay for kind in JOB_EVENT_KINDS if kind.relay is not None},
}


async def _read_communities_and_topics(
    stores: EventSubjectReader, stream: Stream, events: Sequence[Event]
) -> Mapping[int, Any]:
    """Reads the topics of the events; for events about the community itself, the community."""
    about_community = [event for event in events if event.kind == "CommunityChanged"]
    about_topics = [event for event in events if event.kind != "CommunityChanged"]
    communities = await stores.communities.by_id([stream.id]) if about_community else {}
    topics = await _read_topics(stores, stream, about_topics) if about_topics else {}
    return {**topics, **_by_number(about_community, communities)}


async def _read_topics(stores: EventSubjectReader, _stream: Stream, events: Sequence[Event]) -> Mapping[int, Any]:
    return _by_number(events, await stores.topics.by_id([event.ref for event in events]))


async def _read_nothing(_stores: EventSubjectReader, _stream: Stream, _events: Sequence[Event]) -> Mapping[int, Any]:
    """Returns no subjects: the events of the stream are delivered to no client."""
    return {}


async def _read_messages(stores: EventSubjectReader, stream: Stream, events: Sequence[Event]) -> Mapping[int, Any]:
    """Reads the messages of the events; for events about the topic itself, the topic."""
    about_topic = [event for event in events if event.kind == "TopicChanged"]
    about_messages = [event for event in events if event.kind != "TopicChanged"]
    topics = await _read_topics(stores, stream, about_topic) if about_topic else {}
    return {**topics, **_by_number(about_messages, await stores.messages.of_events(stream.id, about_messages))}


async def _read_notifications(stores: EventSubjectReader, stream: Stream, events: Sequence[Event]) -> Mapping[int, Any]:
    """Reads the notifications of the events; for removals, the id that the notification had."""
    owner_id = stream_owner(stream)[1]
    removed = {
        event.n: RemovedNotification(notification_id(owner_id, event.ref))
        for event in events
        if event.kind == "NotificationRemoved"
    }
    arrived = [event for event in events if event.n not in removed]
    found = await stores.notifications.of_events(stream, [event.ref for event in arrived]) if arrived else {}
    return {**removed, **_by_number(arrived, found)}


async def _read_posts(stores: EventSubjectReader, stream: Stream, events: Sequence[Event]) -> Mapping[int, Any]:
    changes = [(event.kind, event.ref) for event in events]
    subjects = await stores.posts.subjects_of_events(stream_owner(stream)[0], changes)
    return {event.n: subjects[each] for event, each in zip(events, changes, strict=True) if each in subjects}


async def _read_reports(stores: EventSubjectReader, _stream: Stream, events: Sequence[Event]) -> Mapping[int, Any]:
    return _by_number(events, await stores.content_reports.by_id([event.ref for event in events]))


async def _read_conversations(
    stores: EventSubjectReader, _stream: Stream, events: Sequence[Event]
) -> Mapping[int, Any]:
    return _by_number(events, await stores.conversations.by_id([event.ref for event in events]))


async def _read_bounce_rates(stores: EventSubjectReader, stream: Stream, events: Sequence[Event]) -> Mapping[int, Any]:
    return _by_number(events, await stores.bounce_rates.of_days(stream.id, [event.ref for event in events]))


async def _read_jobs(stores: EventSubjectReader, stream: Stream, events: Sequence[Event]) -> Mapping[int, Any]:
    """Reads the subjects with one query for each kind. Events of a kind unknown to this version are left out."""
    subjects: dict[int, Any] = {}
    for kind in JOB_EVENT_KINDS:
        of_kind = [event for event in events if event.kind == kind.name]
        if of_kind:
            refs = list({event.ref for event in of_kind})
            subjects |= _by_number(of_kind, await kind.reader(stores)(jobs_stream_owner(stream), refs))
    return subjects


def _by_number(events: Sequence[Event], subjects: Mapping[Any, Any]) -> dict[int, Any]:
    return {event.n: subjects[event.ref] for event in events if event.ref in subjects}


SUBJECT_READERS: Mapping[str, Callable[[EventSubjectReader, Stream, Sequence[Event]], Awaitable[Mapping[int, Any]]]] = {
    "community": _read_communities_and_topics,
    "removals": _read_nothing,
    "topic": _read_messages,
    "user": _read_notifications,
    "author": _read_posts,
    "home": _read_posts,
    "merged": _read_posts,
    "local": _read_posts,
    "hashtag": _read_posts,
    "jobs": _read_jobs,
    "reports": _read_reports,
    "conversations": _read_conversations,
    "bounce_rates": _read_bounce_rates,
}
"""Readers of subjects, by the kind of the stream."""
