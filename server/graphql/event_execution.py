"""Executing one operation for one event after the other, on graphql-core, without growing.

graphql-core collects the fields anew for each event, and keeps what it collected as long as the operation runs: some
4 KiB an event. Here they are collected once, and executed as graphql-core executes them.
"""

from collections.abc import Awaitable
from typing import Any

import orjson
from graphql import GraphQLError
from graphql.execution import Executor
from graphql.execution.collect_fields import collect_fields

from schema.errors import presented


class Execution:
    """One subscription's operation, whose arguments are checked."""

    def __init__(self, executor: Executor[Any]) -> None:
        root_type = executor.schema.get_root_type(executor.operation.operation)
        assert root_type is not None
        self._executor, self._root_type = executor, root_type
        collected = collect_fields(
            executor.schema, executor.fragments, executor.variable_values, root_type, executor.operation
        )
        self._fields = collected.grouped_field_set

    async def run(self, record: object) -> bytes:
        """The event's `payload` as JSON."""
        executor = self._executor.build_per_event_executor(record)
        data: dict[str, Any] | None = None
        try:
            result = executor.execute_collected_root_fields(self._root_type, record, self._fields, False, ())
            data = await result if isinstance(result, Awaitable) else result
        except GraphQLError as error:
            executor.collected_errors.add(error, None)
        payload: dict[str, Any] = {"data": data}
        if errors := executor.collected_errors.errors:
            payload["errors"] = [presented(error).formatted for error in errors]
        return orjson.dumps(payload)
