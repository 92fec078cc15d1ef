"""Executes cached documents directly with graphql-core, without Strawberry's stages around it (docs/upstream.md).

Strawberry runs every extension before and after each stage. For a valid cached document, the product's extensions do
nothing before the execution. After the execution, they only present errors.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeGuard, cast

import strawberry
from graphql import OperationDefinitionNode, OperationType, execute
from strawberry.execution.is_awaitable import optimized_is_awaitable
from strawberry.types import ExecutionResult

from schema.errors import ErrorPresenter, to_client_error
from server.graphql.documents import DocumentCache, PreparedDocument
from server.graphql.limits import find_operation
from server.graphql.limits_extension import is_limits_extension

OPERATION_TYPES = {OperationType.QUERY, OperationType.MUTATION}
IS_AWAITABLE = cast("Callable[[Any], TypeGuard[Awaitable[Any]]]", optimized_is_awaitable)


class CachedExecution:
    """Executes queries and mutations whose documents are cached."""

    def __init__(self, schema: strawberry.Schema, documents: DocumentCache) -> None:
        self._schema, self._documents = schema, documents
        # Other extensions need Strawberry's stages.
        self._is_enabled = all(each is ErrorPresenter or is_limits_extension(each) for each in schema.extensions)

    async def execute(
        self, query: str | None, variables: dict[str, Any] | None, name: str | None, context: object
    ) -> ExecutionResult | None:
        """Returns the result; None when the document is not cached, or when Strawberry must execute it."""
        prepared = self._documents.find(query or "") if self._is_enabled else None
        if prepared is None or not _may_execute(prepared, variables, name):
            return None
        result = execute(
            self._schema._schema,
            prepared.document,
            context_value=context,
            variable_values=variables,
            operation_name=name,
            is_awaitable=IS_AWAITABLE,
            executor_class=self._schema.execution_context_class,
            operation_extensions=None,
        )
        executed = await result if isinstance(result, Awaitable) else result
        errors = executed.errors and [to_client_error(error) for error in executed.errors]
        return ExecutionResult(data=executed.data, errors=errors)


def _may_execute(prepared: PreparedDocument, variables: Mapping[str, Any] | None, name: str | None) -> bool:
    operation: OperationDefinitionNode | None = find_operation(prepared.document, name)
    is_query_or_mutation = operation is not None and operation.operation in OPERATION_TYPES
    return is_query_or_mutation and not prepared.errors(variables, name)
