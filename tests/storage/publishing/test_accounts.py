"""Connected accounts: visible in their organization only, with encrypted credentials until they are disconnected."""

import pytest

from storage.errors import NotFound
from storage.secrets.credentials import CredentialsLost
from tests.storage.publishing.scenario import PublishingScenario

pytestmark = pytest.mark.anyio


async def test_account_is_found_in_its_organization_only(scenario: PublishingScenario) -> None:
    account = await scenario.connect_account()
    assert await scenario.stores.accounts.find(scenario.organization_id, account.id) == account
    assert await scenario.stores.accounts.list_connected(scenario.organization_id) == [account]
    assert await scenario.stores.accounts.list_connected("elsewhere") == []
    with pytest.raises(NotFound):
        await scenario.stores.accounts.get("elsewhere", account.id)


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
