"""The upper bound of an operation's cost, computed from its text and from the sizes of its variables.

- A scalar costs nothing, or 5 if a coroutine resolves it for each object, such as `Community.viewerRole`.
- An object costs 1 plus the cost of its fields. A list costs its size times an item.
- A field that queries the database for each object (`queries_per_object` in schema/binding.py) costs 100 more.
- The size of a list is the argument `first`, `last` or `limit` of its field. Without one, it is the length of a
  required list argument.
- A list in a page, such as `items` of a timeline, has the size of the field that returned the page.
- Any other list counts as 10 items.
- Fields merge as in execution: a fragment that is spread twice costs once.
- Of the possible types of an interface or a union, the most expensive one counts.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLArgument,
    GraphQLField,
    GraphQLList,
    GraphQLObjectType,
    GraphQLSchema,
    InlineFragmentNode,
    IntValueNode,
    ListValueNode,
    OperationDefinitionNode,
    SelectionNode,
    SelectionSetNode,
    ValueNode,
    VariableNode,
    get_named_type,
    get_nullable_type,
    is_abstract_type,
    is_composite_type,
    is_object_type,
    is_required_argument,
)
from strawberry.schema.schema_converter import GraphQLCoreConverter
from strawberry.types.field import StrawberryField

from schema.binding import QUERIES_PER_OBJECT, batch_resolver_of

UNKNOWN_SIZE = 10
QUERY_COST = 100
PAGE_SIZES = ("first", "last", "limit")
"""The arguments that say how many items a page has. An earlier one replaces a later one."""

COROUTINE_COST = 5
MAX_STEPS = 10_000

_Fields = dict[str, list[FieldNode]]
VariableSizes = Mapping[str, int | None]
"""The size of each variable: the value of an integer, the length of a list, and None for any other value."""


class _TooManySteps(Exception):
    """Fragments and types combine in too many ways to compute the cost. Ordinary documents stay far below."""


@dataclass(frozen=True, slots=True)
class Cost:
    """An upper bound of the cost. It depends on the sizes of the variables whose names are in `size_variables`."""

    total: int | None
    """None if the bound cannot be computed."""

    size_variables: frozenset[str]


def size_of(value: object) -> int | None:
    """Returns the size of a variable that is used as a `limit` or as a list argument; None if it has no size."""
    if isinstance(value, list | tuple):
        return len(value)
    if not isinstance(value, int | float) or value != value // 1:
        return None
    return int(value)


def measure_cost(
    schema: GraphQLSchema, document: DocumentNode, operation: OperationDefinitionNode, sizes: VariableSizes
) -> Cost:
    """Returns the cost of one operation. Its fragments must not form cycles."""
    root = schema.get_root_type(operation.operation)
    measurement = _CostMeasurement(schema, document, _with_defaults(operation, sizes))
    try:
        total = measurement.of_object(root, (operation.selection_set,), None) if root else 0
    except _TooManySteps:
        total = None
    return Cost(total, frozenset(measurement.size_variables))


def _with_defaults(operation: OperationDefinitionNode, sizes: VariableSizes) -> dict[str, int | None]:
    defaults = {
        definition.variable.name.value: _literal_size(definition.default_value)
        for definition in operation.variable_definitions or ()
    }
    return {**defaults, **sizes}


class _CostMeasurement:
    """One measurement. A selection that occurs again in the same context is not measured again."""

    def __init__(self, schema: GraphQLSchema, document: DocumentNode, sizes: VariableSizes) -> None:
        self._schema, self._sizes = schema, sizes
        self._fragments = {
            node.name.value: node for node in document.definitions if isinstance(node, FragmentDefinitionNode)
        }
        self._measured: dict[tuple[object, ...], int] = {}
        self._steps = 0
        self.size_variables: set[str] = set()

    def of_object(self, type_: GraphQLObjectType, sets: tuple[SelectionSetNode, ...], page_limit: int | None) -> int:
        """Returns the cost of an object's fields. `page_limit` is the `limit` of the field that returned the object."""
        key = (type_, page_limit, *map(id, sets))
        if key not in self._measured:
            fields = self._collect(type_, sets)
            self._measured[key] = sum(self._of_field(type_, nodes, page_limit) for nodes in fields.values())
        return self._measured[key]

    def _of_field(self, parent: GraphQLObjectType, nodes: list[FieldNode], page_limit: int | None) -> int:
        definition = self._schema.get_field(parent, nodes[0].name.value)
        if definition is None:
            return 0
        return _query_cost(definition) + self._of_value(definition, nodes, page_limit)

    def _of_value(self, definition: GraphQLField, nodes: list[FieldNode], page_limit: int | None) -> int:
        if not is_composite_type(named := get_named_type(definition.type)):
            return COROUTINE_COST if _has_coroutine(definition) else 0
        sets = tuple(node.selection_set for node in nodes if node.selection_set)
        limit = self._limit(definition, nodes[0])
        if not isinstance(get_nullable_type(definition.type), GraphQLList):
            return 1 + self._of_any(named, sets, limit)
        candidates = (limit, self._list_length(definition, nodes[0]), page_limit, UNKNOWN_SIZE)
        size = next(candidate for candidate in candidates if candidate is not None)
        return max(size, 1) * (1 + self._of_any(named, sets, None))

    def _of_any(self, type_: object, sets: tuple[SelectionSetNode, ...], page_limit: int | None) -> int:
        types = self._schema.get_possible_types(type_) if is_abstract_type(type_) else [type_]
        return max((self.of_object(t, sets, page_limit) for t in types if is_object_type(t)), default=0)

    def _limit(self, field: GraphQLField, node: FieldNode) -> int | None:
        sizes = (self._argument_size(name, field.args[name], node) for name in PAGE_SIZES if name in field.args)
        return next((size for size in sizes if size is not None), None)

    def _list_length(self, field: GraphQLField, node: FieldNode) -> int | None:
        """Returns the length of the longest required list argument. Optional lists are filters and do not count."""
        lists = [name for name, argument in field.args.items() if _is_required_list(argument)]
        sizes = [self._argument_size(name, field.args[name], node) for name in lists]
        return max((size for size in sizes if size is not None), default=None)

    def _argument_size(self, name: str, argument: GraphQLArgument, node: FieldNode) -> int | None:
        value = next((a.value for a in node.arguments or () if a.name.value == name), None)
        if isinstance(value, VariableNode):
            self.size_variables.add(value.name.value)
            size = self._sizes.get(value.name.value)
        else:
            size = _literal_size(value)
        return _default_size(argument) if size is None else size

    def _collect(self, type_: GraphQLObjectType, sets: tuple[SelectionSetNode, ...]) -> _Fields:
        """Returns the fields of one object by response name, merged as in execution."""
        fields: _Fields = {}
        spread_names: set[str] = set()
        pending = list(sets)
        while pending:
            for node in pending.pop().selections:
                self._count_step()
                if isinstance(node, FieldNode):
                    fields.setdefault((node.alias or node.name).value, []).append(node)
                elif inner := self._spread(node, type_, spread_names):
                    pending.append(inner)
        return fields

    def _spread(self, node: SelectionNode, type_: GraphQLObjectType, spread_names: set[str]) -> SelectionSetNode | None:
        fragment: object = node
        if isinstance(node, FragmentSpreadNode):
            fragment = None if node.name.value in spread_names else self._fragments.get(node.name.value)
            spread_names.add(node.name.value)
        if isinstance(fragment, InlineFragmentNode | FragmentDefinitionNode) and self._applies(fragment, type_):
            return fragment.selection_set
        return None

    def _applies(self, fragment: InlineFragmentNode | FragmentDefinitionNode, type_: GraphQLObjectType) -> bool:
        if fragment.type_condition is None or fragment.type_condition.name.value == type_.name:
            return True
        condition = self._schema.get_type(fragment.type_condition.name.value)
        return is_abstract_type(condition) and self._schema.is_sub_type(condition, type_)

    def _count_step(self) -> None:
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise _TooManySteps


def _query_cost(field: GraphQLField) -> int:
    bound = _bound(field)
    return QUERY_COST if bound and bound.metadata.get(QUERIES_PER_OBJECT) else 0


def _has_coroutine(field: GraphQLField) -> bool:
    """Returns whether a coroutine runs for each object that the field is selected on."""
    bound = _bound(field)
    return bound is not None and bound.is_async and batch_resolver_of(bound) is None


def _bound(field: GraphQLField) -> StrawberryField | None:
    bound = field.extensions.get(GraphQLCoreConverter.DEFINITION_BACKREF)
    return bound if isinstance(bound, StrawberryField) else None


def _is_required_list(argument: GraphQLArgument) -> bool:
    return is_required_argument(argument) and isinstance(get_nullable_type(argument.type), GraphQLList)


def _default_size(argument: GraphQLArgument) -> int | None:
    if argument.default is None:
        return size_of(argument.default_value)
    literal = argument.default.literal
    return size_of(argument.default.value) if literal is None else _literal_size(literal)


def _literal_size(value: ValueNode | None) -> int | None:
    if isinstance(value, ListValueNode):
        return len(value.values)
    if isinstance(value, IntValueNode):
        # The first 12 digits already exceed any limit. Python refuses to parse integers of thousands of digits.
        return int(value.value[:12])
    return None
