"""The limits of documents, each as a plain check, and by the cache that prepares the documents of requests."""

import time
from typing import Any

import pytest
from graphql import DocumentNode, GraphQLError, get_introspection_query, parse

from schema.errors import to_client_error
from server.graphql.cost import measure_cost, size_of
from server.graphql.documents import DocumentCache, OperationRefused, OperationRequest
from server.graphql.limits import DocumentLimits, find_operation, set_code
from tests.server.graphql.limited_schema import COSTLY_QUERY, SCHEMA, nested_query

LIMITS = DocumentLimits()
DOCUMENTS = DocumentCache(SCHEMA._schema)


def errors_of(
    limits: DocumentLimits, document: DocumentNode, variables: dict[str, Any], operation_name: str | None = None
) -> list[GraphQLError]:
    """Returns the errors by all limits except the text's length. The document need not be valid."""
    operation = find_operation(document, operation_name)
    errors = limits.check_shape(document)
    if errors or operation is None:
        return errors
    sizes = {name: size_of(value) for name, value in variables.items()}
    return limits.check_cost(measure_cost(SCHEMA._schema, document, operation, sizes), operation)


def error_messages(query: str, variables: dict[str, Any] | None = None, operation_name: str | None = None) -> list[str]:
    errors = errors_of(LIMITS, parse(query), variables or {}, operation_name)
    assert all(error.extensions == {"code": "GRAPHQL_VALIDATION_FAILED"} for error in errors)
    return [error.message for error in errors]


def test_set_code_keeps_an_existing_code() -> None:
    error = GraphQLError("refused", extensions={"code": "FORBIDDEN", "limit": 1})
    set_code(error, "GRAPHQL_VALIDATION_FAILED")
    assert error.extensions == {"code": "FORBIDDEN", "limit": 1}


class TestText:
    def test_limit_is_100_kib_of_utf_8(self) -> None:
        LIMITS.check_text("#" + "x" * 102_399)
        LIMITS.check_text("火" * 34_133 + "x")
        for text in ("x" * 102_401, "火" * 34_134):
            with pytest.raises(Exception, match=r"10240[12] bytes; at most 102400") as refusal:
                LIMITS.check_text(text)
            assert refusal.value.extensions == {"code": "GRAPHQL_PARSE_FAILED"}  # type: ignore[attr-defined]


class TestShape:
    def test_limit_is_12_levels(self) -> None:
        assert error_messages(nested_query(12)) == []
        for depth in (13, 30):
            message = f"The operation is {depth} levels deep; at most 12 are allowed."
            assert error_messages(nested_query(depth)) == [message]

    def test_error_names_the_operation(self) -> None:
        (error,) = LIMITS.check_shape(parse("query A { id }\n" + nested_query(13)))
        assert [location.line for location in error.locations or []] == [2]

    def test_introspection_counts_apart_from_other_levels(self) -> None:
        assert error_messages(nested_query(13).replace("id}", "__schema {id}}")) == []

    def test_limit_of_integers_is_100_digits(self) -> None:
        document = '{ user(id: %s, name: "%s") { id } }'
        assert LIMITS.check_shape(parse(document % ("1" * 100, "x" * 200))) == []
        assert LIMITS.check_shape(parse(document % (1, 1), no_location=True)) == []
        (error,) = LIMITS.check_shape(parse(document % ("1" * 101, "x")))
        assert error.message == "An integer in the document has 101 digits; at most 100 are allowed."

    def test_fragments_count_like_their_fields(self) -> None:
        fragments = "fragment A on User { friend { friend { ...B } } } fragment B on User { ... { friend { id } } }"
        assert error_messages("{ user(id: 1) { " + "friend { " * 7 + "...A" + "}" * 7 + "} }" + fragments) == []
        deeper = "{ user(id: 1) { " + "friend { " * 8 + "...A" + "}" * 8 + "} }" + fragments
        assert error_messages(deeper) == ["The operation is 13 levels deep; at most 12 are allowed."]

    def test_limit_of_introspection_is_20_levels(self) -> None:
        assert error_messages(get_introspection_query()) == []
        deep = "{ __schema { types { " + "ofType { " * 17 + "name" + " }" * 17 + " } } }"
        assert error_messages(deep) == []
        assert error_messages(deep.replace("name", "ofType { name }")) == [
            "The operation is 21 levels deep in introspection; at most 20 are allowed."
        ]

    def test_misplaced_introspection_fields_hide_no_depth(self) -> None:
        for outer in ("user(id: 1)", "__schema"):
            hidden = f"{{ {outer} {{ __schema {{ " + "friend { " * 30 + "id" + " }" * 30 + " } } }"
            assert error_messages(hidden) == [
                "The operation is 33 levels deep in introspection; at most 20 are allowed."
            ]

    def test_limit_is_15_aliases(self) -> None:
        aliases = [f"a{n}: id" for n in range(16)]
        assert error_messages(f"{{ user(id: 1) {{ {' '.join(aliases[:15])} }} }}") == []
        (message,) = error_messages(f"{{ user(id: 1) {{ {' '.join(aliases)} }} }}")
        assert message == "The operation has 16 aliases; at most 15 are allowed."

    def test_aliases_count_for_each_spread_of_their_fragment(self) -> None:
        fragments = ["fragment A on User { a: friend { ...B } b: friend { ...B } }"]
        fragments += ["fragment B on User { a: friend { ...C } b: friend { ...C } }"]
        fragments += ["fragment C on User { a: id b: id c: id }"]
        (message,) = error_messages("{ user(id: 1) { ...A } }" + " ".join(fragments))
        assert message == "The operation has 18 aliases; at most 15 are allowed."

    def test_more_than_20_root_fields_are_refused(self) -> None:
        assert error_messages("{" + "user(id: 1) { id } " * 19 + "__schema { id } }") == []
        spread = "{ ...A ...A ...A } fragment A on Query {" + "user(id: 1) { id } " * 7 + "}"
        assert error_messages(spread) == ["The operation has 21 root fields; at most 20 are allowed."]

    def test_limits_apply_to_each_operation_separately(self) -> None:
        many = "user(id: 1) { id } " * 15
        assert error_messages(f"query A {{ {many} }} query B {{ {many} }}") == []
        assert len(error_messages(f"query A {{ id }} query B {{ {many} {many} }}", operation_name="A")) == 1

    def test_limit_is_1000_tokens_including_comments(self) -> None:
        assert error_messages("{ user(id: 1) {" + " id" * 990 + "} }") == []
        (message,) = error_messages("{ user(id: 1) {" + " id" * 991 + "} }")
        assert message == "The document has 1001 tokens; at most 1000 are allowed."
        assert len(error_messages("#\n" * 1000 + "{ user(id: 1) { id } }")) == 1

    @pytest.mark.parametrize(
        "fragments",
        [
            "fragment A on User { ...A }",
            "fragment A on User { friend { ...A } }",
            "fragment A on User { friend { ...B } } fragment B on User { friends { ...A } }",
        ],
    )
    def test_fragment_cycle_is_refused(self, fragments: str) -> None:
        assert error_messages("{ user(id: 1) { ...A } }" + fragments) == ["Cannot spread fragment 'A' within itself."]

    def test_doubling_fragments_are_measured_quickly(self) -> None:
        doubling = [f"fragment F{n} on User {{ ...F{n + 1} ...F{n + 1} }}" for n in range(90)]
        started_at = time.process_time()
        messages = error_messages("{ user(id: 1) { ...F0 } }" + " ".join(doubling) + " fragment F90 on User { a: id }")
        assert messages == [f"The operation has {2**90} aliases; at most 15 are allowed."]
        assert time.process_time() - started_at < 10

    def test_fragments_nested_beyond_pythons_stack_are_refused(self) -> None:
        limits = DocumentLimits(tokens=100_000)
        chain = [f"fragment F{n} on User {{ friend {{ ...F{n + 1} }} }}" for n in range(2000)]
        (error,) = limits.check_shape(parse("{ user(id: 1) { ...F0 } }" + " ".join(chain)))
        assert error.message == "The document is nested too deeply; at most 12 levels are allowed."

    def test_missing_fragments_and_operations_are_left_to_validation(self) -> None:
        assert error_messages("{ user(id: 1) { ...Nowhere } }") == []
        assert error_messages("query A { user(id: 1) { id } }", operation_name="B") == []
        assert error_messages("{ user(id: 1) { id } }", operation_name="B") == []
        assert error_messages("fragment A on User { id }") == []


class TestCost:
    def test_cost_depends_on_variables(self) -> None:
        assert error_messages(COSTLY_QUERY, {"n": 1000}) == []
        assert error_messages(COSTLY_QUERY, {"n": 1005}) == ["The operation costs 200195; at most 200000 are allowed."]

    def test_only_the_executed_operation_is_measured(self) -> None:
        two_operations = COSTLY_QUERY + " query R { user(id: 1) { id } }"
        assert error_messages(two_operations, {"n": 9999}, "R") == []
        assert len(error_messages(two_operations, {"n": 9999}, "Q")) == 1

    def test_document_of_unmeasurable_cost_is_refused(self) -> None:
        def spreading(level: int, n: int) -> str:
            fields = [f"f{k}: friends {{ ...L{level + 1}G{(n * (k + 2) + k) % 9} }}" for k in range(9)]
            return f"fragment L{level}G{n} on User {{ {' '.join(fields)} }}"

        limits = DocumentLimits(tokens=100_000, aliases=10**30)
        start = " ".join(f"...L0G{n}" for n in range(9))
        fragments = [spreading(level, n) for level in range(9) for n in range(9)]
        document = parse(f"{{ user(id: 1) {{ {start} }} }}" + " ".join(fragments))
        errors = errors_of(limits, document, {})
        assert [error.message for error in errors] == [
            "The fragments are too complex to measure the cost of the operation."
        ]


PARSE, VALIDATION = "GRAPHQL_PARSE_FAILED", "GRAPHQL_VALIDATION_FAILED"
REFUSED_DOCUMENTS = {
    "text": ("# " + "x" * 102_400 + "\n{ user(id: 1) { id } }", None, PARSE, "102425 bytes; at most 102400"),
    "syntax": ("{ user(id: 1) { id }", None, PARSE, "Syntax Error"),
    "tokens": ("{ user(id: 1) {" + " id" * 991 + "} }", None, PARSE, "more than 1000 tokens"),
    "comments": ("#\n" * 1001 + "{ user(id: 1) { id } }", None, PARSE, "more than 1000 tokens"),
    "digits": ("{ user(id: 1) { friends(limit: " + "1" * 4301 + ") { id } } }", None, VALIDATION, "4301 digits"),
    "default digits": (
        "query ($n: Int = " + "1" * 4301 + ") { user(id: 1) { friends(limit: $n) { id } } }",
        None,
        VALIDATION,
        "4301 digits; at most 100",
    ),
    "depth": (nested_query(13), None, VALIDATION, "13 levels deep; at most 12"),
    "aliases": ("{ user(id: 1) {" + "".join(f" a{n}: id" for n in range(16)) + "} }", None, VALIDATION, "16 aliases"),
    "roots": ("mutation {" + ' rename(name: "x") { id }' * 21 + "}", None, VALIDATION, "21 root fields"),
    "cost": (COSTLY_QUERY, {"n": 1005}, VALIDATION, "costs 200195; at most 200000"),
    "subscription": ("subscription { users {" + "friend {" * 11 + "id" + "}" * 13, None, VALIDATION, "13 levels deep"),
    "subscription cost": (
        "subscription ($n: Int!) { users { friends(limit: $n) { id } } }",
        {"n": 200_000},
        VALIDATION,
        "costs 200001; at most 200000",
    ),
    "unknown": ("{ nothing }", None, VALIDATION, "nothing"),
}


@pytest.mark.parametrize("name", REFUSED_DOCUMENTS)
def test_refused_document_is_refused_each_time(name: str) -> None:
    query, variables, code, message = REFUSED_DOCUMENTS[name]
    for _ in range(2):
        with pytest.raises(OperationRefused) as refused:
            DOCUMENTS.operation(OperationRequest(query, variables))
        error = to_client_error(refused.value.errors[0])
        assert error.extensions == {"code": code}
        assert message in error.message


def test_document_within_limits_is_not_refused() -> None:
    assert DOCUMENTS.operation(OperationRequest(COSTLY_QUERY, {"n": 1000})).cost == 1 + 199 * 1001
