"""Connecting accounts by OAuth, from the first address to the stored account, at the twins of three networks."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

import pytest

from jobs.providers.egress import Egress
from jobs.providers.social.http import HttpClient
from jobs.providers.social.instagram import Instagram
from jobs.providers.social.mastodon import Mastodon
from jobs.providers.social.oauth import instagram, x
from jobs.providers.social.oauth.authorization import OAuthApp
from jobs.providers.social.oauth.connector import AccountConnector, OtherAccount
from jobs.providers.social.oauth.mastodon import MastodonOAuth
from jobs.providers.social.verification import AccountVerifier
from jobs.providers.social.x import X
from storage.errors import BadUserInput, Conflict, CredentialsNotAccepted, Forbidden, Unavailable
from storage.identity.audit import Actor, command_line_actor
from storage.identity.roles import Role
from storage.publishing.attention import HoldForAttention
from storage.publishing.credentials.connections import ConnectionNotPending, ConnectionOwner, ConnectionRequest
from storage.publishing.networks import Network
from storage.publishing.records import ConnectedAccount, PublicationState
from storage.stores import Stores
from tests.jobs.providers.social.oauth.authorized import REDIRECT_URI, answer_of
from tests.storage.publishing.scenario import PublishingScenario, account_target, create_publishing_scenario
from tests.twins.instagram import InstagramTwin
from tests.twins.mastodon import MastodonTwin
from tests.twins.twin import NetworkFault, running_twin
from tests.twins.x import XTwin

pytestmark = pytest.mark.anyio

NETWORKS = [Network.MASTODON, Network.X, Network.INSTAGRAM]
Twin = MastodonTwin | XTwin | InstagramTwin


@dataclass
class Connecting:
    """A person who connects accounts, and the network's twin."""

    scenario: PublishingScenario
    connector: AccountConnector
    network: Network
    twin: Twin

    @property
    def owner(self) -> ConnectionOwner:
        return ConnectionOwner(self.scenario.ann.key, "session")

    @property
    def actor(self) -> Actor:
        return Actor(*self.scenario.ann.key)

    @property
    def request(self) -> ConnectionRequest:
        return ConnectionRequest(self.network, "Harbour", self.twin.url if self.network is Network.MASTODON else None)

    async def allow(self, request: ConnectionRequest | None = None) -> tuple[str, str]:
        """Begins a connection, and lets the person allow access. Returns the state and the code."""
        begun = await self.connector.begin(self.owner, request or self.request)
        answer = answer_of(self.twin.authorization.allow(begun.url))
        return answer["state"], answer["code"]

    async def finish(self, state: str, code: str) -> ConnectedAccount:
        return await self.connector.finish(self.owner, self.actor, state, code)

    async def connect(self) -> ConnectedAccount:
        return await self.finish(*await self.allow())

    async def reconnect(self, account: ConnectedAccount) -> ConnectedAccount:
        return await self.finish(*await self.allow(replace(self.request, account_id=account.id)))

    async def secret(self, account: ConnectedAccount) -> str:
        return await self.scenario.stores.accounts.decrypt_credentials(account)

    async def accounts(self) -> list[ConnectedAccount]:
        return await self.scenario.stores.accounts.list_connected(self.scenario.organization_id)


def twin_of(network: Network) -> Twin:
    if network is Network.MASTODON:
        return MastodonTwin()
    twin: Twin
    if network is Network.X:
        twin = XTwin()
        twin.add_app(REDIRECT_URI, " ".join(x.SCOPES))
    else:
        twin = InstagramTwin()
        twin.add_app(REDIRECT_URI, ",".join(instagram.SCOPES))
    return twin


@pytest.fixture(params=NETWORKS, ids=lambda network: network.value)
async def connecting(
    request: pytest.FixtureRequest, shared_stores: Stores, http: HttpClient
) -> AsyncIterator[Connecting]:
    async with running_twin(twin_of(request.param)) as twin:
        assert isinstance(twin, Twin)
        networks = {
            Network.MASTODON: MastodonOAuth(http),
            Network.X: x.XOAuth(http, OAuthApp(XTwin.client_id, XTwin.client_secret), twin.url),
            Network.INSTAGRAM: instagram.InstagramOAuth(
                http, OAuthApp(InstagramTwin.client_id, InstagramTwin.client_secret), twin.url, twin.url
            ),
        }
        clients = {Network.MASTODON: Mastodon(http), Network.X: X(http), Network.INSTAGRAM: Instagram(http)}
        connector = AccountConnector(shared_stores, networks, AccountVerifier(clients, timeout_s=60), REDIRECT_URI)
        yield Connecting(await create_publishing_scenario(shared_stores), connector, request.param, twin)


async def test_allowed_account_is_connected(connecting: Connecting) -> None:
    account = await connecting.connect()
    assert (account.network, account.name) == (connecting.network, "Harbour")
    assert (account.handle or "").startswith("@harbour")
    assert account.verified_at is not None
    assert (await connecting.secret(account)).rpartition(":")[2] == connecting.twin.token
    is_ending = connecting.network is not Network.MASTODON
    assert (account.credentials_expire_at is not None, account.renews_credentials) == (is_ending, is_ending)
    (row,) = await connecting.scenario.stores.mongo.find("accounts", {"_id": account.id})
    assert row["connected_by"] == connecting.scenario.ann.id


async def test_answer_is_used_once(connecting: Connecting) -> None:
    state, code = await connecting.allow()
    results = await asyncio.gather(*[connecting.finish(state, code) for _ in range(4)], return_exceptions=True)
    assert sum(isinstance(each, ConnectedAccount) for each in results) == 1
    assert sum(isinstance(each, ConnectionNotPending) for each in results) == 3
    assert len(await connecting.accounts()) == 1


async def test_answer_to_another_session_connects_nothing(connecting: Connecting) -> None:
    """An attacker sends a victim the answer for the attacker's own account."""
    state, code = await connecting.allow()
    victim = replace(connecting.owner, session_id="victim")
    with pytest.raises(ConnectionNotPending) as refused:
        await connecting.connector.finish(victim, connecting.actor, state, code)
    assert refused.value.is_foreign
    assert await connecting.accounts() == []


async def test_forged_code_connects_nothing(connecting: Connecting) -> None:
    state, _ = await connecting.allow()
    with pytest.raises(CredentialsNotAccepted) as refused:
        await connecting.finish(state, "forged-code-of-nobody")
    assert "forged-code-of-nobody" not in str(refused.value)
    assert await connecting.accounts() == []


async def test_failing_verification_stores_nothing(connecting: Connecting) -> None:
    state, code = await connecting.allow()
    connecting.twin.verification_faults.extend([NetworkFault.FAIL_BEFORE] * 2)
    with pytest.raises(Unavailable):
        await connecting.finish(state, code)
    assert await connecting.accounts() == []


async def test_refused_connection_cannot_be_finished(connecting: Connecting) -> None:
    begun = await connecting.connector.begin(connecting.owner, connecting.request)
    denied = answer_of(connecting.twin.authorization.deny(begun.url))
    assert denied["error"] == "access_denied"
    await connecting.connector.refuse(connecting.owner, denied["state"])
    with pytest.raises(ConnectionNotPending):
        await connecting.finish(denied["state"], "code-0")


async def test_reconnected_account_releases_its_posts(connecting: Connecting) -> None:
    account, scenario = await connecting.connect(), connecting.scenario
    post = await scenario.schedule(account_target(account), in_s=600)
    (waiting,) = await scenario.publications(post)
    nonce = await scenario.credentials_nonce(waiting)
    await scenario.stores.scheduled_posts.apply(HoldForAttention(waiting, "UNAUTHORIZED", "revoked", nonce))
    assert (await scenario.publication(post)).state is PublicationState.NEEDS_ATTENTION
    before = await connecting.secret(account)
    again = await connecting.reconnect(account)
    assert (again.id, again.network_id, again.attention) == (account.id, account.network_id, None)
    assert await connecting.secret(account) != before
    assert (await scenario.publication(post)).state is PublicationState.SCHEDULED
    assert len(await connecting.accounts()) == 1


async def test_other_account_replaces_nothing(connecting: Connecting) -> None:
    account = await connecting.connect()
    before, request = await connecting.secret(account), replace(connecting.request, account_id=account.id)
    state, code = await connecting.allow(request)
    twin = connecting.twin
    if isinstance(twin, InstagramTwin):
        twin.user = "9"
    else:
        twin.user_id = "9"
    twin.username = "lighthouse"
    with pytest.raises(OtherAccount, match="Access was allowed to @lighthouse"):
        await connecting.finish(state, code)
    assert await connecting.secret(account) == before


async def test_account_disconnected_meanwhile_is_a_conflict(connecting: Connecting) -> None:
    account = await connecting.connect()
    state, code = await connecting.allow(replace(connecting.request, account_id=account.id))
    await connecting.scenario.stores.accounts.disconnect(account)
    with pytest.raises(Conflict):
        await connecting.finish(state, code)


async def test_person_who_lost_the_role_connects_nothing(connecting: Connecting) -> None:
    state, code = await connecting.allow()
    scenario = connecting.scenario
    administrator = command_line_actor(scenario.organization_id)
    await scenario.stores.user_administration.set_roles(administrator, scenario.ann.id, {Role.MEMBER})
    with pytest.raises(Forbidden):
        await connecting.finish(state, code)
    assert await connecting.accounts() == []


async def test_network_without_an_app_is_a_conflict(connecting: Connecting) -> None:
    state, code = await connecting.allow()
    without = replace(connecting.connector, networks={})
    with pytest.raises(Conflict):
        await without.begin(connecting.owner, connecting.request)
    with pytest.raises(Conflict):
        await without.finish(connecting.owner, connecting.actor, state, code)


@pytest.mark.parametrize("connecting", [Network.MASTODON], indirect=True)
async def test_server_without_apps_is_refused_by_field(connecting: Connecting, egress: Egress) -> None:
    assert isinstance(connecting.twin, MastodonTwin)
    connecting.twin.registers_apps = False
    with pytest.raises(BadUserInput) as refused:
        await connecting.connector.begin(connecting.owner, connecting.request)
    assert refused.value.details["field"] == "baseUrl"
    nowhere = replace(connecting.request, base_url="http://127.0.0.1:1")
    with pytest.raises(Unavailable):
        await connecting.connector.begin(connecting.owner, nowhere)
