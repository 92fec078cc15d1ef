"""Verification of credentials: every network names the account, or its reason is shown without the credentials."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from jobs.providers.social.bluesky import Bluesky
from jobs.providers.social.http import HttpClient
from jobs.providers.social.instagram import Instagram
from jobs.providers.social.mastodon import Mastodon
from jobs.providers.social.registry import NetworkClients
from jobs.providers.social.verification import MAX_HANDLE_CHARS, RETRY_AFTER_S, AccountVerifier, CredentialsInvalid
from jobs.providers.social.webhook import WebhookNetwork
from jobs.providers.social.x import X
from storage.errors import CredentialsNotAccepted, Unavailable
from storage.publishing.networks import Network
from storage.publishing.records import NOT_VERIFIED, VerifiedAccount
from tests.jobs.providers.stub_server import StubServer, respond
from tests.jobs.publishing.runs import SECRETS, TWINS
from tests.twins.bluesky import DID, BlueskyTwin
from tests.twins.instagram import InstagramTwin, graph_error
from tests.twins.mastodon import MastodonTwin
from tests.twins.twin import NetworkFault, NetworkTwin, running_twin
from tests.twins.x import XTwin

pytestmark = pytest.mark.anyio

ASKED = [Network.MASTODON, Network.INSTAGRAM, Network.BLUESKY, Network.X]
WRONG = dict.fromkeys(ASKED, "wrong-token")
WRONG |= {Network.INSTAGRAM: "1784:wrong-token", Network.BLUESKY: "ann.example:wrong-password"}
OWNERS = {
    Network.MASTODON: VerifiedAccount("14715", "@harbour@127.0.0.1"),
    Network.INSTAGRAM: VerifiedAccount("1784", "@harbour"),
    Network.BLUESKY: VerifiedAccount(DID, "@ann.example"),
    Network.X: VerifiedAccount("2244994945", "@harbour"),
}
ME = "/me?fields=user_id%2Cusername"
REASONS = {
    Network.MASTODON: "The access token is invalid",
    Network.INSTAGRAM: "Invalid OAuth access token",
    Network.BLUESKY: "Invalid identifier or password",
    Network.X: "Unauthorized",
}


def all_clients(http: HttpClient) -> NetworkClients:
    """Returns the clients of all networks outside this product."""
    return {
        Network.MASTODON: Mastodon(http),
        Network.INSTAGRAM: Instagram(http),
        Network.BLUESKY: Bluesky(http),
        Network.X: X(http),
        Network.WEBHOOK: WebhookNetwork(http),
    }


@pytest.fixture
def verifier(http: HttpClient) -> AccountVerifier:
    return AccountVerifier(all_clients(http), timeout_s=60)


@pytest.fixture(params=ASKED, ids=lambda network: network.value)
def network(request: pytest.FixtureRequest) -> Network:
    value: Network = request.param
    return value


@pytest.fixture
async def twin(network: Network) -> AsyncIterator[NetworkTwin]:
    async with running_twin(TWINS[network]()) as twin:
        yield twin


async def refusal(verifier: AccountVerifier, network: Network, url: str, secret: str) -> str:
    """Returns what was expected of credentials that are refused."""
    with pytest.raises(CredentialsNotAccepted) as refused:
        await verifier.verify(network, url, secret)
    details = refused.value.details
    assert (refused.value.code, details["field"]) == ("BAD_USER_INPUT", "credentials")
    assert str(details["expected"]).endswith(f"it answered: {details['reason']}")
    return str(details["expected"])


async def test_every_network_names_the_owner(verifier: AccountVerifier, network: Network, twin: NetworkTwin) -> None:
    assert await verifier.verify(network, twin.url, SECRETS[network]) == OWNERS[network]
    assert twin.ledger == []


async def test_refusal_has_the_reason_of_the_network(
    verifier: AccountVerifier, network: Network, twin: NetworkTwin
) -> None:
    expected = f"credentials that {network.value} accepts; it answered: {REASONS[network]}"
    assert await refusal(verifier, network, twin.url, WRONG[network]) == expected


async def test_refused_credentials_are_invalid_for_every_call(
    verifier: AccountVerifier, network: Network, twin: NetworkTwin
) -> None:
    with pytest.raises(CredentialsInvalid):
        await verifier.verify(network, twin.url, WRONG[network])


@pytest.mark.parametrize(
    ("status", "body", "is_invalid"),
    [
        (401, b'{"error": "The access token is invalid"}', True),
        (403, b'{"error": "Your login is currently disabled"}', True),
        (403, b'{"error": "This action is outside the authorized scopes"}', False),
        (403, b"{}", False),
        (404, b"{}", False),
    ],
)
async def test_refused_question_is_no_refusal_of_credentials(
    verifier: AccountVerifier, media: StubServer, status: int, body: bytes, is_invalid: bool
) -> None:
    """A token that may not read the account may still be allowed to publish."""
    media.answers["/api/v1/accounts/verify_credentials"] = respond(body, status)
    with pytest.raises(CredentialsNotAccepted) as refused:
        await verifier.verify(Network.MASTODON, media.url(""), "token")
    assert isinstance(refused.value, CredentialsInvalid) is is_invalid


FAILURES = [each for each in NetworkFault if each is not NetworkFault.BUSY and "SILENT" not in each.name]


@pytest.mark.parametrize("fault", FAILURES)
async def test_failing_network_is_unavailable(
    verifier: AccountVerifier, network: Network, twin: NetworkTwin, fault: NetworkFault
) -> None:
    twin.verification_faults.append(fault)
    with pytest.raises(Unavailable) as unavailable:
        await verifier.verify(network, twin.url, SECRETS[network])
    assert unavailable.value.details["retryAfterMs"] == RETRY_AFTER_S * 1000


async def test_busy_network_is_unavailable_until_it_is_ready(
    verifier: AccountVerifier, network: Network, twin: NetworkTwin
) -> None:
    twin.verification_faults.append(NetworkFault.BUSY)
    with pytest.raises(Unavailable) as unavailable:
        await verifier.verify(network, twin.url, SECRETS[network])
    retry_after_ms = unavailable.value.details["retryAfterMs"]
    assert isinstance(retry_after_ms, int)
    assert retry_after_ms <= 1000, "The twins ask for a second at most."


async def test_silent_network_is_unavailable_after_deadline(http: HttpClient, network: Network) -> None:
    """The twin is silent for a minute, and the client of the network waits so long."""
    async with running_twin(TWINS[network]()) as twin, asyncio.timeout(20):
        twin.verification_faults.append(NetworkFault.SILENT_BEFORE)
        with pytest.raises(Unavailable):
            await AccountVerifier(all_clients(http), timeout_s=0.2).verify(network, twin.url, SECRETS[network])


async def test_unreachable_network_is_unavailable(verifier: AccountVerifier, network: Network) -> None:
    with pytest.raises(Unavailable):
        await verifier.verify(network, "http://127.0.0.1:1", SECRETS[network])


async def test_answer_of_other_server_is_refused(
    verifier: AccountVerifier, network: Network, media: StubServer
) -> None:
    for path in ("/api/v1/accounts/verify_credentials", "/2/users/me", ME, "/xrpc/com.atproto.server.createSession"):
        media.answers[path] = respond(b"<html>Welcome</html>")
    expected = await refusal(verifier, network, media.url(""), SECRETS[network])
    assert "it answered: no account (no " in expected


async def test_reason_that_repeats_the_secret_hides_it(verifier: AccountVerifier, media: StubServer) -> None:
    media.answers["/2/users/me"] = respond(b'{"detail": "Unknown  token s3cr3t-token of\\n app"}', 401)
    media.answers[ME] = respond(b'{"error": {"message": "Cannot parse s3cr3t-token", "code": 190}}', 400)
    x = await refusal(verifier, Network.X, media.url(""), "s3cr3t-token")
    instagram = await refusal(verifier, Network.INSTAGRAM, media.url(""), "1784:s3cr3t-token")
    assert x.endswith("it answered: Unknown token *** of app")
    assert instagram.endswith("it answered: Cannot parse ***")


@pytest.mark.parametrize("status", [401, 503])
@pytest.mark.parametrize("padding", [0, 290])
async def test_no_part_of_the_secret_is_shown(
    verifier: AccountVerifier, media: StubServer, status: int, padding: int
) -> None:
    """Not even if the reason is cut off within the secret."""
    secret = "s3cr3t-token" * 20
    media.answers["/2/users/me"] = respond(f"{'x' * padding} {secret}".encode(), status)
    with pytest.raises((CredentialsNotAccepted, Unavailable)) as error:
        await verifier.verify(Network.X, media.url(""), secret)
    assert "s3cr3t" not in f"{error.value}{error.value.details}"


async def test_account_with_too_long_name_is_refused(verifier: AccountVerifier) -> None:
    async with running_twin(XTwin()) as twin:
        assert isinstance(twin, XTwin)
        twin.username = "x" * MAX_HANDLE_CHARS
        expected = await refusal(verifier, Network.X, twin.url, twin.token)
    assert expected.endswith("no account (a name of more than 500 characters)")


async def test_disabled_mastodon_account_is_refused(verifier: AccountVerifier) -> None:
    async with running_twin(MastodonTwin()) as twin:
        assert isinstance(twin, MastodonTwin)
        twin.is_disabled = True
        expected = await refusal(verifier, Network.MASTODON, twin.url, twin.token)
    assert expected.endswith("Your login is currently disabled")


async def test_instagram_token_of_other_user_is_refused(verifier: AccountVerifier) -> None:
    async with running_twin(InstagramTwin()) as twin:
        expected = await refusal(verifier, Network.INSTAGRAM, twin.url, "1785:token")
    assert expected.endswith("The token belongs to the user 1784, not to 1785")


async def test_instagram_user_may_be_no_list(verifier: AccountVerifier) -> None:
    async with running_twin(InstagramTwin()) as twin:
        assert isinstance(twin, InstagramTwin)
        twin.lists_user = False
        assert await verifier.verify(Network.INSTAGRAM, twin.url, "1784:token") == OWNERS[Network.INSTAGRAM]


async def test_instagram_rate_limit_is_unavailable(verifier: AccountVerifier, media: StubServer) -> None:
    media.answers[ME] = respond(graph_error(400, "Application request limit reached", 4).body, 400)
    with pytest.raises(Unavailable):
        await verifier.verify(Network.INSTAGRAM, media.url(""), "1784:token")


async def test_x_token_of_an_app_is_refused(verifier: AccountVerifier) -> None:
    async with running_twin(XTwin()) as twin:
        expected = await refusal(verifier, Network.X, twin.url, XTwin.app_token)
    assert "OAuth 2.0 Application-Only is forbidden" in expected


@pytest.mark.parametrize("status", ["deactivated", "suspended", "takendown"])
async def test_inactive_bluesky_account_is_refused(verifier: AccountVerifier, status: str) -> None:
    async with running_twin(BlueskyTwin()) as twin:
        assert isinstance(twin, BlueskyTwin)
        twin.status = status
        expected = await refusal(verifier, Network.BLUESKY, twin.url, SECRETS[Network.BLUESKY])
    assert expected.endswith(f"The account is {status}")


async def test_address_that_is_refused_is_not_called(verifier: AccountVerifier) -> None:
    expected = await refusal(verifier, Network.MASTODON, "http://10.0.0.5", "token")
    assert "not a public address" in expected


async def test_webhook_is_asked_nothing(verifier: AccountVerifier) -> None:
    assert await verifier.verify(Network.WEBHOOK, "http://127.0.0.1:1/hook", "secret") == NOT_VERIFIED
