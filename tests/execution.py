"""Runs operations in this process, as the server does for requests."""

from collections.abc import Sequence
from typing import Any

from graphql import ExecutionResult, GraphQLError

from resolvers.context import Context
from schema.errors import to_client_error
from server.graphql.documents import OperationRefused, OperationRequest
from server.graphql.operations import Operations
from storage.errors import DomainError


async def run_operation(
    operations: Operations,
    context: Context,
    query: str,
    variables: dict[str, Any] | None = None,
    name: str | None = None,
) -> ExecutionResult:
    """Runs a query or mutation. Returns the error of a refused one as a result without data."""
    try:
        operation = operations.documents.operation(OperationRequest(query, variables, name))
        async with operations.run(operation, context) as result:
            return result
    except OperationRefused as refused:
        return refusal(refused.errors)
    except DomainError as error:
        return refusal([error])


def refusal(errors: Sequence[Exception]) -> ExecutionResult:
    """Returns the result of an operation that was not executed."""
    graphql_errors = [e if isinstance(e, GraphQLError) else GraphQLError(str(e), original_error=e) for e in errors]
    return ExecutionResult(None, [to_client_error(each) for each in graphql_errors])
