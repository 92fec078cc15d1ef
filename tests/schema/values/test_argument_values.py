"""Literals of documents: which mistakes are wrong values, and which are errors of the document."""

from typing import Any

import pytest
from graphql import GraphQLError

from schema.errors import to_client_error
from schema.root import schema
from server.graphql.documents import DocumentCache, OperationRefused, OperationRequest

DOCUMENTS = DocumentCache(schema._schema)


def refusals(query: str) -> list[dict[str, Any]]:
    """Returns the extensions of the errors with which a document is refused."""
    with pytest.raises(OperationRefused) as refused:
        DOCUMENTS.operation(OperationRequest(query))
    errors: list[GraphQLError] = [to_client_error(each) for each in refused.value.errors]
    return [each.extensions or {} for each in errors]


def test_wrong_literals_and_unknown_names_have_their_own_codes() -> None:
    query = '{ nope topic(id: 1, nope: 2) { id } trendingTopics(limit: "ten") { messagesPerMinute } ...Nope }'
    unknown = {"code": "GRAPHQL_VALIDATION_FAILED"}
    wrong = {"code": "BAD_USER_INPUT", "field": "limit", "expected": "an Int"}
    found = refusals(query)
    assert sorted(found, key=str) == sorted([unknown, unknown, unknown, wrong], key=str)


def test_literals_of_scalars_say_what_was_expected() -> None:
    query = "{ messages(topicId: 1, oldest: 5, latest: 6) { oldest } webhooks { a: deliveries(limit: {}) { nope } } }"
    fields = [each.get("field") for each in refusals(query)]
    assert {"oldest", "latest"} <= set(fields)


def test_ten_errors_end_the_validation() -> None:
    found = refusals("{ onlineUserIds(userIds: [" + "1.5 " * 40 + "]) }")
    assert [each.get("field") for each in found] == [*(f"userIds[{index}]" for index in range(10)), None]
    assert found[-1] == {"code": "GRAPHQL_VALIDATION_FAILED"}


def test_surrogates_as_escapes_in_a_literal_name_their_field() -> None:
    """A document with an escaped lone surrogate is no GraphQL at all."""
    assert refusals('{ users(query: "\\ud83d") { id } }') == [{"code": "GRAPHQL_PARSE_FAILED"}]
