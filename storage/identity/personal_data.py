"""Personal data of users, of their relations and of the audit log."""

from storage.identity.accounts.documents import LocalAccountDocument
from storage.identity.documents import AuditDocument, BlockDocument, FollowDocument, SessionDocument, UserDocument
from storage.identity.privacy_rules import Export, Person, PersonalData, Selection, changed, deleted, emptied
from storage.mongo import Document


def _user(person: Person) -> Document:
    return {"_id": {"org": person.organization_id, "id": person.user_id}}


def _blocks(person: Person) -> Document:
    return {"org": person.organization_id, "user": person.user_id}


def _blocks_by_others(person: Person) -> Document:
    return {"org": person.organization_id, "blocked": person.user_id}


def _follows(person: Person) -> Document:
    return {"org": person.organization_id, "follower": person.user_id}


def _followers(person: Person) -> Document:
    return {"org": person.organization_id, "followee": person.user_id}


def _done(person: Person) -> Document:
    return {"org": person.organization_id, "actor": person.user_id}


def _suffered(person: Person) -> Document:
    return {"org": person.organization_id, "target": person.user_id, "kind": "USER"}


def _export_user(user: UserDocument) -> Document:
    return {
        "id": user["_id"]["id"],
        "organizationId": user["_id"]["org"],
        "handle": user["handle"],
        "name": user["name"],
        "email": user.get("email"),
        "roles": user["roles"],
        "createdAt": user["at"],
    }


def _export_local_account(account: LocalAccountDocument) -> Document:
    return {
        "email": account["address"],
        "language": account["language"],
        "passwordSetAt": account["password_at"],
        "signedInAt": account.get("signed_in_at"),
        "createdAt": account["at"],
    }


def _export_block(block: BlockDocument) -> Document:
    return {"blockedUserId": block["blocked"], "at": block["at"]}


def _export_follow(follow: FollowDocument) -> Document:
    return {"userId": follow["followee"], "at": follow["at"]}


def _sessions(person: Person) -> Document:
    return {"org": person.organization_id, "user": person.user_id}


def _export_session(session: SessionDocument) -> Document:
    return {
        "method": session["method"],
        "at": session["at"],
        "usedAt": session["used_at"],
        "until": session["until"],
        "address": session["address"],
        "userAgent": session["agent"],
    }


def _export_entry(entry: AuditDocument) -> Document:
    return {
        "id": entry["_id"],
        "at": entry["at"],
        "actorId": entry["actor"],
        "action": entry["action"],
        "targetId": entry["target"],
    }


PERSONAL_DATA = (
    PersonalData(
        "users",
        "The id, so that references resolve, a generated handle and the name `Deleted user`. The record also refuses "
        "later tokens of the person.",
        rules=[changed(_user)],
        exports=[Export(Selection(_user), _export_user)],
    ),
    PersonalData(
        "blocks",
        "Nothing.",
        rules=[deleted(_blocks, "blocked"), deleted(_blocks_by_others, "user")],
        exports=[Export(Selection(_blocks, "blocked"), _export_block)],
    ),
    PersonalData(
        "follows",
        "Nothing.",
        rules=[changed(_follows, "followee"), changed(_followers, "follower")],
        exports=[Export(Selection(_follows, "followee"), _export_follow)],
    ),
    PersonalData("follow_changes", "Ids, until the change is applied."),
    PersonalData(
        "audit",
        "Who did what to whom and when, by ids, for two years: the organization must be able to account for it.",
        rules=[
            emptied(lambda person: {**_done(person), "address": {"$ne": None}}, address=None, agent=None, details={}),
            emptied(lambda person: {**_done(person), "agent": {"$ne": None}}, agent=None, details={}),
            emptied(lambda person: {**_done(person), "details": {"$ne": {}}}, details={}),
            emptied(lambda person: {**_suffered(person), "details": {"$ne": {}}}, details={}),
        ],
        exports=[Export(Selection(_done), _export_entry), Export(Selection(_suffered), _export_entry)],
    ),
    PersonalData(
        "sessions",
        "Nothing.",
        rules=[deleted(_sessions)],
        exports=[Export(Selection(_sessions), _export_session)],
    ),
    PersonalData(
        "local_accounts",
        "Nothing.",
        rules=[changed(_user)],
        exports=[Export(Selection(_user), _export_local_account)],
    ),
    PersonalData("account_tokens", "Nothing: tokens go with the local account."),
    PersonalData("account_mails", "Nothing: mails that wait go with the local account."),
    PersonalData("sign_in_limits", "Digests of accounts and clients, until their attempts no longer count."),
    PersonalData(
        "invitations", "Ids of the creator and of those who accepted, until 30 days after the invitation has expired."
    ),
    PersonalData(
        "service_keys", "The id of the administrator who created the key, until 90 days after the key has ended."
    ),
    PersonalData("provider_logouts", "Digests of logouts at the identity provider, for an hour."),
    PersonalData("access_changes", "Ids, for an hour, so that every process ends the person's access."),
    PersonalData(
        "reserved_handles", "A keyed hash of the handle, for a year, so that nobody else gets mentions of the person."
    ),
)
