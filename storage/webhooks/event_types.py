"""The types of events that webhooks send. Each name is also the name of the GraphQL type."""

from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WebhookEventType:
    """Where events of a type come from. `scope` is the scope that a service key needs to read them."""

    stream_kind: str
    scope: str


_MESSAGES = WebhookEventType("topic", "chat:read")
_COMMUNITIES = WebhookEventType("community", "chat:read")
_POSTS = WebhookEventType("local", "feed:read")
_JOBS = WebhookEventType("jobs", "jobs:read")

EVENT_TYPES: dict[str, WebhookEventType] = {
    "CallJobChanged": _JOBS,
    "CallLimitsChanged": _JOBS,
    "CallTaskChanged": _JOBS,
    "CommunityChanged": _COMMUNITIES,
    "MessageDeleted": _MESSAGES,
    "MessageEdited": _MESSAGES,
    "MessagePinned": _MESSAGES,
    "MessagePosted": _MESSAGES,
    "MessageUnpinned": _MESSAGES,
    "PostArrived": _POSTS,
    "PostRemoved": _POSTS,
    "PublicationChanged": _JOBS,
    "PublicationReported": _JOBS,
    "ReactionsChanged": _MESSAGES,
    "ThreadChanged": _MESSAGES,
    "TopicActivity": _COMMUNITIES,
    "TopicChanged": _COMMUNITIES,
    "TopicCreated": _COMMUNITIES,
}
"""By name. The stream of a topic has a TopicChanged too, which is left out, since the community's stream has it."""

TEST_TYPE = "WebhookTest"
"""The type of the message that `testWebhook` sends."""

GAP_TYPE = "StreamReady"
"""The type of the message that says that events of a stream are lost."""


def types_of_stream(stream_kind: str, types: Collection[str]) -> frozenset[str]:
    """Returns those of the types whose events come from streams of the kind."""
    return frozenset(name for name in types if EVENT_TYPES[name].stream_kind == stream_kind)
