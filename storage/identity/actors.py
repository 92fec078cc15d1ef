"""The rights of people in their organization, checked in the transaction of each change that needs them."""

from datetime import datetime

from storage.errors import AccountDeactivated, Forbidden, NotFound
from storage.identity.audit import Actor
from storage.identity.documents import UserDocument
from storage.identity.records import has_access, has_role, user_document_id
from storage.identity.roles import Role
from storage.ids import UserKey
from storage.mongo import Mongo, Session


async def lock_actor(mongo: Mongo, actor: Actor, session: Session, role: Role = Role.ADMIN) -> datetime:
    """Locks the actor's document, and returns the time by the database's clock.

    The lock is a write, so concurrent changes by the actor and of the actor conflict. If two administrators take the
    role from each other, only one of them succeeds. The command line needs no role. Raises: Forbidden if the actor has
    no access or not this role now.
    """
    if actor.is_command_line:
        return await mongo.now()
    key, update = user_document_id(actor.organization_id, actor.user_id), {"$currentDate": {"locked_at": True}}
    document: UserDocument | None = await mongo.find_one_and_update("users", {"_id": key}, update, session)
    if document is None or not has_role(document, role):
        raise Forbidden(f"This needs the role {role.value}.")
    return document["locked_at"]


async def lock_operator(mongo: Mongo, actor: Actor | None, session: Session) -> None:
    """Locks an actor who needs the role OPERATOR. Does nothing without an actor: the system needs no role.

    Raises: Forbidden as `lock_actor`.
    """
    if actor is not None:
        await lock_actor(mongo, actor, session, Role.OPERATOR)


async def require_access(mongo: Mongo, user: UserKey, session: Session) -> UserDocument:
    """Returns the document of a person who signs in or changes a way to sign in, as the transaction sees it.

    Raises: NotFound; AccountDeactivated, also for a person who is being erased.
    """
    found: list[UserDocument] = await mongo.find("users", {"_id": user_document_id(*user)}, session=session)
    if not found:
        raise NotFound("user", user.user_id)
    if not has_access(found[0]):
        raise AccountDeactivated
    return found[0]
