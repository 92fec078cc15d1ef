"""Adds to generated operations what their generator leaves out, such as fragments and directives."""

import random
from collections.abc import Sequence

from graphql import (
    DocumentNode,
    FieldNode,
    GraphQLNamedOutputType,
    GraphQLSchema,
    InlineFragmentNode,
    OperationDefinitionNode,
    SelectionNode,
    SelectionSetNode,
    get_named_type,
    parse,
    print_ast,
)


class OperationEnricher:
    """Adds aliases, type names, directives, fragments and repeated fields to generated operations, by a random seed."""

    def __init__(self, schema: GraphQLSchema, seed: int) -> None:
        self._schema = schema
        self._rng = random.Random(seed)
        self._fragments: list[str] = []
        self._aliases = 0

    def enrich(self, text: str, kind: str = "query") -> DocumentNode:
        """Returns the operation with additions that keep it valid."""
        (operation,) = parse(text).definitions
        assert isinstance(operation, OperationDefinitionNode)
        body = self._selections(operation.selection_set, self._root(kind))
        names = [name for name in ("yes", "no") if f"${name}" in body + "".join(self._fragments)]
        head = f"({', '.join(f'${name}: Boolean!' for name in names)})" if names else ""
        return parse("\n".join([f"{kind} {head} {body}", *self._fragments]))

    def _root(self, kind: str) -> GraphQLNamedOutputType:
        root = {
            "query": self._schema.query_type,
            "mutation": self._schema.mutation_type,
            "subscription": self._schema.subscription_type,
        }[kind]
        assert root
        return root

    def _selections(self, node: SelectionSetNode, type_: GraphQLNamedOutputType) -> str:
        parts = [self._selection(each, type_) for each in node.selections]
        if self._rng.random() < 0.3:
            parts.insert(self._rng.randrange(len(parts) + 1), "__typename")
        if self._rng.random() < 0.3:
            parts.append(self._repetition(parts, type_))
        return f"{{ {' '.join(parts)} }}"

    def _repetition(self, parts: Sequence[str], type_: GraphQLNamedOutputType) -> str:
        """Returns a fragment that selects some of the parts once more."""
        selections = f"{{ {' '.join(self._rng.sample(parts, self._rng.randint(1, len(parts))))} }}"
        condition = self._rng.choice(["", "@include(if: $yes)", "@skip(if: $no)", "@skip(if: $yes)"])
        if self._rng.random() < 0.5:
            return f"... {self._rng.choice(['', f'on {type_.name}'])} {condition} {selections}"
        name = f"f{len(self._fragments)}"
        self._fragments.append(f"fragment {name} on {type_.name} {selections}")
        return f"...{name} {condition}"

    def _selection(self, node: SelectionNode, type_: GraphQLNamedOutputType) -> str:
        if isinstance(node, InlineFragmentNode):
            assert node.type_condition
            condition = self._schema.type_map[node.type_condition.name.value]
            return f"... on {condition.name} {self._selections(node.selection_set, condition)}"  # type: ignore[arg-type]
        assert isinstance(node, FieldNode)
        return self._field(node, type_)

    def _field(self, node: FieldNode, type_: GraphQLNamedOutputType) -> str:
        name, key = node.name.value, node.alias.value if node.alias else ""
        if not key and self._rng.random() < 0.2:
            self._aliases += 1
            key = f"x{self._aliases}"
        arguments = f"({', '.join(map(print_ast, node.arguments))})" if node.arguments else ""
        condition = self._rng.choice([""] * 8 + ["@include(if: $yes)", "@skip(if: $no)", "@skip(if: $yes)"])
        inner = ""
        if node.selection_set:
            field = type_.fields[name]  # type: ignore[union-attr]
            inner = self._selections(node.selection_set, get_named_type(field.type))
        return f"{key}{':' if key else ''} {name}{arguments} {condition} {inner}"
