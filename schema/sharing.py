"""Which documents may share one execution: those that select nothing that depends on who looks.

A field with a resolver of its own depends on the viewer, unless it is marked as shared where it is bound. Queries may
also select fields that are marked as made for crowds. Decided from the schema, not from a list.
"""

from collections.abc import Callable
from typing import Any

from graphql import (
    DocumentNode,
    FieldNode,
    GraphQLInterfaceType,
    GraphQLObjectType,
    GraphQLSchema,
    TypeInfo,
    TypeInfoVisitor,
    Visitor,
    visit,
)
from strawberry.schema.schema_converter import GraphQLCoreConverter
from strawberry.types.field import StrawberryField

SHARED = "shared"
FOR_CROWDS = "for_crowds"


def depends_on_viewer(schema: GraphQLSchema, document: DocumentNode) -> bool:
    """Whether two viewers with the same rights could get different data from the same events.

    Looks at everything in the document, used or not: it may say yes too often, never too seldom.
    """
    # The subscription's own field is what is shared; the source decides who may listen.
    roots = frozenset({schema.query_type, schema.mutation_type, schema.subscription_type})
    return not _all_fields(schema, document, is_shared, roots)


def is_for_crowds(schema: GraphQLSchema, document: DocumentNode) -> bool:
    """Whether one execution may answer a crowd: each field gives all who stay in it the same."""
    return _all_fields(schema, document, suits_crowds, frozenset())


def is_shared(field: StrawberryField) -> bool:
    """Whether the field gives every viewer the same: a plain attribute that nothing guards, or marked so."""
    return bool(field.metadata.get(SHARED)) or (field.base_resolver is None and not field.extensions)


def suits_crowds(field: StrawberryField) -> bool:
    """Whether the field gives everybody who stays in a crowd the same."""
    return bool(field.metadata.get(FOR_CROWDS)) or is_shared(field)


def _all_fields(
    schema: GraphQLSchema,
    document: DocumentNode,
    suits: Callable[[StrawberryField], bool],
    but_of: frozenset[GraphQLObjectType | None],
) -> bool:
    type_info = TypeInfo(schema)
    selected = _Selected(schema, type_info, suits, but_of)
    visit(document, TypeInfoVisitor(type_info, selected))
    return selected.suit


class _Selected(Visitor):
    """Looks at each selected field, of every type that it may be selected on, but those of some types."""

    def __init__(
        self,
        schema: GraphQLSchema,
        type_info: TypeInfo,
        suits: Callable[[StrawberryField], bool],
        but_of: frozenset[GraphQLObjectType | None],
    ) -> None:
        super().__init__()
        self.suit = True
        self._schema, self._type_info = schema, type_info
        self._suits, self._but_of = suits, but_of

    def enter_field(self, node: FieldNode, *_: Any) -> None:
        parent = self._type_info.get_parent_type()
        name = node.name.value
        if parent not in self._but_of and name != "__typename":
            self.suit &= all(self._field_suits(type_, name) for type_ in self._possible(parent))

    def _possible(self, parent: object) -> list[GraphQLObjectType]:
        if isinstance(parent, GraphQLInterfaceType):
            return list(self._schema.get_possible_types(parent))
        return [parent] if isinstance(parent, GraphQLObjectType) else []

    def _field_suits(self, type_: GraphQLObjectType, name: str) -> bool:
        field = type_.fields.get(name)
        bound = field and field.extensions.get(GraphQLCoreConverter.DEFINITION_BACKREF)
        return isinstance(bound, StrawberryField) and self._suits(bound)
