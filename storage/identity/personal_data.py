"""Personal data of users, of their relations and of the audit log."""

from storage.identity.accounts.documents import LocalAccountDocument
from storage.identity.documents import (
    AuditEntryDocument,
    BlockDocument,
    FollowDocument,
    MuteDocument,
    SessionDocument,
    UserDocument,
)
from storage.identity.passkeys.documents import PasskeyDocument
from storage.identity.privacy_rules import (
    ExportedSelection,
    PersonalData,
    PersonalDataSelection,
    change_rule,
    delete_rule,
    empty_rule,
)
from storage.ids import UserKey
from storage.mongo import Document


def _user(person: UserKey) -> Document:
    return {"_id": {"org": person.organization_id, "id": person.user_id}}


def _own_documents(person: UserKey) -> Document:
    """Returns the filter for documents whose fields `org` and `user` name their owner."""
    return {"org": person.organization_id, "user": person.user_id}


def _blocks_by_others(person: UserKey) -> Document:
    return {"org": person.organization_id, "blocked": person.user_id}


def _mutes(person: UserKey) -> Document:
    owner = {"o": person.organization_id, "u": person.user_id}
    return {"_id": {"$gte": owner, "$lt": {**owner, "k": "\U0010ffff"}}}


def _mutes_by_others(person: UserKey) -> Document:
    return {"_id.o": person.organization_id, "_id.s": person.user_id, "_id.k": "USER"}


def _follows(person: UserKey) -> Document:
    return {"org": person.organization_id, "follower": person.user_id}


def _followers(person: UserKey) -> Document:
    return {"org": person.organization_id, "followee": person.user_id}


def _entries_by(person: UserKey) -> Document:
    return {"org": person.organization_id, "actor": person.user_id}


def _entries_about(person: UserKey) -> Document:
    return {"org": person.organization_id, "target": person.user_id, "kind": "USER"}


def _export_user(user: UserDocument) -> Document:
    return {
        "id": user["_id"]["id"],
        "organizationId": user["_id"]["org"],
        "handle": user["handle"],
        "handleChangedAt": user.get("handle_changed_at"),
        "formerHandles": user.get("former_handles", []),
        "name": user["name"],
        "nameChosenAt": user.get("name_chosen_at"),
        "email": user.get("email"),
        "roles": user["roles"],
        "bio": user.get("bio"),
        "avatarFileId": user.get("avatar"),
        "bannerFileId": user.get("banner"),
        "presenceHidden": user.get("presence_hidden", False),
        "createdAt": user["at"],
    }


def _export_local_account(account: LocalAccountDocument) -> Document:
    return {
        "email": account["address"],
        "language": account["language"],
        "passwordSetAt": account.get("password_at"),
        "signedInAt": account.get("signed_in_at"),
        "createdAt": account["at"],
    }


def _export_block(block: BlockDocument) -> Document:
    return {"blockedUserId": block["blocked"], "at": block["at"]}


def _export_mute(mute: MuteDocument) -> Document:
    key = mute["_id"]
    return {"subject": key["k"], "subjectId": key["s"], "at": mute["at"], "until": mute.get("until")}


def _export_follow(follow: FollowDocument) -> Document:
    return {"userId": follow["followee"], "at": follow["at"]}


def _export_session(session: SessionDocument) -> Document:
    return {
        "method": session["method"],
        "at": session["at"],
        "usedAt": session["used_at"],
        "until": session["until"],
        "address": session["address"],
        "userAgent": session["agent"],
    }


def _export_passkey(passkey: PasskeyDocument) -> Document:
    return {
        "name": passkey["name"],
        "synced": passkey["synced"],
        "createdAt": passkey["at"],
        "lastUsedAt": passkey.get("used_at"),
    }


def _export_audit_entry(entry: AuditEntryDocument) -> Document:
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
        rules=[change_rule(_user)],
        exports=[ExportedSelection(PersonalDataSelection(_user), _export_user)],
    ),
    PersonalData(
        "blocks",
        "Nothing.",
        rules=[delete_rule(_own_documents, "blocked"), delete_rule(_blocks_by_others, "user")],
        exports=[ExportedSelection(PersonalDataSelection(_own_documents, "blocked"), _export_block)],
    ),
    PersonalData(
        "mutes",
        "Nothing.",
        rules=[delete_rule(_mutes), delete_rule(_mutes_by_others, "_id.u")],
        exports=[ExportedSelection(PersonalDataSelection(_mutes), _export_mute)],
    ),
    PersonalData(
        "follows",
        "Nothing.",
        rules=[change_rule(_follows, "followee"), change_rule(_followers, "follower")],
        exports=[ExportedSelection(PersonalDataSelection(_follows, "followee"), _export_follow)],
    ),
    PersonalData("follow_changes", "Ids, until the change is applied."),
    PersonalData(
        "audit",
        "Ids of actor and target, action and time, for two years: the organization must be able to account for them.",
        rules=[
            empty_rule(
                lambda person: {**_entries_by(person), "address": {"$ne": None}}, address=None, agent=None, details={}
            ),
            empty_rule(lambda person: {**_entries_by(person), "agent": {"$ne": None}}, agent=None, details={}),
            empty_rule(lambda person: {**_entries_by(person), "details": {"$ne": {}}}, details={}),
            empty_rule(lambda person: {**_entries_about(person), "details": {"$ne": {}}}, details={}),
        ],
        exports=[
            ExportedSelection(PersonalDataSelection(_entries_by), _export_audit_entry),
            ExportedSelection(PersonalDataSelection(_entries_about), _export_audit_entry),
        ],
    ),
    PersonalData(
        "sessions",
        "Nothing.",
        rules=[delete_rule(_own_documents)],
        exports=[ExportedSelection(PersonalDataSelection(_own_documents), _export_session)],
    ),
    PersonalData(
        "local_accounts",
        "Nothing.",
        rules=[change_rule(_user)],
        exports=[ExportedSelection(PersonalDataSelection(_user), _export_local_account)],
    ),
    PersonalData(
        "passkeys",
        "Nothing.",
        rules=[delete_rule(_own_documents)],
        exports=[ExportedSelection(PersonalDataSelection(_own_documents), _export_passkey)],
    ),
    PersonalData("passkey_challenges", "Digests of answered challenges of sign-ins, for an hour."),
    PersonalData("account_tokens", "Nothing: tokens are deleted with the local account."),
    PersonalData("account_mails", "Nothing: unsent mails are deleted with the local account."),
    PersonalData("sign_in_limits", "Digests of accounts and clients, until their attempts no longer count."),
    PersonalData(
        "invitations",
        "Ids of the creator and of those who accepted, until 30 days after the invitation has expired. The mail "
        "address is removed with the local account.",
    ),
    PersonalData(
        "service_keys",
        "The ids of the administrators who created and rotated the key, until 90 days after the key has ended.",
    ),
    PersonalData("provider_logouts", "Digests of logouts at the identity provider, for an hour."),
    PersonalData("access_changes", "Ids, for an hour, so that every process ends the person's access."),
    PersonalData(
        "reserved_handles",
        "Keyed hashes of the handle and of former ones, for a year, so that nobody else gets mentions of the person.",
    ),
)
