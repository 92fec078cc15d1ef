"""A field's batch resolver gives each object the same value as the field's own resolver."""

import inspect
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from strawberry.types.base import StrawberryObjectDefinition
from strawberry.types.field import StrawberryField

from resolvers.context import Context
from schema.binding import QUERIES_PER_OBJECT, batch_resolver_of
from schema.root import schema
from storage.calls.job_changes import JobAction
from storage.calls.records import CallJob, CallTask, TaskKey
from storage.chat.communities import NewCommunity
from storage.chat.conversations.records import ConversationPerson
from storage.chat.records import Community, CommunityVisibility, FollowedThread, Quote, Thread, ThreadReply, Topic
from storage.chat.roles import Moderator
from storage.chat.stamps.ownerships import StampPackOwnership
from storage.chat.stamps.rules import StampPackAvailability, StampRule, StampRuleKind
from storage.chat.threads.rules import thread_id
from storage.errors import NotFound
from storage.feed.changes import NewPost
from storage.feed.content_reports.changes import NewReport
from storage.feed.content_reports.records import ContentReportCategory, ContentReportDecision, ContentReportSubject
from storage.feed.records import Post
from storage.identity.accounts.invitations import Invitation, InvitationState
from storage.identity.audit import AuditAction, AuditEntry, TargetKind, command_line_actor
from storage.identity.keys.records import NewServiceKey, ServiceKey
from storage.identity.roles import Role
from storage.ids import MessageKey, PostKey, UserKey, new_id
from storage.mail.decisions.changes import MailChange, MailChangeKind
from storage.mail.decisions.policies import DEFAULT_POLICY, MailPolicyVersion
from storage.notifications import Notification, NotificationKind
from storage.privacy.erasures import ErasureState, UserErasure
from storage.privacy.retention_rules import RetainedData, RetentionRule
from storage.publishing.accounts import AccountToConnect
from storage.publishing.networks import Network
from storage.publishing.records import (
    AccountTarget,
    HomeFeedTarget,
    PublicationState,
    PublishingPhase,
    PublishingProgress,
    Target,
    TopicTarget,
)
from storage.publishing.scheduling import NewScheduledPost
from storage.stores import Stores
from storage.timeline import Timestamp
from storage.webhooks.records import Webhook, WebhookFilter, WebhookFormat
from tests.schema.viewers import LINK, VIEWER_IDS, DifferingViewers, create_differing_viewers
from tests.storage.calls.in_memory_jobs import new_job
from tests.storage.calls.recorded_calls import start_call, store_recording, task_of
from tests.storage.topic_scenario import TopicScenario

pytestmark = pytest.mark.anyio


def object_fields() -> dict[str, StrawberryField]:
    """Returns every field of an object type, as Type.field."""
    definitions = [each.definition for each in schema.schema_converter.type_map.values()]
    objects = [each for each in definitions if isinstance(each, StrawberryObjectDefinition)]
    return {f"{type_.name}.{field.python_name}": field for type_ in objects for field in type_.fields}


FIELDS = {
    place: field
    for place, field in object_fields().items()
    if (batch := batch_resolver_of(field)) is not None and batch.__module__ != "schema.nodes"
}
"""The fields with a batch resolver. tests/schema/test_nodes.py has those that only show an attribute."""

ROOTS = ("Query.", "Mutation.", "Subscription.")

BATCHED = {"TypingStarted.user", "TypingEnded.user"} | {
    "NotificationPlaceLevel.topic", "NotificationPlaceLevel.community", "PushDevice.current",
    "Community.viewer_role", "Community.viewer_muted_until", "Community.muted",
    "CommunityMember.user", "CommunityMember.muted_until", "CommunityBan.user", "CommunityBan.banned_by",
    "CommunityWithoutOwner.name",
    "JoinRequest.user", "ContentReport.author", "ContentReport.reporter", "ContentReport.decided_by",
    "ContentReport.community", "ContentReport.subject_id", "PrecedingMessage.author", "UserErasure.changed_objects",
    "CommunityChanged.community", "ReceivedReaction.user",
    "ReceivedReaction.message",
    "Session.current", "DataExport.files", "DataExport.download_url", "UserErasure.steps", "RetentionRule.default_days",
    "RetentionRule.min_days", "RetentionRule.max_days",
    "Mute.user", "Mute.topic", "Mute.community", "Mute.post",
    "CallListCheck.row_errors",
    "Conversation.state",
}  # fmt: skip
"""Fields whose resolver runs for each object, but reads through batch loaders or reads nothing."""


LOOKUPS = {"Query.search_messages", "Query.search_posts", "Query.search_topics", "Query.node", "Query.nodes"}


def test_resolvers_of_single_objects_are_batched_or_declared() -> None:
    """Otherwise a list of a thousand objects could count as one query although each object sends a query of its own."""
    resolved = {place: field for place, field in object_fields().items() if field.base_resolver is not None}
    single = {place for place, field in resolved.items() if batch_resolver_of(field) is None}
    declared = {place for place, field in resolved.items() if field.metadata.get(QUERIES_PER_OBJECT)}
    # Of the fields of a root type, only those that look in many places cost as much as the queries that they send.
    assert {place for place in single | declared if not place.startswith(ROOTS)} == BATCHED | declared - LOOKUPS
    assert {place for place in declared if place.startswith(ROOTS)} == LOOKUPS
    assert BATCHED & declared == set()


async def example_objects(viewers: DifferingViewers) -> dict[str, list[Any]]:
    """Returns objects by type: some with a value in every optional field, and some without any."""
    last = await viewers.scenario.post("last", "cat")
    organization = viewers.scenario.organization_id
    posts = [
        await viewers.stores.posts.create(NewPost(organization, author, text, media, mentions, ()), None)
        for author, text, media, mentions in (
            ("dan", f"@cat {LINK}", (f"{LINK}a.png", f"{LINK}b.png"), ("cat",)),
            ("ann", "plain", (), ()),
        )
    ]
    deleted = await viewers.scenario.post("gone", "dan")
    tombstone = await viewers.stores.messages.delete(deleted.key, Moderator("dan"))
    active_topics = [replace(viewers.scenario.topic, last_activity=each.timestamp) for each in (tombstone, last)]
    topics = [*active_topics, *await other_topics(viewers)]
    entries = [audit_entry(organization, actor, target) for actor, target in (("ann", "dan"), ("nobody", "no one"))]
    stamp_objects = await stamp_pack_objects(viewers)
    now = datetime.now(UTC)
    erasures = [UserErasure(organization, each, ErasureState.PENDING, now, "ann", 0, None) for each in ("dan", "cat")]
    return {
        "User": list(viewers.users.values()),
        "UserErasure": erasures,
        "AuditEntry": entries,
        "Invitation": [
            invitation(organization, viewers.scenario.community.id, "ann"),
            invitation(organization, None, "nobody"),
        ],
        "Webhook": [webhook(organization, "ann"), webhook(organization, "dan")],
        "ConversationPerson": [ConversationPerson(each, True) for each in ("ann", "dan")],
        "Thread": [
            Thread(thread_id(viewers.first_message.key), 2, viewers.second_message.timestamp, repliers)
            for repliers in (("cat", "dan"), ())
        ],
        "FollowedThread": [
            FollowedThread(replace(viewers.scenario.topic, thread_parent=each.key))
            for each in (viewers.first_message, viewers.second_message)
        ],
        "Quote": [
            Quote(viewers.first_message.key, viewers.scenario.community.id),
            Quote(viewers.second_message.key, "nothing"),
        ],
        "ThreadReply": [
            ThreadReply(viewers.reply.key, each.key) for each in (viewers.first_message, viewers.second_message)
        ],
        "Message": [viewers.first_message, viewers.second_message, last, tombstone],
        "Post": posts,
        "RetentionRule": [
            RetentionRule(organization, RetainedData.MAIL_LEDGER, 7, datetime.now(UTC), admin)
            for admin in ("ann", "nobody", None)
        ],
        "ServiceKey": await service_keys(viewers),
        "MailPolicy": [
            MailPolicyVersion(organization, number, DEFAULT_POLICY, operator, "why", now)
            for number, operator in enumerate(("ann", "nobody", None))
        ],
        "MailChange": [
            MailChange(organization, operator, MailChangeKind.POLICY_SET, now, operator, "why")
            for operator in ("ann", "nobody")
        ],
        "StampPack": stamp_objects.pop("StampPack"),
        "StampPackOwnership": stamp_objects.pop("StampPackOwnership"),
        "Notification": [*stamp_objects.pop("Notification"), *await notifications(viewers, posts)],
        "Topic": topics,
        "Community": await communities(viewers),
        "CallJob": await call_jobs(viewers),
        "CallTask": await call_tasks(viewers),
        **await publishing_objects(viewers, topics),
    }


async def communities(viewers: DifferingViewers) -> list[Community]:
    """Returns communities of every visibility. Only eve has joined those that are not public."""
    create, organization = viewers.stores.communities.create, viewers.scenario.organization_id
    new = [NewCommunity(organization, each.value, "", each) for each in CommunityVisibility]
    created = [await create(each, viewers.users["eve"], None) for each in new]
    for each in created:
        await viewers.stores.topics.create(each, "eve", each.name, None)
    return [viewers.scenario.community, *created]


async def notifications(viewers: DifferingViewers, posts: Sequence[Post]) -> list[Notification]:
    """Returns notifications about messages, posts, reports, communities and publications, some of which are gone."""
    community, message = viewers.scenario.community, viewers.first_message.key
    report = await decided_report(viewers)
    empty = Notification("ann", Timestamp(1), NotificationKind.MENTION, "dan", None, None, None)
    reaction, gone = NotificationKind.REACTION, PostKey(community.organization_id, Timestamp(1))
    found = [
        replace(empty, message=message, community_id=community.id),
        replace(empty, message=message, actor_id="nobody"),
        replace(empty, message=MessageKey("nothing", Timestamp(1)), actor_id=None),
        replace(empty, message=message, kind=reaction, emoji="🔥"),
        replace(empty, post=posts[0].key, kind=reaction, emoji="🔥"),
        replace(empty, post=gone, kind=reaction, emoji="🔥"),
        replace(empty, report_id=report.id, kind=NotificationKind.REPORT_DECIDED),
        replace(empty, report_id=report.id, kind=NotificationKind.WARNING),
        replace(empty, report_id="nothing", kind=NotificationKind.WARNING),
        replace(empty, community_id=community.id, kind=NotificationKind.ADDED_TO_COMMUNITY),
        replace(empty, publication_id="nothing", kind=NotificationKind.PUBLICATION_FAILED),
        replace(empty, account_id="nothing", kind=NotificationKind.ACCOUNT_NEEDS_ATTENTION),
    ]
    return [replace(each, timestamp=Timestamp(number)) for number, each in enumerate(found, 2)]


async def decided_report(viewers: DifferingViewers) -> NewReport:
    """Returns ann's report of the first message, about which a moderator has decided."""
    message, community = viewers.first_message, viewers.scenario.community
    subject, category = ContentReportSubject.MESSAGE, ContentReportCategory.SPAM
    report = NewReport(community.organization_id, subject, message.id, community.id, "dan", "ann", category, "", "rude")
    await viewers.stores.content_reports.file(report)
    decision = {"decision": ContentReportDecision.REMOVE.value, "note": "Be kind."}
    await viewers.stores.mongo["content_reports"].update_one({"_id": report.id}, {"$set": decision})
    return report


async def call_jobs(viewers: DifferingViewers) -> list[CallJob]:
    """Returns a job that starts in a year, and one that was cancelled. An estimate of others changes with the time."""
    store, organization = viewers.stores.call_jobs, viewers.scenario.organization_id
    start_at = datetime.now(UTC).replace(microsecond=0) + timedelta(days=365)
    new = [new_job(organization_id=organization, start_at=start_at) for _ in range(2)]
    first, second = [await store.launch(each, "phone_number\n+819012345678\n", None) for each in new]
    return [first, await store.act(organization, second.id, JobAction.CANCEL)]


async def call_tasks(viewers: DifferingViewers) -> list[CallTask]:
    """Returns a number whose call has a stored recording, and one without a call."""
    stores, organization = viewers.stores, viewers.scenario.organization_id
    call_id = await start_call(stores, organization)
    await store_recording(stores, call_id, organization)
    recorded = await task_of(stores, call_id, organization)
    return [recorded, replace(recorded, key=TaskKey("nothing", 2), recording_count=0)]


async def publishing_objects(viewers: DifferingViewers, topics: Sequence[Topic]) -> dict[str, Sequence[Any]]:
    """Returns scheduled posts, one of which is cancelled, and their targets."""
    stores, organization = viewers.stores, viewers.scenario.organization_id
    account = await stores.accounts.connect(AccountToConnect(organization, Network.SANDBOX, "Tower", None), "{}", None)
    home, in_topics = HomeFeedTarget("dan"), [TopicTarget(each.id, each.community_id) for each in topics]
    of_account, due_at = AccountTarget(account.id, Network.SANDBOX), datetime.now(UTC).replace(microsecond=0)
    targets: list[list[Target]] = [[home, in_topics[0], of_account], [in_topics[0]]]
    new = [
        NewScheduledPost(organization, "dan", "Later", (), each, due_at + timedelta(days=1), "UTC", 60)
        for each in targets
    ]
    scheduled = [await stores.scheduled_posts.schedule(each, None) for each in new]
    await stores.scheduled_posts.cancel(organization, scheduled[1].id)
    publications = await stores.scheduled_posts.publications_of(scheduled[0].id)
    progress = PublishingProgress(PublishingPhase.CALLING, "key", 1, due_at, None)
    return {
        "ScheduledPost": scheduled,
        "Publication": [*publications, replace(publications[-1], state=PublicationState.UNKNOWN, progress=progress)],
        "HomeFeedTarget": [home, HomeFeedTarget("ann")],
        "TopicTarget": [*in_topics, TopicTarget("nothing", "nothing")],
        "AccountTarget": [of_account, of_account],
    }


def webhook(organization: str, key_id: str) -> Webhook:
    """Returns a webhook that reads as the account of a key."""
    now, filter_ = datetime.now(UTC), WebhookFilter(["MessagePosted"])
    fields = "Warehouse", "https://example.org", key_id, filter_, WebhookFormat.EVENT, now, "ann"
    return Webhook(new_id(), organization, *fields, *(None,) * 7)


def invitation(organization_id: str, community_id: str | None, creator_id: str) -> Invitation:
    """Returns an invitation, whether or not its community and its creator exist."""
    now, state = datetime.now(UTC), InvitationState.OPEN
    fields = Role.MEMBER, community_id, None, 1, 0, creator_id, now, now, None, state
    return Invitation(new_id(), organization_id, *fields)


def audit_entry(organization_id: str, actor_id: str, target_id: str) -> AuditEntry:
    """Returns an entry of a change that the first user made to the second."""
    action, at = AuditAction.USER_DEACTIVATED, datetime.now(UTC)
    return AuditEntry("id", organization_id, at, actor_id, action, TargetKind.USER, target_id, [], None, None)


async def service_keys(viewers: DifferingViewers) -> list[ServiceKey]:
    """Returns two service keys."""
    actor, new = command_line_actor(viewers.scenario.organization_id), NewServiceKey("Bot", ["chat:read"])
    return [(await viewers.stores.service_keys.create(actor, new)).key for _ in range(2)]


async def stamp_pack_objects(viewers: DifferingViewers) -> dict[str, Sequence[Any]]:
    """Returns packs with and without a rule, their ownerships, and notifications of them."""
    packs, organization = viewers.stores.stamp_packs, viewers.scenario.organization_id
    actor, rule = command_line_actor(organization), StampRule(StampRuleKind.MESSAGES_POSTED, 2)
    created = [await packs.create(actor, name) for name in ("Harbour", "Hills", "Tides")]
    earned = await packs.set_availability(actor, created[1].id, StampPackAvailability.EARNED, rule)
    given = await packs.set_availability(actor, created[2].id, StampPackAvailability.GIVEN, None)
    await viewers.stores.stamp_ownerships.grant_earned(UserKey(organization, "ann"), earned.id)
    now, kind = datetime.now(UTC), NotificationKind.STAMP_PACK_RECEIVED
    ids = (earned.id, given.id, "removed")
    notifications = [Notification("ann", Timestamp(1), kind, None, None, None, None, stamp_pack_id=id_) for id_ in ids]
    return {
        "StampPack": [created[0], earned, given],
        "StampPackOwnership": [
            StampPackOwnership(organization, "ann", id_, now, giver)
            for id_, giver in zip(ids, ("dan", None, "nobody"), strict=True)
        ],
        "Notification": [*notifications, replace(notifications[0], stamp_pack_id=None)],
    }


async def other_topics(viewers: DifferingViewers) -> list[Topic]:
    """Returns a topic without messages, and a topic of a community that only eve has joined."""
    stores, eve = viewers.stores, viewers.users["eve"]
    quiet = await stores.topics.create(viewers.scenario.community, "ann", "Quiet", None)
    other_community = await stores.communities.create(NewCommunity(eve.organization_id, "Elsewhere", ""), eve, None)
    other_scenario = TopicScenario(
        stores, other_community, await stores.topics.create(other_community, "eve", "Far", None)
    )
    message = await other_scenario.post("far", "dan")
    return [quiet, replace(other_scenario.topic, last_activity=message.timestamp)]


async def resolve_one_by_one(field: StrawberryField, objects: Sequence[Any], context: Context) -> list[Any]:
    """Returns the field's value of each object, by the field's own resolver."""
    assert field.base_resolver is not None
    resolve: Any = field.base_resolver.wrapped_func
    takes_info = "info" in inspect.signature(resolve).parameters
    info = {"info": SimpleNamespace(context=context)} if takes_info else {}
    return [await resolve(each, **info) for each in objects]


async def resolve_all_at_once(field: StrawberryField, objects: Sequence[Any], context: Context) -> list[Any]:
    """Returns the field's value of each object, by one call of the batch resolver."""
    resolve_many = batch_resolver_of(field)
    assert resolve_many is not None
    return list(await resolve_many(objects, SimpleNamespace(context=context)))


async def test_batch_resolver_equals_own_resolver(stores: Stores) -> None:
    viewers = await create_differing_viewers(stores)
    objects = await example_objects(viewers)
    assert {path.partition(".")[0] for path in FIELDS} == set(objects), "Add objects of each type to example_objects()."
    for path, field in FIELDS.items():
        objects_of_type = objects[path.partition(".")[0]]
        for user_id in VIEWER_IDS:
            context = viewers.context(user_id)
            expected = await resolve_one_by_one(field, objects_of_type, context)
            assert await resolve_all_at_once(field, objects_of_type, context) == expected, path
            assert await resolve_all_at_once(field, [], context) == []


@pytest.mark.parametrize("path", ["Message.author", "Post.author"])
async def test_object_without_author_fails_in_both_resolvers(stores: Stores, path: str) -> None:
    viewers = await create_differing_viewers(stores)
    valid = (await example_objects(viewers))[path.partition(".")[0]]
    orphaned = [*valid, replace(valid[0], author_id="nobody")]
    for resolve in (resolve_one_by_one, resolve_all_at_once):
        with pytest.raises(NotFound):
            await resolve(FIELDS[path], orphaned, viewers.context("ann"))
