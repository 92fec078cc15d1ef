"""The registry of networks that a worker uses."""

from collections.abc import Mapping

from jobs.providers.egress import Egress
from jobs.providers.social.bluesky import Bluesky
from jobs.providers.social.http import HttpClient
from jobs.providers.social.instagram import Instagram
from jobs.providers.social.mastodon import Mastodon
from jobs.providers.social.network import SocialNetwork
from jobs.providers.social.sandbox import Sandbox
from jobs.providers.social.webhook import WebhookNetwork
from jobs.providers.social.x import X
from storage.publishing.networks import Network
from storage.publishing.sandbox import SandboxStore

NetworkClients = Mapping[Network, SocialNetwork]


def all_networks(egress: Egress, sandbox: SandboxStore) -> NetworkClients:
    """Returns one client per network. Their requests pass the address guard."""
    http = HttpClient(egress)
    return {
        Network.MASTODON: Mastodon(http),
        Network.INSTAGRAM: Instagram(http),
        Network.BLUESKY: Bluesky(http),
        Network.X: X(http),
        Network.WEBHOOK: WebhookNetwork(http),
        Network.SANDBOX: Sandbox(sandbox),
    }
