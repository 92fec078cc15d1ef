"""Requests for foreign hosts are refused on every route, so that no page can reach this server by DNS rebinding."""

from collections.abc import Iterator

import httpx2
import pytest

from server.http.hosts import AllowedHosts, is_loopback
from tests.serving import WebProcess
from tests.websocket_handshake import HANDSHAKE_HEADERS

FOREIGN_HOST = "evil.example"


WEB_SETTINGS = {
    "NOROSHI_DEMO": "true",
    "NOROSHI_PUBLIC_URL": "https://chat.example.org/base",
    "NOROSHI_ALLOWED_HOSTS": "inside.example.org",
}


@pytest.fixture
def http(web: WebProcess) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=web.url, timeout=60) as http:
        yield http


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/graphql"),
        ("POST", "/demo/sign-in"),
        ("GET", "/demo/users"),
        ("GET", "/"),
        ("GET", "/stamps/hello.svg"),
        ("GET", "/readyz"),
        ("GET", "/nowhere"),
    ],
)
def test_foreign_host_is_refused(http: httpx2.Client, method: str, path: str) -> None:
    response = http.request(
        method, path, json={"user": "hana", "query": "{ viewer { id } }"}, headers={"host": FOREIGN_HOST}
    )
    assert response.status_code == 400
    (error,) = response.json()["errors"]
    assert (error["extensions"]["code"], error["extensions"]["field"]) == ("BAD_USER_INPUT", "Host")
    assert "NOROSHI_ALLOWED_HOSTS" in error["message"]


def test_socket_whose_origin_is_its_forged_host_is_refused(http: httpx2.Client) -> None:
    response = http.get(
        "/graphql", headers=HANDSHAKE_HEADERS | {"host": FOREIGN_HOST, "origin": f"http://{FOREIGN_HOST}"}
    )
    assert response.status_code == 400
    assert response.json()["errors"][0]["extensions"]["field"] == "Host"


@pytest.mark.parametrize("host", ["chat.example.org", "inside.example.org:8443", "localhost:1", "10.1.2.3", "[::1]:80"])
def test_own_hosts_and_addresses_are_served(http: httpx2.Client, host: str) -> None:
    assert http.get("/healthz", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "chat.example.org"},
        {"host": "10.1.2.3"},
        {"x-forwarded-for": "203.0.113.7"},
        # Addresses that the client of a careless proxy made up.
        {"x-forwarded-for": "127.0.0.1"},
        {"x-forwarded-for": "203.0.113.7, 127.0.0.1"},
        {"x-forwarded-for": "unknown"},
        {"x-forwarded-for": ""},
        {"forwarded": "for=127.0.0.1"},
        {"x-real-ip": "127.0.0.1"},
    ],
)
def test_demo_sign_in_through_proxy_is_refused(http: httpx2.Client, headers: dict[str, str]) -> None:
    assert http.post("/demo/sign-in", json={"user": "hana"}, headers=headers).status_code == 404
    assert http.get("/demo/users", headers=headers).json() == {"users": []}


def test_demo_sign_in_from_this_machine_gets_token(http: httpx2.Client) -> None:
    assert http.get("/demo/users").json()["users"] != []
    assert http.post("/demo/sign-in", json={"user": "hana"}).json()["token"]


@pytest.mark.parametrize(
    ("host", "is_allowed"),
    [
        (b"localhost", True),
        (b"LocalHost.:80", True),
        (b"app.localhost:5173", True),
        (b"127.0.0.1:8000", True),
        (b"192.168.1.20", True),
        (b"[::1]", True),
        (b"[fe80::1]:8000", True),
        (b"chat.example.org", True),
        (b"a.wild.example", True),
        (b"a.b.wild.example:1", True),
        (b"wild.example", False),
        (b"evilwild.example", False),
        (b"sub.chat.example.org", False),
        (b"chat.example.org.evil.example", False),
        (b"localhost.evil.example", False),
        (b"127.0.0.1.evil.example", False),
        (b"evil.example@localhost", False),
        (b"localhost/evil", False),
        (b"[::1]evil", False),
        (b"[evil]", False),
        (b"::1", False),
        (b"\xff", False),
        (b"", False),
    ],
)
def test_host_is_compared_as_name_without_port(host: bytes, is_allowed: bool) -> None:
    assert AllowedHosts(["chat.example.org", "*.wild.example"]).allows(host) is is_allowed


def test_asterisk_allows_every_host() -> None:
    assert AllowedHosts(["*"]).allows(b"evil.example")


@pytest.mark.parametrize(
    ("name", "expected"), [("localhost", True), ("127.1.2.3", True), ("::1", True), ("10.0.0.1", False), ("a", False)]
)
def test_loopback_names_are_recognized(name: str, expected: bool) -> None:
    assert is_loopback(name) is expected
