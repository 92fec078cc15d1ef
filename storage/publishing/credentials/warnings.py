"""Warnings before accounts' credentials end, to the person who gave them. Each is sent once."""

from functools import partial

from pymongo.asynchronous.collection import AsyncCollection

from storage.mongo import Document, Mongo, Session, due_filter
from storage.notifications import NotificationKind
from storage.publishing.credentials.lifetimes import due_warning, next_warning_at
from storage.publishing.credentials.refusals import notify_owner
from storage.publishing.documents import AccountDocument
from storage.publishing.records import account_attention


class CredentialWarnings:
    """Sends warnings that are due. A transaction stores the warning with the row of its notification."""

    def __init__(self, mongo: Mongo) -> None:
        self._mongo = mongo
        self._accounts: AsyncCollection[AccountDocument] = mongo["accounts"]

    async def send_due(self, limit: int) -> int:
        """Sends the warnings of at most `limit` accounts, those that are due first. Returns how many it sent."""
        query, order = due_filter("warn_at"), [("warn_at", 1)]
        due = await self._mongo.find("accounts", query, {"_id": 1}, order, limit)
        return sum([await self._mongo.transact(partial(self._warn, each["_id"])) for each in due])

    async def _warn(self, account_id: str, session: Session) -> bool:
        """Sends the most urgent warning that is due, unless another worker did. Returns whether it was sent."""
        account = await self._accounts.find_one({"_id": account_id, **due_filter("warn_at")}, session=session)
        if account is None:
            return False
        now = await self._mongo.now()
        days = due_warning(account["expires_at"], now)
        is_sent = days is not None and days < account.get("warned_days", days + 1) and not account_attention(account)
        warn_at = next_warning_at(account["expires_at"], now)
        change: Document = {"$unset": {"warn_at": ""}} if warn_at is None else {"$set": {"warn_at": warn_at}}
        if days is not None and is_sent:
            change["$set"] = change.get("$set", {}) | {"warned_days": days}
            await self._notify(account, days, session)
        await self._accounts.update_one({"_id": account_id}, change, session=session)
        return is_sent

    async def _notify(self, account: AccountDocument, days: int, session: Session) -> None:
        kind = NotificationKind.ACCOUNT_CREDENTIALS_ENDING if days else NotificationKind.ACCOUNT_CREDENTIALS_ENDED
        occasion = f"{account['credentials']['nonce'].hex()}/{days}"
        await notify_owner(self._mongo, account, kind, occasion, session)
