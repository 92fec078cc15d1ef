"""The public contract: its definitions by area, and the differences of a schema from it.

Section comments in the contract name the areas, and so do the comments between the fields of Query and Mutation.
Both sides are compared as SDL text, so a changed default or a lost `!` shows like a missing field.
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
Some = TypeVar("Some", bound=Node)
Nodes = Iterable[Some] | None
ROOTS = ("Query", "Mutation", "Subscription")

# The contract has sections for subscriptions and events of all areas.
OF_EVENTS = {
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
    # The union has members of three areas; it is complete with the last of them.
    "publishing": {"PublicationChanged", "JobEvent"},
    "calls": {"CallJobChanged", "CallTaskChanged", "CallLimitsChanged"},
}
OF_SUBSCRIPTIONS = {
    "topicEvents": "chat",
    "communityEvents": "chat",
    "homeFeedEvents": "feed",
    "notificationEvents": "feed",
    "jobEvents": "feed",
}

OF_FIELDS = {"Notification.publication": "publishing"}
"""Fields whose type belongs to another area than the type that has them."""

_COMMENT = re.compile(r"^\s*# (?:-{10,} )?(\w+)", re.ASCII)


class Contract:
    """The definitions of a contract, each with its area."""

    def __init__(self, text: str) -> None:
        self._lines = text.splitlines()
        self.types = definitions(parse(text))

    def area(self, definition: TypeDefinitionNode) -> str | None:
        """Returns the area of a type that is not a root type; None if no comment names it."""
        name = definition.name.value
        section = self._comment_between(1, _line(definition))
        if section == "events":
            return next((area for area, names in OF_EVENTS.items() if name in names), None)
        return section if section in AREAS else EVERYWHERE

    def field_area(self, root: ObjectTypeDefinitionNode, field: FieldDefinitionNode) -> str | None:
        """Returns the area of a root type's field. Fields before the first comment belong to identity."""
        if root.name.value == "Subscription":
            return OF_SUBSCRIPTIONS.get(field.name.value)
        return self._comment_between(_line(root), _line(field)) or "identity"

    def _comment_between(self, first: int, last: int) -> str | None:
        """Returns the last comment that begins a section or group, on the lines from first to last (counted from 1)."""
        found = map(_COMMENT.match, reversed(self._lines[first - 1 : last]))
        return next((match[1] for match in found if match), None)


def definitions(document: DocumentNode) -> dict[str, TypeDefinitionNode]:
    """Returns the types that a document defines, by name."""
    return {node.name.value: node for node in document.definitions if isinstance(node, TypeDefinitionNode)}


def _line(node: TypeDefinitionNode | FieldDefinitionNode) -> int:
    assert node.loc is not None
    return node.loc.start_token.line


def lacks(schema: str, contract: Contract, areas: Collection[str]) -> list[str]:
    """Returns what the schema lacks or has differently from the contract, for these areas. Additions are allowed."""
    ours = definitions(parse(schema))
    promised = [_of_areas(node, contract, areas) for node in contract.types.values()]
    return [line for node in promised if node for line in _differences(ours.get(node.name.value), node)]


def _of_areas(node: TypeDefinitionNode, contract: Contract, areas: Collection[str]) -> TypeDefinitionNode | None:
    """Returns the part of a definition that belongs to the areas, or None."""
    if node.name.value not in ROOTS:
        return _without_fields(node, areas) if contract.area(node) in {*areas, EVERYWHERE} else None
    assert isinstance(node, ObjectTypeDefinitionNode)
    fields = tuple(field for field in node.fields or () if contract.field_area(node, field) in areas)
    return ObjectTypeDefinitionNode(name=node.name, directives=(), interfaces=(), fields=fields)


def _without_fields(node: TypeDefinitionNode, areas: Collection[str]) -> TypeDefinitionNode:
    """Returns the type without the fields that belong to other areas."""
    later = {name for name, area in OF_FIELDS.items() if area not in areas}
    if not isinstance(node, ObjectTypeDefinitionNode) or not later:
        return node
    fields = tuple(field for field in node.fields or () if f"{node.name.value}.{field.name.value}" not in later)
    return ObjectTypeDefinitionNode(name=node.name, directives=(), interfaces=node.interfaces, fields=fields)


def _differences(mine: TypeDefinitionNode | None, theirs: TypeDefinitionNode) -> Iterator[str]:
    name = theirs.name.value
    match mine, theirs:
        case ObjectTypeDefinitionNode(), ObjectTypeDefinitionNode():
            yield from _missing(name, "interface", mine.interfaces, theirs.interfaces)
            yield from _field_differences(name, mine.fields, theirs.fields)
        case InterfaceTypeDefinitionNode(), InterfaceTypeDefinitionNode():
            yield from _field_differences(name, mine.fields, theirs.fields)
        case InputObjectTypeDefinitionNode(), InputObjectTypeDefinitionNode():
            yield from _value_differences(name, mine.fields, theirs.fields)
        case EnumTypeDefinitionNode(), EnumTypeDefinitionNode():
            yield from _missing(name, "value", mine.values, theirs.values)
        case UnionTypeDefinitionNode(), UnionTypeDefinitionNode():
            yield from _missing(name, "member", mine.types, theirs.types)
        case ScalarTypeDefinitionNode(), ScalarTypeDefinitionNode():
            pass
        case _:
            yield f"{name}: {_kind(mine)} instead of {_kind(theirs)}"


def _kind(node: TypeDefinitionNode | None) -> str:
    return "nothing" if node is None else node.kind.removesuffix("_type_definition")


def _missing(place: str, what: str, mine: Nodes[Named], theirs: Nodes[Named]) -> Iterator[str]:
    there = {node.name.value for node in mine or ()}
    names = (node.name.value for node in theirs or ())
    return (f"{place}: {what} {name} is missing" for name in names if name not in there)


def _field_differences(
    place: str, mine: Nodes[FieldDefinitionNode], theirs: Nodes[FieldDefinitionNode]
) -> Iterator[str]:
    ours = {field.name.value: field for field in mine or ()}
    for field in theirs or ():
        path = f"{place}.{field.name.value}"
        found = ours.get(field.name.value)
        if found is None:
            yield f"{path} is missing"
            continue
        if print_ast(found.type) != print_ast(field.type):
            yield f"{path}: {print_ast(found.type)} instead of {print_ast(field.type)}"
        yield from _value_differences(path, found.arguments, field.arguments)


def _value_differences(
    place: str, mine: Nodes[InputValueDefinitionNode], theirs: Nodes[InputValueDefinitionNode]
) -> Iterator[str]:
    ours = {value.name.value: value for value in mine or ()}
    for value in theirs or ():
        found = ours.pop(value.name.value, None)
        if found is None:
            yield f"{place}({value.name.value}) is missing"
        elif _spelled(found) != _spelled(value):
            yield f"{place}: {_spelled(found)} instead of {_spelled(value)}"
    for value in ours.values():
        if isinstance(value.type, NonNullTypeNode) and value.default_value is None:
            yield f"{place}({value.name.value}) is required, and the contract's clients don't give it"


def _spelled(value: InputValueDefinitionNode) -> str:
    """Returns name, type and default, without the description."""
    default = "" if value.default_value is None else f" = {print_ast(value.default_value)}"
    return f"{value.name.value}: {print_ast(value.type)}{default}"
