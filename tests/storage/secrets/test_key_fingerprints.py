"""Fingerprints of keys: the first process decides, rotations add versions, and other keys are refused."""

import asyncio

import pytest

from storage.secrets.key_fingerprints import KeyMismatch, agree_on_keys
from storage.stores import Stores

A, B, C = (letter.encode() * 32 for letter in "abc")

pytestmark = pytest.mark.anyio


async def test_same_keys_agree_and_are_recorded_once(stores: Stores) -> None:
    for _ in range(2):
        await agree_on_keys(stores.mongo, "address_keys", {"1": A})
    (document,) = await stores.mongo.find("key_fingerprints", {})
    assert [each["version"] for each in document["keys"]] == ["1"]
    assert A not in str(document).encode()


async def test_other_key_of_recorded_version_is_refused(stores: Stores) -> None:
    await agree_on_keys(stores.mongo, "address_keys", {"1": A})
    for keys in ({"1": B}, {"2": C, "1": B}):
        with pytest.raises(KeyMismatch, match="another key has the version 1"):
            await agree_on_keys(stores.mongo, "address_keys", keys)
    await agree_on_keys(stores.mongo, "credential_keys", {"1": B})


async def test_rotation_adds_version_and_removes_old_one(stores: Stores) -> None:
    for keys in ({"1": A}, {"2": B, "1": A}, {"1": A}, {"2": B, "1": A}, {"2": B}, {"3.$": C, "2": B}, {"3.$": C}):
        await agree_on_keys(stores.mongo, "address_keys", keys)
    with pytest.raises(KeyMismatch, match="another key has the version 2"):
        await agree_on_keys(stores.mongo, "address_keys", {"3.$": C, "2": C})


async def test_keys_without_the_recorded_version_are_refused(stores: Stores) -> None:
    await agree_on_keys(stores.mongo, "address_keys", {"2": A})
    with pytest.raises(KeyMismatch, match="none of the versions 2 is set"):
        await agree_on_keys(stores.mongo, "address_keys", {"1": B})


async def test_process_without_keys_agrees_and_records_nothing(stores: Stores) -> None:
    await agree_on_keys(stores.mongo, "address_keys", {})
    assert await stores.mongo.find("key_fingerprints", {}) == []


@pytest.mark.parametrize("recorded_keys", [{}, {"1": A}])
async def test_one_of_several_concurrent_new_keys_is_recorded(stores: Stores, recorded_keys: dict[str, bytes]) -> None:
    await agree_on_keys(stores.mongo, "address_keys", recorded_keys)
    candidates = [recorded_keys | {"2": bytes([number]) * 32} for number in range(20)]
    outcomes = await asyncio.gather(
        *(agree_on_keys(stores.mongo, "address_keys", keys) for keys in candidates), return_exceptions=True
    )
    winners = [keys for keys, outcome in zip(candidates, outcomes, strict=True) if outcome is None]
    assert len(winners) == 1
    assert sum(isinstance(outcome, KeyMismatch) for outcome in outcomes) == 19
    await agree_on_keys(stores.mongo, "address_keys", winners[0])
