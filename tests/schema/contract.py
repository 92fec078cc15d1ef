"""The public contract: its definitions by area, and the differences of a schema from it.

Comments in the contract name the areas: section comments above the types, and comments between the fields of Query and
Mutation. The schema and the contract are compared as SDL text, so that a changed default or a lost `!` is a difference.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from graphql import (
    DocumentNode,
    EnumTypeDefinitionNode,
    EnumValueDefinitionNode,
    FieldDefinitionNode,
    InputObjectTypeDefinitionNode,
    InputValueDefinitionNode,
    InterfaceTypeDefinitionNode,
    NamedTypeNode,
    Node,
    NonNullTypeNode,
    ObjectTypeDefinitionNode,
    ScalarTypeDefinitionNode,
    UnionTypeDefinitionNode,
    parse,
    print_ast,
)
from graphql.language.ast import TypeDefinitionNode

CONTRACT = Path(__file__).parents[1] / "contract.graphql"
AREAS = ("identity", "chat", "feed", "publishing", "calls", "mail")
EVERYWHERE = "everywhere"
"""The area of definitions that every area uses: scalars, Timeline, Event, StreamReady."""

Named = EnumValueDefinitionNode | NamedTypeNode
AnyNode = TypeVar("AnyNode", bound=Node)
Nodes = Iterable[AnyNode] | None
ROOTS = ("Query", "Mutation", "Subscription")

# The subscriptions and events of all areas are in two sections of the contract, so their areas are listed here.
EVENT_TYPES_BY_AREA = {
    EVERYWHERE: {"Event", "StreamReady"},
    "chat": {"TopicEvent", "MessagePosted", "MessageEdited", "MessageDeleted", "ReactionsChanged"}
    | {"CommunityEvent", "TopicCreated", "TopicActivity"},
    "feed": {
        "HomeFeedEvent",
        "PostArrived",
        "PostRemoved",
        "NotificationEvent",
        "NotificationArrived",
        "FanOutChanged",
    },
    # JobEvent has members of three areas: feed, publishing and calls.
    "publishing": {"PublicationChanged", "JobEvent"},
    "calls": {"CallJobChanged", "CallTaskChanged", "CallLimitsChanged"},
}
SUBSCRIPTION_AREAS = {
    "topicEvents": "chat",
    "communityEvents": "chat",
    "homeFeedEvents": "feed",
    "notificationEvents": "feed",
    "jobEvents": "feed",
}

FIELD_AREAS = {"Notification.publication": "publishing"}
"""Fields that belong to another area than their parent type."""

_COMMENT = re.compile(r"^\s*# (?:-{10,} )?(\w+)", re.ASCII)


class SchemaContract:
    """The definitions of a contract, each with its area."""

    def __init__(self, text: str) -> None:
        self._lines = text.splitlines()
        self.types = definitions(parse(text))

    def area(self, definition: TypeDefinitionNode) -> str | None:
        """Returns the area of a type that is not a root type; None if no comment names it."""
        name = definition.name.value
        section = self._comment_between(1, _line(definition))
        if section == "events":
            return next((area for area, names in EVENT_TYPES_BY_AREA.items() if name in names), None)
        return section if section in AREAS else EVERYWHERE

    def field_area(self, root: ObjectTypeDefinitionNode, field: FieldDefinitionNode) -> str | None:
        """Returns the area of a root type's field. Fields before the first comment belong to identity."""
        if root.name.value == "Subscription":
            return SUBSCRIPTION_AREAS.get(field.name.value)
        return self._comment_between(_line(root), _line(field)) or "identity"

    def _comment_between(self, first: int, last: int) -> str | None:
        """Returns the last comment that begins a section or group, on the lines from first to last (counted from 1)."""
        matches = map(_COMMENT.match, reversed(self._lines[first - 1 : last]))
        return next((match[1] for match in matches if match), None)


def definitions(document: DocumentNode) -> dict[str, TypeDefinitionNode]:
    """Returns the types that a document defines, by name."""
    return {node.name.value: node for node in document.definitions if isinstance(node, TypeDefinitionNode)}


def _line(node: TypeDefinitionNode | FieldDefinitionNode) -> int:
    assert node.loc is not None
    return node.loc.start_token.line


def violations(schema: str, contract: SchemaContract, areas: Collection[str]) -> list[str]:
    """Returns the violations of the contract of these areas, as texts. Additions are allowed."""
    types = definitions(parse(schema))
    required = [_definition_in_areas(node, contract, areas) for node in contract.types.values()]
    return [line for node in required if node for line in _differences(types.get(node.name.value), node)]


def _definition_in_areas(
    node: TypeDefinitionNode, contract: SchemaContract, areas: Collection[str]
) -> TypeDefinitionNode | None:
    """Returns the part of a definition that belongs to the areas, or None."""
    if node.name.value not in ROOTS:
        return _without_fields(node, areas) if contract.area(node) in {*areas, EVERYWHERE} else None
    assert isinstance(node, ObjectTypeDefinitionNode)
    fields = tuple(field for field in node.fields or () if contract.field_area(node, field) in areas)
    return ObjectTypeDefinitionNode(name=node.name, directives=(), interfaces=(), fields=fields)


def _without_fields(node: TypeDefinitionNode, areas: Collection[str]) -> TypeDefinitionNode:
    """Returns the type without the fields that belong to other areas."""
    other_fields = {name for name, area in FIELD_AREAS.items() if area not in areas}
    if not isinstance(node, ObjectTypeDefinitionNode) or not other_fields:
        return node
    fields = tuple(field for field in node.fields or () if f"{node.name.value}.{field.name.value}" not in other_fields)
    return ObjectTypeDefinitionNode(name=node.name, directives=(), interfaces=node.interfaces, fields=fields)


def _differences(actual: TypeDefinitionNode | None, expected: TypeDefinitionNode) -> Iterator[str]:
    name = expected.name.value
    match actual, expected:
        case ObjectTypeDefinitionNode(), ObjectTypeDefinitionNode():
            yield from _missing(name, "interface", actual.interfaces, expected.interfaces)
            yield from _field_differences(name, actual.fields, expected.fields)
        case InterfaceTypeDefinitionNode(), InterfaceTypeDefinitionNode():
            yield from _field_differences(name, actual.fields, expected.fields)
        case InputObjectTypeDefinitionNode(), InputObjectTypeDefinitionNode():
            yield from _value_differences(name, actual.fields, expected.fields)
        case EnumTypeDefinitionNode(), EnumTypeDefinitionNode():
            yield from _missing(name, "value", actual.values, expected.values)
        case UnionTypeDefinitionNode(), UnionTypeDefinitionNode():
            yield from _missing(name, "member", actual.types, expected.types)
        case ScalarTypeDefinitionNode(), ScalarTypeDefinitionNode():
            pass
        case _:
            yield f"{name}: {_kind(actual)} instead of {_kind(expected)}"


def _kind(node: TypeDefinitionNode | None) -> str:
    return "nothing" if node is None else node.kind.removesuffix("_type_definition")


def _missing(path: str, kind: str, actual: Nodes[Named], expected: Nodes[Named]) -> Iterator[str]:
    existing = {node.name.value for node in actual or ()}
    names = (node.name.value for node in expected or ())
    return (f"{path}: {kind} {name} is missing" for name in names if name not in existing)


def _field_differences(
    type_name: str, actual: Nodes[FieldDefinitionNode], expected: Nodes[FieldDefinitionNode]
) -> Iterator[str]:
    by_name = {field.name.value: field for field in actual or ()}
    for field in expected or ():
        path = f"{type_name}.{field.name.value}"
        actual_field = by_name.get(field.name.value)
        if actual_field is None:
            yield f"{path} is missing"
            continue
        if print_ast(actual_field.type) != print_ast(field.type):
            yield f"{path}: {print_ast(actual_field.type)} instead of {print_ast(field.type)}"
        yield from _value_differences(path, actual_field.arguments, field.arguments)


def _value_differences(
    path: str, actual: Nodes[InputValueDefinitionNode], expected: Nodes[InputValueDefinitionNode]
) -> Iterator[str]:
    remaining = {value.name.value: value for value in actual or ()}
    for value in expected or ():
        actual_value = remaining.pop(value.name.value, None)
        if actual_value is None:
            yield f"{path}({value.name.value}) is missing"
        elif _sdl(actual_value) != _sdl(value):
            yield f"{path}: {_sdl(actual_value)} instead of {_sdl(value)}"
    for value in remaining.values():
        if isinstance(value.type, NonNullTypeNode) and value.default_value is None:
            yield f"{path}({value.name.value}) is required, but clients of the contract do not send it"


def _sdl(value: InputValueDefinitionNode) -> str:
    """Returns the SDL of name, type and default, without the description."""
    default = "" if value.default_value is None else f" = {print_ast(value.default_value)}"
    return f"{value.name.value}: {print_ast(value.type)}{default}"
