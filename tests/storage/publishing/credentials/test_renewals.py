"""Renewals of credentials: claimed by one worker, stored once, and never over newer credentials."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from storage.mongo import Document
from storage.publishing.accounts import AccountToConnect
from storage.publishing.credentials.lifetimes import CredentialLifetime
from storage.publishing.credentials.renewals import LEASE_S, ClaimedRenewal, CredentialRenewals
from storage.publishing.networks import Network
from storage.publishing.records import NOT_VERIFIED, ConnectedAccount, VerifiedAccount
from storage.secrets.credentials import CredentialCipher
from tests.databases import CREDENTIAL_KEYS
from tests.storage.publishing.scenario import PublishingScenario

pytestmark = pytest.mark.anyio

TWO_HOURS = CredentialLifetime(7200.0, "refresh-1", is_renewable=True)
NEXT = CredentialLifetime(7200.0, "refresh-2", is_renewable=True)


@pytest.fixture
async def account(scenario: PublishingScenario) -> ConnectedAccount:
    """An account whose credentials are due to be renewed. No account of another test is due."""
    await scenario.stores.mongo["accounts"].update_many({}, {"$unset": {"renew_at": ""}})
    owner = VerifiedAccount("7", "@harbour")
    new = AccountToConnect(scenario.organization_id, Network.X, "ours", None, "ann", owner, TWO_HOURS)
    account = await scenario.stores.accounts.connect(new, "access-1", None)
    await make_due(scenario, account)
    return account


async def make_due(scenario: PublishingScenario, account: ConnectedAccount) -> None:
    """Lets the time pass until the renewal is due, or until its lease has ended."""
    change = {"$set": {"renew_at": await scenario.now() - timedelta(seconds=1)}}
    await scenario.stores.mongo["accounts"].update_one({"_id": account.id}, change)


async def claim(scenario: PublishingScenario) -> ClaimedRenewal:
    claimed = await scenario.stores.credential_renewals.claim([Network.X])
    assert claimed is not None
    return claimed


async def stored(scenario: PublishingScenario, account: ConnectedAccount) -> Document:
    (document,) = await scenario.stores.mongo.find("accounts", {"_id": account.id})
    return document


async def secret(scenario: PublishingScenario, account: ConnectedAccount) -> str:
    return await scenario.stores.accounts.decrypt_credentials(account)


async def test_account_shows_when_its_credentials_end(scenario: PublishingScenario, account: ConnectedAccount) -> None:
    assert account.credentials_expire_at == account.connected_at + timedelta(hours=2)
    assert account.renews_credentials
    pasted = await scenario.connect_account(Network.X, "token")
    assert (pasted.credentials_expire_at, pasted.renews_credentials) == (None, False)


async def test_due_renewal_is_claimed_by_one_worker(scenario: PublishingScenario, account: ConnectedAccount) -> None:
    renewals = scenario.stores.credential_renewals
    claims = await asyncio.gather(*[renewals.claim([Network.X]) for _ in range(8)])
    (claimed,) = [each for each in claims if each is not None]
    assert claimed.account.id == account.id
    assert renewals.secrets(claimed) == ("access-1", "refresh-1")
    assert not claimed.was_interrupted
    assert "access-1" not in repr(claimed)


async def test_renewal_of_other_network_or_later_time_waits(
    scenario: PublishingScenario, account: ConnectedAccount
) -> None:
    assert await scenario.stores.credential_renewals.claim([Network.INSTAGRAM]) is None
    later = {"$set": {"renew_at": await scenario.now() + timedelta(minutes=5)}}
    await scenario.stores.mongo["accounts"].update_one({"_id": account.id}, later)
    assert await scenario.stores.credential_renewals.claim([Network.X]) is None


async def test_renewed_credentials_replace_both_secrets(
    scenario: PublishingScenario, account: ConnectedAccount
) -> None:
    before = await scenario.now()
    assert await scenario.stores.credential_renewals.store(await claim(scenario), "access-2", NEXT)
    assert await secret(scenario, account) == "access-2"
    document = await stored(scenario, account)
    assert "renewal" not in document
    assert document["expires_at"] - document["renew_at"] == timedelta(minutes=15)
    assert document["expires_at"] >= before + timedelta(hours=2) - timedelta(seconds=1)
    await make_due(scenario, account)
    claimed = await claim(scenario)
    assert scenario.stores.credential_renewals.secrets(claimed) == ("access-2", "refresh-2")
    assert not claimed.was_interrupted


async def test_interrupted_call_is_known_to_the_next_claim(
    scenario: PublishingScenario, account: ConnectedAccount
) -> None:
    await claim(scenario)
    await make_due(scenario, account)
    assert (await claim(scenario)).was_interrupted


async def test_call_without_effect_is_no_interruption(scenario: PublishingScenario, account: ConnectedAccount) -> None:
    renewals = scenario.stores.credential_renewals
    await renewals.postpone(await claim(scenario), 60, had_no_effect=True)
    assert await renewals.claim([Network.X]) is None
    await make_due(scenario, account)
    claimed = await claim(scenario)
    assert not claimed.was_interrupted
    await renewals.postpone(claimed, 60, had_no_effect=False)
    await make_due(scenario, account)
    assert (await claim(scenario)).was_interrupted


async def test_planned_try_is_not_released_with_its_worker(
    scenario: PublishingScenario, account: ConnectedAccount
) -> None:
    mongo, clock = scenario.stores.mongo, scenario.stores.clock
    dead = CredentialRenewals(mongo, clock, CredentialCipher(CREDENTIAL_KEYS), worker="w1")
    claimed = await dead.claim([Network.X])
    assert claimed is not None
    await dead.postpone(claimed, 30, had_no_effect=True)
    assert await dead.release_of("w1") == 0


async def test_late_answer_is_stored_though_its_lease_ended(
    scenario: PublishingScenario, account: ConnectedAccount
) -> None:
    """The network answers a refresh token once, so nobody else can have its answer."""
    renewals, late = scenario.stores.credential_renewals, await claim(scenario)
    await make_due(scenario, account)
    newer = await claim(scenario)
    assert await renewals.refuse(newer, "UNAUTHORIZED", "used")
    assert (await scenario.stores.accounts.get(scenario.organization_id, account.id)).attention is not None
    assert await renewals.store(late, "access-2", NEXT)
    renewed = await scenario.stores.accounts.get(scenario.organization_id, account.id)
    assert (renewed.attention, renewed.renews_credentials) == (None, True)
    assert await secret(scenario, account) == "access-2"


async def test_answer_of_two_workers_is_stored_once(scenario: PublishingScenario, account: ConnectedAccount) -> None:
    renewals, first = scenario.stores.credential_renewals, await claim(scenario)
    await make_due(scenario, account)
    second = await claim(scenario)
    third = replace(NEXT, refresh_token="refresh-3")
    results = await asyncio.gather(renewals.store(first, "access-2", NEXT), renewals.store(second, "access-3", third))
    assert sorted(results) == [False, True]
    winner = "access-2" if results[0] else "access-3"
    assert await secret(scenario, account) == winner


async def test_replaced_credentials_are_not_overwritten(
    scenario: PublishingScenario, account: ConnectedAccount
) -> None:
    renewals, claimed = scenario.stores.credential_renewals, await claim(scenario)
    await scenario.stores.accounts.replace_credentials(account, "pasted", NOT_VERIFIED, None)
    assert not await renewals.store(claimed, "access-2", NEXT)
    assert not await renewals.refuse(claimed, "UNAUTHORIZED", "used")
    await renewals.postpone(claimed, 60, had_no_effect=True)
    replaced = await scenario.stores.accounts.get(scenario.organization_id, account.id)
    assert (replaced.attention, replaced.renews_credentials, replaced.credentials_expire_at) == (None, False, None)
    assert await secret(scenario, account) == "pasted"
    assert not {"refresh_token", "renew_at", "renewal", "expires_at"} & (await stored(scenario, account)).keys()


async def test_stale_refusal_marks_nothing(scenario: PublishingScenario, account: ConnectedAccount) -> None:
    renewals, stale = scenario.stores.credential_renewals, await claim(scenario)
    await make_due(scenario, account)
    await claim(scenario)
    assert not await renewals.refuse(stale, "UNAUTHORIZED", "used")
    assert (await scenario.stores.accounts.get(scenario.organization_id, account.id)).attention is None


async def test_refused_renewal_marks_the_account(scenario: PublishingScenario, account: ConnectedAccount) -> None:
    renewals = scenario.stores.credential_renewals
    assert await renewals.refuse(await claim(scenario), "UNAUTHORIZED", "$revoked")
    refused = await scenario.stores.accounts.get(scenario.organization_id, account.id)
    assert refused.attention is not None
    assert (refused.attention.code, refused.attention.reason) == ("UNAUTHORIZED", "$revoked")
    assert not refused.renews_credentials
    assert await renewals.claim([Network.X]) is None
    replaced = await scenario.stores.accounts.replace_credentials(
        refused, "access-9", VerifiedAccount("7", "@harbour"), None, lifetime=TWO_HOURS
    )
    assert (replaced.attention, replaced.renews_credentials) == (None, True)


async def test_disconnected_account_is_not_renewed(scenario: PublishingScenario, account: ConnectedAccount) -> None:
    renewals, claimed = scenario.stores.credential_renewals, await claim(scenario)
    await scenario.stores.accounts.disconnect(account)
    assert not await renewals.store(claimed, "access-2", NEXT)
    assert not await renewals.refuse(claimed, "UNAUTHORIZED", "used")
    assert not {"credentials", "refresh_token", "renew_at", "renewal"} & (await stored(scenario, account)).keys()
    assert await renewals.claim([Network.X]) is None


async def test_leases_of_dead_worker_are_released(scenario: PublishingScenario, account: ConnectedAccount) -> None:
    mongo, clock = scenario.stores.mongo, scenario.stores.clock
    dead = CredentialRenewals(mongo, clock, CredentialCipher(CREDENTIAL_KEYS), worker="w1")
    assert await dead.claim([Network.X]) is not None
    left = (await stored(scenario, account))["renew_at"] - await scenario.now()
    assert timedelta(seconds=LEASE_S / 2) < left <= timedelta(seconds=LEASE_S)
    assert await dead.claim([Network.X]) is None
    assert await dead.release_of("w2") == 0
    assert await dead.release_of("w1") == 1
    assert (await claim(scenario)).was_interrupted
