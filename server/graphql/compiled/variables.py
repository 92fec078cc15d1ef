"""Long lists of strings in variables, taken unchanged: graphql-core's coercion takes 1 µs for each string."""

from collections.abc import Mapping
from typing import Any

from graphql import DocumentNode, ListTypeNode, NamedTypeNode, NonNullTypeNode, OperationDefinitionNode, TypeNode
from graphql.execution.values import VariableValues

LONG = 50
TEXTS = {"String", "ID"}


def long_lists(document: DocumentNode, values: Mapping[str, Any]) -> dict[str, list[str]]:
    """Returns the variables that are long lists of strings, which coercion would only copy."""
    long = {name: value for name, value in values.items() if value.__class__ is list and len(value) >= LONG}
    if not long:
        return {}
    others = {name for name, type_ in _declared(document) if not _is_list_of_texts(type_)}
    return {name: value for name, value in long.items() if name not in others and set(map(type, value)) == {str}}


def restore_lists(values: VariableValues, lists: Mapping[str, list[str]]) -> None:
    """Sets the variables to their lists, in place of the placeholders that were coerced."""
    for name, value in lists.items():
        if name in values.sources:
            values.sources[name] = values.sources[name]._replace(value=value)
            values.coerced[name] = list(value)


def _declared(document: DocumentNode) -> list[tuple[str, TypeNode]]:
    operations = [each for each in document.definitions if isinstance(each, OperationDefinitionNode)]
    return [(each.variable.name.value, each.type) for one in operations for each in one.variable_definitions or ()]


def _is_list_of_texts(node: TypeNode) -> bool:
    outer = node.type if isinstance(node, NonNullTypeNode) else node
    inner = outer.type if isinstance(outer, ListTypeNode) else None
    item = inner.type if isinstance(inner, NonNullTypeNode) else inner
    return isinstance(item, NamedTypeNode) and item.name.value in TEXTS
