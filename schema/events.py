"""GraphQL types of the events that subscriptions deliver."""

from datetime import datetime
from typing import Annotated, Any

import strawberry
from strawberry import ID

import resolvers.chat.events
import resolvers.chat.typing_people
from resolvers import events as records
from schema.binding import field, shared_field
from schema.calls import CallJob, CallLimits, CallTask
from schema.chat.communities import Community, Topic
from schema.chat.conversations import Conversation
from schema.chat.messages import Message
from schema.content_reports import ContentReport
from schema.feed.notifications import Notification
from schema.feed.posts import FanOut, Post
from schema.identity import User
from schema.mail.book import BounceRate
from schema.nodes import own_id
from schema.privacy import DataExport
from schema.publishing import Publication, PublicationReport
from storage.streams.log import Cursor


@strawberry.interface(
    description=(
        "An event of a subscription. Delivery is at least once and in order. Events with equal cursors are the same "
        "event."
    )
)
class Event:
    cursor: Cursor = strawberry.field(description="Position after the event. Pass it as `since` to resume there.")
    at: datetime = strawberry.field(description="When the event happened, by the database's clock.")


class EventKindMixin:
    """Recognizes the records of a type by their kind, which is the name of the type."""

    @classmethod
    def is_type_of(cls, record: Any, _info: object) -> bool:
        """Returns whether the record is of this type."""
        return bool(record.kind == cls.__name__) if hasattr(record, "kind") else False


@strawberry.type(
    description=(
        "First item of every subscription, sent again after each interruption on the server's side. It marks a "
        "position and is not an event itself."
    )
)
class StreamReady(Event):
    resumed: bool = strawberry.field(
        description=(
            "True: all events after `since` follow, and `cursor` equals `since`. False: `since` was not set, or it is "
            "too old, or the stream was reset. Then fetch the current state and apply the events that follow; `cursor` "
            "is the current end of the stream."
        )
    )

    @classmethod
    def is_type_of(cls, record: object, _info: object) -> bool:
        """Returns whether the record is of this type."""
        return isinstance(record, records.StreamReady)


@strawberry.type(description="A new message.")
class MessagePosted(EventKindMixin, Event):
    message: Message = strawberry.field(description="The message in its current state.")


@strawberry.type(description="A message's text or link preview changed.")
class MessageEdited(EventKindMixin, Event):
    message: Message = strawberry.field(description="The message in its current state.")


@strawberry.type(description="A message was deleted.")
class MessageDeleted(EventKindMixin, Event):
    message: Message = strawberry.field(description="The tombstone of the message.")


@strawberry.type(description="A reaction to a message was added or removed.")
class ReactionsChanged(EventKindMixin, Event):
    message: Message = strawberry.field(description="The message in its current state.")


@strawberry.type(
    description="The thread of a message has new or deleted replies. Sent at most once a second for each message. The "
    "replies themselves are in the `topicEvents` of the thread."
)
class ThreadChanged(EventKindMixin, Event):
    message: Message = strawberry.field(description="The parent message in its current state.")


@strawberry.type(description="A moderator pinned a message.")
class MessagePinned(EventKindMixin, Event):
    message: Message = strawberry.field(description="The message in its current state.")


@strawberry.type(
    description="A moderator removed a message's pin. Deleting a message removes its pin, too, and sends only "
    "`MessageDeleted`."
)
class MessageUnpinned(EventKindMixin, Event):
    message: Message = strawberry.field(description="The message in its current state.")


@strawberry.type(description="A new topic in the community.")
class TopicCreated(EventKindMixin, Event):
    topic: Topic = strawberry.field(description="The topic.")


@strawberry.type(
    description="A topic has new messages, or its last message was edited or deleted. Sent at most once a second for "
    "each topic."
)
class TopicActivity(EventKindMixin, Event):
    topic: Topic = strawberry.field(description="The topic.")


@strawberry.type(description="A moderator changed a topic: its title, its slow mode, or whether it is archived.")
class TopicChanged(EventKindMixin, Event):
    topic: Topic = strawberry.field(description="The topic in its current state.")


@strawberry.type(
    description="An owner changed a community's name, description, visibility or pictures, or archived or reopened it. "
    "Members receive it also while the community is archived."
)
class CommunityChanged(EventKindMixin, Event):
    community: Community | None = field(
        resolvers.chat.events.changed_community,
        "The community in its current state; null if the viewer may not see it any more.",
    )


@strawberry.type(
    description="A conversation of the viewer is new, has new messages, people or another name, or was left, or its "
    "last message was edited or deleted."
)
class ConversationChanged(EventKindMixin, Event):
    conversation_id: ID = own_id("Conversation", "Id of the conversation.", "conversation_id")
    conversation: Conversation | None = strawberry.field(
        description="The conversation in its current state; null if the viewer has left it or declined."
    )


TopicEvent = Annotated[
    StreamReady
    | MessagePosted
    | MessageEdited
    | MessageDeleted
    | ReactionsChanged
    | ThreadChanged
    | MessagePinned
    | MessageUnpinned
    | TopicChanged,
    strawberry.union("TopicEvent", description="Changes of a topic and its messages."),
]

CommunityEvent = Annotated[
    StreamReady | TopicCreated | TopicActivity | TopicChanged | CommunityChanged,
    strawberry.union("CommunityEvent", description="Changes of a community and its topics."),
]


ConversationEvent = Annotated[
    StreamReady | ConversationChanged,
    strawberry.union("ConversationEvent", description="Changes of the viewer's conversations."),
]


@strawberry.type(
    description="The fan-out of one of the viewer's posts to the followers' home feeds progressed or ended."
)
class FanOutChanged(EventKindMixin, Event):
    fan_out: FanOut = strawberry.field(description="The fan-out in its current state.")


@strawberry.type(description="A call job changed. Changes of state are sent at once, progress at most twice a second.")
class CallJobChanged(EventKindMixin, Event):
    job: CallJob = strawberry.field(description="The job in its current state.")


@strawberry.type(
    description=(
        "A task of a call job changed. At most ten are sent a second for each job; the last change is always sent."
    )
)
class CallTaskChanged(EventKindMixin, Event):
    task: CallTask = strawberry.field(description="The task in its current state.")


@strawberry.type(description="The call limits were set.")
class CallLimitsChanged(EventKindMixin, Event):
    limits: CallLimits = strawberry.field(description="The current limits.")


@strawberry.type(description="A publication was scheduled or changed. Sent to its author and to operators.")
class PublicationChanged(EventKindMixin, Event):
    publication: Publication = strawberry.field(description="The publication in its current state.")


@strawberry.type(
    description="A publication failed, waits for other credentials, has an unknown outcome, or was published late. "
    "Sent once for each, besides `PublicationChanged`, to its author and to operators."
)
class PublicationReported(EventKindMixin, Event):
    report: PublicationReport = strawberry.field(description="What is reported.")


@strawberry.type(
    description="An export of the viewer's data was requested, progressed or ended. Sent to the person only."
)
class DataExportChanged(EventKindMixin, Event):
    export: DataExport = strawberry.field(description="The export in its current state.")


@strawberry.type(description="A post was added to the feed that the subscription follows.")
class PostArrived(EventKindMixin, Event):
    post: Post = strawberry.field(description="The post in its current state.")


@strawberry.type(description="A post was removed from the feed that the subscription follows, because it was deleted.")
class PostRemoved(EventKindMixin, Event):
    post_id: ID = strawberry.field(description="Id of the removed post.")


@strawberry.type(description="The viewer has a new notification.")
class NotificationArrived(EventKindMixin, Event):
    notification: Notification = strawberry.field(description="The notification.")


@strawberry.type(
    description="A notification of the viewer is gone: its conversation was read, accepted, declined or left, or a "
    "newer one has replaced it."
)
class NotificationRemoved(EventKindMixin, Event):
    notification_id: ID = strawberry.field(description="Id that the notification had.")


@strawberry.type(description="A report was filed that the viewer may decide.")
class ContentReported(EventKindMixin, Event):
    report: ContentReport = strawberry.field(description="The report in its current state.")


@strawberry.type(description="A report that the viewer may see was decided.")
class ContentReportDecided(EventKindMixin, Event):
    report: ContentReport = strawberry.field(description="The report in its current state.")


@strawberry.type(description="Mail of a UTC day was counted.")
class BounceRateChanged(EventKindMixin, Event):
    rate: BounceRate = strawberry.field(description="The day's rate in its current state, of all domains together.")


BounceRateEvent = Annotated[
    StreamReady | BounceRateChanged,
    strawberry.union("BounceRateEvent", description="Changes of an organization's bounce rates."),
]

HomeFeedEvent = Annotated[
    StreamReady | PostArrived | PostRemoved,
    strawberry.union("HomeFeedEvent", description="Changes of the viewer's home feed."),
]

PostListEvent = Annotated[
    StreamReady | PostArrived | PostRemoved,
    strawberry.union("PostListEvent", description="Changes of the local feed or of the posts with a hashtag."),
]

NotificationEvent = Annotated[
    StreamReady | NotificationArrived | NotificationRemoved,
    strawberry.union("NotificationEvent", description="Notifications of the viewer that are new or gone."),
]

ContentReportEvent = Annotated[
    StreamReady | ContentReported | ContentReportDecided,
    strawberry.union("ContentReportEvent", description="Changes of a queue of content reports."),
]

JobEvent = Annotated[
    StreamReady
    | PublicationChanged
    | PublicationReported
    | CallJobChanged
    | CallTaskChanged
    | CallLimitsChanged
    | FanOutChanged
    | DataExportChanged,
    strawberry.union(
        "JobEvent", description="Changes of an organization's publications, call jobs, fan-outs and exports."
    ),
]


@strawberry.type(description="A person started typing. `TypingEnded` follows, at the latest when the signal has ended.")
class TypingStarted(EventKindMixin, Event):
    user: User = shared_field(resolvers.chat.typing_people.typing_user, "The person.")


@strawberry.type(description="A person stopped typing, or the signal has ended.")
class TypingEnded(EventKindMixin, Event):
    user: User = shared_field(resolvers.chat.typing_people.typing_user, "The person.")


@strawberry.type(description="The people of a subscription who are online now.")
class OnlinePeopleChanged(EventKindMixin, Event):
    online_user_ids: list[ID] | None = strawberry.field(
        description="Ids of those who are online, of the same kind as those of `Query.onlineUserIds`. Null: not known."
    )


TypingEvent = Annotated[
    StreamReady | TypingStarted | TypingEnded,
    strawberry.union("TypingEvent", description="People who start and stop typing."),
]

PresenceEvent = Annotated[
    StreamReady | OnlinePeopleChanged,
    strawberry.union("PresenceEvent", description="Changes of who is online."),
]
