"""Decides from the schema's bindings, once for each document, which selection sets are compiled, and how.

The directives @skip and @include depend on variables, so there is one compiler for each combination of their values.
"""

from collections.abc import Callable, Sequence
from typing import Any

from cachetools import LRUCache
from graphql import (
    DirectiveNode,
    DocumentNode,
    GraphQLField,
    GraphQLObjectType,
    GraphQLOutputType,
    GraphQLSchema,
    VariableNode,
    Visitor,
    get_named_type,
    get_nullable_type,
    is_leaf_type,
    visit,
)
from graphql.execution import Executor
from graphql.execution.collect_fields import FieldDetailsList
from strawberry.schema.schema_converter import GraphQLCoreConverter
from strawberry.types.field import StrawberryField

from schema.binding import batch_resolver_of
from server.graphql.compiled.leaves import NotCompilable
from server.graphql.compiled.objects import FunctionSource, ObjectFunctions, complete_value_of
from server.graphql.compiled.rows import (
    CompiledObjectPlan,
    CompiledPlan,
    CompletionPlan,
    ObjectPlan,
    OpenAttribute,
    OpenBatchField,
    OpenField,
    OpenSingleField,
    is_nullable,
    plan_of,
)

TYPENAME = "__typename"
MAX_COMBINATIONS = 64

CollectFields = Callable[[GraphQLObjectType, FieldDetailsList], dict[str, FieldDetailsList] | None]
"""Returns the fields selected on a type, by response name; None when one of them cannot be compiled."""


class Compiler:
    """The plans of one operation's selection sets, each created when it is first needed."""

    def __init__(self, schema: GraphQLSchema) -> None:
        self._schema = schema
        self._plans: dict[tuple[object, ...], CompletionPlan | None] = {}
        # The keys of plans contain ids of nodes and types. These must stay alive, so that no id is used again.
        self._kept_alive: list[object] = []

    def plan(
        self, type_: GraphQLOutputType, details: FieldDetailsList, collect: CollectFields
    ) -> CompletionPlan | None:
        """Returns the plan for values of the type with this selection; None if graphql-core must complete them."""
        key = (id(type_), *(id(each.node) for each in details))
        if key not in self._plans:
            self._kept_alive.append((type_, details))
            try:
                self._plans[key] = self._compile(type_, details, collect)
            except NotCompilable:
                self._plans[key] = None
        return self._plans[key]

    def _compile(self, type_: GraphQLOutputType, details: FieldDetailsList, collect: CollectFields) -> CompletionPlan:
        """Returns a new plan for values of any output type. Raises: NotCompilable."""
        plans: dict[str, CompletionPlan] = {}

        def object_plan(object_type: GraphQLObjectType) -> CompletionPlan:
            if object_type.name not in plans:
                plans[object_type.name] = self._compile_object(object_type, details, collect)
            return plans[object_type.name]

        def object_functions(object_type: GraphQLObjectType) -> ObjectFunctions:
            plan = object_plan(object_type)
            if not isinstance(plan, CompiledObjectPlan):
                raise NotCompilable
            return ObjectFunctions(plan.complete_one, plan.complete_many)

        try:
            return CompiledPlan(complete_value_of(type_, object_functions, self._schema))
        except NotCompilable:
            return plan_of(type_, object_plan, self._schema)

    def _compile_object(
        self, type_: GraphQLObjectType, details: FieldDetailsList, collect: CollectFields
    ) -> CompletionPlan:
        """Returns a new plan for objects of one type. Raises: NotCompilable."""
        fields = collect(type_, details)
        if fields is None:
            raise NotCompilable
        source, open_fields = FunctionSource(type_), list[OpenField]()
        for key, selected in fields.items():
            open_field = self._compile_field(source, key, selected, collect)
            if open_field is not None:
                source.leave_open(key)
                open_fields.append(open_field)
        functions = source.build()
        return ObjectPlan(functions.many, open_fields) if open_fields else CompiledObjectPlan(*functions)

    def _compile_field(
        self, source: FunctionSource, key: str, selected: FieldDetailsList, collect: CollectFields
    ) -> OpenField | None:
        """Adds a field to the source, or returns the open field. Raises: NotCompilable."""
        type_, name = source.type_, selected[0].node.name.value
        if name == TYPENAME:
            source.add_constant(key, type_.name)
            return None
        field = type_.fields.get(name)
        bound = field and field.extensions.get(GraphQLCoreConverter.DEFINITION_BACKREF)
        if field is None or not isinstance(bound, StrawberryField):
            raise NotCompilable
        if is_plain(field, bound):
            return self._compile_attribute(source, key, bound.python_name, field.type, selected, collect)
        return self._open_resolver_field(type_, key, field, bound, selected, collect)

    def _compile_attribute(
        self,
        source: FunctionSource,
        key: str,
        attribute: str,
        type_: GraphQLOutputType,
        selected: FieldDetailsList,
        collect: CollectFields,
    ) -> OpenField | None:
        if is_leaf_type(get_nullable_type(type_)):
            source.add_leaf(key, attribute, type_)
            return None
        plan = self._value_plan(type_, selected, collect)
        if plan is None:
            return OpenSingleField(key, source.type_, selected)
        if isinstance(plan, CompiledPlan):
            source.add_value(key, attribute, type_, plan.complete_one)
            return None
        return OpenAttribute(key, attribute, source.type_.name, plan, is_nullable(type_))

    def _open_resolver_field(
        self,
        type_: GraphQLObjectType,
        key: str,
        field: GraphQLField,
        bound: StrawberryField,
        selected: FieldDetailsList,
        collect: CollectFields,
    ) -> OpenField:
        resolve = batch_resolver_of(bound)
        plan = self._value_plan(field.type, selected, collect) if resolve else None
        if resolve is None or plan is None:
            return OpenSingleField(key, type_, selected)
        return OpenBatchField(key, type_, field, bound, resolve, selected, plan, is_nullable(field.type))

    def _value_plan(
        self, type_: GraphQLOutputType, selected: FieldDetailsList, collect: CollectFields
    ) -> CompletionPlan | None:
        if is_leaf_type(get_named_type(type_)):
            return CompiledPlan(complete_value_of(type_, _no_objects, self._schema))
        return self.plan(type_, selected, collect)


class Compilers:
    """The most recently used compilers of one document, by operation and by the variables of @skip and @include."""

    def __init__(self, document: DocumentNode) -> None:
        self._condition_names = _condition_variables(document)
        self._compilers: LRUCache[tuple[object, ...], Compiler] = LRUCache(MAX_COMBINATIONS)

    def of(self, executor: Executor[Any]) -> Compiler:
        """Returns the compiler of the executor's operation, which must belong to the document."""
        values = executor.variable_values.coerced
        key = (id(executor.operation), *(values.get(name) for name in self._condition_names))
        compiler = self._compilers.get(key)
        if compiler is None:
            compiler = self._compilers[key] = Compiler(executor.schema)
        return compiler

    def __len__(self) -> int:
        return len(self._compilers)


def is_plain(field: GraphQLField, bound: StrawberryField) -> bool:
    """Returns whether the field is read from the record: it has no resolver, extension or argument."""
    return bound.is_basic_field and bound.default_resolver is getattr and not field.args


def _no_objects(_type: GraphQLObjectType) -> ObjectFunctions:
    raise NotCompilable


def _condition_variables(document: DocumentNode) -> Sequence[str]:
    """Returns the names of the variables that @skip and @include depend on."""
    visitor = _DirectiveVariables()
    visit(document, visitor)
    return sorted(visitor.names)


class _DirectiveVariables(Visitor):
    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def enter_directive(self, node: DirectiveNode, *_: object) -> None:
        values = [argument.value for argument in node.arguments or ()]
        self.names |= {value.name.value for value in values if isinstance(value, VariableNode)}
