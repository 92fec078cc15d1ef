"""Variables of operations: the coercion of long lists, and the refusal of lone surrogates.

graphql-core takes 1 µs to coerce each string of a list, so long lists of strings are not coerced.
"""

from collections.abc import Callable, Mapping
from typing import Any

import orjson
from graphql import DocumentNode, ListTypeNode, NamedTypeNode, NonNullTypeNode, OperationDefinitionNode, TypeNode
from graphql.execution.values import VariableValues

from resolvers.arguments import require_storable

MIN_ITEMS = 50
STRING_TYPES = {"String", "ID"}


def long_lists(document: DocumentNode, values: Mapping[str, Any]) -> dict[str, list[str]]:
    """Returns the variables that are long lists of strings, by name. Coercion would only copy them."""
    long = {name: value for name, value in values.items() if value.__class__ is list and len(value) >= MIN_ITEMS}
    if not long:
        return {}
    others = {name for name, type_ in _declared_variables(document) if not _is_list_of_strings(type_)}
    return {name: value for name, value in long.items() if name not in others and set(map(type, value)) == {str}}


def restore_lists(values: VariableValues, lists: Mapping[str, list[str]]) -> None:
    """Puts the long lists back, in place of the empty lists that were coerced instead of them."""
    for name, value in lists.items():
        if name in values.sources:
            values.sources[name] = values.sources[name]._replace(value=value)
            values.coerced[name] = list(value)


def is_storable(value: Any) -> bool:
    """Returns whether a value of JSON has no lone surrogate. Returns False for some values that JSON does not have."""
    try:
        orjson.dumps(value)
    except TypeError:
        return False
    return True


def require_storable_arguments(resolve: Callable[..., Any], source: Any, info: Any, **arguments: Any) -> Any:
    """Resolves a field as a middleware of graphql-core. Raises: BadUserInput if an argument has a lone surrogate."""
    for name, value in arguments.items():
        # Errors name the fields of an input object without the name of its argument.
        require_storable(value, "" if isinstance(value, dict) else name)
    return resolve(source, info, **arguments)


def _declared_variables(document: DocumentNode) -> list[tuple[str, TypeNode]]:
    operations = [each for each in document.definitions if isinstance(each, OperationDefinitionNode)]
    definitions = [each for operation in operations for each in operation.variable_definitions or ()]
    return [(each.variable.name.value, each.type) for each in definitions]


def _is_list_of_strings(node: TypeNode) -> bool:
    outer = node.type if isinstance(node, NonNullTypeNode) else node
    inner = outer.type if isinstance(outer, ListTypeNode) else None
    item = inner.type if isinstance(inner, NonNullTypeNode) else inner
    return isinstance(item, NamedTypeNode) and item.name.value in STRING_TYPES
