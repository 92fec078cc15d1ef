"""Mails to be sent about accounts. A request stores a row, and a worker prepares and sends the mail.

Tokens of links are made when the mail is sent, so that no token is stored. Requests about unknown addresses store
the same row; the worker then sends nothing.
"""

from dataclasses import dataclass
from datetime import timedelta
from enum import Enum

from pymongo import ReturnDocument
from pymongo.asynchronous.collection import AsyncCollection

from storage.identity.accounts.documents import AccountMailDocument
from storage.identity.accounts.local_accounts import MailLanguage
from storage.ids import new_id
from storage.mongo import Document, Mongo, Session, due_filter, seconds_from_now

ACCOUNT_MAILS = "account_mails"
RETRY_S = 60
"""How long a claim lasts. A mail that could not be sent is tried again after this time."""


class AccountMailKind(Enum):
    """Subject of a mail. The value is stored."""

    REGISTRATION = "REGISTRATION"
    RESET = "RESET"
    INVITATION = "INVITATION"


LIFETIMES = {
    AccountMailKind.REGISTRATION: timedelta(hours=12),
    AccountMailKind.RESET: timedelta(hours=1),
    AccountMailKind.INVITATION: timedelta(days=3),
}
"""For how long sending is tried."""


@dataclass(frozen=True, slots=True)
class AccountMail:
    """A claimed mail."""

    id: str
    kind: AccountMailKind
    organization_id: str
    address: str
    language: MailLanguage
    invitation_id: str | None


class LocalAccountMails:
    """Stores, claims and deletes mails."""

    def __init__(self, mongo: Mongo) -> None:
        self._mongo = mongo
        self._mails: AsyncCollection[AccountMailDocument] = mongo[ACCOUNT_MAILS]

    async def add(
        self,
        kind: AccountMailKind,
        organization_id: str,
        address: str,
        language: MailLanguage,
        session: Session | None = None,
        invitation_id: str | None = None,
    ) -> None:
        """Stores a mail to be sent, in the transaction `session` if there is one."""
        now = await self._mongo.now()
        document: AccountMailDocument = {
            "_id": new_id(),
            "kind": kind.value,
            "org": organization_id,
            "address": address,
            "language": language.value,
            "due": now,
            "expires_at": now + LIFETIMES[kind],
        }
        if invitation_id is not None:
            document["invitation"] = invitation_id
        await self._mails.insert_one(document, session=session)

    async def claim(self, limit: int) -> list[AccountMail]:
        """Claims due mails for a minute, the oldest first. Afterwards they are due again unless they were finished."""
        due = due_filter("due")
        rows = await self._mongo.find(ACCOUNT_MAILS, due, {"_id": 1}, sort=[("due", 1)], limit=limit)
        claimed = [await self._claim({"_id": row["_id"], **due}) for row in rows]
        return [_mail(each) for each in claimed if each is not None]

    async def finish(self, mail: AccountMail) -> None:
        """Deletes a mail that was sent, or can never be sent."""
        await self._mails.delete_one({"_id": mail.id})

    async def _claim(self, query: Document) -> AccountMailDocument | None:
        claim = [{"$set": {"due": seconds_from_now(RETRY_S)}}]
        return await self._mails.find_one_and_update(query, claim, return_document=ReturnDocument.AFTER)


def _mail(document: AccountMailDocument) -> AccountMail:
    return AccountMail(
        document["_id"],
        AccountMailKind(document["kind"]),
        document["org"],
        document["address"],
        MailLanguage(document["language"]),
        document.get("invitation"),
    )
