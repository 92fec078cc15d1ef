"""Fingerprints of the operator's keys, by which a process learns that others work with different keys."""

import hmac
from collections.abc import Mapping
from typing import TypedDict

from pymongo import ReturnDocument

from storage.mongo import Collection, Mongo

_LABEL = b"noroshi/key-fingerprint/v1"


class KeyFingerprint(TypedDict):
    """One version of a key."""

    version: str
    """Version of the key in its setting."""

    fingerprint: str
    """HMAC-SHA256 of a fixed text under the key. It doesn't reveal the key."""


class KeyFingerprintsDocument(TypedDict):
    """The keys that a database was used with, in `key_fingerprints`. Grows with each rotation."""

    _id: str
    """Name of the setting."""

    keys: list[KeyFingerprint]
    """All versions, in the order of their first use."""


class KeysDiffer(Exception):
    """The keys are not those that the database is used with."""


async def agree_on_keys(mongo: Mongo, setting: str, keys: Mapping[str, bytes]) -> None:
    """Records the fingerprints of new versions. `keys` are by version, any number of them.

    Raises: KeysDiffer when a version has another key than recorded, or when no recorded version is among `keys`.
    """
    own: list[KeyFingerprint] = [
        {"version": version, "fingerprint": hmac.digest(key, _LABEL, "sha256").hex()} for version, key in keys.items()
    ]
    documents = mongo["key_fingerprints"]
    while own:
        recorded = await _recorded(documents, setting, own)
        new_keys = _fresh(own, recorded)
        if not new_keys:
            return
        # Applies only if no other process added versions meanwhile.
        await documents.update_one({"_id": setting, "keys": recorded}, {"$push": {"keys": {"$each": new_keys}}})


async def _recorded(documents: Collection, setting: str, own: list[KeyFingerprint]) -> list[KeyFingerprint]:
    """Returns the recorded fingerprints. The first process records its own."""
    document: KeyFingerprintsDocument | None = await documents.find_one_and_update(
        {"_id": setting}, {"$setOnInsert": {"keys": own}}, upsert=True, return_document=ReturnDocument.AFTER
    )
    assert document is not None
    return document["keys"]


def _fresh(own: list[KeyFingerprint], recorded: list[KeyFingerprint]) -> list[KeyFingerprint]:
    """Returns the keys whose version is not recorded. Raises: KeysDiffer."""
    recorded_by_version = {each["version"]: each["fingerprint"] for each in recorded}
    new_keys = [each for each in own if each["version"] not in recorded_by_version]
    differing = [each["version"] for each in own if each not in new_keys and each not in recorded]
    if differing:
        raise KeysDiffer(f"version {', '.join(differing)} is another key")
    if len(new_keys) == len(own):
        raise KeysDiffer(f"version {', '.join(recorded_by_version)} is missing")
    return new_keys
