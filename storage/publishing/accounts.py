"""Connected accounts of organizations. What opens them is encrypted at rest, and gone once they are disconnected."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from storage.batch_loader import BatchLoader
from storage.errors import NotFound
from storage.idempotency import AlreadyDone, IdempotencyKey, claim
from storage.ids import new_id
from storage.mongo import Document, Mongo, Session
from storage.publishing.networks import Network
from storage.publishing.records import ConnectedAccount, account_record
from storage.secrets.credentials import Credentials, CredentialsLost


@dataclass(frozen=True, slots=True)
class NewAccount:
    """What an account is connected with, checked. Its representation does not show what opens it."""

    organization_id: str
    network: Network
    name: str
    base_url: str | None


class AccountStore:
    """Reads, connects and disconnects accounts."""

    def __init__(self, mongo: Mongo, credentials: Credentials) -> None:
        self._mongo = mongo
        self._accounts = mongo["accounts"]
        self._credentials = credentials
        self._by_id: BatchLoader[str, ConnectedAccount] = BatchLoader(self._load)
        self._sealed: BatchLoader[str, Document] = BatchLoader(self._load_sealed)

    async def connect(self, new: NewAccount, secret: str, key: IdempotencyKey | None) -> ConnectedAccount:
        """A new account that `secret` opens. Raises: Conflict for a reused key, Unavailable without encryption."""
        id_ = new_id()
        document = {
            "_id": id_,
            "org": new.organization_id,
            "network": new.network.value,
            "name": new.name,
            "base_url": new.base_url,
            "credentials": self._credentials.seal(secret, id_),
            "connected_at": datetime.now(UTC),
        }

        async def work(session: Session) -> str:
            try:
                await claim(self._mongo, key, id_, session)
            except AlreadyDone as done:
                return done.id
            await self._accounts.insert_one(document, session=session)
            return id_

        return await self.get(new.organization_id, await self._mongo.transact(work))

    def fingerprint(self, secret: str) -> str:
        """Tells secrets apart without telling them. Raises: Unavailable without encryption."""
        return self._credentials.fingerprint(secret)

    async def find(self, organization_id: str, id_: str) -> ConnectedAccount | None:
        """The organization's account of that id, or None."""
        account = await self._by_id.get(id_)
        return account if account is not None and account.organization_id == organization_id else None

    async def get(self, organization_id: str, id_: str) -> ConnectedAccount:
        """The organization's account of that id. Raises: NotFound."""
        account = await self.find(organization_id, id_)
        if account is None:
            raise NotFound("connected account", id_)
        return account

    async def list_connected(self, organization_id: str) -> list[ConnectedAccount]:
        """The organization's accounts that are connected, oldest first."""
        wanted = {"org": organization_id, "disconnected_at": None}
        return [account_record(row) async for row in self._accounts.find(wanted).sort("_id", 1)]

    async def open(self, account: ConnectedAccount) -> str:
        """What opens the account: to be used at once, and never kept or logged. Raises: CredentialsLost."""
        sealed = await self._sealed.get(account.id)
        if sealed is None:
            raise CredentialsLost("The account was disconnected.")
        return self._credentials.open(sealed, account.id)

    async def disconnect(self, account: ConnectedAccount) -> ConnectedAccount:
        """Forgets what opened it, for good. Twice is once. What waits for it has to be failed afterwards."""
        gone: list[Document] = [{"$set": {"disconnected_at": "$$NOW", "failing": True}}, {"$unset": "credentials"}]
        await self._accounts.update_one({"_id": account.id, "disconnected_at": None}, gone)
        return await self.get(account.organization_id, account.id)

    async def disconnected(self, limit: int) -> list[ConnectedAccount]:
        """Disconnected accounts for which something may still wait."""
        return [account_record(row) async for row in self._accounts.find({"failing": True}).limit(limit)]

    async def cleared(self, account: ConnectedAccount) -> None:
        """Nothing waits for this disconnected account any more."""
        await self._accounts.update_one({"_id": account.id}, {"$unset": {"failing": ""}})

    async def _load(self, ids: Sequence[str]) -> dict[str, ConnectedAccount]:
        cursor = self._accounts.find({"_id": {"$in": list(ids)}}, {"credentials": 0})
        return {row["_id"]: account_record(row) async for row in cursor}

    async def _load_sealed(self, ids: Sequence[str]) -> dict[str, Document]:
        wanted = {"_id": {"$in": list(ids)}, "credentials": {"$exists": True}}
        return {row["_id"]: row["credentials"] async for row in self._accounts.find(wanted, {"credentials": 1})}
