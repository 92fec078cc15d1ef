"""Addresses of accounts' public pages."""

from datetime import UTC, datetime

import pytest

from storage.publishing.networks import Network
from storage.publishing.profiles import profile_url
from storage.publishing.records import ConnectedAccount


@pytest.mark.parametrize(
    ("network", "handle", "base_url", "expected"),
    [
        (
            Network.MASTODON,
            "@harbour@mastodon.example",
            "https://mastodon.example/",
            "https://mastodon.example/@harbour",
        ),
        (Network.MASTODON, "@harbour@mastodon.example", None, None),
        (Network.X, "@harbour", None, "https://x.com/harbour"),
        (Network.INSTAGRAM, "@harbour", None, "https://www.instagram.com/harbour/"),
        (Network.BLUESKY, "@harbour.example", None, "https://bsky.app/profile/harbour.example"),
        (Network.X, None, None, None),
        (Network.WEBHOOK, "@harbour", "https://hooks.example", None),
    ],
)
def test_profile_url_follows_network_and_handle(
    network: Network, handle: str | None, base_url: str | None, expected: str | None
) -> None:
    account = ConnectedAccount("id", "org", network, "Us", base_url, datetime.now(UTC), None, handle)
    assert profile_url(account) == expected
