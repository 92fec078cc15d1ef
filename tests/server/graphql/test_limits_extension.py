"""The extension that enforces the limits of documents: caching of documents and costs, and other extensions."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
import strawberry
from graphql import ASTValidationRule, FieldNode, GraphQLError, parse, validate
from strawberry.extensions import SchemaExtension

from server.graphql.cost import measure_cost
from server.graphql.documents import DocumentCache, PreparedDocument
from server.graphql.limits import DocumentLimits
from server.graphql.limits_extension import limits_extension
from tests.server.graphql.limited_schema import COSTLY_QUERY, SCHEMA, Query, nested_query, new_schema

LIMITS = DocumentLimits()


class TestExtension:
    def test_document_is_validated_once_and_measured_per_size(self, monkeypatch: pytest.MonkeyPatch) -> None:
        calls: list[str] = []
        monkeypatch.setattr("strawberry.schema.schema.parse", record_calls(calls, parse))
        monkeypatch.setattr("server.graphql.documents.validate", record_calls(calls, validate))
        monkeypatch.setattr("server.graphql.documents.measure_cost", record_calls(calls, measure_cost))
        query = "query ($n: Int!, $id: ID!) { user(id: $id) { friends(limit: $n) { id } } }"
        schema = new_schema()
        for n, user_id in ((1, "a"), (2, "b"), (1, "c"), (2, "d"), (1, "e")):
            assert run(schema, query, {"n": n, "id": user_id}).errors is None
        assert sorted(calls) == ["measure_cost"] * 3 + ["parse", "validate"]

    def test_other_extensions_apply_to_cached_documents(self) -> None:
        class NoUsersRule(ASTValidationRule):
            def enter_field(self, node: FieldNode, *_: Any) -> None:
                self.report_error(GraphQLError("no users"))

        class OtherExtension(SchemaExtension):
            document: Any = None
            rules: Any = ()
            errors: Any = None

            def on_operation(self) -> Iterator[None]:
                self.execution_context.validation_rules += self.rules
                yield

            def on_parse(self) -> Iterator[None]:
                self.execution_context.graphql_document = self.document or self.execution_context.graphql_document
                self.execution_context.pre_execution_errors = self.errors
                yield

        schema = strawberry.Schema(Query, extensions=[limits_extension(DocumentCache()), OtherExtension])
        refusals = []
        for name, value in (
            ("rules", (NoUsersRule,)),
            ("document", parse(nested_query(13))),
            ("errors", [GraphQLError("no")]),
        ):
            assert not run(schema, "{ user(id: 1) { id } }").errors
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(OtherExtension, name, value)
                refusals.append(run(schema, "{ user(id: 1) { id } }").errors[0].message)
        assert refusals == ["no users", "The operation is 13 levels deep; at most 12 are allowed.", "no"]

    def test_document_cache_keeps_few_costs_per_document(self) -> None:
        schema = SCHEMA._schema
        cache = DocumentCache(max_bytes=100_000)
        for query in ["{ user(id: 1) { id } }", *[COSTLY_QUERY] * 100]:
            cache.store(query, PreparedDocument(schema, parse(query), (), LIMITS))
        prepared = cache.find(COSTLY_QUERY)
        assert prepared is not None
        assert cache.find("{ user(id: 1) { id } }") is not None
        for n in range(200):
            prepared.errors({"n": n}, None)
        assert len(prepared._costs) == 64

    def test_schemas_do_not_share_validated_documents(self) -> None:
        @strawberry.type(name="Query")
        class OtherQuery:
            @strawberry.field
            def here(self) -> str:
                return "yes"

        query = "{ here }"
        other = strawberry.Schema(OtherQuery, extensions=[limits_extension(DocumentCache())])
        assert run(new_schema(), query).errors
        assert run(other, query).errors is None

    def test_document_cache_evicts_least_recently_used(self) -> None:
        schema = SCHEMA._schema
        cache = DocumentCache(max_bytes=60_000)
        for n in range(200):
            query = f"{{ user(id: {n}) {{ id }} }}"
            cache.store(query, PreparedDocument(schema, parse(query), (), LIMITS))
            assert cache.find("{ user(id: 0) { id } }") is not None
        cached_numbers = [n for n in range(200) if cache.find(f"{{ user(id: {n}) {{ id }} }}")]
        assert cached_numbers == [0, 197, 198, 199]

    def test_validation_errors_have_their_code_each_time(self) -> None:
        for _ in range(2):
            (error,) = run(SCHEMA, "{ nothing }").errors
            assert error.extensions == {"code": "GRAPHQL_VALIDATION_FAILED"}

    def test_synchronous_execution_has_the_same_limits(self) -> None:
        result = SCHEMA.execute_sync(nested_query(13))
        assert result.errors is not None
        assert "13 levels" in result.errors[0].message


def record_calls(calls: list[str], function: Any) -> Any:
    """Returns a function that adds the name of `function` to `calls` and calls `function`."""

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        calls.append(function.__name__)
        return function(*args, **kwargs)

    return wrapper


def run(schema: strawberry.Schema, query: str, variables: dict[str, Any] | None = None) -> Any:
    return asyncio.run(schema.execute(query, variable_values=variables))
