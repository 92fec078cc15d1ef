"""The list of users whose access was changed. Every process reads it and checks the sessions of these users again.

Processes read the list from MongoDB every few seconds, so that a revocation takes effect without Redis too. Every
reduction of access is recorded. Some extensions are recorded too, so that a cached session gets a new role.
"""

from datetime import datetime, timedelta

from pymongo.asynchronous.collection import AsyncCollection

from storage.identity.documents import AccessChangeDocument
from storage.ids import UserKey, new_id
from storage.mongo import TRANSACTION_DEADLINE_S, Mongo, Session

ACCESS_CHANGES = "access_changes"

OVERLAP = timedelta(seconds=2 * TRANSACTION_DEADLINE_S)
"""How long a change is still returned after its time. Its transaction may commit late, and a sign-in that began before
the change may end late."""


class AccessChanges:
    """Records and reads changes of access."""

    def __init__(self, mongo: Mongo) -> None:
        self._mongo = mongo
        self._changes: AsyncCollection[AccessChangeDocument] = mongo[ACCESS_CHANGES]

    async def record(self, user: UserKey, at: datetime, session: Session) -> None:
        """Records a change in the transaction that changes the user's access."""
        document: AccessChangeDocument = {
            "_id": new_id(),
            "org": user.organization_id,
            "user": user.user_id,
            "at": at,
        }
        await self._changes.insert_one(document, session=session)

    async def users_since(self, since: datetime) -> set[UserKey]:
        """Returns the users whose access was changed after `since`, or at most `OVERLAP` before."""
        query = {"at": {"$gte": since - OVERLAP}}
        rows: list[AccessChangeDocument] = await self._mongo.find(ACCESS_CHANGES, query, {"org": 1, "user": 1})
        return {UserKey(row["org"], row["user"]) for row in rows}
