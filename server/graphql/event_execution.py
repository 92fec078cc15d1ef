"""Executes one subscription's operation for one event after the other, in bounded memory (docs/upstream.md).

graphql-core collects the selected fields again for each event, and keeps each collection until the subscription ends:
about 4 KiB an event. Here the fields are collected once, and executed as graphql-core executes them.
"""

import asyncio
from collections.abc import Awaitable
from contextlib import aclosing
from typing import Any

import orjson
import structlog
from graphql import GraphQLError
from graphql.execution import Executor
from graphql.execution.collect_fields import collect_fields

from resolvers.events import ViewerEventSource
from schema.errors import to_client_error
from server.graphql.deadlines import EXECUTION_TIMEOUT_S, deadline
from server.graphql.fair_shares import wait_for_turn
from server.graphql.frames import EventFrames, Listener
from storage.errors import Unavailable

RETRY_PAUSE_S = 0.5

log = structlog.get_logger(__name__)


class EventExecution:
    """Executes an operation, whose arguments are valid, for one event at a time."""

    def __init__(self, executor: Executor[Any], timeout_s: float = EXECUTION_TIMEOUT_S) -> None:
        root_type = executor.schema.get_root_type(executor.operation.operation)
        assert root_type is not None
        self._executor, self._root_type, self._timeout_s = executor, root_type, timeout_s
        collected = collect_fields(
            executor.schema, executor.fragments, executor.variable_values, root_type, executor.operation
        )
        self._fields = collected.grouped_field_set

    async def run(self, record: object) -> bytes:
        """Executes the operation for an event's record. Returns the `payload` of the event's message as JSON.

        Raises: Unavailable after the timeout.
        """
        executor = self._executor.build_per_event_executor(record)
        data: dict[str, Any] | None = None
        try:
            result = executor.execute_collected_root_fields(self._root_type, record, self._fields, False, ())
            if isinstance(result, Awaitable):
                async with deadline(self._timeout_s):
                    result = await result
            data = result
        except GraphQLError as error:
            executor.collected_errors.add(error, None)
        payload: dict[str, Any] = {"data": data}
        if errors := executor.collected_errors.errors:
            payload["errors"] = [to_client_error(error).formatted for error in errors]
        return orjson.dumps(payload)


async def write_events(execution: EventExecution, source: ViewerEventSource, listener: Listener) -> None:
    """Executes and writes every event of one viewer's source, at the pace at which the client reads.

    Runs until it is cancelled. Raises: DomainError that ends the subscription.
    """
    async with aclosing(aiter(source)) as events:
        async for event in events:
            await wait_for_turn()
            EventFrames([await _run_with_retries(execution, event)], [event.cursor]).write(listener)
            await listener.connection.wait_for_room()
            # A source with many stored events must not starve other tasks.
            await asyncio.sleep(0)


async def _run_with_retries(execution: EventExecution, event: object) -> bytes:
    """Runs an execution. Repeats it after a timeout, since an error would end the subscription."""
    while True:
        try:
            return await execution.run(event)
        except Unavailable as error:
            log.warning("event_execution_stopped", error=repr(error))
        await asyncio.sleep(RETRY_PAUSE_S)
