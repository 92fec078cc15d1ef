"""Sockets and HTTP requests share the document cache and refuse the same documents, in either order."""

from typing import Any

import pytest
from graphql import GraphQLError
from strawberry import Schema

from schema.binding import QUERIES_PER_OBJECT, SCOPE
from schema.errors import to_client_error
from schema.root import build_schema
from server.graphql.documents import MAX_CACHE_BYTES, MAX_ERRORS, DocumentCache
from server.graphql.limits import DocumentLimits
from server.graphql.limits_extension import limits_extension
from storage.errors import Forbidden

pytestmark = pytest.mark.anyio

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


DOCUMENTS = DocumentCache()


@pytest.fixture(scope="module")
def schema() -> Schema:
    return build_schema(limits_extension(DOCUMENTS))


def errors_on_socket(schema: Schema, query: str, operation_name: str | None = None) -> list[Any]:
    """Returns the errors that a socket sends for the query."""
    try:
        errors = DOCUMENTS.prepare(schema._schema, query).errors(None, operation_name)
    except GraphQLError as error:
        errors = [error]
    return [code_and_message(to_client_error(error)) for error in errors]


def code_and_message(error: GraphQLError) -> dict[str, Any]:
    """Returns an error without its locations, which an unparsed document does not have."""
    return {"message": error.message, "extensions": error.extensions}


async def errors_by_request(schema: Schema, query: str) -> list[Any]:
    """Returns the errors of an execution by Strawberry, as HTTP requests cause it."""
    return [code_and_message(error) for error in (await schema.execute(query)).errors or ()]


@pytest.mark.parametrize("socket_first", [True, False], ids=["socket first", "request first"])
@pytest.mark.parametrize("reason", REFUSED_DOCUMENTS)
async def test_socket_and_request_get_the_same_refusal(schema: Schema, reason: str, socket_first: bool) -> None:
    # Each run has a different text, so that the cache does not hold the document of another run.
    query = (
        f"{REFUSED_DOCUMENTS[reason]}# {socket_first}" if reason != "nothing to parse" else REFUSED_DOCUMENTS[reason]
    )
    if socket_first:
        socket_errors, request_errors = errors_on_socket(schema, query), await errors_by_request(schema, query)
    else:
        request_errors, socket_errors = await errors_by_request(schema, query), errors_on_socket(schema, query)
    assert socket_errors == request_errors
    assert socket_errors
    for error in socket_errors:
        assert error["extensions"]["code"] in ("GRAPHQL_PARSE_FAILED", "GRAPHQL_VALIDATION_FAILED")


def test_validation_ends_after_few_errors(schema: Schema) -> None:
    fields = " ".join(f"followerCoun{n}" for n in range(300))
    errors = DOCUMENTS.prepare(schema._schema, f"{{ viewer {{ {fields} }} }}").errors(None, None)
    assert len(errors) == MAX_ERRORS + 1
    assert errors[-1].message == "Too many validation errors, error limit reached. Validation aborted."


async def test_document_is_prepared_once_for_requests_and_sockets(schema: Schema) -> None:
    socket_document = DOCUMENTS.prepare(schema._schema, "{ __typename } # socket")
    assert DOCUMENTS.prepare(schema._schema, "{ __typename } # socket") is socket_document
    assert await errors_by_request(schema, "{ __typename } # socket") == []
    assert DOCUMENTS.find("{ __typename } # socket") is socket_document

    assert await errors_by_request(schema, "{ __typename } # request") == []
    request_document = DOCUMENTS.find("{ __typename } # request")
    assert request_document is not None
    assert DOCUMENTS.prepare(schema._schema, "{ __typename } # request") is request_document


def test_unparsable_document_is_not_cached(schema: Schema) -> None:
    for query in ("{ oops", " " * 102_401):
        with pytest.raises(GraphQLError):
            DOCUMENTS.prepare(schema._schema, query)
        assert DOCUMENTS.find(query) is None


def test_operations_of_one_document_have_separate_costs(schema: Schema) -> None:
    cheap = "subscription Cheap { topicEvents(topicId: 1) { __typename } }"
    costly = "query Costly($n: Int!) { communities(limit: $n) { topics(limit: $n) { members: title } } }"
    prepared = DOCUMENTS.prepare(schema._schema, f"{cheap} {costly}")
    assert prepared.errors(None, "Cheap") == []
    assert prepared.errors({"n": 10}, "Costly") == []
    assert [error.message for error in prepared.errors({"n": 999}, "Costly")] != []
    assert prepared.errors({"n": 10}, "Costly") == []


@pytest.mark.parametrize("order", [("Cheap", "Costly"), ("Costly", "Cheap")])
def test_cost_of_one_operation_does_not_count_for_another(schema: Schema, order: tuple[str, str]) -> None:
    """The operations have the same sizes, and only their costs differ."""
    cheap = "query Cheap { communities(limit: 1) { id } }"
    costly = "query Costly { communities(limit: 999) { topics(limit: 999) { id } } }"
    prepared = DOCUMENTS.prepare(schema._schema, f"{cheap} {costly} # {order}")
    assert {name: bool(prepared.errors(None, name)) for name in order} == {"Cheap": False, "Costly": True}


@pytest.mark.parametrize("order", [("Fixed", "Sized"), ("Sized", "Fixed")])
def test_variables_of_each_operation_are_sized_for_it_alone(schema: Schema, order: tuple[str, str]) -> None:
    fixed = "query Fixed($n: ID!) { communities(limit: 1) { id } user(id: $n) { id } }"
    sized = "query Sized($n: Int!) { communities(limit: $n) { topics(limit: $n) { id } } }"
    prepared = DOCUMENTS.prepare(schema._schema, f"{fixed} {sized} # {order}")
    assert {name: bool(prepared.errors({"n": 999}, name)) for name in order} == {"Fixed": False, "Sized": True}


def test_refused_operation_costs_nothing(schema: Schema) -> None:
    many = "query Many { communities(limit: 999) { topics(limit: 999) { id } } }"
    prepared = DOCUMENTS.prepare(schema._schema, "query One { communities(limit: 7) { id } } " + many)
    costs = [prepared.cost(None, name) for name in ("One", "Many", "Unknown", None)]
    assert costs == [7, 0, 0, 0]
    assert DOCUMENTS.prepare(schema._schema, "{ communities(limit: 7) { nope } }").cost(None, None) == 0
    assert prepared.errors(None, "Unknown") == []


def test_omitted_variable_costs_its_default(schema: Schema) -> None:
    prepared = DOCUMENTS.prepare(schema._schema, "query ($n: Int! = 3) { communities(limit: $n) { id } }")
    assert [prepared.cost(each, None) for each in (None, {}, {"n": 9})] == [3, 3, 9]


def test_document_describes_its_operations(schema: Schema) -> None:
    query = 'query A { messages(topicId: 1, latest: "now") { items { reactions { users { id } } } } } # comment'
    prepared = DOCUMENTS.prepare(schema._schema, query)
    assert prepared.normalized_text == DOCUMENTS.prepare(schema._schema, query.replace(" ", "  ")).normalized_text
    assert "comment" not in prepared.normalized_text
    for _ in range(2):
        assert prepared.metadata(QUERIES_PER_OBJECT) == [False, False, True]
        assert prepared.metadata(SCOPE) == ["chat:read"] * 3
    assert not prepared.is_subscription
    both = DOCUMENTS.prepare(schema._schema, "query A { __typename } subscription B { jobEvents { __typename } }")
    assert both.is_subscription


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
def test_service_key_needs_scopes_of_root_fields(
    schema: Schema, query: str, scopes: set[str] | None, message: str | None
) -> None:
    prepared = DOCUMENTS.prepare(schema._schema, query)
    try:
        prepared.require_scopes(None if scopes is None else frozenset(scopes))
        refusal = None
    except Forbidden as error:
        refusal = error.message
    assert refusal == message


def test_too_many_equal_fields_are_refused_with_advice(schema: Schema) -> None:
    errors = DOCUMENTS.prepare(schema._schema, f"{REFUSED_DOCUMENTS['equal fields']} # message").errors(None, None)
    assert errors[-1].message == "The document selects fields with equal names too often. Select each field once."


def test_cache_counts_text_twice_and_1100_bytes_for_token(schema: Schema) -> None:
    query = "{ __typename } # " + "x" * 5000
    tokens = DOCUMENTS.prepare(schema._schema, query).document.token_count
    for missing_bytes in (0, 1):
        documents = DocumentCache(max_bytes=2 * len(query) + 1100 * tokens - missing_bytes)
        documents.prepare(schema._schema, query)
        assert (documents.find(query) is None) == (missing_bytes > 0)
    assert MAX_CACHE_BYTES == 32 * 1024 * 1024


def test_document_limits_apply_to_one_cache_only(schema: Schema) -> None:
    documents = DocumentCache(DocumentLimits(depth=1))
    assert documents.prepare(schema._schema, "{ __typename }").errors(None, None) == []
    assert documents.prepare(schema._schema, "{ viewer { id } }").errors(None, None) != []
    assert DOCUMENTS.prepare(schema._schema, "{ viewer { id } }").errors(None, None) == []
