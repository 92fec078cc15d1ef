"""Idempotency keys: whose they are, what they remember, and that reuse with other arguments is told."""

import asyncio
from typing import Any

import pytest

from storage.errors import BadUserInput, Conflict
from storage.idempotency import KEPT_S, AlreadyDone, IdempotencyKey, claim, idempotency_key
from storage.ids import new_id
from storage.mongo import Session
from storage.stores import Stores

pytestmark = pytest.mark.anyio


def made(
    key: str = "k", user: str = "ann", mutation: str = "post", org: str = "acme", **arguments: Any
) -> IdempotencyKey:
    found = idempotency_key(org, user, mutation, key, arguments)
    assert found is not None
    return found


def test_without_a_key_there_is_none() -> None:
    assert idempotency_key("acme", "ann", "post", None, {}) is None


@pytest.mark.parametrize("key", ["", "x" * 201])
def test_an_empty_or_overlong_key_is_refused(key: str) -> None:
    with pytest.raises(BadUserInput) as refused:
        idempotency_key("acme", "ann", "post", key, {})
    assert refused.value.extensions["field"] == "idempotencyKey"


def test_a_key_belongs_to_a_user_of_an_organization_and_a_mutation() -> None:
    keys = [made(), made(user="bob"), made(mutation="edit"), made(org="other"), made("l")]
    assert len({key.use for key in keys}) == len(keys)
    assert made(text="a").use == made(text="b").use


def test_the_order_of_arguments_does_not_matter_and_their_values_do() -> None:
    assert made(a=1, b=2).digest == made(b=2, a=1).digest
    assert made(a=1).digest != made(a=2).digest


async def claimed(stores: Stores, key: IdempotencyKey | None, result: str) -> None:
    async def work(session: Session) -> None:
        await claim(stores.mongo, key, result, session)

    await stores.mongo.transact(work)


async def test_a_claimed_key_remembers_what_was_made(shared_stores: Stores) -> None:
    org = new_id()
    await claimed(shared_stores, made(org=org, text="a"), "first")
    with pytest.raises(AlreadyDone) as done:
        await claimed(shared_stores, made(org=org, text="a"), "second")
    assert done.value.id == "first"
    with pytest.raises(Conflict):
        await claimed(shared_stores, made(org=org, text="b"), "third")


async def test_of_many_claims_at_once_one_wins_and_the_others_are_told_of_it(shared_stores: Stores) -> None:
    key = made(org=new_id())
    claims = (claimed(shared_stores, key, str(number)) for number in range(10))
    outcomes = await asyncio.gather(*claims, return_exceptions=True)
    done = [outcome for outcome in outcomes if isinstance(outcome, AlreadyDone)]
    assert outcomes.count(None) == 1
    assert [outcome.id for outcome in done] == [str(outcomes.index(None))] * 9


async def test_without_a_key_nothing_is_claimed(shared_stores: Stores) -> None:
    before = await shared_stores.mongo["idempotency"].count_documents({})
    await claimed(shared_stores, None, "x")
    assert await shared_stores.mongo["idempotency"].count_documents({}) == before


async def test_keys_are_kept_for_a_day(shared_stores: Stores) -> None:
    indexes = await shared_stores.mongo["idempotency"].index_information()
    assert indexes["at_1"]["expireAfterSeconds"] == KEPT_S == 86_400
    await claimed(shared_stores, made(org=(org := new_id())), "x")
    row = await shared_stores.mongo["idempotency"].find_one({"_id.org": org})
    assert row is not None
    assert row["at"] is not None
