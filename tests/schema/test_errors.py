"""Errors in responses and events: each has a documented code, and unexpected errors are masked."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import strawberry
from structlog.testing import capture_logs

from resolvers.context import Context
from server.graphql import Operations
from storage.errors import BadUserInput, Conflict, Forbidden, NotFound, RateLimited, Unauthenticated, Unavailable
from storage.files.link_previews import LinkPreview
from storage.identity.records import User
from storage.identity.roles import Role
from storage.ids import message_key
from storage.stores import Stores
from tests.execution import run_operation
from tests.resolvers.people import OPERATIONS, Person, SignIn

pytestmark = pytest.mark.anyio

POST = "mutation ($input: PostMessageInput!) { postMessage(input: $input) { id } }"
PAGE = "query ($latest: Timestamp, $limit: Int!) { messages(topicId: 1, latest: $latest, limit: $limit) { oldest } }"
NOT_NULL = "a value, not null"
INSTANT = 'an RFC 3339 instant with an offset, such as "2026-11-21T12:00:00Z"'
LOCAL_TIME = 'a local date and time without an offset, such as "2026-11-21T12:00"'
TIMESTAMP = 'a string like "1639720395.000002": Unix seconds with exactly six decimals'


class UnexpectedError(Exception):
    """An error whose text no client may read."""


def context_without_stores() -> Context:
    """Returns a context in which every resolver that needs a store fails unexpectedly."""
    user = User("ann", "ann", "Ann", "acme", (Role.MEMBER,), 0, 0)
    return Context(None, str, user, frozenset({Role.MEMBER}))  # type: ignore[arg-type]


async def errors_of(query: str, context: Context | None = None, **variables: Any) -> list[dict[str, Any]]:
    result = await run_operation(OPERATIONS, context or context_without_stores(), query, variables)
    return [dict(error.formatted) for error in result.errors or ()]


async def error_of(query: str, context: Context | None = None, **variables: Any) -> dict[str, Any]:
    (error,) = await errors_of(query, context, **variables)
    return error


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("{ viewer { id }", "GRAPHQL_PARSE_FAILED"),
        ("{ viewer { shoeSize } }", "GRAPHQL_VALIDATION_FAILED"),
        ("{ messages { oldest } }", "GRAPHQL_VALIDATION_FAILED"),
        ("query ($a: Nothing) { viewer { id } }", "GRAPHQL_VALIDATION_FAILED"),
        ("query ($a: Int) { viewer { id } }", "GRAPHQL_VALIDATION_FAILED"),
        ("query ($a: String) { trendingTopics(limit: $a) { messagesPerMinute } }", "GRAPHQL_VALIDATION_FAILED"),
        ("query ($a: Boolean) { viewer @include(if: $a) { id } }", "GRAPHQL_VALIDATION_FAILED"),
    ],
)
async def test_unexecutable_document_has_its_own_code(query: str, code: str) -> None:
    assert {error["extensions"]["code"] for error in await errors_of(query)} == {code}


@pytest.mark.parametrize(
    ("query", "variables", "field", "expected"),
    [
        (PAGE, {"limit": 3, "latest": 5}, "latest", TIMESTAMP),
        (PAGE, {"limit": "3"}, "limit", "an Int"),
        (PAGE, {"limit": 2**31}, "limit", "an Int"),
        (PAGE, {}, "limit", NOT_NULL),
        (POST, {"input": None}, "input", NOT_NULL),
        (POST, {"input": {"topicId": 1.5}}, "topicId", "an ID"),
        (POST, {"input": {"topicId": "1", "text": None}}, "text", NOT_NULL),
        (POST, {"input": {"topicId": 1, "attachments": [{"uploadId": 1}, {}]}}, "attachments[1].uploadId", NOT_NULL),
        ('{ trendingTopics(limit: "3") { messagesPerMinute } }', {}, "limit", "an Int"),
        (PAGE.replace("Int!)", "Int = 3)"), {"limit": None}, "limit", NOT_NULL),
        (
            POST.replace("$input: PostMessageInput!", "$t: String").replace("$input", "{topicId: 1, text: $t}"),
            {"t": None},
            "text",
            NOT_NULL,
        ),
        ("query ($a: Boolean! = true) { viewer @include(if: $a) { id } }", {"a": 3}, "if", "a Boolean"),
        ("query ($a: Boolean = true) { viewer @include(if: $a) { id } }", {"a": None}, "if", NOT_NULL),
        ("{ messages(topicId: 1, latest: 5) { oldest } }", {}, "latest", TIMESTAMP),
        ("query ($l: Timestamp = 5) { messages(topicId: 1, latest: $l) { oldest } }", {}, "latest", TIMESTAMP),
    ],
)
async def test_wrong_value_error_names_field_and_expectation(
    query: str, variables: dict[str, Any], field: str, expected: str
) -> None:
    extensions = (await error_of(query, **variables))["extensions"]
    assert extensions == {"code": "BAD_USER_INPUT", "field": field, "expected": expected}


MESSAGES = "{ messages(topicId: 1, oldest: VALUE) { oldest } }"
POST_AT = 'mutation { schedulePost(input: {text: "a", dueAt: VALUE}) { id } }'
POST_AT_LOCAL = 'mutation { schedulePostAtLocalTime(input: {text: "a", timeZone: "UTC", dueAtLocal: VALUE}) { id } }'
REPLAY = "mutation { replayWebhook(input: {webhookId: 1, cursor: VALUE}) { id } }"


@pytest.mark.parametrize(
    ("query", "type_", "literal", "field", "expected"),
    [
        (MESSAGES, "Timestamp", '"1.5"', "oldest", TIMESTAMP),
        (POST_AT, "DateTime!", '"2026-11-21"', "dueAt", INSTANT),
        (POST_AT_LOCAL, "LocalDateTime!", '"2026-11-21T12:00Z"', "dueAtLocal", LOCAL_TIME),
        (REPLAY, "Cursor", "5", "cursor", "a cursor from this subscription"),
    ],
)
async def test_wrong_scalar_is_equal_as_literal_and_variable(
    query: str, type_: str, literal: str, field: str, expected: str
) -> None:
    kind = "mutation" if query.startswith("mutation") else "query"
    with_variable = f"{kind} ($v: {type_}) {query.removeprefix('mutation').replace('VALUE', '$v')}"
    written = await error_of(query.replace("VALUE", literal))
    sent = await error_of(with_variable, v=json.loads(literal))
    assert written["extensions"] == {"code": "BAD_USER_INPUT", "field": field, "expected": expected}
    assert sent["extensions"] == written["extensions"]


@pytest.mark.parametrize(
    ("error", "extensions"),
    [
        (BadUserInput("text", "a text"), {"code": "BAD_USER_INPUT", "field": "text", "expected": "a text"}),
        (Unauthenticated(), {"code": "UNAUTHENTICATED"}),
        (Forbidden("No."), {"code": "FORBIDDEN"}),
        (NotFound("topic", "1"), {"code": "NOT_FOUND"}),
        (Conflict("Too late."), {"code": "CONFLICT"}),
        (RateLimited("Slowly.", 300), {"code": "RATE_LIMITED", "retryAfterMs": 300}),
        (Unavailable("Later.", 500), {"code": "UNAVAILABLE", "retryAfterMs": 500}),
    ],
)
async def test_domain_error_is_shown_unchanged(error: Exception, extensions: dict[str, Any]) -> None:
    with capture_logs() as log_entries:
        client_error = await error_from_resolver(error)
    assert (client_error["message"], client_error["extensions"]) == (str(error), extensions)
    assert log_entries == []


async def error_from_resolver(error: Exception) -> dict[str, Any]:
    """Returns the error that a client sees when a resolver raises `error`."""

    async def fail() -> int:
        raise error

    @strawberry.type
    class Query:
        answer: int | None = strawberry.field(resolver=fail)

    result = await run_operation(Operations(strawberry.Schema(Query)), context_without_stores(), "{ answer }")
    (client_error,) = result.errors or []
    return dict(client_error.formatted)


def logged_error(log_entries: list[Any]) -> Any:
    """Returns the single log entry of an unexpected error."""
    (entry,) = [entry for entry in log_entries if entry["event"] == "unexpected_error"]
    return entry


def assert_masked(error: dict[str, Any], log_entries: list[Any]) -> None:
    """Asserts that the client gets only an id, and that the log has the whole error under the same id."""
    assert error["message"] == "Unexpected error."
    assert set(error["extensions"]) == {"code", "requestId"}
    assert error["extensions"]["code"] == "INTERNAL_SERVER_ERROR"
    assert not set(error) - {"message", "locations", "path", "extensions"}
    entry = logged_error(log_entries)
    assert entry["request_id"] == error["extensions"]["requestId"]
    assert type(entry["exc_info"]).__name__ not in json.dumps(error)
    assert str(entry["exc_info"]) not in json.dumps(error)


@pytest.mark.parametrize(
    "query",
    [
        "{ communities { id } }",
        "{ topic(id: 1) { id } }",
        'mutation { postMessage(input: {topicId: 1, text: "a"}) { id } }',
    ],
)
async def test_internal_error_is_masked_and_logged(query: str) -> None:
    with capture_logs() as log_entries:
        error = await error_of(query)
    assert_masked(error, log_entries)
    assert isinstance(logged_error(log_entries)["exc_info"], AttributeError)


async def test_internal_errors_have_distinct_ids() -> None:
    with capture_logs():
        errors = await errors_of("{ a: topic(id: 1) { id } b: topic(id: 1) { id } }")
    assert len({error["extensions"]["requestId"] for error in errors}) == 2


def text_as_number() -> int:
    return "abc"  # type: ignore[return-value]


def none_as_number() -> int:
    return None  # type: ignore[return-value]


def exception_as_pet() -> Any:
    return UnexpectedError("12345")


@strawberry.type
class Cat:
    name: str

    @classmethod
    def is_type_of(cls, record: object, _info: object) -> bool:
        return isinstance(record, str)


@strawberry.type
class Dog:
    name: str

    @classmethod
    def is_type_of(cls, record: object, _info: object) -> bool:
        return isinstance(record, str)


@strawberry.type
class UnserializableQuery:
    number: int | None = strawberry.field(resolver=text_as_number)
    required: int = strawberry.field(resolver=none_as_number)
    pet: Cat | Dog | None = strawberry.field(resolver=exception_as_pet)


UNSERIALIZABLE = Operations(strawberry.Schema(UnserializableQuery))


@pytest.mark.parametrize("query", ["{ number }", "{ required }", "{ pet { __typename } }"])
async def test_unserializable_value_is_an_internal_error(query: str) -> None:
    with capture_logs() as log_entries:
        result = await run_operation(UNSERIALIZABLE, context_without_stores(), query)
    (error,) = result.errors or []
    assert_masked(dict(error.formatted), log_entries)


SUBSCRIBE = """
subscription ($topic: ID!) {
  topicEvents(topicId: $topic) { type: __typename ... on MessageEdited { message { linkPreview { imageUrl } } } }
}
"""


def fail_to_sign(_url: str, _copy_id: str = "") -> str:
    raise UnexpectedError("the signing key is 12345")


@pytest.fixture
async def ann(stores: Stores) -> Person:
    return await SignIn(stores)("ann")


async def test_event_error_is_masked_and_subscription_continues(ann: Person) -> None:
    topic = await ann.create_topic(await ann.create_community())
    message = message_key((await ann.post(topic, "https://example.org/"))["id"])
    ann.sign_image = fail_to_sign
    async with ann.subscribed(SUBSCRIBE, topic=topic) as subscription:
        with capture_logs() as log_entries:
            preview = LinkPreview("https://example.org/", "Example", None, "https://example.org/a.png", None)
            await ann.stores.messages.set_preview(message, "https://example.org/", preview)
            answer = await subscription.next_answer()
        assert answer["data"] == {"topicEvents": {"type": "MessageEdited", "message": {"linkPreview": None}}}
        (error,) = answer["errors"]
        assert_masked(error, log_entries)
        await ann.post(topic)
        assert await subscription.next_event() == {"type": "MessagePosted"}


async def test_subscription_start_error_is_masked() -> None:
    person = Person(None, context_without_stores().viewer, frozenset({Role.MEMBER}))  # type: ignore[arg-type]
    with capture_logs() as log_entries:
        answers = [answer async for answer in person.answers(SUBSCRIBE, topic="1")]
    (answer,) = answers
    (error,) = answer["errors"]
    assert_masked(error, log_entries)


async def test_subscription_domain_error_keeps_its_code(ann: Person) -> None:
    answers = [answer async for answer in ann.answers(SUBSCRIBE, topic="nowhere")]
    assert [[error["extensions"]["code"] for error in answer["errors"]] for answer in answers] == [["NOT_FOUND"]]


@pytest.fixture(autouse=True)
def captured_log() -> Iterator[None]:
    """Keeps log events that no test captures off the terminal."""
    with capture_logs():
        yield
