"""Starts subscriptions, and computes the keys by which identical subscriptions share one execution."""

from collections.abc import Awaitable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from graphql import (
    DocumentNode,
    ExecutionResult,
    GraphQLError,
    GraphQLSchema,
    NamedTypeNode,
    NonNullTypeNode,
    OperationDefinitionNode,
    OperationType,
    TypeNode,
    create_source_event_stream,
    get_operation_ast,
)
from graphql.execution import Executor

from resolvers.arguments import require_storable
from resolvers.context import Context
from resolvers.events import SharedEventSource, ViewerEventSource
from schema.sharing import depends_on_viewer
from server.graphql.documents import DocumentCache

CURSOR_TYPE = "Cursor"


class OperationRefused(Exception):
    """The subscription cannot start. `errors` hold the reasons, as the client receives them."""

    def __init__(self, errors: list[GraphQLError]) -> None:
        super().__init__(str(errors))
        self.errors = errors


@dataclass(frozen=True, slots=True)
class SharedSubscription:
    """A subscription to a shared stream, which the viewer may see. Subscriptions with equal keys get equal payloads."""

    key: Hashable
    executor: Executor[Any]
    source: SharedEventSource


@dataclass(frozen=True, slots=True)
class ViewerSubscription:
    """A subscription to the events of one viewer. It shares no execution."""

    executor: Executor[Any]
    source: ViewerEventSource


@dataclass(frozen=True, slots=True)
class SubscriptionStarter:
    """Prepares and starts subscriptions to one schema."""

    schema: GraphQLSchema
    documents: DocumentCache
    executor_class: type[Executor[Any]]

    async def start(
        self, context: Context, query: str, variables: Mapping[str, Any] | None, operation_name: str | None
    ) -> SharedSubscription | ViewerSubscription | None:
        """Returns the subscription; None for a query or a mutation, and for a field without an event source.

        Raises: OperationRefused; Forbidden for a service key without the scope; BadUserInput for a lone surrogate.
        """
        require_storable(query, "query")
        try:
            prepared = self.documents.prepare(self.schema, query)
        except GraphQLError as error:
            raise OperationRefused([error]) from error
        operation = get_operation_ast(prepared.document, operation_name)
        if operation is None or operation.operation is not OperationType.SUBSCRIPTION:
            return None
        if errors := prepared.errors(variables, operation_name):
            raise OperationRefused(list(errors))
        prepared.require_scopes(context.scopes)
        require_storable(variables)
        executor = self._build_executor(prepared.document, context, variables, operation_name)
        source = await _open_source(executor)
        if isinstance(source, ViewerEventSource):
            return ViewerSubscription(executor, source)
        if source is None:
            return None
        is_personal = depends_on_viewer(self.schema, prepared.document)
        audience_key = _viewer_key(context) if is_personal else source.viewer.organization_id
        key = (
            prepared.normalized_text,
            operation_name,
            _variables_key(operation, variables or {}),
            source.stream,
            audience_key,
        )
        return SharedSubscription(key, executor, source)

    def _build_executor(
        self, document: DocumentNode, context: Context, variables: Mapping[str, Any] | None, operation_name: str | None
    ) -> Executor[Any]:
        executor = self.executor_class.build(
            self.schema,
            document,
            context_value=context,
            raw_variable_values=dict(variables or {}),
            operation_name=operation_name,
        )
        if isinstance(executor, list):
            raise OperationRefused(executor)
        return executor


async def _open_source(executor: Executor[Any]) -> SharedEventSource | ViewerEventSource | None:
    created = create_source_event_stream(executor)
    stream = await created if isinstance(created, Awaitable) else created
    if isinstance(stream, ExecutionResult):
        raise OperationRefused(list(stream.errors or ()))
    return stream if isinstance(stream, SharedEventSource | ViewerEventSource) else None


def _viewer_key(context: Context) -> Hashable:
    """Returns the part of the key that separates viewers, for operations whose data depend on the viewer."""
    assert context.viewer is not None
    return context.viewer.organization_id, context.viewer.id, context.roles


def _variables_key(operation: OperationDefinitionNode, variables: Mapping[str, Any]) -> bytes:
    """Returns the variables that payloads depend on, as JSON: the declared ones without cursors.

    Cursors only say where each client resumes.
    """
    types = {each.variable.name.value: _type_name(each.type) for each in operation.variable_definitions or ()}
    relevant = {name: value for name, value in variables.items() if types.get(name, CURSOR_TYPE) != CURSOR_TYPE}
    return orjson.dumps(relevant, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS)


def _type_name(node: TypeNode) -> str | None:
    inner = node.type if isinstance(node, NonNullTypeNode) else node
    return inner.name.value if isinstance(inner, NamedTypeNode) else None
