"""Refusals of credentials: the mark and the notification are one transaction."""

import asyncio

import pytest

from storage.mongo import Document
from storage.publishing.accounts import AccountToConnect
from storage.publishing.credentials.refusals import CredentialRefusal, store_refusal
from storage.publishing.networks import Network
from storage.publishing.records import ConnectedAccount, VerifiedAccount
from tests.storage.publishing.scenario import PublishingScenario

pytestmark = pytest.mark.anyio

REFUSAL = CredentialRefusal("UNAUTHORIZED", "$revoked", "first claim")


async def connect(scenario: PublishingScenario) -> ConnectedAccount:
    owner = VerifiedAccount("7", "@harbour")
    new = AccountToConnect(scenario.organization_id, Network.X, "ours", None, "ann", owner)
    return await scenario.stores.accounts.connect(new, "token", None)


async def store(scenario: PublishingScenario, account: ConnectedAccount, refusal: CredentialRefusal) -> bool:
    query = {"_id": account.id, "disconnected_at": None}
    return await store_refusal(scenario.stores.mongo, query, refusal, [{"$unset": "verify_at"}])


async def stored(scenario: PublishingScenario, account: ConnectedAccount) -> Document:
    documents: list[Document] = await scenario.stores.mongo.find("accounts", {"_id": account.id})
    return documents[0]


async def occasions(scenario: PublishingScenario, account: ConnectedAccount) -> set[str]:
    """Returns what Ann is notified of, also by notifications that are on their way."""
    mongo = scenario.stores.mongo
    rows = await mongo["outbox"].find({"ref.account": account.id}).to_list(None)
    notifications = await mongo["notifications"].find({"account": account.id, "_id.u": "ann"}).to_list(None)
    return {each["ref"]["occasion"] for each in rows} | {each["occasion"] for each in notifications}


async def test_refusal_marks_and_notifies(scenario: PublishingScenario) -> None:
    account = await connect(scenario)
    assert await store(scenario, account, REFUSAL)
    document = await stored(scenario, account)
    mark = document["attention"]
    assert (mark["code"], mark["message"], mark["nonce"]) == (
        "UNAUTHORIZED",
        "$revoked",
        document["credentials"]["nonce"],
    )
    assert "verify_at" not in document
    assert await occasions(scenario, account) == {"first claim"}


async def test_marked_account_is_notified_of_once(scenario: PublishingScenario) -> None:
    account = await connect(scenario)
    refusals = [CredentialRefusal("UNAUTHORIZED", f"{number}", f"{number}") for number in range(6)]
    assert all(await asyncio.gather(*[store(scenario, account, each) for each in refusals]))
    (occasion,) = await occasions(scenario, account)
    assert (await stored(scenario, account))["attention"]["message"] == occasion


async def test_refused_renewal_replaces_the_mark(scenario: PublishingScenario) -> None:
    account = await connect(scenario)
    await store(scenario, account, REFUSAL)
    await store(scenario, account, CredentialRefusal("UNAUTHORIZED", "lost", "second claim", of_renewal=True))
    mark = (await stored(scenario, account))["attention"]
    assert (mark["message"], mark["of_renewal"]) == ("lost", True)
    assert await occasions(scenario, account) == {"first claim"}


async def test_mark_of_other_credentials_is_void(scenario: PublishingScenario) -> None:
    account = await connect(scenario)
    await store(scenario, account, CredentialRefusal("UNAUTHORIZED", "lost", "first claim", of_renewal=True))
    await scenario.replace_credentials(account, "new")
    await store(scenario, account, CredentialRefusal("UNAUTHORIZED", "revoked", "second claim"))
    mark = (await stored(scenario, account))["attention"]
    assert mark["message"] == "revoked"
    assert "of_renewal" not in mark
    assert await occasions(scenario, account) == {"first claim", "second claim"}


async def test_unknown_account_is_not_marked(scenario: PublishingScenario) -> None:
    account = await connect(scenario)
    await scenario.stores.accounts.disconnect(account)
    assert not await store(scenario, account, REFUSAL)
    assert await occasions(scenario, account) == set()
