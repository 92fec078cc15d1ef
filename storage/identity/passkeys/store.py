"""Adds, lists, renames and removes passkeys.

Adding and removing lock the person's account, so that the number of passkeys and the last way to sign in are certain.
"""

import hashlib
from datetime import datetime

from pymongo import ReturnDocument
from pymongo.asynchronous.collection import AsyncCollection

from storage.errors import Conflict, NotFound
from storage.identity.access_changes import AccessChanges
from storage.identity.accounts.local_accounts import LocalAccounts
from storage.identity.audit import Actor, AuditAction, AuditLog, TargetKind, audit_document
from storage.identity.passkeys.documents import PasskeyChallengeDocument, PasskeyDocument
from storage.identity.passkeys.records import NewPasskey, Passkey, PasskeyRefused, passkey_id, passkey_record
from storage.identity.sessions import SessionStore
from storage.ids import UserKey
from storage.mongo import Document, Mongo, Session

PASSKEYS = "passkeys"
CHALLENGES = "passkey_challenges"
MAX_PASSKEYS_OF_USER = 20


class PasskeyStore:
    """The passkeys of local accounts."""

    def __init__(
        self, mongo: Mongo, accounts: LocalAccounts, sessions: SessionStore, audit: AuditLog, access: AccessChanges
    ) -> None:
        self._mongo = mongo
        self._accounts = accounts
        self._sessions = sessions
        self._audit = audit
        self._access = access
        self._passkeys: AsyncCollection[PasskeyDocument] = mongo[PASSKEYS]
        self._challenges: AsyncCollection[PasskeyChallengeDocument] = mongo[CHALLENGES]

    async def list_of(self, user: UserKey) -> list[Passkey]:
        """Returns the passkeys of a user, the oldest first."""
        order = [("at", 1)]
        rows: list[PasskeyDocument] = await self._mongo.find(
            PASSKEYS, _passkeys_of(user), sort=order, limit=MAX_PASSKEYS_OF_USER
        )
        return [passkey_record(row) for row in rows]

    async def find(self, organization_id: str, credential: bytes) -> Passkey | None:
        """Returns the organization's passkey with this credential id, or None."""
        query = {"_id": passkey_id(credential), "org": organization_id}
        rows: list[PasskeyDocument] = await self._mongo.find(PASSKEYS, query, limit=1)
        return passkey_record(rows[0]) if rows else None

    async def add(self, actor: Actor, new: NewPasskey) -> Passkey:
        """Adds a passkey of the actor. Raises: Forbidden without a local account, Conflict, PasskeyRefused."""
        document = await self._mongo.transact(lambda session: self.insert(actor, new, session))
        return passkey_record(document)

    async def insert(self, actor: Actor, new: NewPasskey, session: Session) -> PasskeyDocument:
        """Adds a passkey in a transaction, such as the transaction that creates an account. Raises: as `add`."""
        user = UserKey(actor.organization_id, actor.user_id)
        await self._accounts.lock_for_passkey_change(user, session)
        await self.use_challenge(new.challenge, session)
        if await self._passkeys.find_one({"_id": passkey_id(new.credential)}, {"_id": 1}, session=session) is not None:
            raise Conflict("This passkey was added before.")
        if await self._passkeys.count_documents(_passkeys_of(user), session=session) >= MAX_PASSKEYS_OF_USER:
            raise Conflict(f"An account has {MAX_PASSKEYS_OF_USER} passkeys at most. Remove one first.")
        at = await self._mongo.now()
        document = _document(user, new, at)
        await self._passkeys.insert_one(document, session=session)
        await self._record(actor, AuditAction.PASSKEY_ADDED, document["_id"], at, session)
        return document

    async def rename(self, user: UserKey, id_: str, name: str) -> Passkey:
        """Gives a passkey of the user another name. Raises: NotFound."""
        renamed = await self._passkeys.find_one_and_update(
            {"_id": id_, **_passkeys_of(user)}, {"$set": {"name": name}}, return_document=ReturnDocument.AFTER
        )
        if renamed is None:
            raise NotFound("passkey", id_)
        return passkey_record(renamed)

    async def remove(self, actor: Actor, id_: str, session_id: str | None) -> Passkey:
        """Removes a passkey of the actor, and ends the actor's other sessions.

        Raises: NotFound; Conflict for the last passkey of an account without a password.
        """
        user = UserKey(actor.organization_id, actor.user_id)

        async def work(session: Session) -> PasskeyDocument:
            own = await self._passkeys.find(_passkeys_of(user), session=session).to_list(MAX_PASSKEYS_OF_USER)
            removed = next((each for each in own if each["_id"] == id_), None)
            if removed is None:
                raise NotFound("passkey", id_)
            account = await self._accounts.lock_for_passkey_change(user, session)
            if account.password_hash is None and len(own) == 1:
                raise Conflict("This is your only way to sign in. Choose a password or add another passkey first.")
            await self._passkeys.delete_one({"_id": id_}, session=session)
            at = await self._mongo.now()
            await self._sessions.end_all_in_transaction(session, user, except_id=session_id)
            await self._access.record(user, at, session)
            await self._record(actor, AuditAction.PASSKEY_REMOVED, id_, at, session)
            return removed

        return passkey_record(await self._mongo.transact(work))

    async def use_challenge(self, challenge: bytes, session: Session) -> None:
        """Marks a challenge as used, in the transaction that its answer allows.

        Raises: PasskeyRefused if the challenge was used before.
        """
        key = hashlib.sha256(challenge).hexdigest()
        if await self._challenges.find_one({"_id": key}, session=session) is not None:
            raise PasskeyRefused
        await self._challenges.insert_one({"_id": key, "at": await self._mongo.now()}, session=session)

    async def _record(self, actor: Actor, action: AuditAction, id_: str, at: datetime, session: Session) -> None:
        entry = audit_document(actor, action, TargetKind.USER, actor.user_id, at, passkey=id_)
        await self._audit.insert(entry, session)


def _passkeys_of(user: UserKey) -> Document:
    return {"org": user.organization_id, "user": user.user_id}


def _document(user: UserKey, new: NewPasskey, at: datetime) -> PasskeyDocument:
    return {
        "_id": passkey_id(new.credential),
        "org": user.organization_id,
        "user": user.user_id,
        "credential": new.credential,
        "key": new.key,
        "counter": new.counter,
        "synced": new.synced,
        "name": new.name,
        "at": at,
    }
