"""Warnings before credentials end: each once, the most urgent only, and from the start for other credentials."""

import asyncio
from datetime import timedelta

import pytest
from pymongo.errors import OperationFailure

from server.embedded import Mongod
from storage.ids import new_id
from storage.mongo import Document
from storage.publishing.accounts import AccountToConnect
from storage.publishing.credentials.lifetimes import CredentialLifetime
from storage.publishing.networks import Network
from storage.publishing.records import ConnectedAccount, VerifiedAccount
from storage.stores import open_stores
from tests.databases import CREDENTIAL_KEYS
from tests.storage.faults import failpoint
from tests.storage.publishing.scenario import PublishingScenario, create_publishing_scenario
from tests.waiting import until

pytestmark = pytest.mark.anyio

OWNER = VerifiedAccount("7", "@harbour")
DAY_S = 86_400.0
ENDING, ENDED = "ACCOUNT_CREDENTIALS_ENDING", "ACCOUNT_CREDENTIALS_ENDED"
ILLEGAL_OPERATION = 20
THIRTY_DAYS = CredentialLifetime(30 * DAY_S)
RENEWED = CredentialLifetime(60 * DAY_S, is_renewable=True)


@pytest.fixture(autouse=True)
async def no_other_warnings(scenario: PublishingScenario) -> None:
    await scenario.stores.mongo["accounts"].update_many({}, {"$unset": {"warn_at": "", "renew_at": ""}})


async def connect(
    scenario: PublishingScenario, lifetime: CredentialLifetime = THIRTY_DAYS, network: Network = Network.X
) -> ConnectedAccount:
    new = AccountToConnect(scenario.organization_id, network, "ours", None, "ann", OWNER, lifetime)
    return await scenario.stores.accounts.connect(new, "secret", None)


async def stored(scenario: PublishingScenario, account: ConnectedAccount) -> Document:
    documents: list[Document] = await scenario.stores.mongo.find("accounts", {"_id": account.id})
    return documents[0]


async def pass_days(scenario: PublishingScenario, account: ConnectedAccount, days: float) -> None:
    """Simulates the passing of time: moves the times of the account's credentials back."""
    document, back = await stored(scenario, account), timedelta(days=days)
    times = {name: document[name] - back for name in ("expires_at", "renew_at", "warn_at") if name in document}
    await scenario.stores.mongo["accounts"].update_one({"_id": account.id}, {"$set": times})


async def send(scenario: PublishingScenario) -> int:
    return await scenario.stores.credential_warnings.send_due(10)


async def notified(scenario: PublishingScenario) -> list[str]:
    """Returns the kinds of Ann's notifications, in their order, after all have arrived."""
    stores, stream = scenario.stores, f"user:{scenario.organization_id}/ann"

    async def is_relayed() -> bool:
        stores.outbox.nudge(stream)
        return await stores.mongo["outbox"].count_documents({"stream": stream}) == 0

    await until(is_relayed, interval_s=0.1)
    rows = stores.mongo["notifications"].find({"_id.o": scenario.organization_id}).sort("_id", 1)
    return [each["kind"] async for each in rows]


async def test_person_is_warned_three_times(scenario: PublishingScenario) -> None:
    account = await connect(scenario)
    for days, kinds in (
        (15.9, []),
        (0.2, [ENDING]),
        (10.8, [ENDING]),
        (0.2, [ENDING, ENDING]),
        (2.8, [ENDING, ENDING]),
        (0.2, [ENDING, ENDING, ENDED]),
        (100.0, [ENDING, ENDING, ENDED]),
    ):
        await pass_days(scenario, account, days)
        await send(scenario)
        assert await send(scenario) == 0
        assert await notified(scenario) == kinds
    document = await stored(scenario, account)
    assert (document["warned_days"], "warn_at" in document) == (0, False)
    row = await scenario.stores.mongo["notifications"].find_one({"_id.o": scenario.organization_id})
    assert row is not None
    assert (row["_id"]["u"], row["account"]) == ("ann", account.id)


async def test_several_workers_warn_once(scenario: PublishingScenario) -> None:
    account = await connect(scenario)
    await pass_days(scenario, account, 16.5)
    assert sum(await asyncio.gather(*[send(scenario) for _ in range(8)])) == 1
    assert await notified(scenario) == [ENDING]


async def test_stored_warning_is_not_repeated(scenario: PublishingScenario) -> None:
    """Not even if its time comes again, because the database's clock was set back."""
    account = await connect(scenario)
    await pass_days(scenario, account, 16.5)
    await send(scenario)
    again = {"$set": {"warn_at": await scenario.now() - timedelta(seconds=1)}}
    await scenario.stores.mongo["accounts"].update_one({"_id": account.id}, again)
    assert await send(scenario) == 0
    assert await notified(scenario) == [ENDING]


@pytest.mark.parametrize(("days", "kind"), [(28.0, ENDING), (31.0, ENDED)])
async def test_missed_warnings_are_replaced_by_the_most_urgent(
    scenario: PublishingScenario, days: float, kind: str
) -> None:
    account = await connect(scenario)
    await pass_days(scenario, account, days)
    assert await send(scenario) == 1
    assert await send(scenario) == 0
    assert await notified(scenario) == [kind]


async def test_failed_commit_leaves_the_warning_due(own_mongod: Mongod, redis_url: str) -> None:
    """The worker gets no further than the commit: neither the warning nor its notification is stored."""
    uri, database = own_mongod.uri, f"t_{new_id()}"
    async with open_stores(uri, redis_url, database, credential_keys=CREDENTIAL_KEYS) as stores:
        scenario = await create_publishing_scenario(stores)
        account = await connect(scenario)
        await pass_days(scenario, account, 16.5)
        async with failpoint(uri, "commitTransaction", errorCode=ILLEGAL_OPERATION):
            with pytest.raises(OperationFailure):
                await send(scenario)
        assert "warned_days" not in await stored(scenario, account)
        assert await notified(scenario) == []
        assert await send(scenario) == 1
        assert await notified(scenario) == [ENDING]


async def test_credentials_that_are_renewed_cause_no_warning(scenario: PublishingScenario) -> None:
    account = await connect(scenario, RENEWED, Network.INSTAGRAM)
    await pass_days(scenario, account, 50.9)
    assert await send(scenario) == 0
    await pass_days(scenario, account, 0.2)
    assert await send(scenario) == 1, "The renewal is overdue for more than a day."
    assert await notified(scenario) == [ENDING]


async def test_tokens_of_hours_never_end_in_days(scenario: PublishingScenario) -> None:
    hours = CredentialLifetime(7200.0, "refresh", is_renewable=True)
    account = await connect(scenario, hours)
    document = await stored(scenario, account)
    assert document["warn_at"] - document["renew_at"] == timedelta(days=1)
    pasted = await connect(scenario, CredentialLifetime(7200.0))
    document = await stored(scenario, pasted)
    assert document["warn_at"] == document["expires_at"]


async def test_credentials_without_end_cause_no_warning(scenario: PublishingScenario) -> None:
    for network in Network:
        assert "warn_at" not in await stored(scenario, await connect(scenario, CredentialLifetime(), network))


async def test_other_credentials_are_warned_of_again(scenario: PublishingScenario) -> None:
    account = await connect(scenario)
    await pass_days(scenario, account, 16.5)
    await send(scenario)
    assert (await stored(scenario, account))["warned_days"] == 14
    await scenario.stores.accounts.replace_credentials(account, "new", OWNER, None, lifetime=THIRTY_DAYS)
    assert "warned_days" not in await stored(scenario, account)
    await pass_days(scenario, account, 16.5)
    assert await send(scenario) == 1
    assert await notified(scenario) == [ENDING, ENDING]


async def test_renewed_credentials_are_warned_of_again(scenario: PublishingScenario) -> None:
    account = await connect(scenario, RENEWED, Network.INSTAGRAM)
    await pass_days(scenario, account, 52)
    await send(scenario)
    assert (await stored(scenario, account))["warned_days"] == 14
    renewal = await scenario.stores.credential_renewals.claim([Network.INSTAGRAM])
    assert renewal is not None
    assert await scenario.stores.credential_renewals.store(renewal, "1784:new", RENEWED)
    document = await stored(scenario, account)
    assert "warned_days" not in document
    assert document["warn_at"] > await scenario.now() + timedelta(days=50)


async def test_marked_account_is_not_warned_of(scenario: PublishingScenario) -> None:
    account = await connect(scenario)
    nonce = (await stored(scenario, account))["credentials"]["nonce"]
    mark = {"code": "UNAUTHORIZED", "message": "no", "since": await scenario.now(), "nonce": nonce}
    await scenario.stores.mongo["accounts"].update_one({"_id": account.id}, {"$set": {"attention": mark}})
    await pass_days(scenario, account, 16.5)
    assert await send(scenario) == 0
    assert await notified(scenario) == []
    await scenario.stores.mongo["accounts"].update_one({"_id": account.id}, {"$unset": {"attention": ""}})
    await pass_days(scenario, account, 11)
    assert await send(scenario) == 1


async def test_unknown_owner_is_not_warned(scenario: PublishingScenario) -> None:
    account = await connect(scenario)
    await scenario.stores.mongo["accounts"].update_one({"_id": account.id}, {"$unset": {"connected_by": ""}})
    await pass_days(scenario, account, 16.5)
    await send(scenario)
    assert await notified(scenario) == []
    of_organization = {"stream": {"$regex": f"^user:{scenario.organization_id}/"}}
    assert await scenario.stores.mongo["outbox"].count_documents(of_organization) == 0
    assert await send(scenario) == 0


async def test_disconnected_account_is_not_warned_of(scenario: PublishingScenario) -> None:
    account = await connect(scenario)
    await pass_days(scenario, account, 16.5)
    await scenario.stores.accounts.disconnect(account)
    assert not {"warn_at", "warned_days"} & (await stored(scenario, account)).keys()
    assert await send(scenario) == 0
