"""Connected accounts of organizations. Credentials are encrypted at rest and deleted on disconnection."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import cast

from pymongo.asynchronous.collection import AsyncCollection

from storage.errors import Conflict, NotFound
from storage.idempotency import DuplicateRequest, IdempotencyKey, store_key, used_keys
from storage.identity.audit import Actor, AuditAction, AuditLog, TargetKind, audit_document
from storage.identity.rights import lock_operator
from storage.ids import new_id
from storage.mongo import Document, Mongo, Session, literals
from storage.mongo.batch_loader import BatchLoader
from storage.publishing.credentials.lifetimes import (
    RENEWED_FIELDS,
    UNKNOWN_LIFETIME,
    CredentialLifetime,
    lifetime_fields,
)
from storage.publishing.credentials.verifications import verification_fields
from storage.publishing.documents import AccountDocument
from storage.publishing.networks import Network
from storage.publishing.records import NOT_VERIFIED, ConnectedAccount, VerifiedAccount, account_record
from storage.secrets.credentials import CredentialCipher, CredentialsLost, SealedSecret

ERASED_NAME = "Deleted account"
"""Name of an account that an erased user connected."""

_CREDENTIAL_FIELDS = (*RENEWED_FIELDS, "credentials", "attention", "verify_at", "verification")
"""Fields of an account's document that are removed with its credentials."""


@dataclass(frozen=True, slots=True)
class AccountToConnect:
    """A validated account to connect, without its credentials."""

    organization_id: str
    network: Network
    name: str
    base_url: str | None
    connected_by: str | None = None
    """Id of the user who connects the account."""

    verified: VerifiedAccount = NOT_VERIFIED
    """The account that the network named for the credentials."""

    lifetime: CredentialLifetime = UNKNOWN_LIFETIME
    """How long the credentials last."""


class ConnectedAccountStore:
    """Reads, connects and disconnects accounts, and replaces their credentials."""

    def __init__(self, mongo: Mongo, credentials: CredentialCipher) -> None:
        self._mongo = mongo
        self._audit = AuditLog(mongo)
        self._accounts: AsyncCollection[AccountDocument] = mongo["accounts"]
        self._credentials = credentials
        self._by_id: BatchLoader[str, ConnectedAccount] = BatchLoader(self._load)
        self._encrypted: BatchLoader[str, SealedSecret] = BatchLoader(self._load_encrypted)

    async def connect(
        self, new: AccountToConnect, secret: str, key: IdempotencyKey | None, actor: Actor | None = None
    ) -> ConnectedAccount:
        """Connects an account with `secret` as its credentials. A repeated key returns the same account.

        Raises: Forbidden if the actor is no operator now; Conflict for a key reused with other arguments; Unavailable
        without encryption keys.
        """
        id_ = new_id()
        document = self._new_document(id_, new, secret)

        async def work(session: Session) -> str:
            await lock_operator(self._mongo, actor, session)
            try:
                await store_key(self._mongo, key, id_, session)
            except DuplicateRequest as duplicate:
                return duplicate.result_id
            await self._accounts.insert_one(document, session=session)
            details = {"network": new.network.value, "name": new.name}
            await self._record(actor, AuditAction.ACCOUNT_CONNECTED, id_, session, **details)
            return id_

        return await self.get(new.organization_id, await self._mongo.transact(work))

    def _new_document(self, id_: str, new: AccountToConnect, secret: str) -> AccountDocument:
        now = datetime.now(UTC)
        document: AccountDocument = {
            "_id": id_,
            "org": new.organization_id,
            "network": new.network.value,
            "name": new.name,
            "base_url": new.base_url,
            "credentials": self._credentials.seal(secret, id_),
            "connected_at": now,
        }
        if new.connected_by is not None:
            document["connected_by"] = new.connected_by
        if new.verified.id is not None:
            document["network_id"], document["verified_at"] = new.verified.id, now
        if new.verified.handle is not None:
            document["handle"] = new.verified.handle
        lifetime = lifetime_fields(self._credentials, id_, new.network, new.lifetime, now)
        return cast(AccountDocument, {**document, **lifetime, **verification_fields(new.network, now)})

    async def replace_credentials(
        self,
        account: ConnectedAccount,
        secret: str,
        verified: VerifiedAccount,
        key: IdempotencyKey | None,
        actor: Actor | None = None,
        lifetime: CredentialLifetime = UNKNOWN_LIFETIME,
    ) -> ConnectedAccount:
        """Replaces the credentials of a connected account. Later calls to its network use the new ones.

        `verified` is the account that the network named for them, which the caller has compared. If the account was
        connected before its network was asked, `verified` is stored. A repeated key changes nothing.

        Raises: Forbidden if the actor is no operator now; Conflict if the account is disconnected, or for a key reused
        with other arguments; Unavailable without encryption keys.
        """
        change = self._replacement(account, secret, verified, actor, lifetime)
        # The network's id is the one that the caller has compared. Two replacements at a time may both find none.
        unchanged = {"_id": account.id, "disconnected_at": None, "network_id": account.network_id}

        async def work(session: Session) -> None:
            await lock_operator(self._mongo, actor, session)
            try:
                await store_key(self._mongo, key, account.id, session)
            except DuplicateRequest:
                return
            if not (await self._accounts.update_one(unchanged, change, session=session)).matched_count:
                raise Conflict("The account was disconnected or changed. Load it again.")
            await self._record(actor, AuditAction.ACCOUNT_CREDENTIALS_REPLACED, account.id, session)

        await self._mongo.transact(work)
        return await self.get(account.organization_id, account.id)

    def _replacement(
        self,
        account: ConnectedAccount,
        secret: str,
        verified: VerifiedAccount,
        actor: Actor | None,
        lifetime: CredentialLifetime,
    ) -> list[Document]:
        """Returns the update that stores new credentials. Whoever gave them is the user who connected the account."""
        now = datetime.now(UTC)
        fields = {
            **lifetime_fields(self._credentials, account.id, account.network, lifetime, now),
            **verification_fields(account.network, now),
            "credentials": self._credentials.seal(secret, account.id),
            "connected_by": None if actor is None or actor.is_command_line else actor.user_id,
            "network_id": verified.id,
            "handle": verified.handle,
        }
        stored = literals({name: value for name, value in fields.items() if value is not None})
        stored = stored if verified.id is None else {**stored, "verified_at": "$$NOW"}
        return [{"$unset": list(RENEWED_FIELDS)}, {"$set": stored}]

    async def find_by_key(self, key: IdempotencyKey | None) -> ConnectedAccount | None:
        """Returns the account of an earlier request with the key, or None. Raises: Conflict for other arguments."""
        if key is None:
            return None
        for earlier in (await used_keys(self._mongo, [key])).values():
            try:
                key.raise_duplicate(earlier)
            except DuplicateRequest as duplicate:
                return await self.get(key.organization_id, duplicate.result_id)
        return None

    def fingerprint(self, secret: str) -> str:
        """Returns a digest by which secrets are compared without storing them. Raises: Unavailable without keys."""
        return self._credentials.fingerprint(secret)

    async def find(self, organization_id: str, id_: str) -> ConnectedAccount | None:
        """Returns the organization's account of that id, or None."""
        account = await self._by_id.get(id_)
        return account if account is not None and account.organization_id == organization_id else None

    async def get(self, organization_id: str, id_: str) -> ConnectedAccount:
        """Returns the organization's account of that id. Raises: NotFound."""
        account = await self.find(organization_id, id_)
        if account is None:
            raise NotFound("connected account", id_)
        return account

    async def get_all(self, organization_id: str, ids: Sequence[str]) -> list[ConnectedAccount]:
        """Returns the account of each id, in the order of the ids. Raises: NotFound if an account does not exist."""
        found = await self._by_id.find(ids)
        for id_ in ids:
            if id_ not in found or found[id_].organization_id != organization_id:
                raise NotFound("connected account", id_)
        return [found[id_] for id_ in ids]

    async def list_connected(self, organization_id: str) -> list[ConnectedAccount]:
        """Returns the organization's connected accounts, oldest first."""
        query = {"org": organization_id, "disconnected_at": None}
        return [account_record(each) async for each in self._accounts.find(query).sort("_id", 1)]

    async def decrypt_credentials(self, account: ConnectedAccount) -> str:
        """Returns the account's credentials. Use them at once; never keep or log them. Raises: CredentialsLost."""
        return self.open(account, await self.sealed_credentials(account))

    async def sealed_credentials(self, account: ConnectedAccount) -> SealedSecret:
        """Returns the account's credentials as they are stored, encrypted. Raises: CredentialsLost."""
        encrypted = await self._encrypted.get(account.id)
        if encrypted is None:
            raise CredentialsLost("The account is disconnected.")
        return encrypted

    def open(self, account: ConnectedAccount, encrypted: SealedSecret) -> str:
        """Returns the decrypted credentials. Raises: CredentialsLost."""
        return self._credentials.open(encrypted, account.id)

    async def disconnect(self, account: ConnectedAccount, actor: Actor | None = None) -> ConnectedAccount:
        """Disconnects the account and deletes its credentials. Idempotent.

        The caller then fails the publications that wait for the account, and calls `mark_cleared`. Raises: Forbidden
        if the actor is no operator now.
        """
        disconnected = {"disconnected_at": "$$NOW", "failing": True}
        change: list[Document] = [{"$set": disconnected}, {"$unset": list(_CREDENTIAL_FIELDS)}]
        connected = {"_id": account.id, "disconnected_at": None}

        async def work(session: Session) -> None:
            await lock_operator(self._mongo, actor, session)
            if (await self._accounts.update_one(connected, change, session=session)).modified_count:
                await self._record(actor, AuditAction.ACCOUNT_DISCONNECTED, account.id, session)

        await self._mongo.transact(work)
        return await self.get(account.organization_id, account.id)

    async def _record(
        self, actor: Actor | None, action: AuditAction, id_: str, session: Session, **details: str
    ) -> None:
        """Inserts the entry of the audit log, without credentials."""
        if actor is not None:
            at, kind = await self._mongo.now(), TargetKind.CONNECTED_ACCOUNT
            await self._audit.insert(audit_document(actor, action, kind, id_, at, **details), session)

    async def erase(self, account_id: str) -> None:
        """Disconnects an account that an erased user connected. Removes its names and its address. Idempotent."""
        erased = {
            "name": ERASED_NAME,
            "base_url": None,
            "failing": True,
            "disconnected_at": {"$ifNull": ["$disconnected_at", "$$NOW"]},
        }
        removed = [*_CREDENTIAL_FIELDS, "handle", "network_id"]
        change: list[Document] = [{"$set": erased}, {"$unset": removed}]
        await self._accounts.update_one({"_id": account_id, "name": {"$ne": ERASED_NAME}}, change)

    async def list_disconnected(self, limit: int) -> list[ConnectedAccount]:
        """Returns disconnected accounts that publications may still wait for."""
        return [account_record(each) async for each in self._accounts.find({"failing": True}).limit(limit)]

    async def mark_cleared(self, account: ConnectedAccount) -> None:
        """Stores that no publication waits for this disconnected account."""
        await self._accounts.update_one({"_id": account.id}, {"$unset": {"failing": ""}})

    async def _load(self, ids: Sequence[str]) -> dict[str, ConnectedAccount]:
        # The nonce shows whether the credentials are those that were refused.
        without_secret = {"credentials.sealed": 0, "credentials.version": 0, "refresh_token": 0}
        found = await self._mongo.find("accounts", {"_id": {"$in": list(ids)}}, without_secret)
        return {each["_id"]: account_record(each) for each in found}

    async def _load_encrypted(self, ids: Sequence[str]) -> dict[str, SealedSecret]:
        query = {"_id": {"$in": list(ids)}, "credentials": {"$exists": True}}
        return {each["_id"]: each["credentials"] async for each in self._accounts.find(query, {"credentials": 1})}
