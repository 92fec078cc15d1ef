"""The OpenAPI document: it is valid, has every route that is not left out on purpose, and its models parse bodies."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Annotated, Any, get_args

import httpx2
import orjson
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator, validate
from pydantic import Field
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route, WebSocketRoute

from server.app import create_app
from server.auth.tokens import mint
from server.http.json_answers import STATUS_BY_CODE, error_answer, json_answer
from server.http.openapi import (
    Answer,
    AnswerModel,
    Body,
    DescribedRoute,
    Expected,
    Operation,
    RequestModel,
    Tag,
    json_object,
    parsed,
    required,
)
from server.http.openapi.bodies import ErrorAnswer, ErrorCode
from server.http.openapi.document import openapi_document
from server.http.openapi.page import openapi_page
from server.settings import Settings
from storage.errors import BadUserInput, MissingScope, RateLimited

pytestmark = pytest.mark.anyio

SECRET = "a secret of the tests, longer than 32 bytes"
EVERYTHING = {
    "oidc_issuer": "https://id.example.org",
    "oidc_client_id": "noroshi",
    "local_accounts": True,
    "open_registration": True,
    "public_url": "https://chat.example.org",
    "demo": True,
}
"""Settings with which a server has all its routes."""

LEFT_OUT = {
    "/graphql": "has the GraphQL schema",
    "/openapi.json": "is the document",
    "/openapi": "is a page",
    "/": "is a page",
    "/graphiql": "is a page",
    "/favicon.svg": "is a static file",
    "/push-worker.js": "is a static file",
    "/manifest.webmanifest": "is a static file",
    "/icons": "has static files",
    "/assets": "has static files",
    "/stamps": "has static files",
    "/demo/users": "serves the demonstration only",
    "/demo/sign-in": "serves the demonstration only",
}
"""Routes that the document leaves out on purpose, each with the reason."""


@asynccontextmanager
async def running_app(settings: Settings) -> AsyncIterator[tuple[Starlette, httpx2.AsyncClient]]:
    app = create_app(settings)
    transport = httpx2.ASGITransport(app)
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=transport, base_url="http://localhost") as http,
    ):
        yield app, http


@pytest.fixture
def settings(mongodb_uri: str, redis_url: str, database: str) -> Settings:
    return Settings.from_environment(
        mongodb_uri=mongodb_uri, redis_url=redis_url, database=database, auth_secret=SECRET
    )


def undescribed(routes: list[BaseRoute]) -> set[str]:
    """Returns the paths of the routes that the document has not."""
    others = [route for route in routes if not isinstance(route, DescribedRoute)]
    assert all(isinstance(route, Route | WebSocketRoute | Mount) for route in others)
    return {route.path for route in others if isinstance(route, Route | WebSocketRoute | Mount)}


async def test_every_route_is_described_or_left_out(settings: Settings) -> None:
    async with running_app(settings.with_values(**EVERYTHING)) as (app, _):
        assert undescribed(list(app.routes)) == LEFT_OUT.keys(), "Describe the route with DescribedRoute."


async def test_document_of_all_routes_is_valid(settings: Settings) -> None:
    async with running_app(settings.with_values(**EVERYTHING)) as (_, http):
        response = await http.get("/openapi.json")
    document = orjson.loads(response.content)
    validate(document, cls=OpenAPIV31SpecValidator)
    assert document["openapi"].startswith("3.1.")
    assert document["info"]["version"] == version("noroshi")
    assert {"/sign-in/password", "/sign-in/passkey", "/sign-in/oidc", "/ingest/deliveries"} <= document["paths"].keys()
    ids = [each["operationId"] for item in document["paths"].values() for each in item.values()]
    assert len(ids) == len(set(ids))


async def test_document_has_the_routes_of_this_server_only(settings: Settings) -> None:
    async with running_app(settings.with_values(local_accounts=False)) as (_, http):
        document = orjson.loads((await http.get("/openapi.json")).content)
    assert "/accounts/invitation" in document["paths"]
    assert "/sign-in/password" not in document["paths"]


async def test_unchanged_document_is_not_sent_again(settings: Settings) -> None:
    async with running_app(settings) as (_, http):
        first = await http.get("/openapi.json")
        again = await http.get("/openapi.json", headers={"if-none-match": first.headers["etag"]})
        other = await http.get("/openapi.json", headers={"if-none-match": '"other"'})
    assert (first.status_code, again.status_code, other.status_code) == (200, 304, 200)
    assert first.headers["content-type"] == "application/json"
    assert again.content == b""


async def test_answers_have_the_described_form(settings: Settings) -> None:
    """Answers that no model writes are validated against the document: errors of several kinds of routes."""
    member = mint(SECRET, user_id="ann", organization_id="acme", roles=("MEMBER",), ttl_s=60)
    requests: list[tuple[str, str, dict[str, str], int]] = [
        ("POST", "/sign-in/password", {}, 403),
        ("POST", "/sign-in/password", {"noroshi-client": "test"}, 400),
        ("POST", "/callbacks/telephony", {}, 401),
        ("POST", "/ingest/deliveries", {}, 401),
        ("POST", "/ingest/deliveries", {"authorization": f"Bearer {member}"}, 403),
        ("GET", "/audit.ndjson", {"authorization": f"Bearer {member}"}, 403),
        ("GET", "/files/x/y", {"authorization": f"Bearer {member}"}, 404),
        ("DELETE", "/uploads/x", {"authorization": f"Bearer {member}"}, 404),
    ]
    async with running_app(settings) as (_, http):
        document = orjson.loads((await http.get("/openapi.json")).content)
        for method, path, headers, status in requests:
            response = await http.request(method, path, headers=headers)
            assert response.status_code == status, path
            ErrorAnswer.model_validate_json(response.content)
            template = {"/files/x/y": "/files/{id}/{name}", "/uploads/x": "/uploads/{id}"}.get(path, path)
            assert str(status) in document["paths"][template][method.lower()]["responses"], path


class Choice(RequestModel):
    """A choice."""

    first_name: Annotated[str, Field(min_length=1, max_length=5), Expected("a text of 1 to 5 characters")]
    count: Annotated[int, Field(ge=0)] = 0
    note: Annotated[str, Field(max_length=3), Expected("a note")] | None = None


class Chosen(AnswerModel):
    """A choice that was made."""

    first_name: str
    note: str | None


@pytest.mark.parametrize(
    ("body", "field", "expected"),
    [
        ({}, "firstName", "a text of 1 to 5 characters"),
        ({"firstName": ""}, "firstName", "a text of 1 to 5 characters"),
        ({"firstName": 7}, "firstName", "a text of 1 to 5 characters"),
        ({"firstName": None}, "firstName", "a text of 1 to 5 characters"),
        ({"first_name": "Ann"}, "firstName", "a text of 1 to 5 characters"),
        ({"firstName": "Ann", "note": "long"}, "note", "a note"),
        ({"firstName": "Ann", "count": -1}, "count", "Input should be greater than or equal to 0"),
        ({"firstName": "Ann", "count": True}, "count", "Input should be a valid integer"),
    ],
)
def test_wrong_field_of_a_body_is_named(body: dict[str, object], field: str, expected: str) -> None:
    with pytest.raises(BadUserInput) as refused:
        parsed(Choice, body)
    assert refused.value.details == {"field": field, "expected": expected}


def test_body_is_parsed_without_unknown_fields() -> None:
    choice = parsed(Choice, {"firstName": "Ann", "unknown": 1, "note": None})
    assert (choice.first_name, choice.count, choice.note) == ("Ann", 0, None)


@pytest.mark.parametrize("data", [b"", b"[]", b"null", b"{", b'{"a": "\\ud83d"}'])
def test_body_without_a_storable_object_is_refused(data: bytes) -> None:
    with pytest.raises(BadUserInput):
        json_object(data)


def test_missing_value_of_some_requests_is_named() -> None:
    assert required("", "name", "a text") == ""
    with pytest.raises(BadUserInput, match="name: expected a text"):
        required(None, "name", "a text")


def test_answer_is_written_as_its_model_says() -> None:
    answer = json_answer(Chosen(first_name="Ann", note=None))
    assert orjson.loads(bytes(answer.body)) == {"firstName": "Ann", "note": None}


def test_codes_of_the_document_have_a_status() -> None:
    assert set(get_args(ErrorCode)) == STATUS_BY_CODE.keys()


@pytest.mark.parametrize(
    "error", [BadUserInput("name", "a text"), MissingScope("mail:ingest"), RateLimited("No.", 1), RuntimeError()]
)
def test_errors_have_the_described_form(error: Exception) -> None:
    answer = ErrorAnswer.model_validate_json(bytes(error_answer(error).body))
    assert [each.extensions.model_extra for each in answer.errors] == [{}]


async def _choose(_: Request) -> Response:
    return json_answer({})


def described(**members: Any) -> dict[str, Any]:
    """Returns the document of one route, with an operation with these members."""
    members = {"answers": {200: Answer("Chosen.", Chosen)}, **members}
    operation = Operation(id="choose", tag=Tag.OPERATION, summary="Choose", **members)
    document: dict[str, Any] = orjson.loads(
        openapi_document([DescribedRoute("/{id}", _choose, {"POST": operation})], "1")
    )
    validate(document, cls=OpenAPIV31SpecValidator)
    return document


def test_models_are_components() -> None:
    document = described(body=Body([Choice]), errors=[400])
    schemas, operation = document["components"]["schemas"], document["paths"]["/{id}"]["post"]
    assert operation["requestBody"]["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/Choice"}
    assert schemas["Choice"]["required"] == ["firstName"]
    assert schemas["Chosen"]["required"] == ["firstName", "note"]
    assert operation["parameters"][0] | {"schema": None} == {
        "name": "id",
        "in": "path",
        "required": True,
        "schema": None,
    }
    errors = {status: answer["content"] for status, answer in operation["responses"].items() if status != "200"}
    assert errors.keys() == {"400", "500"}
    assert {each["application/json"]["schema"]["$ref"] for each in errors.values()} == {
        "#/components/schemas/ErrorAnswer"
    }


def test_body_of_lines_refers_to_their_model() -> None:
    document = described(body=Body(media_type="application/x-ndjson", line=Choice))
    content = document["paths"]["/{id}"]["post"]["requestBody"]["content"]["application/x-ndjson"]
    assert content["schema"]["contentSchema"] == {"$ref": "#/components/schemas/Choice"}
    assert "Choice" in document["components"]["schemas"]


async def test_page_shows_every_operation_and_loads_nothing(settings: Settings) -> None:
    async with running_app(settings.with_values(**EVERYTHING)) as (_, http):
        document, page = orjson.loads((await http.get("/openapi.json")).content), await http.get("/openapi")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in page.headers["content-security-policy"]
    ids, links = set(re.findall(r'id="([^"]+)"', page.text)), set(re.findall(r'href="([^"]+)"', page.text))
    operations = {each["operationId"] for item in document["paths"].values() for each in item.values()}
    assert operations | document["components"]["schemas"].keys() == ids
    assert links - {f"#{each}" for each in ids} == {"openapi.json"}
    assert not re.search(r"<script|\bsrc=|https?:", page.text)


def test_page_escapes_texts() -> None:
    page = openapi_page(described(body=Body([Choice]), description="<i> `a<b`"))
    assert "&lt;i&gt; <code>a&lt;b</code>" in page
    assert '<a href="#Choice">Choice</a>' in page
