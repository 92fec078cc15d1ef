"""Sessions by cookie on two web processes: GraphQL, sockets, foreign origins, and the sign-out."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx2
import orjson
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed
from websockets.typing import Origin, Subprotocol

from tests.browser_sessions import CLIENT, SESSION_COOKIE, begin_session, session_headers
from tests.http_errors import error_of
from tests.serving import ORIGIN, WebProcess, web_process
from tests.waiting import until

pytestmark = pytest.mark.anyio

VIEWER = "{ viewer { id } }"
EVIL = "https://evil.example.org"
PUBLIC_ORIGIN = "https://chat.example.org:8443"


WEB_SETTINGS = {"NOROSHI_PUBLIC_URL": PUBLIC_ORIGIN}


@pytest.fixture(scope="module")
def other_web(
    tmp_path_factory: pytest.TempPathFactory, mongodb_uri: str, redis_url: str, web: WebProcess
) -> Iterator[WebProcess]:
    """A second web process of the same product."""
    with web_process(tmp_path_factory.mktemp("other"), mongodb_uri, redis_url, web) as other:
        yield other


@pytest.fixture
async def http(web: WebProcess) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(base_url=web.url, timeout=60) as http:
        yield http


async def post_operation(
    http: httpx2.AsyncClient, query: str = VIEWER, base: str = "", **headers: str
) -> tuple[int, Any]:
    """Sends an operation. Returns the status, and the data or the code of the first error."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    response = await http.post(f"{base}/graphql", json={"query": query}, headers=named)
    answer = orjson.loads(response.content)
    return response.status_code, answer["errors"][0]["extensions"]["code"] if "errors" in answer else answer["data"]


def socket(web: WebProcess, token: str, origin: str | None) -> connect:
    return connect(
        f"{web.url.replace('http', 'ws')}/graphql",
        subprotocols=[Subprotocol("graphql-transport-ws")],
        origin=None if origin is None else Origin(origin),
        additional_headers={"cookie": f"{SESSION_COOKIE}={token}"},
    )


async def first_answer(ws: ClientConnection) -> str | int | None:
    """Sends connection_init. Returns the type of the answer, or the code with which the socket is closed."""
    await ws.send('{"type": "connection_init"}')
    try:
        return str(orjson.loads(await ws.recv())["type"])
    except ConnectionClosed:
        return ws.close_code


async def test_cookie_signs_in_on_every_process(
    web: WebProcess, other_web: WebProcess, http: httpx2.AsyncClient, mongodb_uri: str
) -> None:
    headers = session_headers(await begin_session(mongodb_uri, web.database, "ann"))
    for each in (web, other_web):
        assert await post_operation(http, base=each.url, **headers) == (200, {"viewer": {"id": "ann"}})
        assert await post_operation(http, base=each.url, origin=each.url, **headers) == (200, {"viewer": {"id": "ann"}})
        assert await post_operation(http, base=each.url, origin=ORIGIN, **headers) == (200, {"viewer": {"id": "ann"}})


async def test_cookie_of_foreign_page_is_refused(web: WebProcess, http: httpx2.AsyncClient, mongodb_uri: str) -> None:
    headers = session_headers(await begin_session(mongodb_uri, web.database, "ann"))
    without_client = {"cookie": headers["cookie"]}
    for refused in (without_client, {**without_client, "origin": web.url}, {**headers, "origin": EVIL}):
        for query in (VIEWER, "{ communities { id } }", "mutation { endOtherSessions }"):
            assert await post_operation(http, query, **refused) == (403, "FORBIDDEN")
    response = await http.post("/graphql", json={"query": VIEWER}, headers={**headers, "origin": EVIL})
    assert "access-control-allow-origin" not in response.headers


async def test_unknown_cookie_is_refused(http: httpx2.AsyncClient) -> None:
    assert await post_operation(http, **session_headers("A" * 43)) == (401, "UNAUTHENTICATED")


async def test_socket_needs_an_allowed_origin(web: WebProcess, mongodb_uri: str) -> None:
    token = await begin_session(mongodb_uri, web.database, "ann")
    for origin in (web.url, ORIGIN):
        async with socket(web, token, origin) as ws:
            assert await first_answer(ws) == "connection_ack"
    async with socket(web, token, None) as ws:
        assert await first_answer(ws) == 4403
    async with socket(web, "A" * 43, web.url) as ws:
        assert await first_answer(ws) == 4401


async def test_page_of_public_url_works_with_rewritten_host(
    web: WebProcess, http: httpx2.AsyncClient, mongodb_uri: str
) -> None:
    token = await begin_session(mongodb_uri, web.database, "pam")
    headers = session_headers(token) | {"origin": PUBLIC_ORIGIN}
    for host in (web.url.removeprefix("http://"), "127.0.0.1", "chat.example.org", "chat.example.org:8443"):
        assert await post_operation(http, host=host, **headers) == (200, {"viewer": {"id": "pam"}})
    async with socket(web, token, PUBLIC_ORIGIN) as ws:
        assert await first_answer(ws) == "connection_ack"
    for origin in ("http://chat.example.org:8443", "https://chat.example.org", "https://evil.chat.example.org:8443"):
        assert await post_operation(http, **(headers | {"origin": origin})) == (403, "FORBIDDEN")
    assert (await http.post("/sign-out", headers=headers)).status_code == 200


async def test_sessions_are_listed_and_ended_by_their_user(
    web: WebProcess, http: httpx2.AsyncClient, mongodb_uri: str
) -> None:
    own_token, other_token = [await begin_session(mongodb_uri, web.database, name) for name in ("cyd", "dan")]
    second_token = await begin_session(mongodb_uri, web.database, "cyd")
    _, listed = await post_operation(http, "{ mySessions { id method current address } }", **session_headers(own_token))
    assert [each["current"] for each in listed["mySessions"]] == [False, True]
    _, foreign = await post_operation(http, "{ mySessions { id } }", **session_headers(other_token))
    end = f'mutation {{ endSession(id: "{foreign["mySessions"][0]["id"]}") {{ id }} }}'
    assert await post_operation(http, end, **session_headers(own_token)) == (200, "NOT_FOUND")
    assert await post_operation(http, "mutation { endOtherSessions }", **session_headers(own_token)) == (
        200,
        {"endOtherSessions": 1},
    )

    async def has_second_session_ended() -> bool:
        return await post_operation(http, **session_headers(second_token)) == (401, "UNAUTHENTICATED")

    await until(has_second_session_ended)
    assert await post_operation(http, **session_headers(other_token)) == (200, {"viewer": {"id": "dan"}})
    assert await post_operation(http, **session_headers(own_token)) == (200, {"viewer": {"id": "cyd"}})


async def test_sign_out_ends_session_and_sockets_on_every_process(
    web: WebProcess, other_web: WebProcess, http: httpx2.AsyncClient, mongodb_uri: str
) -> None:
    token = await begin_session(mongodb_uri, web.database, "eve")
    async with socket(other_web, token, other_web.url) as ws:
        assert await first_answer(ws) == "connection_ack"
        response = await http.post("/sign-out", headers=session_headers(token))
        assert response.status_code == 200
        removal = response.headers["set-cookie"]
        assert f'{SESSION_COOKIE}=""' in removal
        assert "Max-Age=0" in removal
        await ws.wait_closed()
        assert ws.close_code == 4401

    async def is_refused_everywhere() -> bool:
        answers = [await post_operation(http, base=each.url, **session_headers(token)) for each in (web, other_web)]
        return answers == [(401, "UNAUTHENTICATED")] * 2

    await until(is_refused_everywhere)
    assert (await http.post("/sign-out", headers=session_headers(token))).status_code == 200
    assert (await http.post("/sign-out", headers=CLIENT)).status_code == 200


async def test_foreign_page_signs_nobody_out(web: WebProcess, http: httpx2.AsyncClient, mongodb_uri: str) -> None:
    headers = session_headers(await begin_session(mongodb_uri, web.database, "fay"))
    for refused in ({"cookie": headers["cookie"]}, {**headers, "origin": EVIL}, {**headers, "origin": "null"}):
        response = await http.post("/sign-out", headers=refused)
        assert (response.status_code, error_of(response.json())["code"]) == (403, "FORBIDDEN")
        assert "set-cookie" not in response.headers
    assert await post_operation(http, **headers) == (200, {"viewer": {"id": "fay"}})


async def test_deactivated_user_is_refused_by_cookie(
    web: WebProcess, http: httpx2.AsyncClient, mongodb_uri: str
) -> None:
    token = await begin_session(mongodb_uri, web.database, "gus")
    assert await post_operation(http, **session_headers(token)) == (200, {"viewer": {"id": "gus"}})
    admin = {"authorization": f"Bearer {web.token('ada', roles=('ADMIN',))}"}
    await post_operation(http, 'mutation { deactivateUser(userId: "gus", reason: "left") { id } }', **admin)

    async def is_refused() -> bool:
        return await post_operation(http, **session_headers(token)) == (401, "UNAUTHENTICATED")

    await until(is_refused)
