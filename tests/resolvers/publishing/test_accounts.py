"""Connecting and disconnecting accounts: validation, access rights, and credentials that are never returned."""

import json
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from jobs.providers.egress import Egress
from resolvers.context import Context
from storage.identity.roles import Role
from storage.publishing.records import PublicationState
from storage.stores import open_stores
from tests.resolvers.people import Person, SignIn

pytestmark = pytest.mark.anyio

CONNECT = """
mutation ($input: ConnectAccountInput!) {
  done: connectAccount(input: $input) { id network name connectedAt disconnectedAt }
}
"""
DISCONNECT = "mutation ($id: ID!) { done: disconnectAccount(id: $id) { id disconnectedAt } }"
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
    schedule = "mutation ($input: SchedulePostInput!) { done: schedulePost(input: $input) { id } }"
    input_ = {"text": "x", "toAccountIds": [account["id"]], "dueAt": "2030-01-01T00:00:00Z"}
    post = await ann.do(schedule, input=input_)
    await ann.do(DISCONNECT, id=account["id"])
    (publication,) = await ann.stores.scheduled_posts.publications_of(post["id"])
    assert publication.state is PublicationState.FAILED
    assert await ann.code(schedule, input=input_) == "CONFLICT"
