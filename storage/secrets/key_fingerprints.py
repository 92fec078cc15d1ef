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
        fresh = _fresh(own, recorded)
        if not fresh:
            return
        # Applies only if no other process added versions meanwhile.
        await documents.update_one({"_id": setting, "keys": recorded}, {"$push": {"keys": {"$each": fresh}}})


async def _recorded(documents: Collection, setting: str, own: list[KeyFingerprint]) -> list[KeyFingerprint]:
    """Returns the recorded fingerprints. The first process records its own."""
    document: KeyFingerprintsDocument | None = await documents.find_one_and_update(
        {"_id": setting}, {"$setOnInsert": {"keys": own}}, upsert=True, return_document=ReturnDocument.AFTER
    )
    assert document is not None
    return document["keys"]


def _fresh(own: list[KeyFingerprint], recorded: list[KeyFingerprint]) -> list[KeyFingerprint]:
    """Returns the keys whose version is not recorded. Raises: KeysDiffer."""
    known = {each["version"]: each["fingerprint"] for each in recorded}
    fresh = [each for each in own if each["version"] not in known]
    changed = [each["version"] for each in own if each not in fresh and each not in recorded]
    if changed:
        raise KeysDiffer(f"version {', '.join(changed)} is another key")
    if len(fresh) == len(own):
        raise KeysDiffer(f"version {', '.join(known)} is missing")
    return fresh
