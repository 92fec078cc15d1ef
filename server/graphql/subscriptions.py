"""From a subscribe message to a shared broadcast: which operations are the same, and for whom."""

from collections.abc import Awaitable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from graphql import (
    ExecutionResult,
    GraphQLError,
    GraphQLSchema,
    NamedTypeNode,
    NonNullTypeNode,
    OperationDefinitionNode,
    TypeNode,
    create_source_event_stream,
    get_operation_ast,
)
from graphql.execution import Executor

from resolvers.chat.events import ChatEventSource
from resolvers.context import Context
from resolvers.events import ViewerEventSource
from schema.sharing import depends_on_viewer
from server.graphql.compiled import CompiledExecutor
from server.graphql.documents import prepare

POSITION_TYPE = "Cursor"


class NotStarted(Exception):
    """The operation can't begin; these are its errors."""

    def __init__(self, errors: list[GraphQLError]) -> None:
        super().__init__(str(errors))
        self.errors = errors


@dataclass(frozen=True, slots=True)
class Subscribed:
    """A subscription whose viewer may listen. Those with equal keys get the same payloads."""

    key: Hashable
    executor: Executor[Any]
    source: ChatEventSource


@dataclass(frozen=True, slots=True)
class Own:
    """A subscription that is its viewer's own: nothing of it is shared."""

    executor: Executor[Any]
    source: ViewerEventSource


async def subscribe(
    schema: GraphQLSchema,
    context: Context,
    query: str,
    variables: Mapping[str, Any] | None,
    operation_name: str | None,
) -> Subscribed | Own | None:
    """None for everything that is no subscription to events. Raises: NotStarted."""
    try:
        prepared = prepare(schema, query)
    except GraphQLError as error:
        raise NotStarted([error]) from error
    operation = get_operation_ast(prepared.document, operation_name)
    if operation is None or operation.operation.value != "subscription":
        return None
    if errors := prepared.errors(variables, operation_name):
        raise NotStarted(list(errors))
    executor = CompiledExecutor.build(
        schema,
        prepared.document,
        context_value=context,
        raw_variable_values=dict(variables or {}),
        operation_name=operation_name,
    )
    if isinstance(executor, list):
        raise NotStarted(executor)
    source = await _source(executor)
    if isinstance(source, ViewerEventSource):
        return Own(executor, source)
    if source is None:
        return None
    rights = _rights(context) if depends_on_viewer(schema, prepared.document) else source.viewer.organization_id
    key = (query, operation_name, _same(operation, variables or {}), source.stream, rights)
    return Subscribed(key, executor, source)


async def _source(executor: Executor[Any]) -> ChatEventSource | ViewerEventSource | None:
    created = create_source_event_stream(executor)
    stream = await created if isinstance(created, Awaitable) else created
    if isinstance(stream, ExecutionResult):
        raise NotStarted(list(stream.errors or ()))
    return stream if isinstance(stream, ChatEventSource | ViewerEventSource) else None


def _rights(context: Context) -> Hashable:
    """What makes two viewers alike where the data depends on who looks: only being the same one."""
    assert context.viewer is not None
    return context.viewer.organization_id, context.viewer.id, context.roles


def _same(operation: OperationDefinitionNode, variables: Mapping[str, Any]) -> bytes:
    """The variables as far as they decide what events look like. Where each client stands does not."""
    positions = {
        definition.variable.name.value
        for definition in operation.variable_definitions or ()
        if _named(definition.type) == POSITION_TYPE
    }
    kept = {name: value for name, value in variables.items() if name not in positions}
    return orjson.dumps(kept, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS)


def _named(node: TypeNode) -> str | None:
    inner = node.type if isinstance(node, NonNullTypeNode) else node
    return inner.name.value if isinstance(inner, NamedTypeNode) else None
