"""Refusals of an account's credentials that no publication has met: the account's mark, and a notification."""

from collections.abc import Sequence
from dataclasses import dataclass

from storage.identity.records import user_stream
from storage.mongo import Document, Mongo, Session
from storage.notifications import NotificationKind, notification_ref
from storage.publishing.documents import AccountDocument
from storage.publishing.records import account_attention
from storage.streams.outbox import add_rows


@dataclass(frozen=True, slots=True)
class CredentialRefusal:
    """Why the credentials of an account can't be used."""

    code: str
    message: str
    occasion: str
    """Token of the worker's claim, by which this refusal is notified once."""

    of_renewal: bool = False
    """Whether the network does not renew the credentials. The mark then stays until they are replaced."""


async def store_refusal(mongo: Mongo, query: Document, refusal: CredentialRefusal, change: Sequence[Document]) -> bool:
    """Marks the account that the query finds, and applies `change` to it. Returns False if the query finds none.

    The same transaction notifies the person who gave the credentials, unless the account was marked before.
    """

    async def work(session: Session) -> bool:
        account: AccountDocument | None = await mongo["accounts"].find_one(query, session=session)
        if account is None:
            return False
        is_marked = account_attention(account) is not None
        marks = [] if is_marked and not refusal.of_renewal else [_mark(account, refusal)]
        await mongo["accounts"].update_one({"_id": account["_id"]}, [*marks, *change], session=session)
        if not is_marked:
            await notify_owner(mongo, account, NotificationKind.ACCOUNT_NEEDS_ATTENTION, refusal.occasion, session)
        return True

    return await mongo.transact(work)


def _mark(account: AccountDocument, refusal: CredentialRefusal) -> Document:
    mark: Document = {"code": refusal.code, "message": refusal.message, "nonce": account["credentials"]["nonce"]}
    if refusal.of_renewal:
        mark["of_renewal"] = True
    # As a whole, so that nothing of an earlier mark stays.
    attention = {"$literal": mark}
    return {"$set": {"attention": {"$mergeObjects": [attention, {"since": "$$NOW"}]}}}


async def notify_owner(
    mongo: Mongo, account: AccountDocument, kind: NotificationKind, occasion: str, session: Session
) -> None:
    """Notifies the person who gave the account's credentials when the transaction is committed.

    Nobody is notified if that person is not known, as for accounts of earlier versions.
    """
    owner_id = account.get("connected_by")
    if owner_id is None:
        return
    ref = notification_ref(kind)
    ref["account"], ref["occasion"] = account["_id"], occasion
    await add_rows(mongo, user_stream(account["org"], owner_id), "Notify", [ref], session)
