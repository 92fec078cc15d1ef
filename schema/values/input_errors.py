"""Explains refused input values: `extensions.field` and `extensions.expected` of errors with the code BAD_USER_INPUT.

Both are found in the document's tokens and in the types of the schema, not in the messages of graphql-core.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from graphql import (
    GraphQLEnumType,
    GraphQLError,
    GraphQLInputObjectType,
    GraphQLInputType,
    GraphQLList,
    GraphQLNamedType,
    Node,
    Token,
    TokenKind,
    Undefined,
    VariableDefinitionNode,
    get_named_type,
    get_nullable_type,
    is_required_input_field,
)

NOT_NULL = "a value, not null"
MAX_LISTED_VALUES = 20
"""Values of an enum that `expected` lists. Longer lists are in the schema."""

Place = Sequence[str | int]
"""The way to a value: the name of its argument, then names of input fields and indexes of lists."""

_OPENING = {TokenKind.BRACE_R: TokenKind.BRACE_L, TokenKind.BRACKET_R: TokenKind.BRACKET_L}
_OPENS = {*_OPENING.values(), TokenKind.PAREN_L, TokenKind.SOF}


class RefusedValue:
    """The value of an argument or variable that graphql-core refuses, for one or more reasons."""

    def __init__(self, place: Place, type_: GraphQLInputType, value: Any) -> None:
        """`value` is as in JSON, also that of a literal."""
        self._place, self._type, self._value = place, type_, value
        self._reasons: dict[tuple[str | int, ...], Iterator[tuple[Place, str]]] = {}

    def explain(self, error: GraphQLError, path: Place) -> dict[str, Any]:
        """Returns the extensions of the value's next error, which graphql-core has found at this path in the value."""
        given = dict(error.extensions or {})
        place, expected = (path, given["expected"]) if "expected" in given else self._next_reason(path)
        return {**given, "code": "BAD_USER_INPUT", "field": field_name([*self._place, *place]), "expected": expected}

    def _next_reason(self, path: Place) -> tuple[Place, str]:
        """Returns the place and the expectation of an error. An object may have several errors at the same path."""
        type_, value = self._at(path)
        if value is None or value is Undefined:
            return path, NOT_NULL
        named = get_named_type(type_)
        if not isinstance(named, GraphQLInputObjectType) or not isinstance(value, dict):
            return path, expectation(named)
        reasons = self._reasons.setdefault(tuple(path), _object_reasons(named, value))
        inner, expected = next(reasons, ([], expectation(named)))
        return [*path, *inner], expected

    def _at(self, path: Place) -> tuple[GraphQLInputType, Any]:
        """Returns the type and the value at a path."""
        type_, value = self._type, self._value
        for key in path:
            nullable = get_nullable_type(type_)
            if isinstance(key, str):
                named = get_named_type(nullable)
                assert isinstance(named, GraphQLInputObjectType)
                type_ = named.fields[key].type
            elif isinstance(nullable, GraphQLList):
                type_ = nullable.of_type
            value = value[key]
        return type_, value


def expectation(type_: GraphQLNamedType | None) -> str:
    """Describes the values of a type."""
    if isinstance(type_, GraphQLEnumType) and len(type_.values) <= MAX_LISTED_VALUES:
        return f"one of {', '.join(type_.values)}"
    name = type_.name if type_ else "value of the schema"
    article = "an" if name[0] in "AEIO" else "a"
    return f"{article} {name} object" if isinstance(type_, GraphQLInputObjectType) else f"{article} {name}"


def _object_reasons(type_: GraphQLInputObjectType, value: dict[str, Any]) -> Iterator[tuple[Place, str]]:
    """Yields what is wrong with the names of an object's fields, in graphql-core's order."""
    for name, field in type_.fields.items():
        if name not in value and is_required_input_field(field):
            yield [name], NOT_NULL
    for name in value:
        if name not in type_.fields:
            yield [name], f"a field of {type_.name}"
    if type_.is_one_of:
        yield [], f"exactly one of {', '.join(type_.fields)}"


def field_name(place: Place) -> str:
    """Returns a place as `extensions.field` names it, such as `attachments[1].altText`.

    The name of an argument that is an input object is left out before the names of its fields.
    """
    shown = place[1:] if len(place) > 1 and isinstance(place[1], str) else place
    text = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in shown).removeprefix(".")
    # Names in variables may have lone surrogates.
    return text.encode("utf-8", "backslashreplace").decode()


def place_of(value: Node) -> Place:
    """Returns the place of a literal or of the use of a variable. A default value has the place of its variable."""
    token = value.loc.start_token if value.loc else None
    return _place_of(token) if token else []


def place_of_variable(definition: VariableDefinitionNode) -> Place:
    """Returns the first place where the operation of the definition uses the variable."""
    location = definition.variable.loc
    return _place_of_variable(location.start_token) if location else [definition.variable.name.value]


def _place_of(token: Token) -> Place:
    """Returns the place of the value that begins with this token."""
    place: list[str | int] = []
    while True:
        before = _previous(token)
        if before.kind is TokenKind.EQUALS:
            return [*_place_of_variable(_dollar_before(before)), *reversed(place)]
        if before.kind is TokenKind.COLON:
            name = _previous(before)
            place.append(name.value or "")
            token, _ = _opening_before(name)
        else:
            token, index = _opening_before(token)
            place.append(index)
        if token.kind not in _OPENING.values():
            return place[::-1]


def _place_of_variable(dollar: Token) -> Place:
    """Returns the place of the variable's first use after its definition, or in a fragment before it."""
    first = name = _next(dollar)
    while first.kind is not TokenKind.SOF:
        first = _previous(first)
    use = _find_use(name, name.value) or _find_use(first, name.value)
    return _place_of(use) if use else [name.value or ""]


def _find_use(token: Token, name: str | None) -> Token | None:
    """Returns the dollar sign of the next use of a variable. Definitions differ by the colon behind them."""
    while token.kind is not TokenKind.EOF:
        used = _next(token)
        if token.kind is TokenKind.DOLLAR and used.value == name and _next(used).kind is not TokenKind.COLON:
            return token
        token = used
    return None


def _opening_before(token: Token) -> tuple[Token, int]:
    """Returns the bracket in which the token is, and the number of values between them."""
    values = 0
    while (token := _previous(token)).kind not in _OPENS:
        if opening := _OPENING.get(token.kind):
            token = _skip_back(token, opening)
        values += token.kind is not TokenKind.DOLLAR
    return token, values


def _skip_back(token: Token, opening: TokenKind) -> Token:
    """Returns the opening bracket of a closing one."""
    closing, depth = token.kind, 1
    while depth:
        token = _previous(token)
        depth += (token.kind is closing) - (token.kind is opening)
    return token


def _dollar_before(token: Token) -> Token:
    while token.kind is not TokenKind.DOLLAR:
        token = _previous(token)
    return token


def _previous(token: Token) -> Token:
    """Returns the token before this one; the first token for the first one. Skips comments."""
    token = token.prev or token
    while token.kind is TokenKind.COMMENT and token.prev:
        token = token.prev
    return token


def _next(token: Token) -> Token:
    token = token.next or token
    while token.kind is TokenKind.COMMENT and token.next:
        token = token.next
    return token
