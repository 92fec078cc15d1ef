"""A manifest of trusted documents, the roles that may execute others, and the switch for introspection."""

import hashlib
import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from server.http.pages import documents_of_web_client
from tests.client import GraphQLFailed, client
from tests.programs import require_web_client
from tests.serving import WebProcess, web_process

TRUSTED = "query Trusted($n: Int) { communities(limit: $n) { id } viewer { id } }"
EVENTS = "subscription TrustedEvents { homeFeedEvents { __typename } }"
SESSION = "{ viewer { id organizationId } }"
"""A document of the web client (web-client/src/session/browser-session.ts)."""
OTHER = "query Other { viewer { id } }"


@pytest.fixture(scope="module")
def web(
    tmp_path_factory: pytest.TempPathFactory, mongodb_uri: str, redis_url: str, shared_database: str
) -> Iterator[WebProcess]:
    """Yields a web process that lets operators and services execute any document, and others trusted ones."""
    folder = tmp_path_factory.mktemp("trusted")
    manifest = folder / "documents.json"
    manifest.write_text(json.dumps({"list-communities": TRUSTED, "events": EVENTS}), encoding="utf-8")
    settings = {
        "NOROSHI_TRUSTED_DOCUMENTS": str(manifest),
        "NOROSHI_ANY_DOCUMENT_ROLES": "OPERATOR,service",
        "NOROSHI_INTROSPECTION": "false",
    }
    with web_process(folder, mongodb_uri, redis_url, database=shared_database, **settings) as web:
        yield web


def post(web: WebProcess, body: dict[str, Any], *roles: str, user: str = "ann") -> Any:
    headers = {"authorization": f"Bearer {web.token(user, roles=roles)}"} if roles else {}
    with httpx2.Client(base_url=web.url, timeout=60) as http:
        return http.post("/graphql", json=body, headers=headers).json()


def code(answer: dict[str, Any]) -> str:
    found: str = answer["errors"][0]["extensions"]["code"]
    return found


@pytest.mark.parametrize(
    "body",
    [
        {"documentId": "list-communities", "variables": {"n": 3}},
        {"query": TRUSTED},
        {"extensions": {"persistedQuery": {"version": 1, "sha256Hash": "list-communities"}}},
    ],
)
def test_member_executes_trusted_documents(web: WebProcess, body: dict[str, Any]) -> None:
    # The second and the third answer are coalesced: the document is cached.
    for _ in range(3):
        assert post(web, body, "MEMBER")["data"]["viewer"] == {"id": "ann"}


@pytest.mark.parametrize("roles", [(), ("MEMBER",)])
def test_everybody_executes_documents_of_the_web_client(web: WebProcess, roles: tuple[str, ...]) -> None:
    require_web_client()
    id_ = hashlib.sha256(SESSION.encode()).hexdigest()
    assert documents_of_web_client()[id_] == SESSION
    viewer = {"id": "ann", "organizationId": "acme"} if roles else None
    for body in ({"query": SESSION}, {"documentId": id_}):
        assert post(web, body, *roles) == {"data": {"viewer": viewer}}
    assert code(post(web, {"query": f"{SESSION} "}, *roles)) == "FORBIDDEN"


@pytest.mark.parametrize("roles", [(), ("MEMBER",)])
def test_others_are_refused_also_after_an_operator_sent_them(web: WebProcess, roles: tuple[str, ...]) -> None:
    for _ in range(3):
        assert post(web, {"query": OTHER}, "OPERATOR", user="oli")["data"] == {"viewer": {"id": "oli"}}
        assert code(post(web, {"query": OTHER}, *roles)) == "FORBIDDEN"
    batch = post(web, [{"query": OTHER}, {"documentId": "list-communities"}], "MEMBER")  # type: ignore[arg-type]
    assert code(batch[0]) == "FORBIDDEN"
    assert "errors" not in batch[1]


@pytest.mark.parametrize("roles", [("ADMIN",), ("OPERATOR",), ("SERVICE",)])
def test_named_and_including_roles_execute_any_document(web: WebProcess, roles: tuple[str, ...]) -> None:
    assert post(web, {"query": OTHER}, *roles, user=roles[0])["data"] == {"viewer": {"id": roles[0]}}


def test_unknown_id_is_not_found_or_forbidden(web: WebProcess) -> None:
    assert code(post(web, {"documentId": "nowhere"}, "OPERATOR")) == "PERSISTED_QUERY_NOT_FOUND"
    assert code(post(web, {"documentId": "nowhere"}, "MEMBER")) == "FORBIDDEN"


@pytest.mark.anyio
async def test_sockets_are_restricted_too(web: WebProcess) -> None:
    async with client(web.url, web.token()) as ann, ann.socket() as socket:
        for body in ({"query": EVENTS}, {"documentId": "events"}):
            await socket.send_subscribe(body)
            assert (await socket.next_event())["__typename"] == "StreamReady"
        await socket.send_subscribe({"query": "subscription { homeFeedEvents { cursor: __typename } }"})
        with pytest.raises(GraphQLFailed) as refused:
            await socket.next_event()
        assert refused.value.codes == ["FORBIDDEN"]


def test_introspection_is_refused_and_no_name_is_suggested(web: WebProcess) -> None:
    for query in (
        "{ __schema { types { name } } }",
        '{ __type(name: "Query") { name } }',
        "{ ...F } fragment F on Query { __schema { types { name } } }",
    ):
        answer = post(web, {"query": query}, "ADMIN")
        assert code(answer) == "GRAPHQL_VALIDATION_FAILED"
        assert answer["errors"][0]["message"] == "This server does not allow introspection."
    assert post(web, {"query": "{ __typename }"}, "ADMIN") == {"data": {"__typename": "Query"}}
    assert "Did you mean" not in post(web, {"query": "{ viewers { id } }"}, "ADMIN")["errors"][0]["message"]
