"""Grants a person the roles that an identity provider names at a login. They count as if an administrator set them."""

from collections.abc import Collection

from storage.errors import NotFound
from storage.identity.access_changes import AccessChanges
from storage.identity.accounts.invitation_creators import revoke_invitations
from storage.identity.audit import Actor, AuditAction, AuditLog, TargetKind, audit_document
from storage.identity.documents import UserDocument
from storage.identity.records import user_document_id
from storage.identity.roles import Role
from storage.ids import UserKey
from storage.mongo import Mongo, Session
from storage.mongo.clock import DatabaseClock

USERS = "users"
SOURCE = "identity provider"


class LoginGrants:
    """Grants the roles of logins. Each change of roles leaves an entry in the audit log."""

    def __init__(self, mongo: Mongo, clock: DatabaseClock, audit: AuditLog, access: AccessChanges) -> None:
        self._mongo = mongo
        self._clock = clock
        self._audit = audit
        self._access = access

    async def grant(self, person: Actor, roles: Collection[Role]) -> None:
        """Replaces the roles of a person by the roles of the login. Raises: NotFound."""
        values = sorted(role.value for role in roles)
        key = {"_id": user_document_id(person.organization_id, person.user_id)}

        async def work(session: Session) -> None:
            at = await self._clock.now()
            # This write locks the user, so that a concurrent change by an administrator conflicts and is not lost.
            user: UserDocument | None = await self._mongo.find_one_and_update(
                USERS, key, {"$set": {"roles_granted": True}}, session
            )
            if user is None:
                raise NotFound("user", person.user_id)
            if sorted(user["roles"]) == values:
                return
            update = {"$set": {"roles": values}}
            updated: UserDocument = await self._mongo.find_one_and_update(USERS, key, update, session)
            await revoke_invitations(self._mongo, updated, person, at, session)
            details = {"before": ", ".join(sorted(user["roles"])), "after": ", ".join(values), "source": SOURCE}
            action, kind = AuditAction.USER_ROLES_SET, TargetKind.USER
            await self._audit.insert(audit_document(person, action, kind, person.user_id, at, **details), session)
            await self._access.record(UserKey(person.organization_id, person.user_id), at, session)

        await self._mongo.transact(work)
