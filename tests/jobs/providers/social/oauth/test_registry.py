"""Which networks can be connected and renewed, by the operator's apps."""

import pytest

from jobs.providers.egress import Egress
from jobs.providers.social.oauth.registry import OAuthApps, credential_renewers, oauth_networks
from storage.publishing.networks import Network

BOTH: OAuthApps = {"X": ("id", None), "INSTAGRAM": ("id", "secret")}


@pytest.mark.anyio
async def test_apps_decide_what_is_connected_and_renewed(egress: Egress) -> None:
    assert list(oauth_networks(egress, {})) == [Network.MASTODON]
    assert list(oauth_networks(egress, BOTH)) == [Network.MASTODON, Network.X, Network.INSTAGRAM]
    assert list(credential_renewers(egress, {})) == [Network.INSTAGRAM]
    assert set(credential_renewers(egress, BOTH)) == {Network.INSTAGRAM, Network.X}
