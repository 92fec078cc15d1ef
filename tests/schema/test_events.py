"""Every emitted kind of event has a GraphQL type, and every job event a visibility rule."""

from typing import Any, get_args

import pytest

import schema.events
from resolvers.job_events import ALL_JOB_EVENT_VIEWS
from schema.events import (
    BounceRateEvent,
    CommunityEvent,
    ContentReportEvent,
    ConversationEvent,
    EventKindMixin,
    HomeFeedEvent,
    JobEvent,
    NotificationEvent,
    PresenceEvent,
    StreamReady,
    TopicEvent,
    TypingEvent,
)
from storage.identity.presence.typing_hub import TYPING_KINDS
from storage.stores.event_kinds import JOB_EVENT_KINDS
from tests.storage.emitted_kinds import event_kinds

UNIONS = (
    TopicEvent,
    CommunityEvent,
    ConversationEvent,
    HomeFeedEvent,
    NotificationEvent,
    JobEvent,
    ContentReportEvent,
    TypingEvent,
    PresenceEvent,
    BounceRateEvent,
)
EPHEMERAL_KINDS = TYPING_KINDS | {"OnlinePeopleChanged"}
"""Kinds of events that no log holds."""

UNTYPED_KINDS = {"MemberRemoved"}
"""Kinds of events that no subscription delivers."""


def members(union: Any) -> set[str]:
    """Returns the names of a union's types, without StreamReady."""
    return {type_.__name__ for type_ in get_args(get_args(union)[0])} - {StreamReady.__name__}


def test_emitted_event_kinds_all_have_a_type() -> None:
    types = {type_.__name__ for type_ in EventKindMixin.__subclasses__() if type_.__module__ == schema.events.__name__}
    kinds = event_kinds() - UNTYPED_KINDS | EPHEMERAL_KINDS
    untyped, unused = sorted(kinds - types), sorted(types - kinds)
    assert not untyped, f"Add types to schema/events.py that are named like the kinds {untyped}."
    assert not unused, f"No change in storage/ emits these types of schema/events.py: {unused}."


def test_event_types_are_all_in_a_union() -> None:
    types = {type_.__name__ for type_ in EventKindMixin.__subclasses__() if type_.__module__ == schema.events.__name__}
    differing = sorted(types ^ set().union(*(members(union) for union in UNIONS)))
    assert not differing, f"The event types of schema/events.py and the members of its unions differ by {differing}."


@pytest.mark.parametrize(
    ("table", "kinds"),
    [
        ("ALL_JOB_EVENT_VIEWS in resolvers/job_events.py, from each area's table,", set(ALL_JOB_EVENT_VIEWS)),
        ("the union JobEvent in schema/events.py", members(JobEvent)),
    ],
    ids=["views", "union"],
)
def test_job_event_kinds_are_in_the_views_and_in_the_union(table: str, kinds: set[str]) -> None:
    names = {kind.name for kind in JOB_EVENT_KINDS}
    assert kinds == names, (
        f"{table} and JOB_EVENT_KINDS in storage/stores/event_kinds.py differ by {sorted(kinds ^ names)}."
    )
