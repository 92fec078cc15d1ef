"""Web addresses from clients."""

import pytest

from resolvers.publishing.addresses import checked_web_address
from storage.errors import BadUserInput


@pytest.mark.parametrize("url", ["https://example.org", "http://example.org:8080/a?b=c", "https://例え.jp/x"])
def test_web_address_is_returned_unchanged(url: str) -> None:
    assert checked_web_address("url", url) == url


INVALID_ADDRESSES = ["", "example.org", "ftp://example.org", "file:///etc/passwd", "https://", "javascript:1"]
INVALID_ADDRESSES += ["https://u:p@example.org", "https://example.org/a b", "https://example.org/\n"]
INVALID_ADDRESSES += ["https://example.org:99999/", "https://e.org/" + "x" * 2048]


@pytest.mark.parametrize("url", INVALID_ADDRESSES)
def test_invalid_web_address_is_refused(url: str) -> None:
    with pytest.raises(BadUserInput):
        checked_web_address("url", url)
