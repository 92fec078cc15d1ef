"""Connected accounts: visible in their organization only, with encrypted credentials until they are disconnected."""

import asyncio

import pytest

from storage.errors import NotFound
from storage.idempotency import idempotency_key
from storage.identity.audit import Actor, AuditFilter
from storage.identity.roles import Role
from storage.mongo import Document
from storage.publishing.accounts import AccountToConnect
from storage.publishing.networks import Network
from storage.publishing.records import ConnectedAccount
from storage.secrets.credentials import CredentialsLost
from tests.storage.in_memory_stream import REMOVED, differences
from tests.storage.publishing.scenario import PublishingScenario

pytestmark = pytest.mark.anyio


async def test_account_is_found_in_its_organization_only(scenario: PublishingScenario) -> None:
    account = await scenario.connect_account()
    assert await scenario.stores.accounts.find(scenario.organization_id, account.id) == account
    assert await scenario.stores.accounts.list_connected(scenario.organization_id) == [account]
    assert await scenario.stores.accounts.list_connected("elsewhere") == []
    with pytest.raises(NotFound):
        await scenario.stores.accounts.get("elsewhere", account.id)
    assert await scenario.stores.accounts.find(scenario.organization_id, "unknown") is None


async def test_disconnected_account_has_no_credentials(scenario: PublishingScenario) -> None:
    account = await scenario.connect_account(secret="ok")
    assert await scenario.stores.accounts.decrypt_credentials(account) == "ok"
    disconnected = await scenario.stores.accounts.disconnect(account)
    disconnected_again = await scenario.stores.accounts.disconnect(account)
    assert disconnected.disconnected_at == disconnected_again.disconnected_at is not None
    with pytest.raises(CredentialsLost):
        await scenario.stores.accounts.decrypt_credentials(account)
    assert account.id in [each.id for each in await scenario.stores.accounts.list_disconnected(100)]
    await scenario.stores.accounts.mark_cleared(account)
    assert account.id not in [each.id for each in await scenario.stores.accounts.list_disconnected(100)]


async def test_credentials_of_other_account_do_not_decrypt(scenario: PublishingScenario) -> None:
    one, other = await scenario.connect_account(secret="ok"), await scenario.connect_account(secret="lose")
    accounts = scenario.stores.mongo["accounts"]
    row = await accounts.find_one({"_id": one.id})
    assert row is not None
    await accounts.update_one({"_id": other.id}, {"$set": {"credentials": row["credentials"]}})
    with pytest.raises(CredentialsLost):
        await scenario.stores.accounts.decrypt_credentials(other)


async def stored_accounts(scenario: PublishingScenario, *accounts: ConnectedAccount) -> list[Document]:
    rows = [await scenario.stores.mongo["accounts"].find_one({"_id": each.id}) for each in accounts]
    return [row for row in rows if row is not None]


async def test_change_of_account_leaves_other_accounts_unchanged(scenario: PublishingScenario) -> None:
    accounts, store = [await scenario.connect_account() for _ in range(3)], scenario.stores.accounts
    untouched = await stored_accounts(scenario, accounts[0], accounts[2])
    for change in (store.disconnect, store.mark_cleared):
        await change(accounts[1])
        assert await stored_accounts(scenario, accounts[0], accounts[2]) == untouched
    assert await store.list_connected(scenario.organization_id) == [accounts[0], accounts[2]]
    for account in (accounts[0], accounts[2]):
        await store.disconnect(account)
    await store.mark_cleared(accounts[2])
    disconnected = [each.id for each in await store.list_disconnected(100)]
    assert [each.id in disconnected for each in accounts] == [True, False, False]


async def test_erased_account_has_no_name_address_or_secret(scenario: PublishingScenario) -> None:
    other, connected, disconnected = [
        await scenario.connect_account(Network.MASTODON, "token", "https://example.org") for _ in range(3)
    ]
    store = scenario.stores.accounts
    await store.disconnect(disconnected)
    await store.mark_cleared(disconnected)
    before = await stored_accounts(scenario, connected, disconnected, other)
    since = await scenario.now()
    for account in (connected, disconnected):
        await store.erase(account.id)
    erased = await stored_accounts(scenario, connected, disconnected, other)
    changed = [differences(*each) for each in zip(before, erased, strict=True)]
    assert since <= changed[0].pop("disconnected_at") <= await scenario.now()
    emptied = {"name": "Deleted account", "base_url": None, "failing": True}
    assert changed == [emptied | {"credentials": REMOVED}, emptied, {}]
    await store.mark_cleared(connected)
    await store.erase(connected.id)
    assert differences(erased[0], *await stored_accounts(scenario, connected)) == {"failing": REMOVED}


async def test_account_stores_who_connected_it(scenario: PublishingScenario) -> None:
    for connected_by in ("ann", None):
        new = AccountToConnect(scenario.organization_id, Network.SANDBOX, "ours", None, connected_by)
        (row,) = await stored_accounts(scenario, await scenario.stores.accounts.connect(new, "ok", None))
        assert row.get("connected_by", "absent") == (connected_by or "absent")


async def test_repeated_key_connects_once(scenario: PublishingScenario) -> None:
    new = AccountToConnect(scenario.organization_id, Network.SANDBOX, "ours", None)
    key = idempotency_key(scenario.organization_id, "ann", "connectAccount", "k", {"a": 1})
    connect = scenario.stores.accounts.connect
    accounts = await asyncio.gather(*(connect(new, "ok", key) for _ in range(3)))
    assert await scenario.stores.accounts.list_connected(scenario.organization_id) == [accounts[0]]
    assert accounts == [accounts[0]] * 3


async def test_connection_and_disconnection_are_audited_once(scenario: PublishingScenario) -> None:
    actor, store = Actor(scenario.organization_id, "ada"), scenario.stores.accounts
    await scenario.stores.users.sign_in(scenario.organization_id, "ada", [Role.OPERATOR], None, None)
    new = AccountToConnect(scenario.organization_id, Network.SANDBOX, "ours", None)
    since = await scenario.now()
    account = await store.connect(new, "ok", None, actor)
    for _ in range(2):
        await store.disconnect(account, actor)
    entries = await scenario.stores.audit.list_entries(scenario.organization_id, AuditFilter(), None, 10)
    until = await scenario.now()
    assert all(since <= each.at <= until for each in entries)
    found = [(each.action.value, each.target_kind.value, each.target_id) for each in entries]
    actions = ("ACCOUNT_DISCONNECTED", "ACCOUNT_CONNECTED")
    assert found == [(action, "CONNECTED_ACCOUNT", account.id) for action in actions]
    assert [{each.name: each.value for each in entry.details} for entry in entries] == [
        {},
        {"network": "SANDBOX", "name": "ours"},
    ]


async def test_fingerprint_tells_secrets_apart(scenario: PublishingScenario) -> None:
    fingerprint = scenario.stores.accounts.fingerprint
    assert fingerprint("one") == fingerprint("one") != fingerprint("other")
    assert "one" not in fingerprint("one")
