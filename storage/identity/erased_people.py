"""Refusal of writes about people whose erasure was requested.

An erasure begins `BEGIN_AFTER_S` after its request (storage/privacy/erasures.py). Requests and commits that have not
seen the request have ended by then. So a check when a request begins, or in its commit, lets nothing be written later.
Outbox rows may be relayed later than that. Their relays check in their own commits.
"""

from storage.errors import NotFound
from storage.identity.documents import UserDocument
from storage.identity.records import user_document_id
from storage.ids import UserKey
from storage.mongo import Mongo, Session
from storage.streams.changes import Batch, DocumentKey

USERS = "users"


def user_key(user: UserKey) -> DocumentKey:
    """Returns the key of a user's document. A change that calls `require_not_erased` needs it."""
    return USERS, user_document_id(*user)


def require_not_erased(batch: Batch, user: UserKey) -> None:
    """Raises NotFound for a user whose erasure was requested. The batch must have loaded the user's document."""
    stored: UserDocument | None = batch.get(*user_key(user))
    if stored is not None and "erasing_at" in stored:
        raise NotFound("user", user.user_id)


async def is_being_erased(mongo: Mongo, user: UserKey, session: Session | None = None) -> bool:
    """Returns whether the erasure of a user was requested, also after its end."""
    query = {"_id": user_document_id(*user), "erasing_at": {"$exists": True}}
    return await mongo[USERS].find_one(query, {"_id": 1}, session=session) is not None


async def check_not_erased(mongo: Mongo, user: UserKey, session: Session | None = None) -> None:
    """Raises NotFound for a user whose erasure was requested. Reads the user's document."""
    if await is_being_erased(mongo, user, session):
        raise NotFound("user", user.user_id)
