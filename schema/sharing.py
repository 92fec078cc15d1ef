"""Which documents may share one execution: those that select nothing that depends on who looks.

A field with a resolver of its own depends on the viewer, unless it is marked as shared where it is bound. Decided from
the schema, not from a list.
"""

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


def depends_on_viewer(schema: GraphQLSchema, document: DocumentNode) -> bool:
    """Whether two viewers with the same rights could get different data from the same events.

    Looks at everything in the document, used or not: it may say yes too often, never too seldom.
    """
    type_info = TypeInfo(schema)
    selected = _Selected(schema, type_info)
    visit(document, TypeInfoVisitor(type_info, selected))
    return selected.depends


def is_shared(field: StrawberryField) -> bool:
    """Whether the field gives every viewer the same: a plain attribute that nothing guards, or marked so."""
    return bool(field.metadata.get(SHARED)) or (field.base_resolver is None and not field.extensions)


class _Selected(Visitor):
    """Looks at each selected field, of every type that it may be selected on."""

    def __init__(self, schema: GraphQLSchema, type_info: TypeInfo) -> None:
        super().__init__()
        self.depends = False
        self._schema = schema
        self._type_info = type_info
        self._roots = {schema.query_type, schema.mutation_type, schema.subscription_type}

    def enter_field(self, node: FieldNode, *_: Any) -> None:
        parent = self._type_info.get_parent_type()
        # The subscription's own field is what is shared; the source decides who may listen.
        if parent not in self._roots and not node.name.value.startswith("__"):
            self.depends |= any(self._field_depends(type_, node.name.value) for type_ in self._possible(parent))

    def _possible(self, parent: object) -> list[GraphQLObjectType]:
        if isinstance(parent, GraphQLInterfaceType):
            return list(self._schema.get_possible_types(parent))
        return [parent] if isinstance(parent, GraphQLObjectType) else []

    def _field_depends(self, type_: GraphQLObjectType, name: str) -> bool:
        field = type_.fields.get(name)
        bound = field and field.extensions.get(GraphQLCoreConverter.DEFINITION_BACKREF)
        return not (isinstance(bound, StrawberryField) and is_shared(bound))
