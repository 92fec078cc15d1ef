"""Users whose access was reduced: the list from which every process learns whose sessions it must check again.

Processes read the list from MongoDB every few seconds, so that a revocation takes effect without Redis too.
"""

from datetime import datetime, timedelta
from typing import NamedTuple

from pymongo.asynchronous.collection import AsyncCollection

from storage.identity.documents import AccessChangeDocument
from storage.ids import new_id
from storage.mongo import TRANSACTION_DEADLINE_S, Mongo, Session

ACCESS_CHANGES = "access_changes"

OVERLAP = timedelta(seconds=2 * TRANSACTION_DEADLINE_S)
"""How long a change is returned again: until it is surely committed, and a sign-in that began before it has ended."""


class UserKey(NamedTuple):
    """A user of an organization."""

    organization_id: str
    user_id: str


class AccessChanges:
    """Records and reads changes of access."""

    def __init__(self, mongo: Mongo) -> None:
        self._mongo = mongo
        self._changes: AsyncCollection[AccessChangeDocument] = mongo[ACCESS_CHANGES]

    async def record(self, user: UserKey, at: datetime, session: Session) -> None:
        """Records a change in the transaction that reduces the user's access."""
        document: AccessChangeDocument = {
            "_id": new_id(),
            "org": user.organization_id,
            "user": user.user_id,
            "at": at,
        }
        await self._changes.insert_one(document, session=session)

    async def users_since(self, since: datetime) -> set[UserKey]:
        """Returns the users whose access was reduced since then, or shortly before."""
        query = {"at": {"$gte": since - OVERLAP}}
        rows: list[AccessChangeDocument] = await self._mongo.find(ACCESS_CHANGES, query, {"org": 1, "user": 1})
        return {UserKey(row["org"], row["user"]) for row in rows}
