"""Ordinary mutations leave no entry in the audit log. Every other mutation leaves one entry if it changes something.

The entry is committed together with the change, and no mutation changes or removes an earlier entry.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from structlog.testing import capture_logs

from storage.chat.records import CommunityVisibility
from storage.identity.audit import AuditAction, AuditEntry, AuditFilter
from storage.identity.roles import Role
from storage.identity.session_records import NewSession, SignInMethod
from storage.ids import UserKey
from tests.databases import refusing_documents
from tests.resolvers.operations import RootField, root_fields
from tests.resolvers.organization_scenario import OrganizationScenario, create_organization
from tests.resolvers.people import Answer, Person, SignIn, until_outbox_is_empty
from tests.resolvers.test_isolation import execute_field

pytestmark = pytest.mark.anyio

MUTATIONS = {field.name: field for field in root_fields() if field.root == "Mutation"}

ORDINARY = {
    "addReaction", "blockUser", "createCommunity", "createPost", "createTopic", "createUpload", "editMessage",
    "endOtherSessions", "endSession", "exportMyData", "follow", "joinCommunity", "leaveCommunity", "removeAvatar",
    "setAvatar", "setBanner", "removeBanner", "markNotificationsRead", "markRead",
    "muteCommunity", "muteTopic", "muteUser", "postMessage", "recordDeliveries", "removeReaction", "renamePasskey",
    "reportCall", "reportContent", "requestToJoin", "schedulePost", "schedulePostAtLocalTime", "unblockUser",
    "unfollow", "unmuteCommunity", "mutePost", "unmutePost",
    "unmuteTopic", "unmuteUser", "updateScheduledPost", "acceptConversation", "addToConversation",
    "declineConversation", "leaveConversation", "renameConversation", "startConversation",
    "setPresenceShown", "setTyping", "setNotificationSettings", "setTopicNotifications",
    "setCommunityNotifications", "registerPushDevice", "removePushDevice",
    "addPostReaction", "editPost", "followThread", "removePostReaction", "repost", "undoRepost", "unfollowThread",
    "updateProfile", "changeHandle", "addToLibrary", "removeFromLibrary",
    "testWebhook", "redeliverWebhookEvent", "connectAccountInBrowser", "reconnectAccountInBrowser",
}  # fmt: skip
"""Mutations of people on their own things, reports of services, and deliveries, which a log of their own has.

Connections in a browser are audited when they are finished: tests/server/http/test_account_connections.py.
"""

OF_OTHERS = {
    "cancelScheduledPost": AuditAction.SCHEDULED_POST_CANCELLED,
    "deleteMessage": AuditAction.MESSAGE_DELETED,
    "deletePost": AuditAction.POST_DELETED,
    "resolvePublication": AuditAction.PUBLICATION_RESOLVED,
    "retryPublication": AuditAction.PUBLICATION_RETRIED,
}
"""Mutations that are ordinary for the author, each with the action that is logged for anybody else."""

AUDITED = {
    "archiveCommunity": AuditAction.COMMUNITY_ARCHIVED,
    "unarchiveCommunity": AuditAction.COMMUNITY_UNARCHIVED,
    "decideContentReport": AuditAction.CONTENT_REPORT_DECIDED,
    "pinMessage": AuditAction.MESSAGE_PINNED,
    "archiveTopic": AuditAction.TOPIC_ARCHIVED,
    "renameTopic": AuditAction.TOPIC_RENAMED,
    "setSlowMode": AuditAction.TOPIC_SLOW_MODE_SET,
    "unarchiveTopic": AuditAction.TOPIC_UNARCHIVED,
    "unpinMessage": AuditAction.MESSAGE_UNPINNED,
    "acceptInvitation": AuditAction.INVITATION_ACCEPTED,
    "createInvitation": AuditAction.INVITATION_CREATED,
    "revokeInvitation": AuditAction.INVITATION_REVOKED,
    "addDoNotCall": AuditAction.DO_NOT_CALL_ADDED,
    "addMember": AuditAction.COMMUNITY_MEMBER_ADDED,
    "banMember": AuditAction.COMMUNITY_MEMBER_BANNED,
    "cancelCallJob": AuditAction.CALL_JOB_CANCELLED,
    "connectAccount": AuditAction.ACCOUNT_CONNECTED,
    "createServiceKey": AuditAction.SERVICE_KEY_CREATED,
    "createWebhook": AuditAction.WEBHOOK_CREATED,
    "updateWebhook": AuditAction.WEBHOOK_CHANGED,
    "rotateWebhookSecret": AuditAction.WEBHOOK_SECRET_ROTATED,
    "disableWebhook": AuditAction.WEBHOOK_DISABLED,
    "enableWebhook": AuditAction.WEBHOOK_ENABLED,
    "replayWebhook": AuditAction.WEBHOOK_REPLAYED,
    "deleteWebhook": AuditAction.WEBHOOK_DELETED,
    "deactivateUser": AuditAction.USER_DEACTIVATED,
    "decideJoinRequest": AuditAction.COMMUNITY_MEMBER_ADDED,
    "replaceAccountCredentials": AuditAction.ACCOUNT_CREDENTIALS_REPLACED,
    "disconnectAccount": AuditAction.ACCOUNT_DISCONNECTED,
    "endUserSessions": AuditAction.USER_SESSIONS_ENDED,
    "kickMember": AuditAction.COMMUNITY_MEMBER_KICKED,
    "launchCallJob": AuditAction.CALL_JOB_LAUNCHED,
    "muteMember": AuditAction.COMMUNITY_MEMBER_MUTED,
    "pauseCallJob": AuditAction.CALL_JOB_PAUSED,
    "reactivateUser": AuditAction.USER_REACTIVATED,
    "releaseScheduledPost": AuditAction.SCHEDULED_POST_RELEASED,
    "removePasskey": AuditAction.PASSKEY_REMOVED,
    "removeDoNotCall": AuditAction.DO_NOT_CALL_REMOVED,
    "resumeCallJob": AuditAction.CALL_JOB_RESUMED,
    "revokeServiceKey": AuditAction.SERVICE_KEY_REVOKED,
    "rotateServiceKey": AuditAction.SERVICE_KEY_ROTATED,
    "setCallLimits": AuditAction.CALL_LIMITS_SET,
    "setCommunityRole": AuditAction.COMMUNITY_ROLE_SET,
    "setDomainBlocked": AuditAction.MAIL_DOMAIN_SET,
    "setMailPolicy": AuditAction.MAIL_POLICY_SET,
    "blockAddresses": AuditAction.MAIL_ADDRESS_BLOCKED,
    "unblockAddresses": AuditAction.MAIL_ADDRESS_UNBLOCKED,
    "setPresenceEnabled": AuditAction.PRESENCE_SET,
    "createStampPack": AuditAction.STAMP_PACK_CREATED,
    "setStampPackAvailability": AuditAction.STAMP_PACK_AVAILABILITY_SET,
    "giveStampPack": AuditAction.STAMP_PACK_GIVEN,
    "takeBackStampPack": AuditAction.STAMP_PACK_TAKEN_BACK,
    "addStamp": AuditAction.STAMP_ADDED,
    "removeStamp": AuditAction.STAMP_REMOVED,
    "removeStampPack": AuditAction.STAMP_PACK_REMOVED,
    "setRetentionRule": AuditAction.RETENTION_RULE_SET,
    "setUserRoles": AuditAction.USER_ROLES_SET,
    "unbanMember": AuditAction.COMMUNITY_MEMBER_UNBANNED,
    "unblockAddress": AuditAction.MAIL_ADDRESS_UNBLOCKED,
    "unmuteMember": AuditAction.COMMUNITY_MEMBER_UNMUTED,
    "updateCommunity": AuditAction.COMMUNITY_CHANGED,
    "setCommunityPicture": AuditAction.COMMUNITY_CHANGED,
    "setCommunityBanner": AuditAction.COMMUNITY_CHANGED,
    "removeCommunityPicture": AuditAction.COMMUNITY_CHANGED,
    "removeCommunityBanner": AuditAction.COMMUNITY_CHANGED,
    # Last, because nobody is left to act on afterwards.
    "eraseUser": AuditAction.USER_ERASED,
}

STORED_BEFORE = {"launchCallJob": {"call_drafts", "call_tasks"}}
"""Collections in which a mutation stores something before it commits. A list without a job is never called, and
`sweep_abandoned_lists` deletes it."""

CHANGES_EACH_TIME = {
    "banMember", "connectAccount", "createInvitation", "createServiceKey", "launchCallJob", "rotateServiceKey",
    "replaceAccountCredentials", "unblockAddress", "unblockAddresses", "createWebhook", "rotateWebhookSecret",
    "replayWebhook",
}  # fmt: skip
"""Mutations that change something when they are repeated with the same arguments and without an idempotency key."""

REFUSED_AGAIN = {"decideContentReport", "deleteWebhook", "releaseScheduledPost", "removePasskey", "removeStampPack"}
"""Mutations that are refused when they are repeated."""

VALUES: dict[str, dict[str, object]] = {
    "setCallLimits": {"concurrentCalls": 7},
    "setCommunityRole": {"role": "MODERATOR"},
    "blockAddresses": {"addresses": ["ann@example.org"]},
    "unblockAddresses": {"addresses": ["ann@example.org"]},
    "renameTopic": {"title": "Renamed"},
    "setSlowMode": {"seconds": 30},
    "setPresenceEnabled": {"enabled": False},
    "setStampPackAvailability": {"availability": "EVERYONE"},
    "setUserRoles": {"roles": ["OPERATOR"]},
    "endUserSessions": {"sessionId": None},
}
"""Arguments of mutations that would change nothing with the generated arguments."""

TEXTS = {
    "eraseUser": 'mutation { eraseUser(userId: "elk-of-acme", handle: "acme_elk") { __typename } }',
    "setDomainBlocked": 'mutation { setDomainBlocked(domain: "example.org", reason: "x", blocked: true) { domain } }',
}
"""Operations that replace the generated ones."""

VISIBLE = """
mutation ($id: ID!, $visibility: CommunityVisibility!) { updateCommunity(id: $id, visibility: $visibility) { id } }
"""
REQUEST = "mutation ($id: ID!) { requestToJoin(communityId: $id) { id } }"


async def ask_to_join(organization: OrganizationScenario) -> None:
    await organization.reactivate_dog()
    community = organization.ids["Community"]
    await organization.ann.run(VISIBLE, id=community, visibility="LISTED")
    await organization.dog.leave(community)
    await organization.dog.run(REQUEST, id=community)


async def begin_sessions(organization: OrganizationScenario) -> None:
    await organization.begin_sessions()
    user = UserKey(organization.organization_id, organization.dog.id)
    for _ in range(2):
        await organization.stores.sessions.begin(NewSession(user, SignInMethod.DEMO))


async def leave(organization: OrganizationScenario) -> None:
    await organization.dog.leave(organization.ids["Community"])


def after(name: str) -> Callable[[OrganizationScenario], Awaitable[None]]:
    """Returns a preparation: the execution of another mutation."""

    async def run_before(organization: OrganizationScenario) -> None:
        await execute(organization, organization.superuser, MUTATIONS[name])

    return run_before


PREPARATIONS = {
    "addMember": leave,
    "decideJoinRequest": ask_to_join,
    "endUserSessions": begin_sessions,
    "follow": after("unblockUser"),
    "giveStampPack": after("takeBackStampPack"),
    "reactivateUser": after("deactivateUser"),
    "removeDoNotCall": after("addDoNotCall"),
    "resumeCallJob": after("pauseCallJob"),
    "unarchiveCommunity": after("archiveCommunity"),
    "unarchiveTopic": after("archiveTopic"),
    "unbanMember": after("banMember"),
    "unmuteMember": after("muteMember"),
    "unpinMessage": after("pinMessage"),
    "enableWebhook": after("disableWebhook"),
}


async def execute(organization: OrganizationScenario, person: Person, field: RootField) -> None:
    """Executes a mutation, which must succeed."""
    assert (await answer_of(organization, person, field))["errors"] == [], field


async def answer_of(organization: OrganizationScenario, person: Person, field: RootField) -> Answer:
    """Executes a mutation, and returns the answer."""
    if field.name in TEXTS:
        return await person.execute(TEXTS[field.name])
    return await execute_field(person, field, organization.ids, depth=1, **VALUES.get(field.name, {}))


async def entries(organization: OrganizationScenario) -> list[AuditEntry]:
    """Returns all entries, the newest first."""
    return await organization.stores.audit.list_entries(organization.organization_id, AuditFilter(), None, 900)


async def new_entries(organization: OrganizationScenario, person: Person, field: RootField) -> list[AuditEntry]:
    """Executes a mutation, which must keep all earlier entries. Returns the entries that it left."""
    before = await entries(organization)
    await execute(organization, person, field)
    after = await entries(organization)
    assert after[len(after) - len(before) :] == before, f"{field} changes earlier entries."
    return after[: len(after) - len(before)]


def test_every_mutation_is_declared_once() -> None:
    declared = [*ORDINARY, *OF_OTHERS, *AUDITED]
    assert sorted(declared) == sorted(MUTATIONS), "Declare the mutation: does it leave an entry of the audit log?"
    assert set(AUDITED) >= CHANGES_EACH_TIME


async def test_ordinary_mutations_leave_no_entry(sign_in: SignIn) -> None:
    organization = await create_organization(sign_in, "acme")
    for name in sorted(ORDINARY | set(OF_OTHERS)):
        await organization.renew(MUTATIONS[name].id_types)
        if name in PREPARATIONS:
            await PREPARATIONS[name](organization)
        assert await new_entries(organization, organization.superuser, MUTATIONS[name]) == [], name


async def test_change_leaves_one_entry_or_is_refused_without(sign_in: SignIn) -> None:
    """If MongoDB refuses the entry, it must refuse the change, too. Afterwards the same mutation leaves one entry.

    A repetition that changes nothing leaves none. No entry holds personal data.
    """
    organization = await create_organization(sign_in, "acme")
    other = await sign_in("olga", organization.organization_id, list(Role))
    codes: dict[str, list[str]] = {}
    changed: dict[str, set[str]] = {}
    for name, action in {**OF_OTHERS, **AUDITED}.items():
        await prepare(organization, name)
        person, field = other if name in OF_OTHERS else organization.superuser, MUTATIONS[name]
        codes[name], changed[name] = await attempt_without_entry(organization, person, field)
        left = await new_entries(organization, person, field)
        assert [(entry.action, entry.actor_id) for entry in left] == [(action, person.id)], name
        if name not in OF_OTHERS.keys() | CHANGES_EACH_TIME | REFUSED_AGAIN:
            assert await new_entries(organization, person, field) == [], name
    assert {name: each for name, each in codes.items() if each != ["INTERNAL_SERVER_ERROR"]} == {}
    assert {name: each for name, each in changed.items() if each} == STORED_BEFORE
    texts = [str(document) for document in await all_audit_documents(organization)]
    for personal in ("ann@example.org", "+8190", "nrk_", "'lose'"):
        assert [text for text in texts if personal in text] == []


async def attempt_without_entry(
    organization: OrganizationScenario, person: Person, field: RootField
) -> tuple[list[str], set[str]]:
    """Executes a mutation whose entry MongoDB refuses. Returns the codes of errors, and the changed collections."""
    before = await committed_state(organization)
    # Writing the tracebacks of all failures to the terminal would take minutes.
    with capture_logs():
        async with refusing_documents(organization.stores.mongo, "audit"):
            answer = await answer_of(organization, person, field)
    after = await committed_state(organization)
    codes = [error["extensions"]["code"] for error in answer["errors"]]
    return codes, {each for each in after if after[each] != before.get(each)}


async def prepare(organization: OrganizationScenario, name: str) -> None:
    """Creates what the mutation acts on. The community is public."""
    stores, id_ = organization.stores, organization.ids["Community"]
    community = await stores.communities.get(organization.organization_id, id_)
    if community.visibility is not CommunityVisibility.PUBLIC:
        await organization.ann.run(VISIBLE, id=id_, visibility="PUBLIC")
    await organization.renew(MUTATIONS[name].id_types)
    if name in PREPARATIONS:
        await PREPARATIONS[name](organization)


async def committed_state(organization: OrganizationScenario) -> dict[str, str]:
    """Returns a hash of the documents of each collection.

    Leaves out the marks by which a kick or ban first holds the person's writes for a minute (ADR 59).
    """
    mongo = organization.stores.mongo
    await until_outbox_is_empty(organization.stores)
    await mongo["topics"].update_many({}, {"$unset": {"fences": ""}})
    await mongo["community_restrictions"].update_many({}, {"$unset": {"removed_until": "", "ends_at": ""}})
    only_marked = {"_id.u": {"$ne": ""}, "ban": {"$exists": False}, "muted_until": {"$exists": False}}
    await mongo["community_restrictions"].delete_many(only_marked)
    hashes: dict[str, str] = (await mongo.database.command("dbHash"))["collections"]
    return hashes


async def all_audit_documents(organization: OrganizationScenario) -> list[Any]:
    documents: list[Any] = await organization.stores.mongo["audit"].find().to_list(None)
    return documents
