"""The rights of the creators of invitations: an invitation is valid as long as its creator may invite.

A change that takes the role ADMIN or the access from a person calls `revoke_invitations` in its transaction. Reads and
acceptances also check the creators, so that no other change of a right leaves a link open.
"""

from collections.abc import Sequence
from datetime import datetime

from storage.identity.accounts.documents import InvitationDocument
from storage.identity.audit import COMMAND_LINE, Actor, AuditAction, AuditLog, TargetKind, audit_document
from storage.identity.documents import UserDocument
from storage.identity.records import is_administrator, user_document_id
from storage.mongo import Document, Mongo, Session

INVITATIONS = "invitations"


async def revoke_invitations(mongo: Mongo, creator: UserDocument, actor: Actor, at: datetime, session: Session) -> None:
    """Revokes the open invitations of a person who is no administrator any more, each with an entry in the audit log.

    Does nothing for an administrator. `actor` is the person who took the right away.
    """
    if is_administrator(creator):
        return
    query: Document = {
        "org": creator["_id"]["org"],
        "creator": creator["_id"]["id"],
        "revoked_at": {"$exists": False},
        "expires_at": {"$gt": at},
        "$expr": {"$lt": [{"$size": "$users"}, "$max_uses"]},
    }
    ids = [each["_id"] for each in await mongo.find(INVITATIONS, query, {"_id": 1}, session=session)]
    await mongo[INVITATIONS].update_many({"_id": {"$in": ids}}, {"$set": {"revoked_at": at}}, session=session)
    for id_ in ids:
        entry = audit_document(actor, AuditAction.INVITATION_REVOKED, TargetKind.INVITATION, id_, at)
        await AuditLog(mongo).insert(entry, session)


async def rightful_invitations(
    mongo: Mongo, documents: Sequence[InvitationDocument], session: Session | None = None
) -> set[str]:
    """Returns the ids of the invitations whose creator may still invite: as an ADMIN who sees the community.

    An invitation by the command line needs no creator.
    """
    creators = await _creators(mongo, documents, session)
    hidden = await _communities_hidden_from_creators(mongo, documents, session)
    rightful = set()
    for each in documents:
        creator = creators.get(each["creator"])
        may_invite = each["creator"] == COMMAND_LINE if creator is None else is_administrator(creator)
        if may_invite and ("community" not in each or (each["community"], each["creator"]) not in hidden):
            rightful.add(each["_id"])
    return rightful


async def _creators(
    mongo: Mongo, documents: Sequence[InvitationDocument], session: Session | None
) -> dict[str, UserDocument]:
    keys = {(each["org"], each["creator"]) for each in documents}
    query = {"_id": {"$in": [user_document_id(*key) for key in sorted(keys)]}}
    fields = dict.fromkeys(("roles", "roles_granted", "deactivated_at", "erasing_at"), 1)
    users: list[UserDocument] = await mongo.find("users", query, fields, session=session)
    return {user["_id"]["id"]: user for user in users}


async def _communities_hidden_from_creators(
    mongo: Mongo, documents: Sequence[InvitationDocument], session: Session | None
) -> set[tuple[str, str]]:
    """Returns the pairs of a private community and a creator who is no member of it."""
    pairs = {(each["community"], each["creator"]) for each in documents if "community" in each}
    if not pairs:
        return set()
    ids = sorted({community for community, _ in pairs})
    query: Document = {"_id": {"$in": ids}, "visibility": "PRIVATE"}
    private = {each["_id"] for each in await mongo.find("communities", query, {"_id": 1}, session=session)}
    hidden = {pair for pair in pairs if pair[0] in private and pair[1] != COMMAND_LINE}
    members: Document = {"$or": [{"community": community, "user": user} for community, user in sorted(hidden)]}
    found = await mongo.find("memberships", members, {"community": 1, "user": 1}, session=session) if hidden else []
    return hidden - {(each["community"], each["user"]) for each in found}
