"""Connected accounts: visible in their organization only, with encrypted credentials until they are disconnected."""

import asyncio

import pytest

from storage.errors import Conflict, NotFound
from storage.idempotency import idempotency_key
from storage.identity.audit import Actor, AuditFilter
from storage.identity.roles import Role
from storage.mongo import Document
from storage.publishing.accounts import AccountToConnect
from storage.publishing.networks import Network
from storage.publishing.records import NOT_VERIFIED, ConnectedAccount, VerifiedAccount
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


HARBOUR = VerifiedAccount("7", "@harbour")


async def connect_verified(scenario: PublishingScenario, verified: VerifiedAccount = HARBOUR) -> ConnectedAccount:
    new = AccountToConnect(scenario.organization_id, Network.X, "ours", None, "ann", verified)
    return await scenario.stores.accounts.connect(new, "old", None)


async def test_account_holds_what_the_network_said(scenario: PublishingScenario) -> None:
    verified, unverified = await connect_verified(scenario), await connect_verified(scenario, NOT_VERIFIED)
    assert (verified.network_id, verified.handle, verified.verified_at) == ("7", "@harbour", verified.connected_at)
    assert (unverified.network_id, unverified.handle, unverified.verified_at) == (None, None, None)


async def test_replaced_credentials_are_read_from_then_on(scenario: PublishingScenario) -> None:
    store, account, other = scenario.stores.accounts, await connect_verified(scenario), await connect_verified(scenario)
    untouched, since = await stored_accounts(scenario, other), await scenario.now()
    renamed = VerifiedAccount("7", "$renamed")
    replaced = await store.replace_credentials(account, "new", renamed, None)
    assert await store.decrypt_credentials(account) == "new"
    assert (replaced.id, replaced.network_id, replaced.handle) == (account.id, "7", "$renamed")
    assert replaced.verified_at is not None
    assert since <= replaced.verified_at <= await scenario.now()
    assert await stored_accounts(scenario, other) == untouched
    assert "new" not in repr(await stored_accounts(scenario, account))


async def test_replacement_without_verification_keeps_the_rest(scenario: PublishingScenario) -> None:
    account = await scenario.connect_account(Network.WEBHOOK, "old", "https://example.org/hook")
    (before,) = await stored_accounts(scenario, account)
    assert await scenario.stores.accounts.replace_credentials(account, "new", NOT_VERIFIED, None) == account
    (after,) = await stored_accounts(scenario, account)
    assert differences(before, after).keys() == {"credentials"}


async def test_first_verification_of_old_account_is_stored(scenario: PublishingScenario) -> None:
    account = await connect_verified(scenario, NOT_VERIFIED)
    replaced = await scenario.stores.accounts.replace_credentials(account, "new", HARBOUR, None)
    assert (replaced.network_id, replaced.handle) == ("7", "@harbour")
    with pytest.raises(Conflict):
        await scenario.stores.accounts.replace_credentials(account, "other", VerifiedAccount("8", "@other"), None)
    assert await scenario.stores.accounts.decrypt_credentials(account) == "new"


async def test_disconnected_account_gets_no_credentials(scenario: PublishingScenario) -> None:
    account = await connect_verified(scenario)
    await scenario.stores.accounts.disconnect(account)
    with pytest.raises(Conflict):
        await scenario.stores.accounts.replace_credentials(account, "new", HARBOUR, None)
    with pytest.raises(CredentialsLost):
        await scenario.stores.accounts.decrypt_credentials(account)


async def test_repeated_key_replaces_once(scenario: PublishingScenario) -> None:
    store, account = scenario.stores.accounts, await connect_verified(scenario)
    key, other_use = (
        idempotency_key(scenario.organization_id, "ann", "replaceAccountCredentials", "k", {"a": n}) for n in (1, 2)
    )
    assert await store.find_by_key(key) is None
    first = await store.replace_credentials(account, "new", HARBOUR, key)
    await store.replace_credentials(account, "newer", HARBOUR, None)
    assert await store.replace_credentials(account, "new", HARBOUR, key) != first
    assert await store.decrypt_credentials(account) == "newer"
    assert await store.find_by_key(key) == await store.get(scenario.organization_id, account.id)
    with pytest.raises(Conflict):
        await store.find_by_key(other_use)


async def test_credentials_belong_to_who_replaced_them(scenario: PublishingScenario) -> None:
    """An erasure of the person who connected the account leaves the credentials of another person as they are."""
    account, bob = await connect_verified(scenario), Actor(scenario.organization_id, "bob")
    await scenario.stores.users.sign_in(scenario.organization_id, "bob", [Role.ADMIN], None, None)
    await scenario.stores.accounts.replace_credentials(account, "new", HARBOUR, None, bob)
    (row,) = await stored_accounts(scenario, account)
    assert row["connected_by"] == "bob"


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
    new = AccountToConnect(scenario.organization_id, Network.MASTODON, "ours", "https://example.org", None, HARBOUR)
    other, connected, disconnected = [await scenario.stores.accounts.connect(new, "token", None) for _ in range(3)]
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
    emptied = {"name": "Deleted account", "base_url": None, "failing": True, "handle": REMOVED, "network_id": REMOVED}
    assert changed == [emptied | {"credentials": REMOVED, "verify_at": REMOVED}, emptied, {}]
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


async def test_changes_of_account_are_audited_once(scenario: PublishingScenario) -> None:
    actor, store = Actor(scenario.organization_id, "ada"), scenario.stores.accounts
    await scenario.stores.users.sign_in(scenario.organization_id, "ada", [Role.OPERATOR], None, None)
    new = AccountToConnect(scenario.organization_id, Network.SANDBOX, "ours", None)
    since = await scenario.now()
    account = await store.connect(new, "ok", None, actor)
    await store.replace_credentials(account, "fail", NOT_VERIFIED, None, actor)
    for _ in range(2):
        await store.disconnect(account, actor)
    entries = await scenario.stores.audit.list_entries(scenario.organization_id, AuditFilter(), None, 10)
    until = await scenario.now()
    assert all(since <= each.at <= until for each in entries)
    found = [(each.action.value, each.target_kind.value, each.target_id) for each in entries]
    actions = ("ACCOUNT_DISCONNECTED", "ACCOUNT_CREDENTIALS_REPLACED", "ACCOUNT_CONNECTED")
    assert found == [(action, "CONNECTED_ACCOUNT", account.id) for action in actions]
    assert [{each.name: each.value for each in entry.details} for entry in entries] == [
        {},
        {},
        {"network": "SANDBOX", "name": "ours"},
    ]


async def test_fingerprint_tells_secrets_apart(scenario: PublishingScenario) -> None:
    fingerprint = scenario.stores.accounts.fingerprint
    assert fingerprint("one") == fingerprint("one") != fingerprint("other")
    assert "one" not in fingerprint("one")
