"""Runs queries and mutations: the one way for HTTP, coalesced requests, sockets and tests.

graphql-core executes the prepared document directly, without Strawberry's stages around it (docs/upstream.md).
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any, TypeGuard, cast

import strawberry
from graphql import ExecutionResult, GraphQLSchema, execute
from strawberry.execution.is_awaitable import optimized_is_awaitable

from resolvers.limits.concurrency import ConcurrencyLimiter
from schema.errors import to_client_error
from server.graphql.budgets import DEFAULT_COST_PER_MINUTE, CostBudgets, CostPerMinute
from server.graphql.compiled import compiled_executor
from server.graphql.deadlines import EXECUTION_TIMEOUT_S, LARGE_BODY_TIMEOUT_S, deadline
from server.graphql.documents import DocumentCache, OperationRequest, PreparedOperation
from server.graphql.fair_shares import FairShares, attribute_time_to, execute_root_fields_singly
from server.graphql.limits import DocumentLimits
from server.graphql.persisted_documents import PersistedDocuments
from server.graphql.protocols import OperationContext, Viewer
from storage.errors import BadUserInput

MAX_COST = 2_000
"""Total cost of the operations of one viewer that are executed at a time."""

MAX_SERVICE_COST = 200_000
"""The total that replaces `MAX_COST` for a viewer with the role SERVICE."""

IS_AWAITABLE = cast("Callable[[Any], TypeGuard[Awaitable[Any]]]", optimized_is_awaitable)


class Operations:
    """The operations of one schema: their documents, and the limits of those that are executed in this process."""

    def __init__(
        self,
        schema: strawberry.Schema,
        limits: DocumentLimits | None = None,
        *,
        cost_per_minute: CostPerMinute = DEFAULT_COST_PER_MINUTE,
        execution_timeout_s: float = EXECUTION_TIMEOUT_S,
        concurrency: ConcurrencyLimiter | None = None,
        persisted: PersistedDocuments | None = None,
    ) -> None:
        """Queries, mutations and executions of events are stopped after `execution_timeout_s` seconds.

        Queries and mutations that accept large bodies are stopped after a minute. Queries and mutations are refused
        when the viewer or the organization has spent `cost_per_minute`.
        """
        # Strawberry has no public access to graphql-core's schema. tests/server/graphql/test_operations.py fails if
        # this attribute disappears.
        self.schema: GraphQLSchema = schema._schema
        self.documents = DocumentCache(self.schema, limits)
        self.persisted = persisted or PersistedDocuments()
        self.executor_class = compiled_executor(self.documents)
        self.execution_timeout_s = execution_timeout_s
        self.budgets = CostBudgets(cost_per_minute)
        self.shares = FairShares()
        self._concurrency = concurrency or ConcurrencyLimiter()

    async def prepare(self, request: OperationRequest, context: OperationContext) -> PreparedOperation:
        """Returns the requested operation. Saves the text of a document that came with its hash from a viewer.

        Raises: OperationRefused; Forbidden for a document that is not trusted; BadUserInput.
        """
        found = await self.persisted.find(request, context.roles)
        operation = self.documents.operation(found)
        if request.document_id is not None and request.query and context.viewer is not None:
            await self.persisted.save(request.document_id, request.query)
        return operation

    @asynccontextmanager
    async def run(self, operation: PreparedOperation, context: OperationContext) -> AsyncIterator[ExecutionResult]:
        """Executes a query or mutation for the viewer of `context`. Yields the result, with errors as clients see them.

        The operation counts as running until the block ends, so that a viewer who does not read gets few results.

        Raises: BadUserInput for a subscription; Forbidden for a service key without the scope; RateLimited if a budget
        is spent, or if too many operations of the viewer wait; Unavailable at the deadline.
        """
        if operation.is_subscription:
            raise BadUserInput(
                "query", "a query or a mutation; subscriptions go over WebSocket, or need Accept: text/event-stream"
            )
        operation.document.require_scopes(context.scopes)
        async with AsyncExitStack() as entered:
            if context.viewer is not None:
                self.budgets.check(context.viewer, operation.cost, is_service=context.is_service)
                self.budgets.spend([context.viewer], operation.cost, is_service=context.is_service)
                await entered.enter_async_context(self._room(context.viewer, context, operation.cost))
            timeout_s = LARGE_BODY_TIMEOUT_S if operation.document.accepts_large_body else self.execution_timeout_s
            async with deadline(timeout_s):
                result = await self._execute(operation, context.of_query() if operation.is_query else context)
            yield result

    async def run_for_all(
        self, operation: PreparedOperation, context: OperationContext, viewers: Sequence[Viewer]
    ) -> ExecutionResult:
        """Executes a coalescible query once for viewers with equal roles, whose budgets `check` has passed.

        Raises: as `run`.
        """
        viewer = viewers[0]
        self.budgets.spend(viewers, operation.cost, is_service=context.is_service)
        share = self.shares.of(viewer, is_service=context.is_service)
        async with AsyncExitStack() as entered:
            # One viewer's share and limit must not delay an answer that others wait for.
            if len(viewers) > 1:
                attribute_time_to(None)
                self.shares.mark_active(share)
            else:
                await self.shares.begin(share)
                await entered.enter_async_context(self._room(viewer, context, operation.cost))
            await entered.enter_async_context(deadline(self.execution_timeout_s))
            return await self._execute(operation, context)

    def budget_of(self, context: OperationContext) -> int | None:
        """Returns the cost that the viewer may spend now; None without a viewer."""
        viewer = context.viewer
        return None if viewer is None else self.budgets.remaining(viewer, is_service=context.is_service)

    def _room(self, viewer: Viewer, context: OperationContext, cost: int) -> AbstractAsyncContextManager[None]:
        """Returns a context manager that waits until the viewer's other operations leave room for this one."""
        max_cost = MAX_SERVICE_COST if context.is_service else MAX_COST
        if cost > max_cost:
            execute_root_fields_singly()
        return self._concurrency.execution((viewer.organization_id, viewer.id), cost, max_cost)

    async def _execute(self, operation: PreparedOperation, context: OperationContext) -> ExecutionResult:
        result = execute(
            self.schema,
            operation.document.document,
            context_value=context,
            variable_values=operation.request.variables,
            operation_name=operation.request.operation_name,
            is_awaitable=IS_AWAITABLE,
            executor_class=self.executor_class,
            operation_extensions=None,
            propagates_errors=operation.request.propagates_errors,
        )
        executed = await result if isinstance(result, Awaitable) else result
        executed.errors = executed.errors and [to_client_error(error) for error in executed.errors]
        return executed
