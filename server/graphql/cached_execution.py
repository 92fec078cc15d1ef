"""Executing a document that was executed before: straight by graphql-core, without Strawberry's stages around it.

Strawberry asks each extension before and after each stage. For a document that is known to be valid it is known what
they do: nothing before, and afterwards errors are presented.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeGuard, cast

import strawberry
from graphql import OperationDefinitionNode, OperationType, execute
from strawberry.execution.is_awaitable import optimized_is_awaitable
from strawberry.types import ExecutionResult

from resolvers.context import Context
from schema.errors import PresentErrors, presented
from server.graphql.limits import DocumentLimitsExtension, PreparedDocument, find_operation

EXTENSIONS = {PresentErrors, DocumentLimitsExtension}
SERVED = {OperationType.QUERY, OperationType.MUTATION}


async def execute_known(
    schema: strawberry.Schema, query: str | None, variables: dict[str, Any] | None, name: str | None, context: Context
) -> ExecutionResult | None:
    """The result of a query or mutation; None when the document is not known, or is not to be executed so."""
    prepared = DocumentLimitsExtension.documents.find(schema._schema, query or "")
    if prepared is None or not _may_execute(schema, prepared, variables, name):
        return None
    result = execute(
        schema._schema,
        prepared.document,
        context_value=context,
        variable_values=variables,
        operation_name=name,
        is_awaitable=cast("Callable[[Any], TypeGuard[Awaitable[Any]]]", optimized_is_awaitable),
        executor_class=schema.execution_context_class,
        operation_extensions=None,
    )
    done = await result if isinstance(result, Awaitable) else result
    return ExecutionResult(data=done.data, errors=done.errors and [presented(error) for error in done.errors])


def _may_execute(
    schema: strawberry.Schema, prepared: PreparedDocument, variables: Mapping[str, Any] | None, name: str | None
) -> bool:
    operation: OperationDefinitionNode | None = find_operation(prepared.document, name)
    served = operation is not None and operation.operation in SERVED
    return served and set(schema.extensions) == EXTENSIONS and not prepared.errors(variables, name)
