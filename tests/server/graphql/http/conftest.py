"""Fixtures: a client of the module's web process."""

from collections.abc import Iterator

import httpx2
import pytest

from tests.serving import WebProcess


@pytest.fixture
def http(web: WebProcess) -> Iterator[httpx2.Client]:
    """Yields a client, and afterwards asserts that no traceback was logged."""
    before = len(web.log_text)
    with httpx2.Client(base_url=web.url, timeout=60) as http:
        yield http
    assert "Traceback" not in web.log_text[before:]
