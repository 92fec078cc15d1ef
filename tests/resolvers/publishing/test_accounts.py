"""Connecting and disconnecting accounts: validation, access rights, and credentials that are never returned."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from ipaddress import ip_network
from typing import Any

import pytest

from jobs.providers.egress import Egress
from jobs.providers.social.http import HttpClient
from jobs.providers.social.mastodon import Mastodon
from jobs.providers.social.verification import AccountVerifier
from jobs.providers.social.webhook import WebhookNetwork
from resolvers.context import Context
from storage.identity.roles import Role
from storage.publishing.attention import HoldForAttention
from storage.publishing.credentials.refusals import CredentialRefusal, store_refusal
from storage.publishing.networks import Network
from storage.publishing.records import PublicationState
from storage.stores import open_stores
from tests.resolvers.people import Person, SignIn, until_outbox_is_empty
from tests.twins.mastodon import MastodonTwin
from tests.twins.twin import NetworkFault, running_twin

pytestmark = pytest.mark.anyio

CONNECT = """
mutation ($input: ConnectAccountInput!) {
  done: connectAccount(input: $input) { id network name handle verifiedAt connectedAt disconnectedAt }
}
"""
REPLACE = """
mutation ($input: ReplaceAccountCredentialsInput!) {
  done: replaceAccountCredentials(input: $input) { id handle verifiedAt }
}
"""
DISCONNECT = "mutation ($id: ID!) { done: disconnectAccount(id: $id) { id disconnectedAt } }"
SCHEDULE = "mutation ($input: SchedulePostInput!) { done: schedulePost(input: $input) { id } }"
LIST = "{ connectedAccounts { id name } }"
SECRET = "whsec_c2VjcmV0LW9mLXRoZS13ZWJob29r"


@pytest.fixture
async def ann(sign_in: SignIn) -> Person:
    return await sign_in("ann", roles=[Role.OPERATOR])


async def connect(person: Person, **more: Any) -> Any:
    input_ = {
        "network": "WEBHOOK",
        "name": "Hook",
        "baseUrl": "https://example.org/hook",
        "credentials": SECRET,
        **more,
    }
    return await person.do(CONNECT, input=input_)


async def test_account_is_listed_until_disconnected(ann: Person) -> None:
    account = await connect(ann)
    assert account["disconnectedAt"] is None
    assert (await ann.run(LIST))["connectedAccounts"] == [{"id": account["id"], "name": "Hook"}]
    for _ in range(2):
        assert (await ann.do(DISCONNECT, id=account["id"]))["disconnectedAt"] is not None
    assert (await ann.run(LIST))["connectedAccounts"] == []


async def test_credentials_are_encrypted_then_deleted(ann: Person) -> None:
    account = await connect(ann, idempotencyKey="k")
    documents = []
    for name in await ann.stores.mongo.database.list_collection_names():
        documents += [repr(document) async for document in ann.stores.mongo[name].find()]
    assert SECRET not in "".join(documents)
    record = await ann.stores.accounts.get(ann.user.organization_id, account["id"])
    assert await ann.stores.accounts.decrypt_credentials(record) == SECRET
    assert SECRET not in repr(record)
    await ann.do(DISCONNECT, id=account["id"])
    document = await ann.stores.mongo["accounts"].find_one({"_id": account["id"]})
    assert document is not None
    assert "credentials" not in document


async def test_repeated_key_connects_once(ann: Person) -> None:
    first, second = await connect(ann, idempotencyKey="k"), await connect(ann, idempotencyKey="k")
    assert first["id"] == second["id"]
    input_ = {"network": "WEBHOOK", "name": "Hook", "baseUrl": "https://example.org/hook", "idempotencyKey": "k"}
    assert await ann.code(CONNECT, input={**input_, "credentials": "another"}) == "CONFLICT"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"baseUrl": None}, "baseUrl"),
        ({"baseUrl": "nowhere"}, "baseUrl"),
        ({"name": ""}, "name"),
        ({"credentials": ""}, "credentials"),
        ({"credentials": "whsec_!"}, "credentials"),
        ({"network": "MASTODON", "baseUrl": None, "credentials": "t"}, "baseUrl"),
        ({"network": "MASTODON", "credentials": "a b"}, "credentials"),
        ({"network": "BLUESKY", "credentials": "handle"}, "credentials"),
        ({"network": "INSTAGRAM", "credentials": ":token"}, "credentials"),
        ({"network": "SANDBOX", "baseUrl": None, "credentials": "maybe"}, "credentials"),
        ({"network": "SANDBOX", "credentials": "ok"}, "baseUrl"),
    ],
)
async def test_refusal_of_invalid_account_shows_no_credentials(ann: Person, change: dict[str, Any], field: str) -> None:
    input_ = {"network": "WEBHOOK", "name": "Hook", "baseUrl": "https://example.org/hook", "credentials": SECRET}
    answer = await ann.execute(CONNECT, input=input_ | change)
    (error,) = answer["errors"]
    assert (error["extensions"]["code"], error["extensions"]["field"]) == ("BAD_USER_INPUT", field)
    assert SECRET not in json.dumps(answer)


@dataclass
class GuardedPerson(Person):
    """A person of a server whose address guard permits public addresses only."""

    egress: Egress = field(default_factory=Egress)

    @property
    def context(self) -> Context:
        return replace(super().context, egress_refusal=self.egress.refusal_of)


@pytest.mark.parametrize("network", ["WEBHOOK", "MASTODON", "BLUESKY"])
@pytest.mark.parametrize(
    "url",
    [
        *("http://127.0.0.1/hook", "http://10.0.0.5/hook", "https://[::1]/", "http://169.254.169.254/latest"),
        *("http://localhost/hook", "http://2130706433/", "http://0x7f.1/", "http://[::ffff:10.0.0.1]/"),
        *("https://93.184.215.14:8443/", "http://100.64.0.1/", "http://0/"),
    ],
)
async def test_private_base_url_is_refused_at_connection(ann: Person, network: str, url: str) -> None:
    person = GuardedPerson(ann.stores, ann.user, ann.roles)
    credentials = {"WEBHOOK": SECRET, "MASTODON": "token", "BLUESKY": "ann:secret"}[network]
    input_ = {"network": network, "name": "Hook", "baseUrl": url, "credentials": credentials}
    refusal = await person.fails(CONNECT, input=input_)
    assert (refusal["code"], refusal["field"]) == ("BAD_USER_INPUT", "baseUrl")
    assert (await person.run(LIST))["connectedAccounts"] == []
    public = await person.do(CONNECT, input={**input_, "baseUrl": "https://93.184.215.14/hook"})
    assert public["disconnectedAt"] is None


@pytest.mark.parametrize(
    ("network", "credentials"),
    [("MASTODON", "token"), ("BLUESKY", "ann.bsky.social:abcd-efgh"), ("X", "token"), ("INSTAGRAM", "1784:token")]
    + [("SANDBOX", credential) for credential in ("ok", "fail", "lose", "slow")],
)
async def test_every_network_can_be_connected(ann: Person, network: str, credentials: str) -> None:
    base_url = "https://mastodon.example/" if network == "MASTODON" else None
    account = await connect(ann, network=network, credentials=credentials, baseUrl=base_url)
    record = await ann.stores.accounts.get(ann.user.organization_id, account["id"])
    assert record.base_url == (base_url and base_url.rstrip("/"))


async def test_connecting_without_encryption_keys_is_unavailable(
    mongodb_uri: str, redis_url: str, shared_database: str, ann: Person
) -> None:
    async with open_stores(mongodb_uri, redis_url, shared_database) as stores:
        person_without_keys = Person(stores, ann.user, ann.roles)
        input_ = {"network": "SANDBOX", "name": "x", "credentials": "ok"}
        assert await person_without_keys.code(CONNECT, input=input_) == "UNAVAILABLE"


async def test_disconnecting_fails_waiting_publications(ann: Person) -> None:
    account = await connect(ann)
    input_ = {"text": "x", "toAccountIds": [account["id"]], "dueAt": "2030-01-01T00:00:00Z"}
    post = await ann.do(SCHEDULE, input=input_)
    await ann.do(DISCONNECT, id=account["id"])
    (publication,) = await ann.stores.scheduled_posts.publications_of(post["id"])
    assert publication.state is PublicationState.FAILED
    assert await ann.code(SCHEDULE, input=input_) == "CONFLICT"


@dataclass
class VerifiedPerson(Person):
    """A person of a server that verifies credentials with networks."""

    verifier: AccountVerifier | None = None

    @property
    def context(self) -> Context:
        assert self.verifier is not None
        return replace(super().context, verify_account=self.verifier.verify)


@pytest.fixture
async def verifier() -> AsyncIterator[AccountVerifier]:
    egress = Egress((ip_network("127.0.0.0/8"),))
    http = HttpClient(egress, call_timeout_s=60)
    yield AccountVerifier({Network.MASTODON: Mastodon(http), Network.WEBHOOK: WebhookNetwork(http)}, timeout_s=60)
    await egress.aclose()


@pytest.fixture
def verified_ann(ann: Person, verifier: AccountVerifier) -> VerifiedPerson:
    """Ann on a server that verifies credentials."""
    return VerifiedPerson(ann.stores, ann.user, ann.roles, verifier=verifier)


@pytest.fixture
async def mastodon() -> AsyncIterator[MastodonTwin]:
    async with running_twin(MastodonTwin()) as twin:
        assert isinstance(twin, MastodonTwin)
        twin.token = "first-token"
        yield twin


def account_input(twin: MastodonTwin, credentials: str = "first-token", **more: Any) -> dict[str, Any]:
    return {"network": "MASTODON", "name": "Harbour", "baseUrl": twin.url, "credentials": credentials, **more}


async def stored_secret(person: Person, account_id: str) -> str:
    record = await person.stores.accounts.get(person.context.actor.organization_id, account_id)
    return await person.stores.accounts.decrypt_credentials(record)


async def test_accepted_account_shows_its_name_at_the_network(verified_ann: Person, mastodon: MastodonTwin) -> None:
    account = await verified_ann.do(CONNECT, input=account_input(mastodon))
    assert (account["handle"], account["verifiedAt"]) == ("@harbour@127.0.0.1", account["connectedAt"])
    hook = await connect(verified_ann)
    assert (hook["handle"], hook["verifiedAt"]) == (None, None)


async def test_refused_credentials_are_not_stored(verified_ann: Person, mastodon: MastodonTwin) -> None:
    refusal = await verified_ann.fails(CONNECT, input=account_input(mastodon, "abc", idempotencyKey="k"))
    assert (refusal["code"], refusal["field"]) == ("BAD_USER_INPUT", "credentials")
    assert refusal["reason"] == "The access token is invalid"
    assert (await verified_ann.run(LIST))["connectedAccounts"] == []
    account = await verified_ann.do(CONNECT, input=account_input(mastodon, idempotencyKey="k"))
    assert account["handle"] is not None, "A refused attempt stores no key."


async def test_unanswered_verification_stores_nothing(verified_ann: Person, mastodon: MastodonTwin) -> None:
    mastodon.verification_faults.append(NetworkFault.FAIL_BEFORE)
    refusal = await verified_ann.fails(CONNECT, input=account_input(mastodon, idempotencyKey="k"))
    assert refusal["code"] == "UNAVAILABLE"
    assert refusal["retryAfterMs"] > 0
    assert (await verified_ann.run(LIST))["connectedAccounts"] == []
    assert await verified_ann.code(CONNECT, input=account_input(mastodon, idempotencyKey="k")) is None


async def test_repeated_key_asks_the_network_once(verified_ann: Person, mastodon: MastodonTwin) -> None:
    first = await verified_ann.do(CONNECT, input=account_input(mastodon, idempotencyKey="k"))
    mastodon.token = "second-token"
    assert await verified_ann.do(CONNECT, input=account_input(mastodon, idempotencyKey="k")) == first
    change = {"accountId": first["id"], "credentials": "second-token", "idempotencyKey": "k"}
    replaced = await verified_ann.do(REPLACE, input=change)
    mastodon.token = "third-token"
    assert await verified_ann.do(REPLACE, input=change) == replaced
    other = await verified_ann.code(REPLACE, input={**change, "credentials": "third-token"})
    assert other == "CONFLICT"


async def test_replaced_credentials_are_of_the_same_account(verified_ann: Person, mastodon: MastodonTwin) -> None:
    account = await verified_ann.do(CONNECT, input=account_input(mastodon))
    mastodon.token, mastodon.user_id, mastodon.username = "second-token", "9", "lighthouse"
    change = {"accountId": account["id"], "credentials": "second-token"}
    refusal = await verified_ann.fails(REPLACE, input=change)
    assert (refusal["code"], refusal["field"]) == ("BAD_USER_INPUT", "credentials")
    assert refusal["expected"] == "credentials of @harbour@127.0.0.1, not of @lighthouse@127.0.0.1"
    assert await stored_secret(verified_ann, account["id"]) == "first-token"
    mastodon.user_id = MastodonTwin.user_id
    replaced = await verified_ann.do(REPLACE, input=change)
    assert (replaced["id"], replaced["handle"]) == (account["id"], "@lighthouse@127.0.0.1")
    assert replaced["verifiedAt"] > account["verifiedAt"]
    assert await stored_secret(verified_ann, account["id"]) == "second-token"


async def test_refused_replacement_keeps_credentials(verified_ann: Person, mastodon: MastodonTwin) -> None:
    account = await verified_ann.do(CONNECT, input=account_input(mastodon))
    for credentials, code in (("wrong-token", "BAD_USER_INPUT"), ("", "BAD_USER_INPUT"), ("a b", "BAD_USER_INPUT")):
        change = {"accountId": account["id"], "credentials": credentials}
        answer = await verified_ann.execute(REPLACE, input=change)
        (error,) = answer["errors"]
        assert (error["extensions"]["code"], error["extensions"]["field"]) == (code, "credentials")
        assert "wrong-token" not in json.dumps(answer)
    mastodon.verification_faults.append(NetworkFault.BUSY)
    change = {"accountId": account["id"], "credentials": "first-token"}
    assert await verified_ann.code(REPLACE, input=change) == "UNAVAILABLE"
    assert await stored_secret(verified_ann, account["id"]) == "first-token"
    await verified_ann.do(DISCONNECT, id=account["id"])
    assert await verified_ann.code(REPLACE, input=change) == "CONFLICT"
    assert await verified_ann.code(REPLACE, input={**change, "accountId": "unknown"}) == "NOT_FOUND"


async def test_replacement_releases_posts_that_need_attention(verified_ann: Person, mastodon: MastodonTwin) -> None:
    account, stores = await verified_ann.do(CONNECT, input=account_input(mastodon)), verified_ann.stores
    input_ = {"text": "x", "toAccountIds": [account["id"]], "dueAt": "2030-01-01T00:00:00Z"}
    post = await verified_ann.do(SCHEDULE, input=input_)
    (waiting,) = await stores.scheduled_posts.publications_of(post["id"])
    (stored,) = await stores.mongo.find("accounts", {"_id": account["id"]})
    refusal = HoldForAttention(waiting, "UNAUTHORIZED", "The access token was revoked", stored["credentials"]["nonce"])
    assert (await stores.scheduled_posts.apply(refusal)).state is PublicationState.NEEDS_ATTENTION
    mastodon.token = "second-token"
    await verified_ann.do(REPLACE, input={"accountId": account["id"], "credentials": "second-token"})
    (released,) = await stores.scheduled_posts.publications_of(post["id"])
    assert (released.state, released.error) == (PublicationState.SCHEDULED, None)


@pytest.mark.parametrize(("role", "code"), [("ADMIN", None), ("OPERATOR", None), ("MEMBER", "FORBIDDEN")])
async def test_admins_and_operators_manage_accounts(ann: Person, sign_in: SignIn, role: str, code: str | None) -> None:
    person, account = await sign_in("cleo", roles=[Role[role]]), await connect(ann)
    hook = {"network": "WEBHOOK", "name": "Hook", "baseUrl": "https://example.org/hook", "credentials": SECRET}
    assert await person.code(CONNECT, input=hook) == code
    assert await person.code(REPLACE, input={"accountId": account["id"], "credentials": "another"}) == code
    assert await person.code(LIST) == code
    assert await person.code(DISCONNECT, id=account["id"]) == code


NOTIFICATIONS = '{ notifications(latest: "now") { items { kind account { id name } } } }'


async def test_owner_is_told_of_refused_credentials(sign_in: SignIn, ann: Person) -> None:
    """The account is shown while the person is an OPERATOR."""
    account = await connect(ann)
    stores = ann.stores
    (stored,) = await stores.mongo.find("accounts", {"_id": account["id"]})
    refusal = CredentialRefusal("UNAUTHORIZED", "The token was revoked.", "claim")
    assert await store_refusal(stores.mongo, {"_id": account["id"]}, refusal, [])
    assert stored["connected_by"] == "ann"
    stores.outbox.nudge(f"user:{stored['org']}/ann")
    await until_outbox_is_empty(stores)
    (notification,) = (await ann.run(NOTIFICATIONS))["notifications"]["items"]
    shown = {"id": account["id"], "name": "Hook"}
    assert notification == {"kind": "ACCOUNT_NEEDS_ATTENTION", "account": shown}
    member = await sign_in("ann", organization=stored["org"])
    (notification,) = (await member.run(NOTIFICATIONS))["notifications"]["items"]
    assert notification["account"] is None
