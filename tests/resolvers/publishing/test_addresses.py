"""Addresses that clients give."""

import pytest

from resolvers.publishing.addresses import web_address
from storage.errors import BadUserInput


@pytest.mark.parametrize("url", ["https://example.org", "http://example.org:8080/a?b=c", "https://例え.jp/x"])
def test_web_addresses_are_taken_as_they_are(url: str) -> None:
    assert web_address("url", url) == url


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.org",
        "ftp://example.org",
        "file:///etc/passwd",
        "https://",
        "https://u:p@example.org",
        "javascript:1",
    ]
    + [
        "https://example.org/a b",
        "https://example.org/\n",
        "https://example.org:99999/",
        "https://e.org/" + "x" * 2048,
    ],
)
def test_everything_else_is_refused(url: str) -> None:
    with pytest.raises(BadUserInput):
        web_address("url", url)
