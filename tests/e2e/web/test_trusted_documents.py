"""The web client of a person who may execute trusted documents only, in a real Chromium: chat and all screens."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.browser_scripts import SCRIPT_TIMEOUT_S, run_browser_script
from tests.serving import WebProcess, web_process

ORGANIZATION = "web-trusted"


@pytest.fixture(scope="module")
def other_web(
    tmp_path_factory: pytest.TempPathFactory, mongodb_uri: str, redis_url: str, shared_database: str
) -> Iterator[WebProcess]:
    """Yields a web process that executes any document."""
    with web_process(tmp_path_factory.mktemp("other"), mongodb_uri, redis_url, database=shared_database) as web:
        yield web


@pytest.fixture(scope="module")
def web(
    tmp_path_factory: pytest.TempPathFactory, mongodb_uri: str, redis_url: str, other_web: WebProcess
) -> Iterator[WebProcess]:
    """Yields a web process on the same data that executes only trusted documents. The operator has no manifest."""
    settings = {"NOROSHI_ANY_DOCUMENT_ROLES": "NOBODY", "NOROSHI_INTROSPECTION": "false"}
    with web_process(tmp_path_factory.mktemp("web"), mongodb_uri, redis_url, other_web, **settings) as web:
        yield web


@pytest.mark.browser
@pytest.mark.timeout(SCRIPT_TIMEOUT_S + 60)
def test_web_client_works_with_trusted_documents_only(web: WebProcess, other_web: WebProcess, tmp_path: Path) -> None:
    tokens = {"ann": web.token("ann", ORGANIZATION, ("ADMIN",)), "ben": web.token("ben", ORGANIZATION)}

    report = run_browser_script("web/trusted-documents.mjs", web.url, tmp_path, otherUrl=other_web.url, tokens=tokens)

    assert report["failures"] == [], "A screen sends a document that the server does not trust."
    assert "FORBIDDEN" in report["foreign"], "A document that the web client does not send was executed."
    assert report["pageErrors"] == []
