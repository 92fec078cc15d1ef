"""Shared fields: decided from the schema for every field, and proved for every field by differing_viewers viewers."""

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

from resolvers.chat.events import EventRecord, MessageEvent, StreamReady, TopicEvent
from resolvers.context import Context
from schema.binding import field, shared_field
from schema.root import schema
from schema.sharing import depends_on_viewer, is_shared
from storage.stores import Stores
from storage.streams.log import Cursor
from tests.schema.fields import bound, members
from tests.schema.viewers import NAMES, Expectation, World, differing_viewers, in_community_events, in_topic_events
from tests.server.graphql.listeners import Heard, House, eventually, open_house

CORE = schema._schema
assert CORE.subscription_type is not None
OBJECTS = {
    name: type_
    for name, type_ in CORE.type_map.items()
    if isinstance(type_, GraphQLObjectType) and not name.startswith("__")
}
OWN = {"homeFeedEvents", "notificationEvents", "jobEvents"}
"""Subscriptions of a single viewer: none of their fields is shared."""

SUBSCRIPTIONS = {name: field for name, field in CORE.subscription_type.fields.items() if name not in OWN}
DEPTH = 5


def reachable(*types: GraphQLObjectType) -> set[GraphQLObjectType]:
    """Returns the types and all types that can be selected below them."""
    found: set[GraphQLObjectType] = set()
    left = list(types)
    while left:
        type_ = left.pop()
        if type_ not in found:
            found.add(type_)
            left += [member for each in type_.fields.values() for member in members(each.type)]
    return found


def resolved(root: str) -> Iterator[tuple[GraphQLObjectType, str]]:
    """Returns every field with its own resolver below a field of Subscription, by type."""
    for type_ in sorted(reachable(*members(SUBSCRIPTIONS[root].type)), key=str):
        yield from ((type_, name) for name in type_.fields if bound(type_, name).base_resolver is not None)


def dependent(root: str) -> set[str]:
    """Returns the fields that depend on the viewer, as Type.field."""
    return {f"{type_}.{name}" for type_, name in resolved(root) if not bound(type_, name).metadata.get("shared")}


EVERY_FIELD = sorted((name, each) for name, type_ in OBJECTS.items() for each in type_.fields)
EVERY_DEPENDENT = sorted({each for root in SUBSCRIPTIONS for each in dependent(root)})


def selection(type_: GraphQLObjectType, name: str) -> str:
    """Returns the selection of a field, with its required arguments and a sub-selection."""
    below = members(type_.fields[name].type)
    inner = " ".join(f"... on {each} {{ __typename }}" for each in below)
    arguments = "(latest: $now)" if "latest" in type_.fields[name].args else ""
    return f"{name}{arguments} {f'{{ {inner} }}' if below else ''}"


@pytest.mark.parametrize(("type_name", "name"), EVERY_FIELD)
def test_only_attributes_and_marked_fields_are_shared(type_name: str, name: str) -> None:
    found = bound(OBJECTS[type_name], name)
    assert is_shared(found) == (found.base_resolver is None or found.metadata.get("shared") is True)


def test_sharing_depends_on_mark_resolver_and_extension() -> None:
    async def something() -> int:
        return 1

    class Guard(FieldExtension):
        pass

    @strawberry.type
    class Thing:
        plain: int
        described: int = strawberry.field(description="Plain.")
        marked: int = shared_field(something, "Marked.")
        unmarked: int = field(something, "Not marked.")
        guarded: int = strawberry.field(extensions=[Guard()])

    definition = Thing.__strawberry_definition__  # type: ignore[attr-defined]
    shared = {each.python_name for each in definition.fields if is_shared(each)}
    assert shared == {"plain", "described", "marked"}


WAYS = {
    "inline": "subscription {{ topicEvents(topicId: 1) {{ ... on MessagePosted {{ {on} }} }} }}",
    "by a fragment": "subscription {{ topicEvents(topicId: 1) {{ ...f }} }} fragment f on {type} {{ {field} }}",
    "by a fragment of a fragment": (
        "subscription {{ topicEvents(topicId: 1) {{ ...f }} }} fragment f on MessagePosted {{ cursor ...g }} "
        "fragment g on {type} {{ cursor: __typename it: {field} }}"
    ),
    "with a directive": "subscription {{ topicEvents(topicId: 1) {{ ... on {type} @skip(if: true) {{ {field} }} }} }}",
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("place", EVERY_DEPENDENT)
def test_document_with_viewer_field_is_not_shared(place: str, way: str) -> None:
    type_name, _, name = place.partition(".")
    selected = selection(OBJECTS[type_name], name)
    text = WAYS[way].format(type=type_name, field=selected, on=f"... on {type_name} {{ {selected} }}")
    assert depends_on_viewer(CORE, parse(text))
    shared = text.replace(selected, "__typename")
    assert not depends_on_viewer(CORE, parse(shared))


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
    name: str = field(viewer_field, "Who looks.")


@strawberry.type
class Room:
    things: list[Named]
    lamp: Lamp


async def rooms() -> AsyncIterator[Room]:
    yield Room(things=[], lamp=Lamp(name="", watts=1))


@strawberry.type
class Rooms:
    rooms: AsyncIterator[Room] = strawberry.subscription(resolver=rooms)


def test_interface_field_depends_if_any_type_does() -> None:
    core = strawberry.Schema(query=Room, subscription=Rooms, types=[Lamp, Mirror])._schema
    for document, expected in {
        "subscription { rooms { things { name } } }": True,
        "subscription { rooms { things { ... on Named { name } } } }": True,
        "subscription { rooms { things { ... on Mirror { name } } } }": True,
        "subscription { rooms { things { ...f } } } fragment f on Named { name }": True,
        "subscription { rooms { things { ... on Lamp { name watts } } lamp { name } } }": False,
        "subscription { rooms { things { __typename } } }": False,
    }.items():
        assert depends_on_viewer(core, parse(document)) == expected, document


def everything_shared(type_: GraphQLObjectType, depth: int = DEPTH) -> str:
    """Returns a selection of all shared fields of a type, recursively."""
    fields = []
    for name, each in type_.fields.items():
        if is_shared(bound(type_, name)):
            if is_leaf_type(get_named_type(each.type)):
                fields.append(name)
            elif depth:
                inner = " ".join(f"... on {m} {{ {everything_shared(m, depth - 1)} }}" for m in members(each.type))
                fields.append(f"{name} {{ {inner} }}")
    return " ".join(["__typename", *fields])


def shared_document(root: str) -> str:
    inner = " ".join(f"... on {each} {{ {everything_shared(each)} }}" for each in members(SUBSCRIPTIONS[root].type))
    arguments = ", ".join(f"{name}: 1" for name in SUBSCRIPTIONS[root].args if name != "since")
    return f"subscription {{ {root}{f'({arguments})' if arguments else ''} {{ {inner} }} }}"


@pytest.mark.parametrize("root", SUBSCRIPTIONS)
def test_document_of_all_shared_fields_is_shared(root: str) -> None:
    assert not depends_on_viewer(CORE, parse(shared_document(root)))


@pytest.fixture
async def world(stores: Stores) -> World:
    return await differing_viewers(stores)


AT = {"cursor": Cursor("somewhere"), "at": datetime(2025, 1, 1, tzinfo=UTC)}


def records(root: str, world: World) -> list[EventRecord]:
    """Returns an event of every kind that the subscription yields. A new kind needs its record here."""
    ready = StreamReady(**AT, resumed=True)  # type: ignore[arg-type]
    makers: dict[str, Callable[[str], EventRecord]] = {
        "StreamReady": lambda kind: ready,
        **dict.fromkeys(
            ("MessagePosted", "MessageEdited", "MessageDeleted", "ReactionsChanged"),
            lambda kind: MessageEvent(**AT, kind=kind, message=world.first),  # type: ignore[arg-type]
        ),
        **dict.fromkeys(
            ("TopicCreated", "TopicActivity"),
            lambda kind: TopicEvent(**AT, kind=kind, topic=world.place.topic),  # type: ignore[arg-type]
        ),
    }
    kinds = [each.name for each in members(SUBSCRIPTIONS[root].type)]
    unknown = set(kinds) - set(makers)
    assert not unknown, f"Add an example event to records() for: {', '.join(sorted(unknown))}."
    return [makers[kind](kind) for kind in kinds]


async def executed(root: str, record: EventRecord, context: Context) -> Any:
    executor = Executor.build(CORE, parse(shared_document(root)), context_value=context)
    assert isinstance(executor, Executor)
    result = execute_subscription_event(executor.build_per_event_executor(record))
    answer = result if not hasattr(result, "__await__") else await result
    assert not answer.errors, answer.errors
    assert answer.data is not None
    return answer.data[root]


@pytest.mark.anyio
@pytest.mark.parametrize("root", SUBSCRIPTIONS)
async def test_shared_fields_are_equal_for_all_viewers(world: World, root: str) -> None:
    filled: set[str] = set()
    for record in records(root, world):
        first, *others = [await executed(root, record, world.context(name)) for name in NAMES]
        for name, other in zip(NAMES[1:], others, strict=True):
            assert other == first, name
        filled |= set(fields_with_a_value(first))
    marked = {f"{type_}.{name}" for type_, name in resolved(root) if is_shared(bound(type_, name))}
    below_shared = {each for each in marked if each.partition(".")[0] in shared_types(root)}
    assert below_shared <= filled, (
        f"Give them a value in differing_viewers(): {', '.join(sorted(below_shared - filled))}."
    )


def shared_types(root: str) -> set[str]:
    """Returns the types that a shared document reaches."""
    found: set[str] = set()
    left = list(members(SUBSCRIPTIONS[root].type))
    while left:
        type_ = left.pop()
        if type_.name not in found:
            found.add(type_.name)
            shared = [each for name, each in type_.fields.items() if is_shared(bound(type_, name))]
            left += [member for each in shared for member in members(each.type)]
    return found


def fields_with_a_value(value: Any) -> Iterator[str]:
    """Returns Type.field of everything in a response that is neither null nor empty."""
    if isinstance(value, list):
        for item in value:
            yield from fields_with_a_value(item)
    elif isinstance(value, dict):
        for name, inner in value.items():
            if inner not in (None, []):
                yield f"{value['__typename']}.{name}"
            yield from fields_with_a_value(inner)


def checked_expectations(root: str, own: dict[str, Expectation]) -> dict[str, Expectation]:
    """Returns the expectations. Asserts that they cover every dependent field and that each has differing values."""
    unknown, needless = dependent(root) - set(own), set(own) - dependent(root)
    assert not unknown, f"Add expectations for {root} to tests/schema/viewers.py: {', '.join(sorted(unknown))}."
    assert not needless, f"No longer depends on the viewer in {root}: {', '.join(sorted(needless))}."
    for place, each in own.items():
        assert len({repr(value) for value in each.values.values()}) > 1, f"All viewers get the same from {place}."
    return own


async def assert_expected(
    house: House, own: dict[str, Expectation], document: str, happen: Callable[[], Awaitable[object]]
) -> None:
    """Asserts that each viewer gets its own values although all subscribe to the same documents in one process."""
    async with AsyncExitStack() as stack:
        heard: dict[tuple[str, str], Heard] = {}
        for place, each in own.items():
            for name in each.values:
                query = document % f"it: {each.select}"
                subscription = house.hears(name, query=query, community=house.place.community.id)
                heard[place, name] = await stack.enter_async_context(subscription)
        await happen()
        expected = {(place, name): value for place, each in own.items() for name, value in each.values.items()}
        await eventually(lambda: last_events(heard) == expected)
        assert last_events(heard) == expected


def last_events(heard: dict[tuple[str, str], Heard]) -> dict[tuple[str, str], Any]:
    """Returns the content of each subscription's last event."""
    return {key: each.events[-1]["of"]["it"] if each.events else "no event" for key, each in heard.items()}


@pytest.mark.anyio
async def test_messages_show_each_viewer_own_fields(world: World) -> None:
    document = """
        subscription ($topic: ID!) {
          topicEvents(topicId: $topic) { __typename ... on MessageEdited { of: message { %s } } }
        }
    """
    own = checked_expectations("topicEvents", in_topic_events(world))
    first = world.first
    async with open_house(world.place) as house:
        edit = world.stores.messages.edit
        await assert_expected(house, own, document, lambda: edit(first.key, "dan", first.text, first.mention_ids))


@pytest.mark.anyio
async def test_topics_show_each_viewer_own_fields(world: World) -> None:
    document = """
        subscription ($community: ID!) {
          communityEvents(communityId: $community) { __typename ... on TopicActivity { of: topic { %s } } }
        }
    """
    own = checked_expectations("communityEvents", in_community_events(world))
    async with open_house(world.place) as house:
        await assert_expected(house, own, document, lambda: world.place.post("last", "cat"))
