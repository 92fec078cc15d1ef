"""The limits of documents: as plain checks, and over HTTP and WebSocket through Strawberry's ASGI application."""

import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
import uvicorn
from graphql import GraphQLError, get_introspection_query, parse
from strawberry.asgi import GraphQL
from strawberry.subscriptions.protocols.graphql_transport_ws.handlers import BaseGraphQLTransportWSHandler
from websockets.asyncio.client import connect

from server.graphql.limits import DocumentLimits, set_code
from tests.server.graphql.limited_schema import COSTLY_QUERY, RESOLVED, SCHEMA, nested_query, new_schema

LIMITS = DocumentLimits()


def error_messages(query: str, variables: dict[str, Any] | None = None, operation_name: str | None = None) -> list[str]:
    errors = LIMITS.check(SCHEMA._schema, parse(query), variables, operation_name)
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
        errors = limits.check(SCHEMA._schema, document, None, None)
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


class TransportHandler(BaseGraphQLTransportWSHandler[None, None]):
    """Sends a syntax error as the error of its operation. Strawberry's own handler closes the socket with 4400."""

    @staticmethod
    def _get_pre_execution_close_reason(error: object) -> str | None:
        return None


class StrawberryApplication(GraphQL[None, None]):
    graphql_transport_ws_handler_class = TransportHandler


@asynccontextmanager
async def serve_application() -> AsyncIterator[str]:
    """Serves Strawberry's ASGI application on a real socket, and yields its host and port."""
    app = StrawberryApplication(new_schema(), subscription_protocols=["graphql-transport-ws"])
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", ws="websockets-sansio", lifespan="off"))
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield f"127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        await serving


@asynccontextmanager
async def acknowledged_socket(address: str) -> AsyncIterator[Any]:
    """Yields an acknowledged socket."""
    protocol: Any = ["graphql-transport-ws"]
    async with connect(f"ws://{address}/", subprotocols=protocol) as websocket:
        await websocket.send('{"type": "connection_init"}')
        assert json.loads(await websocket.recv())["type"] == "connection_ack"
        yield websocket


async def first_message(websocket: Any, query: str, variables: object = None) -> dict[str, Any]:
    """Starts an operation, and returns the first message of the server."""
    payload = {"query": query, "variables": variables}
    await websocket.send(json.dumps({"id": "1", "type": "subscribe", "payload": payload}))
    answer: dict[str, Any] = json.loads(await asyncio.wait_for(websocket.recv(), 30))
    return answer


@pytest.mark.anyio
class TestTransports:
    @pytest.mark.parametrize("name", [name for name in REFUSED_DOCUMENTS if "subscription" not in name])
    async def test_refused_document_is_not_executed_over_http(self, name: str) -> None:
        query, variables, code, message = REFUSED_DOCUMENTS[name]
        RESOLVED.clear()
        async with serve_application() as address, httpx2.AsyncClient(trust_env=False, timeout=60) as client:
            for _ in range(2):
                answer = await client.post(f"http://{address}/", json={"query": query, "variables": variables})
                (error, *_) = answer.json()["errors"]
                assert error["extensions"] == {"code": code}
                assert message in error["message"]
        assert RESOLVED == []

    @pytest.mark.parametrize("name", REFUSED_DOCUMENTS)
    async def test_refused_document_keeps_the_websocket_open(self, name: str) -> None:
        query, variables, code, message = REFUSED_DOCUMENTS[name]
        RESOLVED.clear()
        async with serve_application() as address, acknowledged_socket(address) as websocket:
            for _ in range(2):
                answer = await first_message(websocket, query, variables)
                assert answer["type"] == "error"
                assert answer["payload"][0]["extensions"] == {"code": code}
                assert message in answer["payload"][0]["message"]
            assert RESOLVED == []
            answer = await first_message(websocket, "subscription { users { id } }")
            assert answer["payload"] == {"data": {"users": {"id": "1"}}}

    async def test_document_within_limits_runs_over_http_and_websocket(self) -> None:
        query, variables = COSTLY_QUERY, {"n": 1000}
        data = {"user": {"friends": [{"friends": [{"id": "2"}]}]}}
        async with serve_application() as address, httpx2.AsyncClient(trust_env=False, timeout=60) as client:
            answer = await client.post(f"http://{address}/", json={"query": query, "variables": variables})
            assert answer.json() == {"data": data}
            async with acknowledged_socket(address) as websocket:
                assert (await first_message(websocket, query, variables))["payload"] == {"data": data}
