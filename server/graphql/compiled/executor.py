"""The executor that completes lists by compiled plans. Used as Strawberry's `execution_context_class`."""

from collections.abc import Callable
from copy import copy
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

from graphql import (
    DocumentNode,
    GraphQLError,
    GraphQLList,
    GraphQLObjectType,
    GraphQLOutputType,
    GraphQLResolveInfo,
    GraphQLSchema,
)
from graphql.execution import Executor, MiddlewareManager
from graphql.execution.collect_fields import FieldDetailsList
from graphql.execution.executor import CollectedErrors
from graphql.pyutils import AwaitableOrValue, Path
from graphql.type.definition import GraphQLResolveInfoHelpers
from strawberry.schema.schema import StrawberryGraphQLCoreExecutionContext

from server.graphql.compiled.compiler import Compiler, Compilers
from server.graphql.compiled.rows import CompiledPlan, CompletionPlan, CompletionRun
from server.graphql.compiled.variables import (
    explain_errors,
    is_storable,
    long_lists,
    require_storable_arguments,
    restore_lists,
)
from server.graphql.documents import DocumentCache, PreparedDocument
from server.graphql.fair_shares import MeasuredAwaitable, await_in_turn

CompleteByGraphQLCore = Callable[["CompiledExecutor"], Any]
"""Completes a value with graphql-core's code, as a method of the given executor."""


class CompiledExecutor(StrawberryGraphQLCoreExecutionContext):
    """graphql-core's executor with one step replaced: the completion of lists, with all objects in them."""

    compiler_cache: "ClassVar[CompilerCache | None]" = None

    def __init__(self, *args: Any, propagates_errors: bool = True, **kwargs: Any) -> None:
        """Without `propagates_errors`, an error makes only its own field null. Plans always propagate errors."""
        super().__init__(*args, **kwargs)
        self._compiler: Compiler | None = None
        if propagates_errors:
            self._compiler = (self.compiler_cache and self.compiler_cache.find(self)) or Compiler(self.schema)
        else:
            self.error_propagation = False

    # graphql-core stores the helpers in an attribute, which would be a reference cycle with the executor.
    @property
    def async_helpers(self) -> GraphQLResolveInfoHelpers:
        """Returns the functions that resolvers may await with."""
        return GraphQLResolveInfoHelpers(gather=self.gather_async_work, track=self.track_async_work)

    @async_helpers.setter
    def async_helpers(self, _helpers: GraphQLResolveInfoHelpers) -> None: ...

    @classmethod
    def build(
        cls,
        schema: GraphQLSchema,
        document: DocumentNode,
        root_value: Any = None,
        context_value: Any = None,
        raw_variable_values: dict[str, Any] | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> "list[GraphQLError] | Executor[Any]":
        """Coerces variables as graphql-core does, except long lists of strings.

        A field whose argument has a lone surrogate fails, and the other fields are executed.
        """
        raw_values = raw_variable_values or {}
        lists = long_lists(document, raw_values)
        shortened: dict[str, Any] = {**raw_values, **{name: [] for name in lists}} if lists else raw_values
        executor = super().build(schema, document, root_value, context_value, shortened, *args, **kwargs)
        if isinstance(executor, list):
            explain_errors(schema, executor, shortened)
        else:
            if lists:
                restore_lists(executor.variable_values, lists)
            if not is_storable(raw_values):
                executor.middleware_manager = MiddlewareManager(require_storable_arguments)
        return executor

    def execute_field(
        self,
        parent_type: GraphQLObjectType,
        source: Any,
        field_details_list: FieldDetailsList,
        path: Path,
        position_context: Any,
    ) -> AwaitableOrValue[Any]:
        """Executes a field. The time of its coroutine counts for the viewer, and a root field waits for its turn."""
        value = super().execute_field(parent_type, source, field_details_list, path, position_context)
        if not self.is_awaitable(value):
            return value
        measured = MeasuredAwaitable(value)
        return await_in_turn(measured) if path.prev is None else measured

    def complete_list_value(
        self,
        return_type: GraphQLList[GraphQLOutputType],
        field_details_list: FieldDetailsList,
        info: GraphQLResolveInfo[Any],
        path: Path,
        result: Any,
        position_context: Any,
    ) -> Any:
        """Completes a list: by a plan, or by graphql-core without a plan and for unusual values."""

        def by_graphql_core(executor: CompiledExecutor) -> Any:
            return super().complete_list_value(return_type, field_details_list, info, path, result, position_context)

        plan = self._plan(return_type, field_details_list)
        if plan is None:
            return by_graphql_core(self)
        if not isinstance(plan, CompiledPlan):
            return self._complete_with_open_fields(plan, result, info, path, by_graphql_core)
        try:
            return plan.complete_one(result, info)
        except Exception:
            return by_graphql_core(self._without_plans())

    def _plan(self, type_: GraphQLOutputType, details: FieldDetailsList) -> CompletionPlan | None:
        if self._compiler is None or details[0].node.selection_set is None:
            return None
        return self._compiler.plan(type_, details, self._collect)

    def _collect(self, type_: GraphQLObjectType, details: FieldDetailsList) -> dict[str, FieldDetailsList] | None:
        """Returns the selected fields by response name; None with fragment variables or incremental delivery."""
        if any(each.fragment_variable_values or each.defer_usage for each in details):
            return None
        collected = self.collect_subfields(type_, details)
        return None if collected.new_defer_usages else dict(collected.grouped_field_set)

    async def _complete_with_open_fields(
        self,
        plan: CompletionPlan,
        value: Any,
        info: GraphQLResolveInfo[Any],
        path: Path,
        by_graphql_core: CompleteByGraphQLCore,
    ) -> Any:
        attempt = copy(self)
        attempt.collected_errors = errors = _AttemptErrors()
        try:
            (completed,) = await plan.complete(CompletionRun(attempt, info), [value], lambda _number: path)
        except Exception:
            completed = by_graphql_core(self._without_plans())
            return await completed if self.is_awaitable(completed) else completed
        for error, error_path in errors.with_paths:
            self.collected_errors.add(error, error_path)
        return completed

    def __copy__(self) -> "CompiledExecutor":
        """Copies the attributes without `copy`'s general protocol, since each event and each list needs a copy."""
        duplicate = object.__new__(type(self))
        duplicate.__dict__.update(self.__dict__)
        return duplicate

    def _without_plans(self) -> "CompiledExecutor":
        """Returns a copy that uses no plans. Plans for the levels below would fail on the same unusual value again."""
        duplicate = copy(self)
        duplicate._compiler = None
        return duplicate


class _AttemptErrors(CollectedErrors):
    """The errors of an attempt to complete a value by a plan, with their paths."""

    __slots__ = ("with_paths",)

    def __init__(self) -> None:
        super().__init__()
        self.with_paths: list[tuple[Any, Path | None]] = []

    def add(self, error: Any, path: Path | None) -> None:
        """Collects an error, unless its position is null already."""
        if not self.has_nulled_position(path):
            self.with_paths.append((error, path))
        super().add(error, path)


class CompilerCache:
    """The compilers of cached documents. They live as long as `documents` keeps their document."""

    def __init__(self, documents: DocumentCache) -> None:
        self._documents = documents
        self._compilers: WeakKeyDictionary[PreparedDocument, Compilers] = WeakKeyDictionary()

    def find(self, executor: CompiledExecutor) -> Compiler | None:
        """Returns the compiler of the executor's operation; None if its document is not cached."""
        loc = executor.operation.loc
        prepared = loc and self._documents.find(loc.source.body)
        if not prepared or not any(each is executor.operation for each in prepared.document.definitions):
            return None
        compilers = self._compilers.get(prepared)
        if compilers is None:
            compilers = self._compilers[prepared] = Compilers(prepared.document)
        return compilers.of(executor)


def compiled_executor(documents: DocumentCache) -> type[CompiledExecutor]:
    """Returns an executor class that caches compiled plans along with `documents`."""
    return type("CompiledExecutor", (CompiledExecutor,), {"compiler_cache": CompilerCache(documents)})
