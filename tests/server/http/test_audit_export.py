"""GET /audit.ndjson: all entries once, filters and rights."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import orjson
import pymongo
import pytest
from starlette.requests import Request
from starlette.responses import StreamingResponse

from server.auth.credentials import RequestCredentials
from server.auth.tokens import TokenVerifier
from server.auth.viewers import ViewerSessions
from server.http.audit_export import MAX_EXPORTS, PAGE_SIZE, audit_export_route
from storage.stores import Stores
from tests.http_errors import error_of
from tests.server.auth.authenticators import token_authenticators
from tests.serving import WebProcess, web_process

ENTRIES = 2 * PAGE_SIZE + 3
CREATE = """
mutation { createServiceKey(input: {name: "Bot", scopes: ["chat:read"]}) { secret } }
"""


@pytest.fixture(scope="module")
def web(
    tmp_path_factory: pytest.TempPathFactory, mongodb_uri: str, redis_url: str, shared_database: str
) -> Iterator[WebProcess]:
    """A web process whose organization acme has many entries, two at each time."""
    with web_process(tmp_path_factory.mktemp("web"), mongodb_uri, redis_url, database=shared_database) as web:
        at = datetime.now(UTC).replace(microsecond=0) - timedelta(days=1)
        with pymongo.MongoClient[dict[str, Any]](mongodb_uri) as client:
            client[web.database]["audit"].insert_many(entry(n, at) for n in range(ENTRIES))
        yield web


def entry(n: int, at: datetime) -> dict[str, Any]:
    common = {"org": "acme", "action": "USER_DEACTIVATED", "kind": "USER", "details": {"reason": f"r{n}"}}
    place = {"actor": f"actor-{n % 3}", "target": f"user-{n}", "address": None, "agent": None}
    return {"_id": f"e{n:05}", "at": at - timedelta(seconds=n // 2), **common, **place}


def get(web: WebProcess, token: str | None, **parameters: str) -> httpx2.Response:
    headers = {"authorization": f"Bearer {token}"} if token else {}
    return httpx2.get(f"{web.url}/audit.ndjson", params=parameters, headers=headers, timeout=120)


def lines(response: httpx2.Response) -> list[dict[str, Any]]:
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/x-ndjson"
    return [orjson.loads(line) for line in response.content.splitlines()]


def test_export_names_no_conversation(web: WebProcess, mongodb_uri: str) -> None:
    """The first entry was stored by a release that named a message about which the ADMINs decided."""
    at, decided = datetime.now(UTC), {"decision": "REMOVE", "subject": "MESSAGE"}
    acts = [
        ("CONTENT_REPORT_DECIDED", {**decided, "id": "secret-1"}),
        ("CONTENT_REPORT_DECIDED", decided),
        ("CONTENT_REPORT_DECIDED", {"decision": "REMOVE", "subject": "POST", "id": "post-1"}),
        ("MESSAGE_DELETED", {"community": "secret", "message": "secret-1"}),
    ]
    with pymongo.MongoClient[dict[str, Any]](mongodb_uri) as client:
        client[web.database]["audit"].insert_many(
            {**entry(n, at), "_id": f"quiet{n}", "org": "quiet", "action": action, "details": details}
            for n, (action, details) in enumerate(acts)
        )
    response = get(web, web.token("ada", "quiet", roles=("ADMIN",)))
    assert len(lines(response)) == len(acts)
    assert "secret" not in response.text
    assert "post-1" in response.text


def test_export_has_each_entry_once_newest_first(web: WebProcess) -> None:
    exported = lines(get(web, web.token("ada", roles=("ADMIN",))))
    assert sorted(each["id"] for each in exported) == [f"e{n:05}" for n in range(ENTRIES)]
    assert [each["at"] for each in exported] == sorted((each["at"] for each in exported), reverse=True)
    newest = exported[0]
    assert newest["id"] in ("e00000", "e00001")
    assert newest["details"] == {"reason": f"r{int(newest['id'][1:])}"}


def test_export_is_filtered_like_the_query(web: WebProcess) -> None:
    token = web.token("ada", roles=("ADMIN",))
    assert [each["targetId"] for each in lines(get(web, token, targetId="user-7"))] == ["user-7"]
    assert len(lines(get(web, token, actorId="actor-0"))) == (ENTRIES + 2) // 3
    assert lines(get(web, token, action="USER_REACTIVATED")) == []
    since = datetime.now(UTC).isoformat()
    assert lines(get(web, token, since=since)) == []
    assert len(lines(get(web, token, until=since))) == ENTRIES


@pytest.mark.parametrize(
    "parameters", [{"since": "yesterday"}, {"until": "2026-01-01T00:00:00"}, {"action": "X"}, {"a": "b"}]
)
def test_invalid_parameter_is_named(web: WebProcess, parameters: dict[str, str]) -> None:
    response = get(web, web.token("ada", roles=("ADMIN",)), **parameters)
    assert response.status_code == 400
    assert [error_of(response.json())["field"]] == list(parameters)


@pytest.mark.anyio
async def test_simultaneous_exports_are_limited(web: WebProcess, web_stores: Stores) -> None:
    viewers = ViewerSessions(token_authenticators(TokenVerifier(secret=web.secret), web_stores))
    route = audit_export_route(web_stores, viewers, RequestCredentials())
    authorization = f"Bearer {web.token('ada', roles=('ADMIN',))}".encode()
    scope = {"type": "http", "method": "GET", "query_string": b"", "headers": [(b"authorization", authorization)]}
    responses = await asyncio.gather(*(route.endpoint(Request(scope)) for _ in range(MAX_EXPORTS + 2)))
    assert sorted(response.status_code for response in responses) == [200] * MAX_EXPORTS + [429] * 2
    for response in responses:
        if isinstance(response, StreamingResponse):
            assert len([each async for each in response.body_iterator]) == 3
    assert (await route.endpoint(Request(scope))).status_code == 200


def test_only_administrators_of_the_organization_export(web: WebProcess) -> None:
    assert get(web, None).status_code == 401
    for roles in (("MEMBER",), ("OPERATOR",), ("SERVICE",)):
        assert get(web, web.token("bob", roles=roles)).status_code == 403
    assert lines(get(web, web.token("eve", "globex", roles=("ADMIN",)))) == []
    headers = {"authorization": f"Bearer {web.token('eve', 'globex', roles=('ADMIN',))}"}
    created = httpx2.post(f"{web.url}/graphql", json={"query": CREATE}, headers=headers, timeout=60).json()
    assert get(web, created["data"]["createServiceKey"]["secret"]).status_code == 403
