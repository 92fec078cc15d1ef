"""Fingerprints of the operator's keys. They show a process that other processes use different keys."""

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
    """The keys that processes used with this database, in `key_fingerprints`. Each rotation adds a key."""

    _id: str
    """Name of the setting."""

    keys: list[KeyFingerprint]
    """All versions, in the order of their first use."""


class KeyMismatch(Exception):
    """The process's keys differ from the keys that other processes used with the database."""


async def agree_on_keys(mongo: Mongo, setting: str, keys: Mapping[str, bytes]) -> None:
    """Records the fingerprints of new versions. `keys` are by version and may be empty.

    Raises: KeyMismatch if the key of a version differs from the recorded key, or if `keys` has none of the recorded
    versions.
    """
    own_keys: list[KeyFingerprint] = [
        {"version": version, "fingerprint": hmac.digest(key, _LABEL, "sha256").hex()} for version, key in keys.items()
    ]
    documents = mongo["key_fingerprints"]
    while own_keys:
        recorded = await _read_recorded(documents, setting, own_keys)
        new_keys = _new_keys(own_keys, recorded)
        if not new_keys:
            return
        # Changes nothing if another process has added versions meanwhile. The loop then reads them.
        await documents.update_one({"_id": setting, "keys": recorded}, {"$push": {"keys": {"$each": new_keys}}})


async def _read_recorded(documents: Collection, setting: str, own: list[KeyFingerprint]) -> list[KeyFingerprint]:
    """Returns the recorded fingerprints. The first process records its own."""
    document: KeyFingerprintsDocument | None = await documents.find_one_and_update(
        {"_id": setting}, {"$setOnInsert": {"keys": own}}, upsert=True, return_document=ReturnDocument.AFTER
    )
    assert document is not None
    return document["keys"]


def _new_keys(own: list[KeyFingerprint], recorded: list[KeyFingerprint]) -> list[KeyFingerprint]:
    """Returns the keys whose version is not recorded. Raises: KeyMismatch."""
    recorded_by_version = {each["version"]: each["fingerprint"] for each in recorded}
    new_keys = [each for each in own if each["version"] not in recorded_by_version]
    differing = [each["version"] for each in own if each not in new_keys and each not in recorded]
    if differing:
        raise KeyMismatch(f"another key has the version {', '.join(differing)}")
    if len(new_keys) == len(own):
        raise KeyMismatch(f"none of the versions {', '.join(recorded_by_version)} is set")
    return new_keys
