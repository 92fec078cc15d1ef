"""What subscriptions deliver."""

from datetime import datetime
from typing import Annotated, Any

import strawberry
from strawberry import ID

from resolvers import events as records
from schema.calls import CallJob, CallLimits, CallTask
from schema.chat import Message, Topic
from schema.feed import FanOut, Notification, Post
from schema.publishing import Publication
from storage.streams.log import Cursor


@strawberry.interface(
    description=(
        "Each event carries the cursor to resume from. Delivery is at least once, in order; events with equal cursors "
        "are the same event."
    )
)
class Event:
    cursor: Cursor = strawberry.field(description="Where to resume from, as `since`.")
    at: datetime = strawberry.field(description="When it happened, by the database's clock.")


class OfKind:
    """An event's GraphQL type is named by its record's kind."""

    @classmethod
    def is_type_of(cls, record: Any, _info: object) -> bool:
        """Whether the record is of this type."""
        return bool(record.kind == cls.__name__) if hasattr(record, "kind") else False


@strawberry.type(
    description=(
        "First on every subscription, and again after any break on the server's side. A position, not an event: it is "
        "never counted among the events."
    )
)
class StreamReady(Event):
    resumed: bool = strawberry.field(
        description=(
            "True: everything after the given `since` follows, and `cursor` is that `since`. False: fetch afresh (no "
            "since was given, or it is too old, or the stream was reset), then go on with what follows; `cursor` is "
            "the head at that moment."
        )
    )

    @classmethod
    def is_type_of(cls, record: object, _info: object) -> bool:
        """Whether the record is of this type."""
        return isinstance(record, records.StreamReady)


@strawberry.type(description="A new message.")
class MessagePosted(OfKind, Event):
    message: Message = strawberry.field(description="As it is now.")


@strawberry.type(description="A message's text or link preview changed.")
class MessageEdited(OfKind, Event):
    message: Message = strawberry.field(description="As it is now.")


@strawberry.type(description="A message was deleted.")
class MessageDeleted(OfKind, Event):
    message: Message = strawberry.field(description="The tombstone.")


@strawberry.type(description="Somebody reacted to a message, or took a reaction back.")
class ReactionsChanged(OfKind, Event):
    message: Message = strawberry.field(description="As it is now.")


@strawberry.type(description="A new topic in the community.")
class TopicCreated(OfKind, Event):
    topic: Topic = strawberry.field(description="The topic.")


@strawberry.type(description="A topic has new messages; told at most once a second for each topic.")
class TopicActivity(OfKind, Event):
    topic: Topic = strawberry.field(description="The topic.")


TopicEvent = Annotated[
    StreamReady | MessagePosted | MessageEdited | MessageDeleted | ReactionsChanged,
    strawberry.union("TopicEvent", description="What happens to the messages of a topic."),
]

CommunityEvent = Annotated[
    StreamReady | TopicCreated | TopicActivity,
    strawberry.union("CommunityEvent", description="What happens to the topics of a community."),
]


@strawberry.type(description="A post of the viewer's came further on its way into the followers' feeds, or is through.")
class FanOutChanged(OfKind, Event):
    fan_out: FanOut = strawberry.field(description="As it is now.")


@strawberry.type(description="A call job changed: its state at once, its progress at most twice a second.")
class CallJobChanged(OfKind, Event):
    job: CallJob = strawberry.field(description="As it is now.")


@strawberry.type(
    description="A number of a call job changed; at most ten a second of a job, the last change of each too."
)
class CallTaskChanged(OfKind, Event):
    task: CallTask = strawberry.field(description="As it is now.")


@strawberry.type(description="The call limits were set.")
class CallLimitsChanged(OfKind, Event):
    limits: CallLimits = strawberry.field(description="As they are now.")


@strawberry.type(description="A publication was scheduled, changed, or moved on. Its author hears it, and OPERATORs.")
class PublicationChanged(OfKind, Event):
    publication: Publication = strawberry.field(description="As it is now.")


@strawberry.type(description="A post came into the viewer's home feed.")
class PostArrived(OfKind, Event):
    post: Post = strawberry.field(description="As it is now.")


@strawberry.type(description="A post left the viewer's home feed: it was deleted.")
class PostRemoved(OfKind, Event):
    post_id: ID = strawberry.field(description="Which it was.")


@strawberry.type(description="The viewer was told of something.")
class NotificationArrived(OfKind, Event):
    notification: Notification = strawberry.field(description="What it is.")


HomeFeedEvent = Annotated[
    StreamReady | PostArrived | PostRemoved,
    strawberry.union("HomeFeedEvent", description="What happens to the viewer's home feed."),
]

NotificationEvent = Annotated[
    StreamReady | NotificationArrived,
    strawberry.union("NotificationEvent", description="What the viewer is told of."),
]

JobEvent = Annotated[
    StreamReady | PublicationChanged | CallJobChanged | CallTaskChanged | CallLimitsChanged | FanOutChanged,
    strawberry.union("JobEvent", description="What happens to an organization's jobs."),
]
