"""Prepared documents: which are refused, what their operations cost, and how many the cache keeps."""

from typing import Any

import pytest
from graphql import GraphQLError, parse, validate

from schema.errors import to_client_error
from schema.root import schema
from server.graphql.cost import measure_cost
from server.graphql.documents import (
    MAX_CACHE_BYTES,
    MAX_ERRORS,
    DocumentCache,
    OperationRefused,
    OperationRequest,
)
from server.graphql.limits import DocumentLimits
from storage.errors import BadUserInput, Forbidden

NESTED = "community { topics(limit: 1) {"
REFUSED_DOCUMENTS = {
    "nothing to parse": "{",
    "too long": "{ __typename }" + " " * 102_400,
    "too many tokens": "{ " + "__typename " * 1_001 + "}",
    "an unknown field": "{ nope }",
    "too deep": f"{{ topic(id: 1) {{ {NESTED * 6} id {'} }' * 6} }} }}",
    "too many aliases": "{ " + " ".join(f"a{n}: __typename" for n in range(16)) + " }",
    "a fragment cycle": "{ viewer { ...f } } fragment f on User { ...f }",
    "several operations without operationName": "query A { __typename } query B { __typename }",
    "equal fields": "{ communities { " + "topics { id lastMessage { id } } " * 120 + "} }",
    "too expensive": "{ communities(limit: 999) { topics(limit: 999) { id } } }",
}
"""Refused documents by the reason for the refusal."""


DOCUMENTS = DocumentCache(schema._schema)


@pytest.mark.parametrize("reason", REFUSED_DOCUMENTS)
def test_refused_document_has_errors_of_graphql(reason: str) -> None:
    with pytest.raises(OperationRefused) as refused:
        DOCUMENTS.operation(OperationRequest(REFUSED_DOCUMENTS[reason]))
    codes = {(to_client_error(each).extensions or {})["code"] for each in refused.value.errors}
    assert codes <= {"GRAPHQL_PARSE_FAILED", "GRAPHQL_VALIDATION_FAILED"}
    assert codes


def test_operation_is_found_by_its_name() -> None:
    query = "query A { __typename } query B { viewer { id } }"
    operation = DOCUMENTS.operation(OperationRequest(query, None, "B"))
    assert operation.node.name is not None
    assert operation.node.name.value == "B"
    with pytest.raises(BadUserInput) as unknown:
        DOCUMENTS.operation(OperationRequest(query, None, "C"))
    assert unknown.value.extensions["field"] == "operationName"


def test_document_is_validated_once_and_measured_per_size(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    for function in (parse, validate, measure_cost):
        monkeypatch.setattr(f"server.graphql.documents.{function.__name__}", record_calls(calls, function))
    query = "query ($n: Int!, $id: ID!) { communities(limit: $n) { id } user(id: $id) { id } } # measured"
    for n, user_id in ((1, "a"), (2, "b"), (1, "c"), (2, "d"), (1, "e")):
        DOCUMENTS.operation(OperationRequest(query, {"n": n, "id": user_id}))
    assert sorted(calls) == ["measure_cost"] * 3 + ["parse", "validate"]


def record_calls(calls: list[str], function: Any) -> Any:
    """Returns a function that adds the name of `function` to `calls` and calls `function`."""

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        calls.append(function.__name__)
        return function(*args, **kwargs)

    return wrapper


def test_cache_keeps_few_costs_per_document() -> None:
    prepared = DOCUMENTS.prepare("query ($n: Int!) { communities(limit: $n) { id } } # many costs")
    for n in range(200):
        prepared.errors({"n": n}, None)
    assert len(prepared._costs) == 64


def test_cache_evicts_least_recently_used() -> None:
    cache = DocumentCache(schema._schema, max_bytes=60_000)
    for n in range(200):
        cache.prepare(f"{{ user(id: {n}) {{ id }} }}")
        assert cache.find("{ user(id: 0) { id } }") is not None
    assert [n for n in range(200) if cache.find(f"{{ user(id: {n}) {{ id }} }}")] == [0, 197, 198, 199]


@pytest.mark.parametrize(
    ("query", "is_coalescible"),
    [
        ('{ messages(topicId: 1, latest: "now") { items { text } } }', True),
        ("{ viewer { id } }", False),
        ("{ messages { items { text } } }", False),
        ('mutation { postMessage(input: {topicId: 1, text: "a"}) { id } }', False),
        ("subscription { topicEvents(topicId: 1) { __typename } }", False),
    ],
)
def test_only_valid_queries_for_audiences_are_coalescible(query: str, is_coalescible: bool) -> None:
    assert DOCUMENTS.prepare(query).is_coalescible is is_coalescible


def test_validation_ends_after_few_errors() -> None:
    fields = " ".join(f"followerCoun{n}" for n in range(300))
    errors = DOCUMENTS.prepare(f"{{ viewer {{ {fields} }} }}").errors(None, None)
    assert len(errors) == MAX_ERRORS + 1
    assert errors[-1].message == "Too many validation errors, error limit reached. Validation aborted."


def test_unparsable_document_is_not_cached() -> None:
    for query in ("{ oops", " " * 102_401):
        with pytest.raises(GraphQLError):
            DOCUMENTS.prepare(query)
        assert DOCUMENTS.find(query) is None


def test_operations_of_one_document_have_separate_costs() -> None:
    cheap = "subscription Cheap { topicEvents(topicId: 1) { __typename } }"
    costly = "query Costly($n: Int!) { communities(limit: $n) { topics(limit: $n) { members: title } } }"
    prepared = DOCUMENTS.prepare(f"{cheap} {costly}")
    assert prepared.errors(None, "Cheap") == []
    assert prepared.errors({"n": 10}, "Costly") == []
    assert [error.message for error in prepared.errors({"n": 999}, "Costly")] != []
    assert prepared.errors({"n": 10}, "Costly") == []


@pytest.mark.parametrize("order", [("Cheap", "Costly"), ("Costly", "Cheap")])
def test_cost_of_one_operation_does_not_count_for_another(order: tuple[str, str]) -> None:
    """The operations have the same sizes, and only their costs differ."""
    cheap = "query Cheap { communities(limit: 1) { id } }"
    costly = "query Costly { communities(limit: 999) { topics(limit: 999) { id } } }"
    prepared = DOCUMENTS.prepare(f"{cheap} {costly} # {order}")
    assert {name: bool(prepared.errors(None, name)) for name in order} == {"Cheap": False, "Costly": True}


@pytest.mark.parametrize("order", [("Fixed", "Sized"), ("Sized", "Fixed")])
def test_variables_of_each_operation_are_sized_for_it_alone(order: tuple[str, str]) -> None:
    fixed = "query Fixed($n: ID!) { communities(limit: 1) { id } user(id: $n) { id } }"
    sized = "query Sized($n: Int!) { communities(limit: $n) { topics(limit: $n) { id } } }"
    prepared = DOCUMENTS.prepare(f"{fixed} {sized} # {order}")
    assert {name: bool(prepared.errors({"n": 999}, name)) for name in order} == {"Fixed": False, "Sized": True}


def test_refused_operation_costs_nothing() -> None:
    many = "query Many { communities(limit: 999) { topics(limit: 999) { id } } }"
    prepared = DOCUMENTS.prepare("query One { communities(limit: 7) { id } } " + many)
    assert [prepared.measure(None, name)[0] for name in ("One", "Unknown", None)] == [7, 0, 0]
    assert prepared.errors(None, "Many") != []
    assert DOCUMENTS.prepare("{ communities(limit: 7) { nope } }").measure(None, None)[0] == 0
    assert prepared.errors(None, "Unknown") == []


def test_omitted_variable_costs_its_default() -> None:
    prepared = DOCUMENTS.prepare("query ($n: Int! = 3) { communities(limit: $n) { id } }")
    assert [prepared.measure(each, None)[0] for each in (None, {}, {"n": 9})] == [3, 3, 9]


def test_document_describes_its_operations() -> None:
    query = 'query A { messages(topicId: 1, latest: "now") { items { reactions { users { id } } } } } # comment'
    prepared = DOCUMENTS.prepare(query)
    assert prepared.normalized_text == DOCUMENTS.prepare(query.replace(" ", "  ")).normalized_text
    assert "comment" not in prepared.normalized_text
    assert not prepared.accepts_large_body
    assert DOCUMENTS.prepare("query ($i: LaunchCallJobInput!) { checkCallList(input: $i) { rows } }").accepts_large_body


@pytest.mark.parametrize(
    ("query", "scopes", "message"),
    [
        ("{ topic(id: 1) { id } }", None, None),
        ("{ topic(id: 1) { id } }", {"chat:read"}, None),
        ("{ topic(id: 1) { id } }", {"calls:read"}, "The service key lacks the scope chat:read."),
        ("{ viewer { id } }", set(), None),
        ("{ heldScheduledPosts { id } }", {"none"}, "Service keys cannot use heldScheduledPosts."),
        ("{ heldScheduledPosts { id } }", None, None),
    ],
)
def test_service_key_needs_scopes_of_root_fields(query: str, scopes: set[str] | None, message: str | None) -> None:
    prepared = DOCUMENTS.prepare(query)
    try:
        prepared.require_scopes(None if scopes is None else frozenset(scopes))
        refusal = None
    except Forbidden as error:
        refusal = error.message
    assert refusal == message


def test_too_many_equal_fields_are_refused_with_advice() -> None:
    errors = DOCUMENTS.prepare(f"{REFUSED_DOCUMENTS['equal fields']} # message").errors(None, None)
    assert errors[-1].message == "The document selects fields with equal names too often. Select each field once."


def test_cache_counts_text_twice_and_1100_bytes_for_token() -> None:
    query = "{ __typename } # " + "x" * 5000
    tokens = DOCUMENTS.prepare(query).document.token_count
    for missing_bytes in (0, 1):
        documents = DocumentCache(schema._schema, max_bytes=2 * len(query) + 1100 * tokens - missing_bytes)
        documents.prepare(query)
        assert (documents.find(query) is None) == (missing_bytes > 0)
    assert MAX_CACHE_BYTES == 32 * 1024 * 1024


def test_document_limits_apply_to_one_cache_only() -> None:
    documents = DocumentCache(schema._schema, DocumentLimits(depth=1))
    assert documents.prepare("{ __typename }").errors(None, None) == []
    assert documents.prepare("{ viewer { id } }").errors(None, None) != []
    assert DOCUMENTS.prepare("{ viewer { id } }").errors(None, None) == []
