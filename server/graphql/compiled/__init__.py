"""Compiled execution: what a page of plain attributes costs is about what building its JSON costs.

A selection set is turned once per document into a Python function over the record's attributes (`objects`); fields
with resolvers are filled in, many objects at a time where that can be (`rows`). Where anything is unusual, a null where
none may be, a value of the wrong type, a resolver that raises, the value is completed again by the general executor,
so that data and errors are the same as without this (tests/server/graphql/test_compiled.py proves it).
"""

from server.graphql.compiled.executor import CompiledExecutor

__all__ = ["CompiledExecutor"]
