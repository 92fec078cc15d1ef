"""Recognizes the service key of a request, and stores when the key was last used, at most once a minute."""

import hmac
import math
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta

from pymongo.asynchronous.collection import AsyncCollection
from pymongo.errors import PyMongoError

from storage.errors import CredentialExpired, Unauthenticated
from storage.identity.documents import ServiceKeyDocument, StoredSecret
from storage.identity.keys.records import RecognizedKey
from storage.identity.keys.secrets import MalformedKey, parse_key
from storage.identity.keys.store import SERVICE_KEYS
from storage.identity.users import UserStore
from storage.mongo import Mongo, older_than
from storage.mongo.clock import DatabaseClock

USE_NOTED_EVERY_S = 60


class KeyInvalid(Unauthenticated):
    """The service key is unknown, revoked or mistyped."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"The service key is not valid: {reason}.")


class KeyExpired(CredentialExpired):
    """The service key, or the secret from before a rotation, has reached its end."""

    def __init__(self) -> None:
        super().__init__("The service key has expired.")


class KeyRecognizer:
    """Finds the key of a request by its text."""

    def __init__(self, mongo: Mongo, clock: DatabaseClock, users: UserStore) -> None:
        self._mongo = mongo
        self._clock = clock
        self._users = users
        self._keys: AsyncCollection[ServiceKeyDocument] = mongo[SERVICE_KEYS]

    async def recognize(self, text: str, *, is_use: bool = True) -> RecognizedKey:
        """Returns the key. `is_use` is False when an open socket is checked again.

        Raises: KeyInvalid, without a read for a mistyped key; KeyExpired.
        """
        try:
            parsed = parse_key(text)
        except MalformedKey:
            raise KeyInvalid("its checksum does not match, so it is mistyped or incomplete") from None
        found: list[ServiceKeyDocument] = await self._mongo.find(SERVICE_KEYS, {"_id": parsed.id})
        if not found or (secret := _matching(found[0]["secrets"], parsed.digest)) is None:
            raise KeyInvalid("it is unknown, or replaced by a newer secret")
        return await self._recognized(found[0], secret, is_use)

    async def _recognized(self, document: ServiceKeyDocument, secret: StoredSecret, is_use: bool) -> RecognizedKey:
        if "revoked_at" in document:
            raise KeyInvalid("it is revoked")
        now = await self._clock.now()
        ends = [each for each in (document.get("ends_at"), secret.get("until")) if each is not None]
        valid_s = min([(end - now).total_seconds() for end in ends], default=math.inf)
        if valid_s <= 0:
            raise KeyExpired
        account = await self._users.get(document["org"], document["_id"])
        if is_use:
            await self._note_use(document, now)
        return RecognizedKey(account, frozenset(document["scopes"]), valid_s)

    async def _note_use(self, document: ServiceKeyDocument, now: datetime) -> None:
        """Stores the time of the use, at most once a minute. The request is served even if this fails."""
        used_at = document.get("used_at")
        if used_at is not None and now - used_at < timedelta(seconds=USE_NOTED_EVERY_S):
            return
        unnoted = {"$or": [{"used_at": {"$exists": False}}, older_than("used_at", USE_NOTED_EVERY_S)]}
        with suppress(PyMongoError):
            await self._keys.update_one({"_id": document["_id"], **unnoted}, {"$currentDate": {"used_at": True}})


def _matching(secrets: Sequence[StoredSecret], digest: str) -> StoredSecret | None:
    """Returns the secret with this digest, or None."""
    return next((each for each in secrets if hmac.compare_digest(each["digest"], digest)), None)
