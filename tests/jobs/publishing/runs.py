"""Networks connected to twins, and runs of a publisher until its work is done."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from jobs.providers.egress import Egress
from jobs.providers.social.bluesky import Bluesky
from jobs.providers.social.http import CALL_TIMEOUT_S, HttpClient
from jobs.providers.social.instagram import Instagram
from jobs.providers.social.mastodon import Mastodon
from jobs.providers.social.oauth.authorization import CredentialRenewer, OAuthApp
from jobs.providers.social.oauth.instagram import InstagramOAuth
from jobs.providers.social.oauth.x import XOAuth
from jobs.providers.social.registry import NetworkClients
from jobs.providers.social.sandbox import Sandbox
from jobs.providers.social.webhook import WebhookNetwork
from jobs.providers.social.x import X
from jobs.publishing.publisher import PostPublisher
from storage.publishing.accounts import ConnectedAccount
from storage.publishing.networks import Network
from storage.publishing.records import Publication, PublicationState, ScheduledPost
from storage.publishing.sandbox import SandboxStore
from storage.stores import Stores
from tests.storage.publishing.scenario import PublishingScenario
from tests.twins.bluesky import BlueskyTwin
from tests.twins.instagram import InstagramTwin
from tests.twins.mastodon import MastodonTwin
from tests.twins.twin import NetworkTwin, running_twin
from tests.twins.webhook import WebhookTwin
from tests.twins.x import XTwin

TWINS: dict[Network, type[NetworkTwin]] = {
    Network.MASTODON: MastodonTwin,
    Network.INSTAGRAM: InstagramTwin,
    Network.BLUESKY: BlueskyTwin,
    Network.X: XTwin,
    Network.WEBHOOK: WebhookTwin,
}
SECRETS = {
    Network.MASTODON: "token",
    Network.INSTAGRAM: "1784:token",
    Network.BLUESKY: "ann.example:app-pass",
    Network.X: "token",
    Network.WEBHOOK: WebhookTwin.secret,
}


def quick_networks(stores: Stores, egress: Egress, call_timeout_s: float = CALL_TIMEOUT_S) -> NetworkClients:
    """Returns all networks, with short polling intervals."""
    http = HttpClient(egress, call_timeout_s)
    return {
        Network.MASTODON: Mastodon(http, 0.01),
        Network.INSTAGRAM: Instagram(http, 0.01),
        Network.BLUESKY: Bluesky(http),
        Network.X: X(http, 0.01),
        Network.WEBHOOK: WebhookNetwork(http),
        Network.SANDBOX: Sandbox(SandboxStore(stores.mongo), 0.05),
    }


def renewer(network: Network, egress: Egress, url: str) -> CredentialRenewer:
    """Returns the renewer of X or Instagram at a twin."""
    http = HttpClient(egress, call_timeout_s=60)
    if network is Network.X:
        return XOAuth(http, OAuthApp(XTwin.client_id, XTwin.client_secret), url)
    return InstagramOAuth(http, None)


@asynccontextmanager
async def connected_twin(
    scenario: PublishingScenario, network: Network
) -> AsyncIterator[tuple[NetworkTwin, ConnectedAccount]]:
    """Starts the network's twin, and connects an account to it."""
    async with running_twin(TWINS[network]()) as twin:
        path = "/hook" if network is Network.WEBHOOK else ""
        yield twin, await scenario.connect_account(network, SECRETS[network], f"{twin.url}{path}")


async def run_once(publisher: PostPublisher, scenario: PublishingScenario, post: ScheduledPost) -> Publication:
    """Sweeps once, waits for the work, and returns the post's only publication."""
    await publisher.sweep()
    await publisher.wait_until_idle()
    return await scenario.publication(post)


async def run_uploads(publisher: PostPublisher) -> int:
    """Runs the uploads that are due. Returns how many were started."""
    started = await publisher.uploads.start_due_uploads()
    await publisher.uploads.wait_until_idle()
    return started


async def run_until_finished(
    publisher: PostPublisher, scenario: PublishingScenario, post: ScheduledPost, rounds: int = 20
) -> Publication:
    """Sweeps and simulates 16 s, at most `rounds` times, until the publication is finished or waits for a person."""
    publication = await run_once(publisher, scenario, post)
    for _ in range(rounds):
        if publication.state not in (PublicationState.UNKNOWN, PublicationState.PUBLISHING):
            break
        if "wake_at" not in await scenario.stored_document(publication):
            break
        await scenario.pass_time(16)
        publication = await run_once(publisher, scenario, post)
    return publication
