"""Variables of operations: the coercion of long lists, the refusal of lone surrogates, and errors for clients.

graphql-core takes 1 µs to coerce each string of a list, so long lists of strings are not coerced.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

import orjson
from graphql import (
    DocumentNode,
    GraphQLError,
    GraphQLInputType,
    GraphQLSchema,
    ListTypeNode,
    NamedTypeNode,
    NonNullTypeNode,
    OperationDefinitionNode,
    TypeNode,
    Undefined,
    VariableDefinitionNode,
    type_from_ast,
)
from graphql.execution.values import VariableValues
from graphql.utilities import validate_input_value

from resolvers.arguments import require_storable
from schema.values.input_errors import RefusedValue, place_of_variable
from storage.errors import BadUserInput
from storage.ids import stored_id

MIN_ITEMS = 50
STRING_TYPES = {"String", "ID"}


class _EnoughReasons(Exception):
    """Ends the validation of a variable with many errors."""


def long_lists(document: DocumentNode, values: Mapping[str, Any]) -> dict[str, list[str]]:
    """Returns the variables that are long lists of strings, by name. Coercion would only copy them."""
    long = {name: value for name, value in values.items() if value.__class__ is list and len(value) >= MIN_ITEMS}
    if not long:
        return {}
    items = {name: _item_of_list(type_) for name, type_ in _declared_variables(document)}
    return {
        name: list(map(stored_id, value)) if items.get(name) == "ID" else value
        for name, value in long.items()
        if items.get(name, "String") in STRING_TYPES and set(map(type, value)) == {str}
    }


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


def explain_errors(schema: GraphQLSchema, errors: Sequence[GraphQLError], values: Mapping[str, Any]) -> None:
    """Gives graphql-core's errors of refused variables the extensions that clients see.

    The variables are validated once more, since the errors do not have the path in the variable.
    """
    reasons: dict[str, Iterator[dict[str, Any]]] = {}
    for error in errors:
        definition = error.nodes[0] if error.nodes else None
        if not isinstance(definition, VariableDefinitionNode):
            # graphql-core's last error when there are more.
            error.extensions = BadUserInput("variables", f"fewer than {len(errors)} wrong values").extensions
            continue
        name = definition.variable.name.value
        if name not in reasons:
            reasons[name] = iter(_reasons(schema, definition, values.get(name, Undefined), len(errors)))
        error.extensions = next(reasons[name], error.extensions)


def _reasons(schema: GraphQLSchema, definition: VariableDefinitionNode, value: Any, limit: int) -> list[dict[str, Any]]:
    """Returns the extensions of the first errors of a variable."""
    type_ = cast("GraphQLInputType", type_from_ast(schema, definition.type))
    refused = RefusedValue(place_of_variable(definition), type_, value)
    reasons: list[dict[str, Any]] = []

    def add(error: GraphQLError, path: list[str | int]) -> None:
        reasons.append(refused.explain(error, path))
        if len(reasons) == limit:
            raise _EnoughReasons

    with suppress(_EnoughReasons):
        validate_input_value(value, type_, add)
    return reasons


def _declared_variables(document: DocumentNode) -> list[tuple[str, TypeNode]]:
    operations = [each for each in document.definitions if isinstance(each, OperationDefinitionNode)]
    definitions = [each for operation in operations for each in operation.variable_definitions or ()]
    return [(each.variable.name.value, each.type) for each in definitions]


def _item_of_list(node: TypeNode) -> str | None:
    """Returns the name of the type of a list's items; None for other types, and for lists of lists."""
    outer = node.type if isinstance(node, NonNullTypeNode) else node
    inner = outer.type if isinstance(outer, ListTypeNode) else None
    item = inner.type if isinstance(inner, NonNullTypeNode) else inner
    return item.name.value if isinstance(item, NamedTypeNode) else None
