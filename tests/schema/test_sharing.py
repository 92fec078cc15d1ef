"""Shared fields: how the schema marks them, and that the value of each is equal for all viewers."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from typing import Any

import pytest
import strawberry
from graphql import (
    GraphQLObjectType,
    get_named_type,
    is_leaf_type,
    parse,
)
from graphql.execution import Executor, execute_subscription_event
from strawberry.extensions import FieldExtension

from resolvers.chat.events import (
    ChatEventRecord,
    CommunityEvent,
    MessageEvent,
    StreamReady,
    TopicEvent,
    TypingEvent,
)
from resolvers.context import Context
from schema.binding import field, shared_field
from schema.root import schema
from schema.sharing import depends_on_viewer, is_shared
from storage.stores import Stores
from storage.streams.log import Cursor
from tests.schema.fields import field_binding, possible_types
from tests.schema.viewers import (
    VIEWER_IDS,
    DifferingViewers,
    ExpectedValues,
    create_differing_viewers,
    expected_in_community_events,
    expected_in_events_of_cross_post,
    expected_in_topic_events,
)
from tests.server.graphql.graphql_server import GraphQLServer, RecordedSubscription, serve_graphql
from tests.waiting import poll_until_true

GRAPHQL_CORE_SCHEMA = schema._schema
assert GRAPHQL_CORE_SCHEMA.subscription_type is not None
OBJECTS = {
    name: type_
    for name, type_ in GRAPHQL_CORE_SCHEMA.type_map.items()
    if isinstance(type_, GraphQLObjectType) and not name.startswith("__")
}
SINGLE_VIEWER_SUBSCRIPTIONS = {"homeFeedEvents", "notificationEvents", "jobEvents"} | {
    "bounceRateEvents",
    "contentReportEvents",
    "conversationEvents",
    "presenceEvents",
    "localEvents",
    "hashtagEvents",
}
"""Subscriptions to a stream of one viewer. None of their fields is shared."""

SUBSCRIPTIONS = {
    name: field
    for name, field in GRAPHQL_CORE_SCHEMA.subscription_type.fields.items()
    if name not in SINGLE_VIEWER_SUBSCRIPTIONS
}
DEPTH = 5


def reachable_types(*types: GraphQLObjectType) -> set[GraphQLObjectType]:
    """Returns the types and all types that can be selected below them."""
    visited: set[GraphQLObjectType] = set()
    pending = list(types)
    while pending:
        type_ = pending.pop()
        if type_ not in visited:
            visited.add(type_)
            pending += [possible_type for each in type_.fields.values() for possible_type in possible_types(each.type)]
    return visited


def fields_with_resolver(*types: GraphQLObjectType) -> Iterator[tuple[GraphQLObjectType, str]]:
    """Yields every field with a resolver that can be selected below objects of the types, as type and name."""
    for type_ in sorted(reachable_types(*types), key=str):
        yield from ((type_, name) for name in type_.fields if field_binding(type_, name).base_resolver is not None)


def event_types(root: str) -> list[GraphQLObjectType]:
    """Returns the types of the events of a field of Subscription."""
    return possible_types(SUBSCRIPTIONS[root].type)


def viewer_dependent_fields(*types: GraphQLObjectType) -> set[str]:
    """Returns the viewer-dependent fields below objects of the types, as Type.field."""
    return {
        f"{type_}.{name}"
        for type_, name in fields_with_resolver(*types)
        if not field_binding(type_, name).metadata.get("shared")
    }


EVERY_FIELD = sorted((name, each) for name, type_ in OBJECTS.items() for each in type_.fields)
VIEWER_DEPENDENT_FIELDS = sorted(
    {each for root in SUBSCRIPTIONS for each in viewer_dependent_fields(*event_types(root))}
)


def selection(type_: GraphQLObjectType, name: str) -> str:
    """Returns the selection of a field, with its required arguments and a selection below it."""
    types_below = possible_types(type_.fields[name].type)
    inner = " ".join(f"... on {each} {{ __typename }}" for each in types_below)
    arguments = "(latest: $now)" if "latest" in type_.fields[name].args else ""
    return f"{name}{arguments} {f'{{ {inner} }}' if types_below else ''}"


@pytest.mark.parametrize(("type_name", "name"), EVERY_FIELD)
def test_only_attributes_and_marked_fields_are_shared(type_name: str, name: str) -> None:
    binding = field_binding(OBJECTS[type_name], name)
    assert is_shared(binding) == (binding.base_resolver is None or binding.metadata.get("shared") is True)


def test_sharing_depends_on_mark_resolver_and_extension() -> None:
    async def resolve_number() -> int:
        return 1

    class GuardExtension(FieldExtension):
        pass

    @strawberry.type
    class ExampleType:
        plain: int
        described: int = strawberry.field(description="Plain.")
        marked: int = shared_field(resolve_number, "Marked.")
        unmarked: int = field(resolve_number, "Not marked.")
        guarded: int = strawberry.field(extensions=[GuardExtension()])

    definition = ExampleType.__strawberry_definition__  # type: ignore[attr-defined]
    shared = {each.python_name for each in definition.fields if is_shared(each)}
    assert shared == {"plain", "described", "marked"}


DOCUMENTS_BY_STYLE = {
    "inline": "subscription {{ topicEvents(topicId: 1) {{ ... on MessagePosted {{ {on} }} }} }}",
    "by a fragment": "subscription {{ topicEvents(topicId: 1) {{ ...f }} }} fragment f on {type} {{ {field} }}",
    "by a fragment of a fragment": (
        "subscription {{ topicEvents(topicId: 1) {{ ...f }} }} fragment f on MessagePosted {{ cursor ...g }} "
        "fragment g on {type} {{ cursor: __typename it: {field} }}"
    ),
    "with a directive": "subscription {{ topicEvents(topicId: 1) {{ ... on {type} @skip(if: true) {{ {field} }} }} }}",
}


@pytest.mark.parametrize("style", DOCUMENTS_BY_STYLE)
@pytest.mark.parametrize("path", VIEWER_DEPENDENT_FIELDS)
def test_document_with_viewer_field_is_not_shared(path: str, style: str) -> None:
    type_name, _, name = path.partition(".")
    field_selection = selection(OBJECTS[type_name], name)
    text = DOCUMENTS_BY_STYLE[style].format(
        type=type_name, field=field_selection, on=f"... on {type_name} {{ {field_selection} }}"
    )
    assert depends_on_viewer(GRAPHQL_CORE_SCHEMA, parse(text))
    shared = text.replace(field_selection, "__typename")
    assert not depends_on_viewer(GRAPHQL_CORE_SCHEMA, parse(shared))


@strawberry.interface
class Named:
    name: str


@strawberry.type
class Lamp(Named):
    watts: int


async def viewer_field(info: strawberry.Info[Any, None]) -> str:
    return str(info.context)


@strawberry.type
class Mirror(Named):
    name: str = field(viewer_field, "The viewer's name.")


@strawberry.type
class Room:
    things: list[Named]
    lamp: Lamp


async def rooms() -> AsyncIterator[Room]:
    yield Room(things=[], lamp=Lamp(name="", watts=1))


@strawberry.type
class Rooms:
    rooms: AsyncIterator[Room] = strawberry.subscription(resolver=rooms)


def test_interface_field_depends_on_viewer_if_any_type_does() -> None:
    core_schema = strawberry.Schema(query=Room, subscription=Rooms, types=[Lamp, Mirror])._schema
    for document, expected in {
        "subscription { rooms { things { name } } }": True,
        "subscription { rooms { things { ... on Named { name } } } }": True,
        "subscription { rooms { things { ... on Mirror { name } } } }": True,
        "subscription { rooms { things { ...f } } } fragment f on Named { name }": True,
        "subscription { rooms { things { ... on Lamp { name watts } } lamp { name } } }": False,
        "subscription { rooms { things { __typename } } }": False,
    }.items():
        assert depends_on_viewer(core_schema, parse(document)) == expected, document


def all_shared_fields(type_: GraphQLObjectType, depth: int = DEPTH) -> str:
    """Returns a selection of all shared fields of a type, recursively."""
    fields = []
    for name, each in type_.fields.items():
        if is_shared(field_binding(type_, name)):
            if is_leaf_type(get_named_type(each.type)):
                fields.append(name)
            elif depth:
                inner = " ".join(
                    f"... on {m} {{ {all_shared_fields(m, depth - 1)} }}" for m in possible_types(each.type)
                )
                fields.append(f"{name} {{ {inner} }}")
    return " ".join(["__typename", *fields])


def shared_document(root: str) -> str:
    """Returns a subscription that selects all shared fields below a field of Subscription."""
    inner = " ".join(
        f"... on {each} {{ {all_shared_fields(each)} }}" for each in possible_types(SUBSCRIPTIONS[root].type)
    )
    arguments = ", ".join(f"{name}: 1" for name in SUBSCRIPTIONS[root].args if name != "since")
    return f"subscription {{ {root}{f'({arguments})' if arguments else ''} {{ {inner} }} }}"


@pytest.mark.parametrize("root", SUBSCRIPTIONS)
def test_document_of_all_shared_fields_is_shared(root: str) -> None:
    assert not depends_on_viewer(GRAPHQL_CORE_SCHEMA, parse(shared_document(root)))


@pytest.fixture
async def viewers(stores: Stores) -> DifferingViewers:
    return await create_differing_viewers(stores)


ANY_POSITION = {"cursor": Cursor("somewhere"), "at": datetime(2025, 1, 1, tzinfo=UTC)}


def example_events(root: str, viewers: DifferingViewers) -> list[ChatEventRecord]:
    """Returns an example event of every kind that the subscription yields. Add one here for each new kind."""
    ready = StreamReady(**ANY_POSITION, resumed=True)  # type: ignore[arg-type]
    factories: dict[str, Callable[[str], ChatEventRecord]] = {
        "StreamReady": lambda kind: ready,
        "MessagePosted": lambda kind: MessageEvent(**ANY_POSITION, kind=kind, message=viewers.cross_post),  # type: ignore[arg-type]
        **dict.fromkeys(
            (
                "MessageEdited",
                "MessageDeleted",
                "ReactionsChanged",
                "ThreadChanged",
                "MessagePinned",
                "MessageUnpinned",
            ),
            lambda kind: MessageEvent(**ANY_POSITION, kind=kind, message=viewers.first_message),  # type: ignore[arg-type]
        ),
        **dict.fromkeys(
            ("TopicCreated", "TopicActivity", "TopicChanged"),
            lambda kind: TopicEvent(**ANY_POSITION, kind=kind, topic=viewers.scenario.topic),  # type: ignore[arg-type]
        ),
        **dict.fromkeys(
            ("TypingStarted", "TypingEnded"),
            lambda kind: TypingEvent(**ANY_POSITION, kind=kind, user_id="dan"),  # type: ignore[arg-type]
        ),
        "CommunityChanged": lambda kind: CommunityEvent(
            **ANY_POSITION,  # type: ignore[arg-type]
            kind=kind,
            community_id=viewers.scenario.community.id,
        ),
    }
    kinds = [each.name for each in possible_types(SUBSCRIPTIONS[root].type)]
    unknown = set(kinds) - set(factories)
    assert not unknown, f"Add an example event to example_events() for: {', '.join(sorted(unknown))}."
    return [factories[kind](kind) for kind in kinds]


async def execute_shared_document(root: str, record: ChatEventRecord, context: Context) -> Any:
    """Returns the data of one event, with all shared fields selected."""
    executor = Executor.build(GRAPHQL_CORE_SCHEMA, parse(shared_document(root)), context_value=context)
    assert isinstance(executor, Executor)
    result = execute_subscription_event(executor.build_per_event_executor(record))
    execution = result if not hasattr(result, "__await__") else await result
    assert not execution.errors, execution.errors
    assert execution.data is not None
    return execution.data[root]


@pytest.mark.anyio
@pytest.mark.parametrize("root", SUBSCRIPTIONS)
async def test_shared_fields_are_equal_for_all_viewers(viewers: DifferingViewers, root: str) -> None:
    fields_with_value: set[str] = set()
    for record in example_events(root, viewers):
        first, *others = [await execute_shared_document(root, record, viewers.context(name)) for name in VIEWER_IDS]
        for name, other in zip(VIEWER_IDS[1:], others, strict=True):
            assert other == first, name
        fields_with_value |= set(non_empty_fields(first))
    marked_fields = {
        f"{type_}.{name}"
        for type_, name in fields_with_resolver(*event_types(root))
        if is_shared(field_binding(type_, name))
    }
    reachable_fields = {each for each in marked_fields if each.partition(".")[0] in shared_types(root)}
    missing = sorted(reachable_fields - fields_with_value)
    assert not missing, f"Give these fields a value in create_differing_viewers(): {', '.join(missing)}."


def shared_types(root: str) -> set[str]:
    """Returns the types that can be reached through shared fields only."""
    names: set[str] = set()
    pending = list(possible_types(SUBSCRIPTIONS[root].type))
    while pending:
        type_ = pending.pop()
        if type_.name not in names:
            names.add(type_.name)
            shared = [each for name, each in type_.fields.items() if is_shared(field_binding(type_, name))]
            pending += [possible_type for each in shared for possible_type in possible_types(each.type)]
    return names


def non_empty_fields(value: Any) -> Iterator[str]:
    """Yields each field of a response that is neither null nor an empty list, as Type.field."""
    if isinstance(value, list):
        for item in value:
            yield from non_empty_fields(item)
    elif isinstance(value, dict):
        for name, inner in value.items():
            if inner not in (None, []):
                yield f"{value['__typename']}.{name}"
            yield from non_empty_fields(inner)


def check_coverage(subject: str, expected: dict[str, ExpectedValues]) -> dict[str, ExpectedValues]:
    """Returns the expected values of an event's subject, a Message or a Topic.

    Asserts that they cover every viewer-dependent field and differ between viewers.
    """
    dependent = viewer_dependent_fields(OBJECTS[subject])
    missing, superfluous = dependent - set(expected), set(expected) - dependent
    assert not missing, f"Add expected values for a {subject} to tests/schema/viewers.py: {', '.join(sorted(missing))}."
    assert not superfluous, f"No longer depends on the viewer in a {subject}: {', '.join(sorted(superfluous))}."
    for path, each in expected.items():
        assert len({repr(value) for value in each.values.values()}) > 1, f"All viewers get the same value of {path}."
    return expected


async def assert_viewers_get_own_values(
    server: GraphQLServer,
    expected: dict[str, ExpectedValues],
    document: str,
    emit_event: Callable[[], Awaitable[object]],
) -> None:
    """Asserts that each viewer gets their own values, although they subscribe to the same documents."""
    async with AsyncExitStack() as stack:
        subscriptions: dict[tuple[str, str], RecordedSubscription] = {}
        for path, each in expected.items():
            for user_id in each.values:
                query = document % f"it: {each.selection}"
                subscription = server.subscribed(user_id, query=query, community=server.scenario.community.id)
                subscriptions[path, user_id] = await stack.enter_async_context(subscription)
        await emit_event()
        expected_values = {
            (path, user_id): value for path, each in expected.items() for user_id, value in each.values.items()
        }
        await poll_until_true(lambda: last_values(subscriptions) == expected_values)
        assert last_values(subscriptions) == expected_values


def last_values(subscriptions: dict[tuple[str, str], RecordedSubscription]) -> dict[tuple[str, str], Any]:
    """Returns the selected value of each subscription's last event."""
    return {key: each.events[-1]["of"]["it"] if each.events else "no event" for key, each in subscriptions.items()}


@pytest.mark.anyio
async def test_messages_show_each_viewer_own_fields(viewers: DifferingViewers) -> None:
    document = """
        subscription ($topic: ID!) {
          topicEvents(topicId: $topic) { __typename ... on MessageEdited { of: message { %s } } }
        }
    """
    of_first, of_cross_post = expected_in_topic_events(viewers), expected_in_events_of_cross_post()
    check_coverage("Message", of_first | of_cross_post)
    first, reply = viewers.first_message, viewers.reply
    async with serve_graphql(viewers.scenario) as server:
        edit = viewers.stores.messages.edit
        await assert_viewers_get_own_values(
            server, of_first, document, lambda: edit(first.key, "dan", first.text, first.mention_ids)
        )
        await assert_viewers_get_own_values(server, of_cross_post, document, lambda: edit(reply.key, "dan", "new", ()))


TOPIC_ACTIVITY = """
subscription ($community: ID!) {
  communityEvents(communityId: $community) { __typename ... on TopicActivity { of: topic { %s } } }
}
"""
SHOWN_ELSEWHERE = {"Thread.lastReply", "ThreadReply.parentMessage"}
"""Fields with a test of their own: a viewer has at most 20 subscriptions to one stream."""


@pytest.mark.anyio
@pytest.mark.parametrize("elsewhere", [False, True])
async def test_topics_show_each_viewer_own_fields(viewers: DifferingViewers, elsewhere: bool) -> None:
    covered = check_coverage("Topic", expected_in_community_events(viewers))
    expected = {path: each for path, each in covered.items() if (path in SHOWN_ELSEWHERE) == elsewhere}
    async with serve_graphql(viewers.scenario) as server:
        post = viewers.scenario.post
        await assert_viewers_get_own_values(server, expected, TOPIC_ACTIVITY, lambda: post("last", "cat"))
