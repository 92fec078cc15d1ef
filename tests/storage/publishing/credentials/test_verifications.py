"""Verifications of credentials: claimed by one worker, about once a day, and void once the credentials change."""

import asyncio
from datetime import timedelta

import pytest

from storage.mongo import Document
from storage.publishing.accounts import AccountToConnect
from storage.publishing.credentials.lifetimes import CredentialLifetime
from storage.publishing.credentials.verifications import (
    LEASE_S,
    VERIFIABLE_NETWORKS,
    ClaimedVerification,
    CredentialVerifications,
)
from storage.publishing.networks import Network
from storage.publishing.records import ConnectedAccount, VerifiedAccount
from storage.stores.dead_workers import release_leases_of
from tests.storage.publishing.scenario import PublishingScenario

pytestmark = pytest.mark.anyio

OWNER = VerifiedAccount("7", "@harbour")
DAY_S = 86_400.0


@pytest.fixture
async def account(scenario: PublishingScenario) -> ConnectedAccount:
    """An account whose credentials are due to be verified. No account of another test is due."""
    later = await scenario.now() + timedelta(days=1)
    await scenario.stores.mongo["accounts"].update_many({}, {"$set": {"verify_at": later}, "$unset": {"renew_at": ""}})
    account = await connect(scenario, Network.MASTODON)
    await make_due(scenario, account)
    return account


async def connect(
    scenario: PublishingScenario, network: Network, lifetime: CredentialLifetime | None = None
) -> ConnectedAccount:
    new = AccountToConnect(
        scenario.organization_id, network, "ours", None, "ann", OWNER, lifetime or CredentialLifetime()
    )
    return await scenario.stores.accounts.connect(new, "secret", None)


async def make_due(scenario: PublishingScenario, account: ConnectedAccount, field: str = "verify_at") -> None:
    """Lets the time pass until the verification is due, or until its lease has ended."""
    change = {"$set": {field: await scenario.now() - timedelta(seconds=1)}}
    await scenario.stores.mongo["accounts"].update_one({"_id": account.id}, change)


async def claim(scenario: PublishingScenario, *renewed: Network) -> ClaimedVerification:
    claimed = await scenario.stores.credential_verifications.claim(renewed)
    assert claimed is not None
    return claimed


async def stored(scenario: PublishingScenario, account: ConnectedAccount) -> Document:
    documents: list[Document] = await scenario.stores.mongo.find("accounts", {"_id": account.id})
    return documents[0]


async def record(scenario: PublishingScenario, account: ConnectedAccount) -> ConnectedAccount:
    return await scenario.stores.accounts.get(scenario.organization_id, account.id)


async def pause_s(scenario: PublishingScenario, account: ConnectedAccount) -> float:
    """Returns after how many seconds the account is verified next."""
    left: timedelta = (await stored(scenario, account))["verify_at"] - await scenario.now()
    return left.total_seconds()


async def notices(scenario: PublishingScenario) -> int:
    """Returns the number of notifications about accounts, also of those that are on their way."""
    org = scenario.organization_id
    rows = await scenario.stores.mongo["outbox"].count_documents({"stream": f"user:{org}/ann"})
    return rows + await scenario.stores.mongo["notifications"].count_documents({"_id.o": org})


@pytest.mark.parametrize("network", list(Network))
async def test_connected_account_is_verified_a_day_later(scenario: PublishingScenario, network: Network) -> None:
    connected = await connect(scenario, network)
    assert ("verify_at" in await stored(scenario, connected)) is (network in VERIFIABLE_NETWORKS)
    if network in VERIFIABLE_NETWORKS:
        assert 0.8 * DAY_S < await pause_s(scenario, connected) < 1.2 * DAY_S


async def test_verifications_are_spread(scenario: PublishingScenario) -> None:
    pauses = [await pause_s(scenario, await connect(scenario, Network.X)) for _ in range(8)]
    assert max(pauses) - min(pauses) > 60


async def test_due_verification_is_claimed_by_one_worker(
    scenario: PublishingScenario, account: ConnectedAccount
) -> None:
    verifications = scenario.stores.credential_verifications
    claims = await asyncio.gather(*[verifications.claim() for _ in range(8)])
    (claimed,) = [each for each in claims if each is not None]
    assert claimed.account.id == account.id
    assert "sealed" not in repr(claimed)


async def test_account_of_earlier_release_is_due(scenario: PublishingScenario, account: ConnectedAccount) -> None:
    await scenario.stores.mongo["accounts"].update_one({"_id": account.id}, {"$unset": {"verify_at": ""}})
    claimed = await claim(scenario)
    assert claimed.account.id == account.id
    assert await scenario.stores.credential_verifications.claim() is None


@pytest.mark.parametrize("network", [Network.WEBHOOK, Network.SANDBOX])
async def test_network_that_cannot_be_asked_is_left(
    scenario: PublishingScenario, account: ConnectedAccount, network: Network
) -> None:
    await connect(scenario, network)
    assert (await claim(scenario)).account.id == account.id
    assert await scenario.stores.credential_verifications.claim() is None


async def test_accepted_credentials_wait_for_a_day(scenario: PublishingScenario, account: ConnectedAccount) -> None:
    await scenario.stores.mongo["accounts"].update_one({"_id": account.id}, {"$unset": {"network_id": ""}})
    assert await scenario.stores.credential_verifications.accept(await claim(scenario), VerifiedAccount("8", "@new"))
    accepted = await record(scenario, account)
    assert (accepted.handle, accepted.network_id) == ("@new", "8")
    assert accepted.verified_at is not None
    assert account.verified_at is not None
    assert accepted.verified_at > account.verified_at
    assert 0.8 * DAY_S < await pause_s(scenario, account) < 1.2 * DAY_S
    assert "verification" not in await stored(scenario, account)


async def test_refused_credentials_mark_the_account_once(
    scenario: PublishingScenario, account: ConnectedAccount
) -> None:
    verifications = scenario.stores.credential_verifications
    assert await verifications.refuse(await claim(scenario), "UNAUTHORIZED", "$revoked")
    marked = (await record(scenario, account)).attention
    assert marked is not None
    assert (marked.code, marked.reason) == ("UNAUTHORIZED", "$revoked")
    assert 0.8 * DAY_S < await pause_s(scenario, account) < 1.2 * DAY_S
    await make_due(scenario, account)
    assert await verifications.refuse(await claim(scenario), "UNAUTHORIZED", "again")
    assert (await record(scenario, account)).attention == marked
    assert await notices(scenario) == 1


async def test_accepted_credentials_lose_their_mark(scenario: PublishingScenario, account: ConnectedAccount) -> None:
    verifications = scenario.stores.credential_verifications
    await verifications.refuse(await claim(scenario), "UNAUTHORIZED", "revoked")
    await make_due(scenario, account)
    assert await verifications.accept(await claim(scenario), OWNER)
    assert (await record(scenario, account)).attention is None


@pytest.mark.parametrize("was_marked", [True, False])
async def test_mark_after_the_question_stays(
    scenario: PublishingScenario, account: ConnectedAccount, was_marked: bool
) -> None:
    """A publication is refused after the network has accepted the credentials."""
    nonce = (await stored(scenario, account))["credentials"]["nonce"]
    mark = {"code": "UNAUTHORIZED", "message": "no", "since": account.connected_at, "nonce": nonce}
    change = {"$set": {"attention": mark}}
    if was_marked:
        await scenario.stores.mongo["accounts"].update_one({"_id": account.id}, change)
    claimed = await claim(scenario)
    mark["since"] = await scenario.now()
    await scenario.stores.mongo["accounts"].update_one({"_id": account.id}, change)
    assert await scenario.stores.credential_verifications.accept(claimed, OWNER)
    assert (await record(scenario, account)).attention is not None


async def test_mark_of_a_refused_renewal_stays(scenario: PublishingScenario, account: ConnectedAccount) -> None:
    ending = await connect(scenario, Network.X, CredentialLifetime(7200.0, "refresh", is_renewable=True))
    await make_due(scenario, ending, "renew_at")
    renewal = await scenario.stores.credential_renewals.claim([Network.X])
    assert renewal is not None
    assert await scenario.stores.credential_renewals.refuse(renewal, "UNAUTHORIZED", "not renewed")
    await scenario.stores.accounts.disconnect(account)
    await make_due(scenario, ending)
    assert await scenario.stores.credential_verifications.accept(await claim(scenario), OWNER)
    assert (await record(scenario, ending)).attention is not None


@pytest.mark.parametrize("is_accepted", [True, False])
async def test_answer_after_a_replacement_changes_nothing(
    scenario: PublishingScenario, account: ConnectedAccount, is_accepted: bool
) -> None:
    claimed, verifications = await claim(scenario), scenario.stores.credential_verifications
    await scenario.stores.accounts.replace_credentials(account, "other", OWNER, None)
    before = await stored(scenario, account)
    if is_accepted:
        assert not await verifications.accept(claimed, VerifiedAccount("7", "@late"))
    else:
        assert not await verifications.refuse(claimed, "UNAUTHORIZED", "late")
    assert await stored(scenario, account) == before
    assert await notices(scenario) == 0


@pytest.mark.parametrize("is_accepted", [True, False])
async def test_answer_after_the_lease_changes_nothing(
    scenario: PublishingScenario, account: ConnectedAccount, is_accepted: bool
) -> None:
    late, verifications = await claim(scenario), scenario.stores.credential_verifications
    await make_due(scenario, account)
    newer = await claim(scenario)
    if is_accepted:
        assert not await verifications.accept(late, OWNER)
        assert await verifications.refuse(newer, "UNAUTHORIZED", "revoked")
    else:
        assert not await verifications.refuse(late, "UNAUTHORIZED", "late")
        assert await verifications.accept(newer, OWNER)
    assert ((await record(scenario, account)).attention is None) is not is_accepted


async def test_disconnected_account_is_not_verified(scenario: PublishingScenario, account: ConnectedAccount) -> None:
    claimed, verifications = await claim(scenario), scenario.stores.credential_verifications
    await scenario.stores.accounts.disconnect(account)
    assert not await verifications.accept(claimed, OWNER)
    assert not await verifications.refuse(claimed, "UNAUTHORIZED", "late")
    assert not {"verify_at", "verification"} & (await stored(scenario, account)).keys()
    assert await verifications.claim() is None


async def test_erased_account_keeps_no_times(scenario: PublishingScenario, account: ConnectedAccount) -> None:
    ending = await connect(scenario, Network.X, CredentialLifetime(30 * DAY_S))
    for each in (account, ending):
        await scenario.stores.accounts.erase(each.id)
        left = (await stored(scenario, each)).keys()
        assert not {"verify_at", "verification", "warn_at", "warned_days", "credentials"} & left


async def test_credentials_are_not_verified_while_they_are_renewed(
    scenario: PublishingScenario, account: ConnectedAccount
) -> None:
    await scenario.stores.accounts.disconnect(account)
    ending = await connect(scenario, Network.X, CredentialLifetime(7200.0, "refresh", is_renewable=True))
    verifications, renewals = scenario.stores.credential_verifications, scenario.stores.credential_renewals
    await make_due(scenario, ending)
    claimed = await claim(scenario)
    await make_due(scenario, ending)
    await make_due(scenario, ending, "renew_at")
    assert await verifications.claim([Network.X]) is None
    renewal = await renewals.claim([Network.X])
    assert renewal is not None
    assert await verifications.claim() is None
    assert not await verifications.refuse(claimed, "UNAUTHORIZED", "the old token has ended")
    await renewals.postpone(renewal, 60, had_no_effect=True)
    assert await verifications.claim([Network.X]) is not None


async def test_missing_renewal_does_not_stop_verifications(
    scenario: PublishingScenario, account: ConnectedAccount
) -> None:
    """Without the app of X, nobody renews, and the person must be notified that the credentials have ended."""
    await scenario.stores.accounts.disconnect(account)
    ending = await connect(scenario, Network.X, CredentialLifetime(7200.0, "refresh", is_renewable=True))
    await make_due(scenario, ending)
    await make_due(scenario, ending, "renew_at")
    assert (await claim(scenario, Network.INSTAGRAM)).account.id == ending.id


async def test_postponed_verification_waits(scenario: PublishingScenario, account: ConnectedAccount) -> None:
    verifications = scenario.stores.credential_verifications
    await verifications.postpone(await claim(scenario), 600)
    assert 300 < await pause_s(scenario, account) <= 600
    assert await verifications.claim() is None
    await make_due(scenario, account)
    await verifications.postpone(await claim(scenario))
    assert await pause_s(scenario, account) > 0.8 * DAY_S


async def test_old_pasted_instagram_token_gets_a_renewal(
    scenario: PublishingScenario, account: ConnectedAccount
) -> None:
    """Accounts that an earlier release has connected have no time of renewal."""
    pasted = await connect(scenario, Network.INSTAGRAM)
    await scenario.stores.mongo["accounts"].update_one({"_id": pasted.id}, {"$unset": {"renew_at": ""}})
    await scenario.stores.accounts.disconnect(account)
    await make_due(scenario, pasted)
    assert await scenario.stores.credential_verifications.accept(await claim(scenario), OWNER)
    left = (await stored(scenario, pasted))["renew_at"] - await scenario.now()
    assert timedelta(hours=24) < left <= timedelta(hours=25)


async def test_leases_of_dead_worker_are_released(scenario: PublishingScenario, account: ConnectedAccount) -> None:
    dead = CredentialVerifications(scenario.stores.mongo, worker="w1")
    assert await dead.claim() is not None
    assert LEASE_S / 2 < await pause_s(scenario, account) <= LEASE_S
    assert await dead.claim() is None
    assert await release_leases_of(scenario.stores, "w2") == 0
    assert await release_leases_of(scenario.stores, "w1") == 1
    assert (await claim(scenario)).account.id == account.id
