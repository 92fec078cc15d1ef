"""Idempotency keys: their scope, the stored result, and the conflict when a key is used with other arguments."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from storage.errors import BadUserInput, Conflict
from storage.idempotency import KEPT_S, DuplicateRequest, IdempotencyKey, idempotency_key, store_key
from storage.ids import new_id
from storage.mongo import Session
from storage.stores import Stores

pytestmark = pytest.mark.anyio


def new_key(
    key: str = "k", user: str = "ann", mutation: str = "post", org: str = "acme", **arguments: Any
) -> IdempotencyKey:
    scoped_key = idempotency_key(org, user, mutation, key, arguments)
    assert scoped_key is not None
    return scoped_key


def test_missing_key_is_none() -> None:
    assert idempotency_key("acme", "ann", "post", None, {}) is None


@pytest.mark.parametrize("key", ["", "x" * 201])
def test_empty_or_overlong_key_is_refused(key: str) -> None:
    with pytest.raises(BadUserInput) as refusal:
        idempotency_key("acme", "ann", "post", key, {})
    assert refusal.value.extensions["field"] == "idempotencyKey"


def test_key_is_scoped_to_organization_user_and_mutation() -> None:
    keys = [new_key(), new_key(user="bob"), new_key(mutation="edit"), new_key(org="other"), new_key("l")]
    assert len({key.identity for key in keys}) == len(keys)
    assert new_key(text="a").identity == new_key(text="b").identity


def test_digest_ignores_argument_order_and_covers_values() -> None:
    assert new_key(a=1, b=2).digest == new_key(b=2, a=1).digest
    assert new_key(a=1).digest != new_key(a=2).digest


async def commit_key(stores: Stores, key: IdempotencyKey | None, result: str) -> None:
    async def work(session: Session) -> None:
        await store_key(stores.mongo, key, result, session)

    await stores.mongo.transact(work)


async def test_repeated_key_returns_result_unless_arguments_differ(shared_stores: Stores) -> None:
    org = new_id()
    await commit_key(shared_stores, new_key(org=org, text="a"), "first")
    with pytest.raises(DuplicateRequest) as duplicate:
        await commit_key(shared_stores, new_key(org=org, text="a"), "second")
    assert duplicate.value.result_id == "first"
    with pytest.raises(Conflict):
        await commit_key(shared_stores, new_key(org=org, text="b"), "third")


async def test_concurrent_uses_agree_on_one_result(shared_stores: Stores) -> None:
    key = new_key(org=new_id())
    uses = (commit_key(shared_stores, key, str(number)) for number in range(10))
    outcomes = await asyncio.gather(*uses, return_exceptions=True)
    duplicates = [outcome for outcome in outcomes if isinstance(outcome, DuplicateRequest)]
    assert outcomes.count(None) == 1
    assert [outcome.result_id for outcome in duplicates] == [str(outcomes.index(None))] * 9


async def test_missing_key_stores_nothing(shared_stores: Stores) -> None:
    key_count_before = await shared_stores.mongo["idempotency"].count_documents({})
    await commit_key(shared_stores, None, "x")
    assert await shared_stores.mongo["idempotency"].count_documents({}) == key_count_before


async def test_keys_expire_after_a_day(shared_stores: Stores) -> None:
    indexes = await shared_stores.mongo["idempotency"].index_information()
    assert indexes["at_1"]["expireAfterSeconds"] == KEPT_S == 86_400
    await commit_key(shared_stores, new_key(org=(org := new_id())), "x")
    row = await shared_stores.mongo["idempotency"].find_one({"_id.org": org})
    assert row is not None
    assert row["at"] is not None


@pytest.mark.parametrize("arguments", [{"text": "a"}, {"text": "b"}])
async def test_key_of_an_earlier_version_returns_its_result(shared_stores: Stores, arguments: dict[str, str]) -> None:
    """Earlier versions computed the digest of some arguments only, so a different digest proves no conflict."""
    key = new_key(org=new_id(), **arguments)
    row = {"_id": key.id, "digest": "5e" * 32, "result": "first", "at": datetime.now(UTC)}
    await shared_stores.mongo["idempotency"].insert_one(row)
    with pytest.raises(DuplicateRequest) as duplicate:
        await commit_key(shared_stores, key, "second")
    assert duplicate.value.result_id == "first"
