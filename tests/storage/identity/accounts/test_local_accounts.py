"""Local accounts: signing in, and replacing the password."""

import asyncio
from collections.abc import Callable

import pytest
from argon2 import PasswordHasher

from storage.identity.accounts.local_accounts import LocalAccount, NewLocalAccount, WrongPassword
from storage.identity.audit import Actor
from storage.stores import Stores
from tests.storage.identity.accounts.conftest import PASSWORD, new_invitation

pytestmark = pytest.mark.anyio


@pytest.fixture
async def bea(
    shared_stores: Stores, org: str, admin: Actor, new_account: Callable[..., NewLocalAccount]
) -> LocalAccount:
    """The account bea@example.org."""
    created = await shared_stores.invitations.create(admin, new_invitation(address="bea@example.org"), None)
    await shared_stores.registrations.create_invited(created.token or "", new_account("Bea"))
    account = await shared_stores.local_accounts.find(org, "bea@example.org")
    assert account is not None
    return account


async def test_wrong_password_and_unknown_address_are_refused_alike(
    shared_stores: Stores, org: str, bea: LocalAccount
) -> None:
    accounts = shared_stores.local_accounts
    assert await accounts.verify(org, "bea@example.org", PASSWORD) == bea
    refused = []
    for organization, address, password in (
        (org, "bea@example.org", "another password"),
        (org, "nobody@example.org", PASSWORD),
        (f"{org}-other", "bea@example.org", PASSWORD),
    ):
        with pytest.raises(WrongPassword) as error:
            await accounts.verify(organization, address, password)
        refused.append((error.value.message, error.value.extensions))
    assert len({str(each) for each in refused}) == 1


async def test_right_password_renews_an_outdated_hash(shared_stores: Stores, org: str, bea: LocalAccount) -> None:
    old = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash(PASSWORD)
    await shared_stores.mongo["local_accounts"].update_one({"_id.id": bea.user_id}, {"$set": {"hash": old}})
    await shared_stores.local_accounts.verify(org, "bea@example.org", PASSWORD)
    stored = await shared_stores.local_accounts.of_user(org, bea.user_id)
    assert stored is not None
    assert stored.password_hash != old
    assert not shared_stores.local_accounts.hashes.is_outdated(stored.password_hash)
    await shared_stores.local_accounts.verify(org, "bea@example.org", PASSWORD)


async def test_password_replaced_concurrently_is_replaced_once(shared_stores: Stores, bea: LocalAccount) -> None:
    accounts = shared_stores.local_accounts
    replacing = (
        shared_stores.mongo.transact(lambda session, n=n: accounts.set_password(bea, f"hash {n}", session))
        for n in range(5)
    )
    results = await asyncio.gather(*replacing, return_exceptions=True)
    assert sorted(type(each).__name__ for each in results) == ["Conflict"] * 4 + ["LocalAccount"]
