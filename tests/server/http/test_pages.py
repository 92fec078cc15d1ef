"""What browsers load: headers, files that are there, and pages that are not built."""

from pathlib import Path

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from server.http.pages import HEADERS, page_routes
from storage.chat.stamps import STAMPS, Stamp


@pytest.fixture
def dist(tmp_path: Path) -> Path:
    """Pages as Vite leaves them."""
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text("<!doctype html><title>start</title>")
    (tmp_path / "graphiql.html").write_text("<!doctype html><title>GraphiQL</title>")
    (tmp_path / "favicon.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"/>')
    (tmp_path / "assets" / "main-abc123.js").write_text("export {};")
    (tmp_path / "secret.txt").write_text("not to be served")
    return tmp_path


def visit(dist: Path) -> TestClient:
    return TestClient(Starlette(routes=page_routes(dist)))


def assert_guarded(response: httpx2.Response) -> None:
    policy = response.headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe-eval" not in policy
    assert "script-src 'self';" in policy
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize(("path", "title"), [("/", "start"), ("/graphiql", "GraphiQL")])
def test_a_page_is_html_that_loads_from_its_own_origin_only(dist: Path, path: str, title: str) -> None:
    response = visit(dist).get(path)
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert f"<title>{title}</title>" in response.text
    assert_guarded(response)


def test_a_page_is_checked_for_changes_each_time(dist: Path) -> None:
    client = visit(dist)
    first = client.get("/")
    assert first.headers["cache-control"] == "no-cache"
    assert first.headers["etag"]


@pytest.mark.parametrize("path", ["/", "/graphiql"])
def test_a_page_that_is_not_built_says_so_and_how_to_build_it(tmp_path: Path, path: str) -> None:
    response = visit(tmp_path / "nowhere").get(path)
    assert response.status_code == 503
    assert "not built" in response.text
    assert "make web" in response.text
    assert_guarded(response)


@pytest.mark.parametrize("path", ["/assets/main-abc123.js", "/favicon.svg"])
def test_the_files_of_pages_that_are_not_built_are_not_found(tmp_path: Path, path: str) -> None:
    assert visit(tmp_path / "nowhere").get(path).status_code == 404


def test_assets_are_kept_for_good(dist: Path) -> None:
    response = visit(dist).get("/assets/main-abc123.js")
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/javascript")
    assert response.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert response.headers["x-content-type-options"] == "nosniff"


def test_a_known_asset_is_not_sent_again(dist: Path) -> None:
    client = visit(dist)
    tag = client.get("/assets/main-abc123.js").headers["etag"]
    again = client.get("/assets/main-abc123.js", headers={"if-none-match": tag})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize(
    "path",
    ["/assets/", "/assets/nope.js", "/assets/../secret.txt", "/assets/%2e%2e/secret.txt", "/assets/..%2fsecret.txt"],
)
def test_nothing_but_the_files_of_the_folder_is_served(dist: Path, path: str) -> None:
    response = visit(dist).get(path)
    assert response.status_code == 404
    assert "not to be served" not in response.text


@pytest.mark.parametrize("stamp", STAMPS, ids=lambda stamp: stamp.id)
def test_each_stamp_of_the_catalogue_is_an_svg_that_can_do_nothing(dist: Path, stamp: Stamp) -> None:
    response = visit(dist).get(stamp.image_url)
    assert response.status_code == 200
    assert response.headers["content-type"] == "image/svg+xml"
    assert "sandbox" in response.headers["content-security-policy"]
    assert response.headers["x-content-type-options"] == "nosniff"
    assert "<script" not in response.text


def test_the_favicon_is_an_svg(dist: Path) -> None:
    response = visit(dist).get("/favicon.svg")
    assert response.headers["content-type"] == "image/svg+xml"
    assert response.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("path", ["/", "/graphiql", "/assets/main-abc123.js", "/favicon.svg"])
def test_pages_are_only_read(dist: Path, path: str) -> None:
    assert visit(dist).post(path).status_code == 405


def test_the_policy_allows_sockets_but_no_foreign_scripts() -> None:
    policy = dict(part.strip().split(" ", 1) for part in HEADERS["Content-Security-Policy"].split(";"))
    assert policy["connect-src"] == "'self' ws: wss:"
    assert policy["script-src"] == "'self'"
    assert policy["base-uri"] == "'none'"
