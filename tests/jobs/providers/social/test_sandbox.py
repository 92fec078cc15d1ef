"""The sandbox publishes, fails or loses the answer, as the secret of its account says."""

import asyncio

import pytest

from jobs.providers.social.network import OutcomeUncertain, PublishingAccount, PublishingRefused
from jobs.providers.social.sandbox import Sandbox
from storage.publishing.networks import ReconciliationMethod
from storage.publishing.sandbox import SandboxStore
from storage.stores import Stores
from tests.jobs.providers.social.outgoing import DUE_AT, outgoing

pytestmark = pytest.mark.anyio


@pytest.fixture
def store(stores: Stores) -> SandboxStore:
    return SandboxStore(stores.mongo)


def account(secret: str) -> PublishingAccount:
    return PublishingAccount(f"acc-{secret}", None, secret)


@pytest.mark.parametrize("secret", ["ok", "slow"])
async def test_repeated_key_publishes_once(store: SandboxStore, secret: str) -> None:
    sandbox = Sandbox(store, delay_s=0.01)
    published = [await sandbox.publish(account(secret), outgoing(), "key", ()) for _ in range(2)]
    assert published[0] == published[1]
    assert [post.id for post in await store.posts(f"acc-{secret}")] == [published[0].external_id]
    assert sandbox.reconciliation_method(account(secret)) is ReconciliationMethod.REPEAT


async def test_sandbox_fails_on_request(store: SandboxStore) -> None:
    with pytest.raises(PublishingRefused):
        await Sandbox(store).publish(account("fail"), outgoing(), "key", ())
    assert await store.posts("acc-fail") == []


async def test_sandbox_publishes_without_response_on_request(store: SandboxStore) -> None:
    sandbox = Sandbox(store)
    with pytest.raises(OutcomeUncertain):
        await sandbox.publish(account("lose"), outgoing("lost"), "key", ())
    assert [post.text for post in await store.posts("acc-lose")] == ["lost"]
    assert sandbox.reconciliation_method(account("lose")) is ReconciliationMethod.MANUAL
    with pytest.raises(OutcomeUncertain):
        await sandbox.look_up(account("lose"), ())
    assert (await sandbox.upload(account("ok"), outgoing())).references == ()
    assert sandbox.new_key("pub1", DUE_AT) == "pub1"


async def test_posts_of_account_are_listed_oldest_first(store: SandboxStore) -> None:
    for key in ("second", "first"):
        for id_ in ("a", "b", "c"):
            await store.publish(id_, key, f"{id_} {key}")
        await asyncio.sleep(0.002)
    assert [(each.account_id, each.text) for each in await store.posts("b")] == [("b", "b second"), ("b", "b first")]
