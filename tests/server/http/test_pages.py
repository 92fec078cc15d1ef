"""Pages and static files: headers, missing files, and pages that are not built."""

import hashlib
import json
from pathlib import Path

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from server.http.pages import DIST, HEADERS, documents_of_web_client, page_routes
from storage.chat.stamps.catalogue import STAMPS, Stamp
from tests.programs import require_web_client


@pytest.fixture
def dist(tmp_path: Path) -> Path:
    """Returns a folder with pages as Vite builds them."""
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text("<!doctype html><title>start</title>")
    (tmp_path / "graphiql.html").write_text("<!doctype html><title>GraphiQL</title>")
    (tmp_path / "favicon.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"/>')
    (tmp_path / "assets" / "main-abc123.js").write_text("export {};")
    (tmp_path / "secret.txt").write_text("not to be served")
    return tmp_path


def page_client(dist: Path) -> TestClient:
    return TestClient(Starlette(routes=page_routes(dist)))


def assert_safe_headers(response: httpx2.Response) -> None:
    policy = response.headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe-eval" not in policy
    assert "script-src 'self';" in policy
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize(("path", "title"), [("/", "start"), ("/graphiql", "GraphiQL")])
def test_page_is_html_with_same_origin_policy(dist: Path, path: str, title: str) -> None:
    response = page_client(dist).get(path)
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert f"<title>{title}</title>" in response.text
    assert_safe_headers(response)


def test_service_worker_is_at_the_root_and_revalidated(dist: Path) -> None:
    """Its path limits the pages that it controls."""
    assert page_client(dist).get("/push-worker.js").status_code == 404
    (dist / "push-worker.js").write_text("self;")
    response = page_client(dist).get("/push-worker.js")
    assert response.headers["content-type"].startswith("text/javascript")
    assert response.headers["cache-control"] == "no-cache"
    assert_safe_headers(response)


def test_built_client_is_installable() -> None:
    """The manifest of the web client names icons that are served."""
    require_web_client()
    client = page_client(DIST)
    response = client.get("/manifest.webmanifest")
    assert response.headers["content-type"] == "application/manifest+json"
    assert_safe_headers(response)
    assert 'rel="manifest" href="/manifest.webmanifest"' in client.get("/").text
    for icon in response.json()["icons"]:
        assert client.get(icon["src"]).headers["content-type"] == icon["type"]


def test_documents_of_built_client_have_their_hashes_as_ids() -> None:
    require_web_client()
    documents = documents_of_web_client()
    assert len(documents) > 300
    assert {id_: hashlib.sha256(text.encode()).hexdigest() for id_, text in documents.items()} == {
        id_: id_ for id_ in documents
    }


def test_client_without_a_manifest_has_no_trusted_documents(dist: Path) -> None:
    assert documents_of_web_client(dist) == {}
    assert documents_of_web_client(dist / "nowhere") == {}


def test_manifest_beside_the_pages_is_read_and_not_served(dist: Path) -> None:
    text = "query Viewer { viewer { id } }"
    (dist / "trusted-documents.json").write_text(json.dumps({"abc": text}))
    assert documents_of_web_client(dist) == {"abc": text}
    assert page_client(dist).get("/trusted-documents.json").status_code == 404


def test_page_is_revalidated_on_each_request(dist: Path) -> None:
    client = page_client(dist)
    first = client.get("/")
    assert first.headers["cache-control"] == "no-cache"
    assert first.headers["etag"]


@pytest.mark.parametrize("path", ["/", "/graphiql"])
def test_page_that_is_not_built_is_503_with_remedy(tmp_path: Path, path: str) -> None:
    response = page_client(tmp_path / "nowhere").get(path)
    assert response.status_code == 503
    assert "not built" in response.text
    assert "make web" in response.text
    assert_safe_headers(response)


@pytest.mark.parametrize("path", ["/assets/main-abc123.js", "/favicon.svg"])
def test_files_that_are_not_built_are_404(tmp_path: Path, path: str) -> None:
    assert page_client(tmp_path / "nowhere").get(path).status_code == 404


def test_assets_are_immutable(dist: Path) -> None:
    response = page_client(dist).get("/assets/main-abc123.js")
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/javascript")
    assert response.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert response.headers["x-content-type-options"] == "nosniff"


def test_asset_with_matching_etag_is_304(dist: Path) -> None:
    client = page_client(dist)
    tag = client.get("/assets/main-abc123.js").headers["etag"]
    again = client.get("/assets/main-abc123.js", headers={"if-none-match": tag})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize(
    "path",
    ["/assets/", "/assets/nope.js", "/assets/../secret.txt", "/assets/%2e%2e/secret.txt", "/assets/..%2fsecret.txt"],
)
def test_paths_outside_folder_are_404(dist: Path, path: str) -> None:
    response = page_client(dist).get(path)
    assert response.status_code == 404
    assert "not to be served" not in response.text


@pytest.mark.parametrize("stamp", STAMPS, ids=lambda stamp: stamp.id)
def test_stamp_is_sandboxed_svg(dist: Path, stamp: Stamp) -> None:
    response = page_client(dist).get(stamp.image_url)
    assert response.status_code == 200
    assert response.headers["content-type"] == "image/svg+xml"
    assert "sandbox" in response.headers["content-security-policy"]
    assert response.headers["x-content-type-options"] == "nosniff"
    assert "<script" not in response.text


def test_favicon_is_svg(dist: Path) -> None:
    response = page_client(dist).get("/favicon.svg")
    assert response.headers["content-type"] == "image/svg+xml"
    assert response.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("path", ["/", "/graphiql", "/assets/main-abc123.js", "/favicon.svg"])
def test_post_to_page_is_405(dist: Path, path: str) -> None:
    assert page_client(dist).post(path).status_code == 405


def test_policy_allows_sockets_and_own_scripts_only() -> None:
    policy = dict(part.strip().split(" ", 1) for part in HEADERS["Content-Security-Policy"].split(";"))
    assert policy["connect-src"] == "'self' ws: wss:"
    assert policy["script-src"] == "'self'"
    assert policy["base-uri"] == "'none'"
