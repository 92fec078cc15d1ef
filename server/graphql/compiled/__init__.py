"""Compiled execution: completes lists and objects with generated functions instead of one resolver call per field.

A selection set is compiled once for each document into a Python function over the record's attributes (`objects`).
Fields with resolvers are completed for many objects at a time where the binding allows it (`rows`). Unusual
values are null in a non-null field, a value of the wrong type, and the error of a resolver. graphql-core's executor
completes these again, so data and errors are the same as without compilation (tests/server/graphql/test_compiled.py).
"""

from server.graphql.compiled.executor import CompiledExecutor, compiled_executor

__all__ = ["CompiledExecutor", "compiled_executor"]
