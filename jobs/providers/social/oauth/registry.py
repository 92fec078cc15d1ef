"""The networks whose accounts are connected by OAuth, and those whose credentials workers renew."""

from collections.abc import Mapping

from jobs.providers.egress import Egress
from jobs.providers.social.http import HttpClient
from jobs.providers.social.oauth.authorization import CredentialRenewer, OAuthApp, OAuthNetwork
from jobs.providers.social.oauth.instagram import InstagramOAuth
from jobs.providers.social.oauth.mastodon import MastodonOAuth
from jobs.providers.social.oauth.x import XOAuth
from storage.publishing.networks import Network

OAuthApps = Mapping[str, tuple[str, str | None]]
"""Id and secret of each of the operator's apps, by the name of its network. Mastodon needs none."""


def oauth_networks(egress: Egress, apps: OAuthApps) -> dict[Network, OAuthNetwork]:
    """Returns OAuth of each network that can be used with these apps. Requests pass the address guard."""
    http = HttpClient(egress)
    networks: dict[Network, OAuthNetwork] = {Network.MASTODON: MastodonOAuth(http)}
    if (x := _app(Network.X, apps)) is not None:
        networks[Network.X] = XOAuth(http, x)
    if (instagram := _app(Network.INSTAGRAM, apps)) is not None:
        networks[Network.INSTAGRAM] = InstagramOAuth(http, instagram)
    return networks


def credential_renewers(egress: Egress, apps: OAuthApps) -> dict[Network, CredentialRenewer]:
    """Returns the renewer of each network whose credentials can be renewed with these apps. Instagram needs none."""
    http = HttpClient(egress)
    renewers: dict[Network, CredentialRenewer] = {
        Network.INSTAGRAM: InstagramOAuth(http, _app(Network.INSTAGRAM, apps))
    }
    if (x := _app(Network.X, apps)) is not None:
        renewers[Network.X] = XOAuth(http, x)
    return renewers


def _app(network: Network, apps: OAuthApps) -> OAuthApp | None:
    return OAuthApp(*apps[network.value]) if network.value in apps else None
