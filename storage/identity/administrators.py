"""The right to administer an organization, checked in the transaction of each administrative change."""

from datetime import datetime

from storage.errors import Forbidden
from storage.identity.audit import Actor
from storage.identity.documents import UserDocument
from storage.identity.records import is_administrator, user_document_id
from storage.mongo import Mongo, Session


async def lock_administrator(mongo: Mongo, actor: Actor, session: Session) -> datetime:
    """Locks the actor's document, and returns the time by the database's clock.

    The lock is a write, so concurrent changes by the actor and of the actor conflict. If two administrators take the
    role from each other, only one of them succeeds. The command line needs no role. Raises: Forbidden if the actor is
    no administrator now.
    """
    if actor.is_command_line:
        return await mongo.now()
    key = {"_id": user_document_id(actor.organization_id, actor.user_id)}
    update = {"$currentDate": {"administered_at": True}}
    document: UserDocument | None = await mongo.find_one_and_update("users", key, update, session)
    if document is None or not is_administrator(document):
        raise Forbidden("This needs the role ADMIN.")
    return document["administered_at"]
