"""Starts subscriptions, and computes the keys by which identical subscriptions share one execution."""

from collections.abc import Awaitable, Hashable, Mapping
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import orjson
from graphql import (
    ArgumentNode,
    ExecutionResult,
    FieldNode,
    NamedTypeNode,
    NameNode,
    NonNullTypeNode,
    OperationDefinitionNode,
    SelectionSetNode,
    StringValueNode,
    TypeNode,
    create_source_event_stream,
)
from graphql.execution import Executor
from graphql.execution.collect_fields import collect_fields

from resolvers.arguments import require_storable
from resolvers.events import SharedEventSource, ViewerEventSource
from server.graphql.documents import OperationRefused, PreparedOperation
from server.graphql.operations import Operations
from server.graphql.protocols import OperationContext

CURSOR_TYPE = "Cursor"
SINCE = "since"
"""The argument of subscriptions that says after which event they resume."""


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


class SubscriptionStarter:
    """Starts subscriptions to one schema."""

    def __init__(self, operations: Operations) -> None:
        self._schema, self._executor_class = operations.schema, operations.executor_class

    async def start(
        self, context: OperationContext, operation: PreparedOperation, since: str | None = None
    ) -> SharedSubscription | ViewerSubscription:
        """Returns the started subscription, which resumes after `since`, or else after the operation's own cursor.

        Raises: OperationRefused; Forbidden for a service key without the scope; BadUserInput for a lone surrogate.
        """
        operation.document.require_scopes(context.scopes)
        require_storable(operation.request.variables)
        executor = self._build_executor(operation, context)
        source = await _open_source(executor if since is None else _resumed_after(executor, since))
        if isinstance(source, ViewerEventSource):
            return ViewerSubscription(executor, source)
        audience_key = _viewer_key(context) if operation.document.depends_on_viewer else source.viewer.organization_id
        key = (
            operation.document.normalized_text,
            operation.request.operation_name,
            operation.request.propagates_errors,
            _variables_key(operation.node, operation.request.variables or {}),
            source.stream,
            audience_key,
        )
        return SharedSubscription(key, executor, source)

    def _build_executor(self, operation: PreparedOperation, context: OperationContext) -> Executor[Any]:
        executor = self._executor_class.build(
            self._schema,
            operation.document.document,
            context_value=context,
            raw_variable_values=dict(operation.request.variables or {}),
            operation_name=operation.request.operation_name,
            propagates_errors=operation.request.propagates_errors,
        )
        if isinstance(executor, list):
            raise OperationRefused(executor)
        return executor


def _resumed_after(executor: Executor[Any], since: str) -> Executor[Any]:
    """Returns a copy that opens the source after the cursor, also if the operation has another cursor or none.

    A field without such an argument, such as that of people who are typing, ignores it.
    """
    root_type = executor.schema.subscription_type
    assert root_type is not None
    operation = executor.operation
    collected = collect_fields(executor.schema, executor.fragments, executor.variable_values, root_type, operation)
    details = next(iter(collected.grouped_field_set.values()))[0]
    selected = SelectionSetNode(selections=(_with_argument(details.node, SINCE, since),))
    resumed = copy(executor)
    resumed.operation = replace(operation, selection_set=selected)
    return resumed


def _with_argument(field: FieldNode, name: str, value: str) -> FieldNode:
    others = (each for each in field.arguments or () if each.name.value != name)
    argument = ArgumentNode(name=NameNode(value=name), value=StringValueNode(value=value))
    return replace(field, arguments=(*others, argument))


async def _open_source(executor: Executor[Any]) -> SharedEventSource | ViewerEventSource:
    created = create_source_event_stream(executor)
    stream = await created if isinstance(created, Awaitable) else created
    if isinstance(stream, ExecutionResult):
        raise OperationRefused(list(stream.errors or ()))
    assert isinstance(stream, SharedEventSource | ViewerEventSource)
    return stream


def _viewer_key(context: OperationContext) -> Hashable:
    """Returns the part of the key that separates viewers, for operations whose data depend on the viewer."""
    assert context.viewer is not None
    return context.viewer.organization_id, context.viewer.id, context.roles


def _variables_key(operation: OperationDefinitionNode, variables: Mapping[str, Any]) -> str:
    """Returns the variables that payloads depend on, as JSON: the declared ones without cursors.

    Cursors only say where each client resumes. A subscription keeps its key. The text takes less than 100 bytes;
    orjson's bytes keep a buffer of 4 KiB.
    """
    types = {each.variable.name.value: _type_name(each.type) for each in operation.variable_definitions or ()}
    relevant = {name: value for name, value in variables.items() if types.get(name, CURSOR_TYPE) != CURSOR_TYPE}
    return orjson.dumps(relevant, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS).decode()


def _type_name(node: TypeNode) -> str | None:
    inner = node.type if isinstance(node, NonNullTypeNode) else node
    return inner.name.value if isinstance(inner, NamedTypeNode) else None
