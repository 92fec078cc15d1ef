"""Connected accounts in storage: scoped, encrypted, and forgotten."""

import pytest

from storage.errors import NotFound
from storage.secrets.credentials import CredentialsLost
from tests.storage.publishing.newsroom import Newsroom

pytestmark = pytest.mark.anyio


async def test_an_account_is_found_in_its_organization_only(newsroom: Newsroom) -> None:
    account = await newsroom.account()
    assert await newsroom.stores.accounts.find(newsroom.organization_id, account.id) == account
    assert await newsroom.stores.accounts.list_connected(newsroom.organization_id) == [account]
    assert await newsroom.stores.accounts.list_connected("elsewhere") == []
    with pytest.raises(NotFound):
        await newsroom.stores.accounts.get("elsewhere", account.id)


async def test_a_disconnected_account_can_not_be_opened_any_more(newsroom: Newsroom) -> None:
    account = await newsroom.account(secret="ok")
    assert await newsroom.stores.accounts.open(account) == "ok"
    gone = await newsroom.stores.accounts.disconnect(account)
    again = await newsroom.stores.accounts.disconnect(account)
    assert gone.disconnected_at == again.disconnected_at is not None
    with pytest.raises(CredentialsLost):
        await newsroom.stores.accounts.open(account)
    assert account.id in [each.id for each in await newsroom.stores.accounts.disconnected(100)]
    await newsroom.stores.accounts.cleared(account)
    assert account.id not in [each.id for each in await newsroom.stores.accounts.disconnected(100)]


async def test_a_sealed_secret_moved_to_another_account_opens_nothing(newsroom: Newsroom) -> None:
    one, other = await newsroom.account(secret="ok"), await newsroom.account(secret="lose")
    accounts = newsroom.stores.mongo["accounts"]
    row = await accounts.find_one({"_id": one.id})
    assert row is not None
    await accounts.update_one({"_id": other.id}, {"$set": {"credentials": row["credentials"]}})
    with pytest.raises(CredentialsLost):
        await newsroom.stores.accounts.open(other)
