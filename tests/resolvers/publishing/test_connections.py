"""Beginning to connect accounts in a browser: rights, sessions, networks and addresses."""

from dataclasses import dataclass, field, replace

import pytest

from jobs.providers.egress import Egress
from resolvers.context import Context
from storage.identity.roles import Role
from storage.publishing.credentials.connections import ConnectionOwner, ConnectionRequest
from storage.publishing.networks import Network
from tests.resolvers.people import Person, RecordedConnections, SignIn

pytestmark = pytest.mark.anyio

CONNECT = """
mutation ($input: ConnectAccountInBrowserInput!) { done: connectAccountInBrowser(input: $input) { url expiresAt } }
"""
AGAIN = "mutation ($id: ID!) { done: reconnectAccountInBrowser(accountId: $id) { url } }"
PASTE = "mutation ($input: ConnectAccountInput!) { done: connectAccount(input: $input) { id } }"
DISCONNECT = "mutation ($id: ID!) { done: disconnectAccount(id: $id) { id } }"
NETWORKS = "{ done: browserNetworks }"
ADDRESS = "https://93.184.215.14"


@dataclass
class GuardedPerson(Person):
    """A person of a server whose address guard permits public addresses only. It has apps at two networks."""

    connections: RecordedConnections = field(default_factory=lambda: RecordedConnections((Network.MASTODON, Network.X)))

    @property
    def context(self) -> Context:
        return replace(super().context, egress_refusal=Egress(()).refusal_of)


@pytest.fixture
async def ann(sign_in: SignIn) -> GuardedPerson:
    ann = await sign_in("ann", roles=[Role.OPERATOR])
    return GuardedPerson(ann.stores, ann.user, ann.roles, session_id="session")


async def test_connection_begins_for_the_session(ann: GuardedPerson) -> None:
    done = await ann.do(CONNECT, input={"network": "MASTODON", "name": "Harbour", "baseUrl": f"{ADDRESS}/"})
    assert done["url"] == "https://network.example/allow"
    ((owner, request),) = ann.connections.begun
    assert owner == ConnectionOwner(ann.context.viewer.key, "session")  # type: ignore[union-attr]
    assert request == ConnectionRequest(Network.MASTODON, "Harbour", ADDRESS)
    await ann.do(CONNECT, input={"network": "X", "name": "Harbour"})
    assert ann.connections.begun[1][1] == ConnectionRequest(Network.X, "Harbour", None)


async def test_networks_with_an_app_are_listed(ann: GuardedPerson) -> None:
    assert (await ann.run(NETWORKS))["done"] == ["MASTODON", "X"]


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"name": ""}, "name"),
        ({"baseUrl": None}, "baseUrl"),
        ({"baseUrl": "nowhere"}, "baseUrl"),
        ({"baseUrl": "http://127.0.0.1"}, "baseUrl"),
        ({"baseUrl": "http://169.254.169.254/latest"}, "baseUrl"),
        ({"network": "X"}, "baseUrl"),
    ],
)
async def test_invalid_account_is_refused_by_field(ann: GuardedPerson, change: dict[str, str], name: str) -> None:
    refusal = await ann.fails(CONNECT, input={"network": "MASTODON", "name": "Harbour", "baseUrl": ADDRESS} | change)
    assert (refusal["code"], refusal["field"]) == ("BAD_USER_INPUT", name)
    assert ann.connections.begun == []


@pytest.mark.parametrize("network", ["INSTAGRAM", "BLUESKY", "WEBHOOK", "SANDBOX"])
async def test_network_without_an_app_is_a_conflict(ann: GuardedPerson, network: str) -> None:
    assert await ann.code(CONNECT, input={"network": network, "name": "Harbour"}) == "CONFLICT"


async def test_connection_of_a_token_begins_without_a_session(ann: GuardedPerson) -> None:
    await replace(ann, session_id=None).do(CONNECT, input={"network": "X", "name": "Harbour"})
    assert ann.connections.begun[0][0].session_id is None


async def test_connected_account_is_connected_again(ann: GuardedPerson) -> None:
    pasted = {"network": "MASTODON", "name": "Harbour", "baseUrl": ADDRESS, "credentials": "token"}
    account = await ann.do(PASTE, input=pasted)
    await ann.do(AGAIN, id=account["id"])
    assert ann.connections.begun[0][1] == ConnectionRequest(Network.MASTODON, "Harbour", ADDRESS, account["id"])
    await ann.do(DISCONNECT, id=account["id"])
    assert await ann.code(AGAIN, id=account["id"]) == "CONFLICT"
    assert await ann.code(AGAIN, id="unknown") == "NOT_FOUND"


async def test_secret_of_the_app_goes_to_no_other_address(ann: GuardedPerson) -> None:
    account = await ann.do(PASTE, input={"network": "X", "name": "x", "baseUrl": ADDRESS, "credentials": "token"})
    assert await ann.code(AGAIN, id=account["id"]) == "CONFLICT"
    assert ann.connections.begun == []


@pytest.mark.parametrize(("role", "code"), [("ADMIN", None), ("OPERATOR", None), ("MEMBER", "FORBIDDEN")])
async def test_admins_and_operators_connect_accounts(
    ann: GuardedPerson, sign_in: SignIn, role: str, code: str | None
) -> None:
    signed_in = await sign_in("cleo", roles=[Role[role]])
    person = GuardedPerson(signed_in.stores, signed_in.user, signed_in.roles)
    assert await person.code(CONNECT, input={"network": "X", "name": "Harbour"}) == code
    assert await person.code(NETWORKS) == code
