"""Indexes: MongoDB's profiler shows that every query uses one, and index keys are fields of the document types."""

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, get_args, get_type_hints

import pytest

from storage.calls import documents as calls
from storage.calls.expired_data import PHONE_NUMBERS
from storage.calls.number_check import NumberCheck
from storage.calls.records import parse_call_id
from storage.chat import documents as chat
from storage.chat.changes import NewMessage
from storage.chat.communities import NewCommunity
from storage.chat.conversations import documents as conversations
from storage.chat.conversations.records import ConversationState
from storage.chat.reactions import documents as reactions
from storage.chat.reactions.store import ViewerBlocks
from storage.chat.records import CommunityVisibility
from storage.chat.roles import CommunityRole, Moderator
from storage.chat.search import documents as search
from storage.chat.stamps import documents as stamps
from storage.chat.stamps.ownerships import StampPackGiver
from storage.chat.stamps.rules import StampPackAvailability, StampRule, StampRuleKind
from storage.feed import documents as feed
from storage.feed.changes import CreatePost, NewPost
from storage.feed.content_reports import documents as content_reports
from storage.feed.content_reports.records import ContentReportState
from storage.feed.content_reports.store import ReportFilter
from storage.feed.edits import NewText
from storage.feed.fan_outs import FanOutRetry
from storage.feed.follows import FollowPair
from storage.feed.home import FEW_MERGED_AUTHORS
from storage.feed.records import Post, PostParentKind, author_stream
from storage.feed.stamp_rules.activity import SCANS
from storage.files import documents as files
from storage.files.attachments import NewAttachment
from storage.files.pictures import DecodedPicture, EncodedPicture, FileRefusal
from storage.files.preview_pictures import preview_picture_id
from storage.heartbeats import MailTailDocument, WorkerDocument
from storage.idempotency import IdempotencyKeyDocument, idempotency_key
from storage.identity import documents as identity
from storage.identity.accounts import documents as accounts
from storage.identity.accounts.attempt_limits import SIGN_INS_BY_CLIENT
from storage.identity.accounts.invitations import NewInvitation
from storage.identity.accounts.local_accounts import MailLanguage, NewLocalAccount
from storage.identity.accounts.mails import AccountMailKind
from storage.identity.accounts.registration import offer_first_admin
from storage.identity.accounts.tokens import TokenPurpose, TokenSubject
from storage.identity.audit import Actor
from storage.identity.mutes import HiddenSubjects, MuteSubject
from storage.identity.passkeys import documents as passkeys
from storage.identity.passkeys.records import NewPasskey, PasskeyUse
from storage.identity.records import User
from storage.identity.relations import FEW_BLOCKERS
from storage.identity.roles import Role
from storage.identity.session_records import NewSession, ProviderSession, SignInMethod
from storage.ids import UserKey
from storage.indexes import INDEXES
from storage.locks import FenceDocument, LockDocument
from storage.mail.addresses import Address
from storage.mail.book import AddressBook
from storage.mail.decisions.address_reports import address_report
from storage.mail.decisions.blocked_addresses import blocked_addresses
from storage.mail.decisions.dry_runs import dry_run
from storage.mail.decisions.policies import MailPolicy
from storage.mail.imports import BookImporter, LegacyBookRow
from storage.mail.ledger import Ledger, backlog
from storage.mail.rates import day_of
from storage.migrations.data_version import DataVersionDocument
from storage.migrations.start import prepare_database
from storage.mongo import Document
from storage.mongo.text_index.pages import SearchFilter
from storage.notifications import documents as offline
from storage.notifications.arrivals import SCAN_ID, NotificationArrivals
from storage.notifications.channels import NewNotifications, PushSubscription
from storage.notifications.settings import (
    DigestPeriod,
    NotificationPlace,
    NotificationPlaceKind,
    NotificationSettingsChange,
    NotificationWay,
)
from storage.privacy import documents as privacy
from storage.privacy.addresses import forget_readable_addresses
from storage.privacy.retention_rules import RetainedData
from storage.publishing import documents as publishing
from storage.publishing.accounts import AccountToConnect
from storage.publishing.credentials.connections import ConnectionNotPending, ConnectionOwner, PendingConnection
from storage.publishing.credentials.lifetimes import CredentialLifetime
from storage.publishing.networks import Network
from storage.publishing.records import VerifiedAccount
from storage.secrets.key_fingerprints import KeyFingerprintsDocument
from storage.secrets.shared_secrets import SecretDocument, shared_secret
from storage.stores import Stores
from storage.streams import documents as streams
from storage.streams.log import Stream, StreamPosition, stream_digest
from storage.timeline import MAX_TIMESTAMP, NOW, timeline_range
from storage.webhooks import documents as webhooks
from storage.webhooks.deliveries import DeliveryResult, SentMessage
from storage.webhooks.positions import Move
from storage.webhooks.records import DeliveryOutcome, DisabledReason, NewWebhook, WebhookFilter
from storage.webhooks.store import WebhookManager
from tests.keys import ADDRESS_KEYS
from tests.storage.calls.stored_calls import queued_task, stored_job
from tests.storage.feed.feed_scenario import load_reader
from tests.storage.mail.events import ok
from tests.storage.topic_scenario import TopicScenario, create_topic_scenario, keep_all

pytestmark = pytest.mark.anyio

NOBODY: frozenset[str] = frozenset()
BLOCKED = frozenset({"dan", "eve"})


async def query_identity(scenario: TopicScenario) -> None:
    users, relations, org = scenario.stores.users, scenario.stores.relations, scenario.organization_id
    for name in ("bob", "cyd", "dan"):
        await users.sign_in(org, name, (), name.title(), None)
    await users.sign_in(org, "bob", (), "Robert", None)
    await users.find(org, "bob")
    await users.find_handles(org, ["bob", "cyd"])
    await users.search(org, "b", 10)
    await users.search(org, "b", 10, scenario.community.id)
    await relations.block(org, "ann", "dan")
    await relations.blocked_users_of(org, "ann")
    await relations.blockers_among(org, "dan", ["ann"])
    await relations.follows(org, "ann", "bob")
    await relations.unblock(org, "ann", "dan")
    mutes, owner = scenario.stores.mutes, UserKey(org, "ann")
    await scenario.stores.notification_settings.set_level(
        owner, NotificationPlace(NotificationPlaceKind.TOPIC, scenario.topic.id), None
    )
    await scenario.stores.notification_settings.get(owner)
    channels = scenario.stores.notification_channels
    device = await channels.add_device(owner, PushSubscription("https://push.example.org/a", b"", b""), None, None)
    await channels.mark({owner: NewNotifications(MAX_TIMESTAMP, frozenset({"t"}))}, 0.0)
    await channels.release_of("worker")
    for channel in await channels.claim(NotificationWay.PUSH, 10):
        await channels.postpone(channel, None)
        await channels.finish(channel, 0.0)
        await channels.remove(channel)
    await scenario.stores.digests.change_settings(owner, NotificationSettingsChange(digest=DigestPeriod.DAILY))
    await channels.mark({owner: NewNotifications(MAX_TIMESTAMP, frozenset({"t"}))}, 0.0)
    for channel in await channels.claim(NotificationWay.MAIL, 10):
        await channels.finish(channel, 0.0)
        await channels.reopen(channel, 0.0)
    await scenario.stores.digests.change_settings(owner, NotificationSettingsChange(digest=DigestPeriod.NEVER))
    await users.verified_address(owner)
    await channels.devices(owner)
    await channels.remove_device(owner, device.id)
    await scenario.stores.notifications.unread_between(owner, 0, MAX_TIMESTAMP, HiddenSubjects(), 10)
    await scenario.stores.sessions.is_open("nothing")
    await scenario.stores.mongo["notification_scans"].update_one(
        {"_id": SCAN_ID}, {"$set": {"at": datetime.now(UTC) - timedelta(hours=1)}}, upsert=True
    )
    await NotificationArrivals(scenario.stores.mongo, channels).sweep(0.0, 0.0)
    muted = await mutes.mute(owner, MuteSubject.USER, "dan", None)
    await mutes.mute(owner, MuteSubject.TOPIC, scenario.topic.id, None)
    await mutes.muted_by(org, "ann")
    await mutes.list_mutes(owner, None, None, 10)
    await mutes.list_mutes(owner, MuteSubject.USER, None, 10)
    await mutes.list_mutes(owner, None, muted.id, 10)
    await mutes.unmute(owner, MuteSubject.USER, "dan")
    ann, sessions = UserKey(org, "ann"), scenario.stores.sessions
    new = NewSession(ann, SignInMethod.OIDC, provider=ProviderSession("https://id.example.org", "ann", "s1"))
    tokens = [await sessions.begin(new) for _ in range(4)]
    await sessions.find(tokens[0])
    await sessions.end(ann, (await sessions.list_of(ann))[0].id)
    await sessions.log_out("https://id.example.org", "1", None, "s1")
    await sessions.log_out("https://id.example.org", "2", "ann", None)
    await sessions.end_all(ann)


async def query_accounts(scenario: TopicScenario) -> None:
    stores, org = scenario.stores, scenario.organization_id
    actor, address = Actor(org, "ann"), "bob@example.org"
    await stores.users.sign_in(org, "ann", (Role.ADMIN,), "Ann", None)
    await offer_first_admin(stores.mongo, org)
    new = NewInvitation(Role.OPERATOR, scenario.community.id, address, 1, timedelta(days=1), MailLanguage.EN)
    created = await stores.invitations.create(actor, new, None)
    await stores.invitations.find(org, created.token or "")
    await stores.invitations.add_token(org, created.invitation.id)
    for mail in await stores.account_mails.claim(10):
        await stores.account_mails.finish(mail)
    account = NewLocalAccount(Actor(org, "new"), address, "Bob", None, "", MailLanguage.EN)
    await stores.registrations.create_invited(created.token or "", account)
    await stores.invitations.revoke(actor, created.invitation.id)
    for after in (None, created.invitation.id):
        await stores.invitations.list_invitations(org, after, 10)
    token = await stores.account_tokens.issue(TokenPurpose.REGISTRATION, TokenSubject(org, address="c@example.org"))
    await stores.account_tokens.find(TokenPurpose.REGISTRATION, token)
    await stores.local_accounts.of_user(org, "new")
    passkey = await stores.passkeys.add(account.actor, NewPasskey(b"challenge", b"id", b"key", 0, False, "Phone"))
    await stores.passkeys.list_of(passkey.user)
    await stores.passkeys.find(org, b"id")
    await stores.passkeys.rename(passkey.user, passkey.id, "Key")
    await stores.passkey_sessions.sign_in(passkey, PasskeyUse(b"another challenge", 0), None, None)
    await stores.passkeys.remove(account.actor, passkey.id, None)
    await stores.account_mails.add(AccountMailKind.RESET, org, address, MailLanguage.EN)
    await stores.attempt_limits.count([(SIGN_INS_BY_CLIENT, "a")])
    await stores.attempt_limits.forget([(SIGN_INS_BY_CLIENT, "a")])


async def query_communities(scenario: TopicScenario) -> None:
    communities, org = scenario.stores.communities, scenario.organization_id
    ann = await scenario.stores.users.get(org, "ann")
    bob = await scenario.stores.users.get(org, "bob")
    other = await communities.create(NewCommunity(org, "Aaa", ""), ann, idempotency_key(org, "ann", "c", "k", {}))
    await communities.join(scenario.community, bob)
    await communities.leave(scenario.community, "bob")
    await communities.is_member(scenario.community.id, "ann")
    await communities.member_ids(scenario.community.id, None, 10)
    await communities.member_ids(scenario.community.id, "a", 10)
    for joined in (None, True, False):
        for after in (None, other.id):
            await communities.list_communities(org, "ann", joined, after, 10)
    await communities.list_without_owner(org, None, 10)
    for state in (None, ContentReportState.OPEN):
        of_community = ReportFilter(scenario.community.id, state)
        for report_filter in (of_community, ReportFilter(None, state, None, "ann", {scenario.community.id})):
            await scenario.stores.content_reports.list_reports(org, report_filter, None, 10)


async def query_conversations(scenario: TopicScenario) -> None:
    stores, org = scenario.stores, scenario.organization_id
    ann, bob, cyd = [await stores.users.get(org, name) for name in ("ann", "bob", "cyd")]
    pair = await stores.conversations.start(bob, [ann], "", None)
    group = await stores.conversations.start(ann, [bob, cyd], "Boat", idempotency_key(org, "ann", "v", "k", {}))
    await stores.messages.post(NewMessage(pair.id, pair.id, "bob", "@ann", None, ("ann",)))
    await stores.conversations.accept(ann, pair.id)
    await stores.conversations.add(ann, group.id, [bob])
    for state in ConversationState:
        await query_pages(lambda range_, state=state: stores.conversations.page(bob, state, range_))  # type: ignore[misc]
    await stores.conversations.update_notification(ann, pair.id)
    await stores.communities.departures(pair.id)
    await stores.conversations.leave_pair(org, "ann", "bob")
    await stores.conversations.start(bob, [ann], "", None)


async def query_moderation(scenario: TopicScenario) -> None:
    moderation, community, ann = scenario.stores.moderation, scenario.community, Moderator("ann")
    await scenario.stores.communities.join(community, await scenario.stores.users.get(scenario.organization_id, "bob"))
    await moderation.set_role(community, ann, "bob", CommunityRole.OWNER)
    await scenario.stores.communities.leave(community, "bob")
    await moderation.mute(community, ann, "bob", None)
    await moderation.ban_member(community, ann, "zed", None, "spam")
    for role in (None, *CommunityRole):
        for after in (None, "a"):
            await moderation.members(community.id, role, after, 10)
            await moderation.bans(community.id, after, 10)
    await moderation.unban(community, ann, "zed")
    zed = replace(await scenario.stores.users.get(scenario.organization_id, "bob"), id="zed", handle="zed")
    await moderation.update_community(community, ann, None, None, CommunityVisibility.LISTED)
    await moderation.request_to_join(community, zed, "please")
    await moderation.join_requests(community.id, "a", 10)
    await moderation.decide_join_request(community, ann, zed, True)
    await moderation.add_member(community, ann, zed)


async def query_topics(scenario: TopicScenario) -> None:
    topics, org = scenario.stores.topics, scenario.organization_id
    await topics.create(scenario.community, "ann", "Another", idempotency_key(org, "ann", "t", "k", {}))
    await topics.get(org, scenario.topic.id)
    await query_pages(lambda range_: topics.page(scenario.community.id, range_))
    await topics.newest([scenario.community.id, "other"], 10)
    await topics.trending(org, 10, keep_all)
    await topics.mark_read(scenario.topic.id, "bob", 5, 5)
    await topics.read_up_to(scenario.topic.id, "bob")
    await topics.unread_count(scenario.topic.id, MAX_TIMESTAMP, "bob", NOBODY)
    await topics.unread_count(scenario.topic.id, MAX_TIMESTAMP, "bob", BLOCKED)


async def query_pages(page: Any) -> None:
    for bounds in ({"oldest": 5}, {"latest": NOW}, {"latest": 5}, {"oldest": 5, "latest": 2**50}):
        await page(timeline_range(**bounds, limit=2))


async def query_messages(scenario: TopicScenario) -> None:
    messages, reads, org = scenario.stores.messages, scenario.stores.reactions, scenario.organization_id
    first = await scenario.post("https://example.com", key="k")
    posted = [first] + [await scenario.post(author="bob") for _ in range(5)]
    for blocked in (NOBODY, BLOCKED):
        await query_pages(lambda range_, blocked=blocked: messages.page(scenario.topic.id, range_, blocked))
        await messages.around(scenario.topic.id, posted[2].timestamp, 3, blocked)
        await messages.last_message(scenario.topic.id, posted[-1].timestamp, blocked)
    await messages.get(first.key)
    await messages.edit(first.key, "ann", "edited https://example.org", ())
    await messages.awaiting_preview(-60, 10)
    await messages.set_preview(first.key, "https://example.org", None)
    reacted = await messages.add_reaction(org, posted[1].key, "ann", "👍")
    await messages.add_reaction(org, posted[1].key, "cyd", "👍")
    await messages.remove_reaction(org, posted[1].key, "cyd", "👍")
    for blocked in (NOBODY, BLOCKED):
        await reads.of_messages([reacted], ViewerBlocks("ann", blocked))
        await reads.users(posted[1].key, "👍", 10, blocked)
        await query_pages(lambda range_, blocked=blocked: reads.received(org, "bob", range_, blocked, keep_all))
    await messages.delete(posted[1].key, Moderator("bob"))
    thread = await scenario.stores.threads.open(org, first.key, "bob")
    await messages.post(replace(scenario.new_message(), topic_id=thread.id))
    await scenario.stores.threads.follow(thread.id, "ann")
    # The first is committed alone, and the two others together.
    replies = [replace(scenario.new_message("reply", name), topic_id=thread.id) for name in ("ann", "bob", "ann")]
    await asyncio.gather(*(messages.post(each) for each in replies))
    await scenario.stores.threads.followed_among([thread.id], "ann")
    followed = scenario.stores.threads.followed
    await query_pages(lambda range_: followed(org, "bob", [scenario.community.id], range_))
    await scenario.stores.threads.unfollow(thread.id, "bob")
    await scenario.stores.threads.count_replies_by([first.key, posted[1].key], BLOCKED)
    await scenario.stores.topics.set_archived(scenario.topic.id, True, Moderator("ann"))
    await scenario.stores.topics.set_archived(scenario.topic.id, False, Moderator("ann"))


async def query_search(scenario: TopicScenario) -> None:
    org, community = scenario.organization_id, scenario.community.id
    await scenario.stores.communities.find_joined(org, "ann", community, "fishers")
    await scenario.stores.communities.people_met_by(UserKey(org, "ann"), ["bob"])
    find, posts = scenario.stores.message_search.page, scenario.stores.post_search
    topics = scenario.stores.topic_search
    for terms in (["boat"], ["boat", "red"], ["from:ann", "in:x", "has:link"]):
        filter_ = SearchFilter([], terms, 0, MAX_TIMESTAMP)
        await query_pages(lambda range_, filter_=filter_: find(org, "ann", NOBODY, filter_, range_))
        await query_pages(lambda range_, filter_=filter_: find(org, "ann", NOBODY, filter_, range_, community))
        await query_pages(lambda range_, filter_=filter_: topics.page(org, "ann", filter_, range_))
        await query_pages(lambda range_, filter_=filter_: posts.page(org, NOBODY, filter_, range_))


async def query_posts(scenario: TopicScenario) -> None:
    stores, org = scenario.stores, scenario.organization_id
    posts = stores.posts
    new_posts = [NewPost(org, "ann", "https://example.org #a", (), ["bob"], ["a"], f"s{n}") for n in (1, 2)]
    first, second = [await posts.create(new, idempotency_key(org, "ann", "p", new.source, {})) for new in new_posts]
    for blocked in (NOBODY, BLOCKED):
        await query_pages(lambda range_, blocked=blocked: posts.all_posts(org, range_, blocked))
        await query_pages(lambda range_, blocked=blocked: posts.posts_with_hashtag(org, "a", range_, blocked))
    for hidden in (HiddenSubjects(), HiddenSubjects(BLOCKED, BLOCKED, BLOCKED, frozenset({first.key.id}))):
        await query_pages(lambda range_, hidden=hidden: stores.notifications.page(org, "bob", range_, hidden))
        await stores.notifications.unread_count(org, "bob", hidden)
    await query_pages(lambda range_: posts.posts_of_author(org, "ann", range_))
    await query_responses(scenario, first)
    await posts.get(first.key)
    await posts.awaiting_preview(-60, 10)
    await posts.set_preview(first.key, "https://example.org", None)
    await posts.delete(second.key, Moderator("ann"))
    await stores.notifications.mark_read(org, "bob", 5)


async def query_responses(scenario: TopicScenario, post: Post) -> None:
    """Replies to a post, reposts it and reacts to it."""
    stores, org = scenario.stores, scenario.organization_id
    parent = post.as_parent(PostParentKind.REPLY)
    await stores.posts.create(NewPost(org, "bob", "reply", (), (), (), parent=parent))
    for blocked in (NOBODY, BLOCKED):
        await query_pages(lambda range_, blocked=blocked: stores.posts.replies(post.key, range_, blocked))
    await stores.posts.count_responses(org, PostParentKind.REPLY, [post.timestamp], BLOCKED)
    await stores.posts.repost("bob", post)
    await stores.posts.reposted_among(org, "bob", [post.timestamp])
    await query_pages(lambda range_: stores.posts.posts_of_author(org, "bob", range_))
    await stores.posts.undo_repost("bob", post.key)
    reacted = await stores.post_reactions.add(post, "bob", "👍")
    await stores.post_reactions.of_posts([reacted], ViewerBlocks("bob", BLOCKED))
    for blocked in (NOBODY, BLOCKED):
        await stores.post_reactions.users(post.key, "👍", 10, blocked)
    await stores.post_reactions.remove(post.key, "bob", "👍")
    await stores.post_edits.edit(post.key, "ann", NewText("edited #a", (), ("a",)))
    await stores.post_edits.versions(post.key)


async def query_feeds(scenario: TopicScenario) -> None:
    stores, org = scenario.stores, scenario.organization_id
    names = [f"reader-{n}" for n in range(5)]
    for name in names:
        await stores.users.sign_in(org, name, (), None, None)
        await stores.follows.follow(FollowPair(org, name, "ann"))
    await stores.follows.unfollow(FollowPair(org, names[0], "ann"))
    await stores.follows.pending_changes(-60, 10)
    post = await stores.posts.create(NewPost(org, "ann", "hello", (), (), ()))
    # With a maximum of 0 followers, ann becomes a merged author.
    merged_plan = replace(stores.posts.plan(NewPost(org, "ann", "hello", (), (), ())), max_followers=0)
    await stores.sequencer.commit(author_stream(org, "ann"), CreatePost(merged_plan))
    await stores.home_subscribers.record(org, names[1])
    chunk = await stores.feeds.followers(org, "ann", "")
    await stores.fan_outs.unclaimed(10)
    claim = await stores.fan_outs.claim(post.key)
    assert claim is not None
    await stores.feeds.without_absent(org, chunk.follower_ids)
    await stores.relations.blockers_among(org, "ann", chunk.follower_ids)
    await stores.feeds.push(post, chunk.follower_ids)
    await stores.feeds.trim(org, names[1])
    await stores.fan_outs.advance(claim, chunk.after, True, 1, names[1:2])
    await stores.fan_outs.due_retries(10)
    await stores.fan_outs.store_retry_outcomes(FanOutRetry(post.key, {names[1]: 1}), ())
    visit = await stores.home.record_visit(org, names[1])
    for reader in (
        await load_reader(stores.home, org, names[1], NOBODY),
        await load_reader(stores.home, org, "ann", BLOCKED),
    ):
        await query_pages(lambda range_, reader=reader: stores.home.page(reader, range_))
        page = await stores.home.page(reader, timeline_range(latest=NOW))
        await stores.home.begin_refill(reader, page, replace(visit, complete_from=None))
    await stores.home.rebuild(org, names[1])
    await stores.home.readers_to_rebuild(10)
    await stores.feeds.remove(post.key, names)
    await stores.fan_outs.delete_retries(post.key)
    await stores.follows.apply_change(FollowPair(org, names[1], "ann"))


async def query_streams(scenario: TopicScenario) -> None:
    log = scenario.stores.events
    for stream in (scenario.stream, scenario.community_stream, Stream("user", "new/one")):
        await log.head(stream)
        await log.read(stream, 1)
    await log.heads([scenario.stream, scenario.community_stream])
    await scenario.stores.outbox.sweep()
    await scenario.stores.mongo["events"].update_many(
        {"_id": {"$gt": {"s": scenario.stream.name, "n": 0}, "$lt": {"s": scenario.stream.name, "n": 3}}},
        {"$set": {"at": datetime(2020, 1, 1, tzinfo=UTC)}},
    )
    assert await log.prune() == 2
    await shared_secret(scenario.stores.mongo, "images")


async def query_mail(scenario: TopicScenario) -> None:
    mongo, org = scenario.stores.mongo, scenario.organization_id
    book, ledger = AddressBook(mongo, ADDRESS_KEYS), Ledger(mongo, ADDRESS_KEYS)
    imports, rates = BookImporter(mongo, ADDRESS_KEYS), scenario.stores.bounce_rates
    people = [f"a{number}@d{number % 3}.example" for number in range(30)]
    await ledger.record(org, "mta", [ok(each) for each in people])
    await backlog(mongo)
    for partition in await scenario.stores.aggregator.pending_partitions():
        lock = await scenario.stores.locks.acquire(f"mail:{partition}")
        assert lock is not None
        await scenario.stores.aggregator.aggregate_batch(lock, partition)
    await book.look_up(org, people)
    await book.unblock(org, Address(people[0], "d0.example"), "op", "why")
    await book.set_domain_blocked(org, "d0.example", True, "op", "why")
    await book.record_differences(org, await book.look_up(org, people), {people[1]: True})
    await book.differences(org, people)
    for version in range(3):
        kept = version == 1
        await book.policies.set(
            org, MailPolicy(hard_bounces=2), version, f"op-{version}", "why", None, keep_addresses=kept
        )
    await book.readable.forget()
    await forget_readable_addresses(mongo, ADDRESS_KEYS, UserKey(org, "ann"))
    await book.policies.versions(org, 2)
    await dry_run(mongo, book, org, MailPolicy(), b"")
    await blocked_addresses(mongo, book, org, b"", 2)
    await address_report(mongo, book, org, Address(people[0], "d0.example"))
    newest, *_ = await book.changes.page(org, [], None, 2)
    await book.changes.page(org, ["d0.example"], newest.id, 2)
    await imports.add(org, "old", [LegacyBookRow(each, 1, 0, 0) for each in people])
    await imports.sources(org)
    await imports.rebuild(org, None, lambda _: None)
    day = day_of(await mongo.now())
    for domain in (None, "d1.example"):
        await rates.between(org, domain, day - 3, day)
    await rates.of_day(day)
    await rates.worst_domains(org, day)
    await rates.highest(day)
    await scenario.stores.reports.claim(org, day, "alarm")
    await scenario.stores.reports.mark_sent(org, day, "alarm")
    await scenario.stores.reports.since(day, 10)
    await scenario.stores.reports.alarms(org, 10)


async def profile(stores: Stores, work: Awaitable[Any]) -> list[Document]:
    """Does the work. Returns the profiler's entry for each of its operations."""
    database, profiler_entries = stores.mongo.database, stores.mongo["system.profile"]
    await database.command({"profile": 0})
    await profiler_entries.drop()
    await database.create_collection("system.profile", capped=True, size=20_000_000)
    await database.command({"profile": 2})
    await work
    await database.command({"profile": 0})
    of_work = {"ns": {"$ne": f"{database.name}.system.profile"}, "planSummary": {"$exists": True}}
    return await profiler_entries.find(of_work).to_list(None)


async def query_files(scenario: TopicScenario) -> None:
    stores, owner = scenario.stores, UserKey("o", "ann")
    for data in (b"beacon", b"\x89PNG"):
        file = await stores.uploads.create(owner, "a", len(data))
        await stores.uploads.append(file, data)
        claimed = await stores.file_checks.claim()
        assert claimed is not None
        await stores.file_checks.accept(claimed, "text/plain")
    await stores.uploads.require(owner, [file.id])
    await stores.uploads.find_in_place("publication:p", [file.id])
    await stores.file_deletion.remove_places()
    ready = await stores.uploads.get(owner, file.id)
    await stores.media_library.add(owner, NewAttachment(ready.id, ""))
    await stores.media_library.list_files(owner, ready.id, 50)
    await stores.media_library.remove(owner, ready.id)
    await stores.file_checks.refuse(claimed, FileRefusal.UNREADABLE)
    await stores.file_deletion.delete_expired()
    await stores.file_deletion.delay_s()
    await stores.file_deletion.cancel(claimed)
    await stores.file_deletion.erase(file.id)
    await store_preview_pictures(stores)


async def store_preview_pictures(stores: Stores) -> None:
    pictures, encoded = stores.preview_pictures, EncodedPicture("image/webp", 4, 3, b"beacon")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("storage.files.preview_pictures.MAX_PICTURES", 1)
        for url in ("https://a.example", "https://b.example", "https://b.example"):
            await pictures.store("o", url, DecodedPicture(encoded, (), "a-hash"))
    await pictures.find(preview_picture_id("o", "https://a.example"))
    await pictures.find_fresh("o", "https://b.example")


async def query_stamps(scenario: TopicScenario) -> None:
    stores, org = scenario.stores, scenario.organization_id
    admin, ann = Actor(org, "ann", is_command_line=True), UserKey(org, "ann")
    message = await scenario.post()
    await stores.messages.add_reaction(org, message.key, "bob", "👍")
    await stores.post_reactions.add(await stores.posts.create(NewPost(org, "ann", "hello", (), (), ())), "bob", "👍")
    for kind in StampRuleKind:
        pack = await stores.stamp_packs.create(admin, kind.value)
        await stores.stamp_packs.set_availability(
            admin,
            pack.id,
            StampPackAvailability.EARNED,
            StampRule(kind, 2 if kind is StampRuleKind.POSTS_CREATED else 1),
        )
    await stores.stamp_rule_walk.sweep()
    past = datetime.now(UTC) - timedelta(minutes=1)
    await stores.mongo[SCANS].update_one({"_id": SCAN_ID}, {"$set": {"at": past}}, upsert=True)
    await stores.stamp_rule_activity.sweep(0.0)
    given = await stores.stamp_packs.set_availability(admin, pack.id, StampPackAvailability.GIVEN, None)
    await stores.stamp_ownerships.give(ann, given, StampPackGiver(Moderator("ann"), scenario.community.id))
    await stores.stamp_packs.get(org, pack.id)
    await stores.stamp_packs.find_by_stamp(org, "lit")
    assert await stores.stamp_ownerships.may_use(ann, given)
    await stores.stamp_rule_evaluation.progress(ann, await stores.stamp_packs.list_packs(org), ())
    await stores.stamp_ownerships.take_back(admin, ann, given)
    await stores.stamp_packs.remove(admin, pack.id)
    past_due = [{"$set": {"due": {"$subtract": ["$$NOW", 1]}}}]
    await stores.mongo["stamp_catalogues"].update_one({"_id": org}, past_due)
    await stores.stamp_ownerships.grant_earned(ann, pack.id)
    await stores.stamp_rule_walk.sweep()


async def query_retention(scenario: TopicScenario) -> None:
    stores, org = scenario.stores, scenario.organization_id
    await stores.users.sign_in(org, "ada", (Role.ADMIN,), "Ada", None)
    await stores.retention_rules.set_rule(Actor(org, "ada"), RetainedData.PHONE_NUMBERS, 1)
    await stores.retention_rules.list_rules(org)
    rule = await stores.retention_rules.claim()
    assert rule is not None
    await stores.retention_rules.finish(rule)
    old = {"created_at": datetime(2020, 1, 1, tzinfo=UTC)}
    await stores.mongo["call_jobs"].insert_many([{"_id": f"j{n}", "org": org, "ts": n, **old} for n in range(20)])
    await stores.mongo["call_tasks"].insert_many(
        [{"_id": {"j": f"j{n}", "r": row}, "phone": "+1", "state": "QUEUED"} for n in range(20) for row in (2, 3)]
    )

    async def ignore(_until: datetime | None = None) -> None:
        return

    await stores.expired_call_data.remove(org, PHONE_NUMBERS, timedelta(days=1), ignore)
    await stores.expired_events.empty(org, -timedelta(days=1), None, ignore)
    await stores.expired_messages.delete(org, -timedelta(days=1), None, ignore)


async def query_calls(scenario: TopicScenario) -> None:
    stores, org = scenario.stores, scenario.organization_id
    await stores.do_not_call.add(org, [f"+8190123456{n}" for n in range(10, 30)])
    await stores.mongo["call_jobs"].insert_one(stored_job(_id="open", org=org, ts=1))
    tasks = [queued_task(_id={"j": "open", "r": row}, org=org, dials=1) for row in range(2, 20)]
    await stores.mongo["call_tasks"].insert_many(tasks)
    assert len([number async for number in NumberCheck(stores.mongo).numbers(org)]) == 38
    await store_recordings(stores, org)


async def store_recordings(stores: Stores, organization_id: str) -> None:
    recordings = stores.call_recordings
    for row in range(2, 20):
        await recordings.report(organization_id, f"open-{row}-1", "https://a.example/call.wav")
    refused, late, stored = [await recordings.claim() for _ in range(3)]
    assert refused is not None
    assert late is not None
    assert stored is not None
    await recordings.give_up(refused)
    await recordings.retry_later(late)
    await recordings.release_of("worker")
    await recordings.store(stored, [await stores.file_objects.put(stored.file_id, b"RIFF")], "audio/wav")
    await recordings.of_tasks(organization_id, [parse_call_id(stored.call_id).task])
    await recordings.release("open")


async def query_connections(scenario: TopicScenario) -> None:
    stores, owner = scenario.stores, ConnectionOwner(UserKey(scenario.organization_id, "ann"), "session")
    pending = PendingConnection(Network.X, "ours", None, None, "verifier", "id", None)
    state, _ = await stores.account_connections.begin(owner, pending)
    with suppress(ConnectionNotPending):
        await stores.account_connections.take(ConnectionOwner(owner.user, "other"), state)
    await stores.account_connections.take(owner, state)
    lifetime = CredentialLifetime(1.0, "refresh", is_renewable=True)
    new = AccountToConnect(scenario.organization_id, Network.X, "ours", None, lifetime=lifetime)
    account = await stores.accounts.connect(new, "token", None)
    due = {"$set": {"renew_at": datetime(2020, 1, 1, tzinfo=UTC)}}
    await stores.mongo["accounts"].update_one({"_id": account.id}, due)
    await stores.credential_renewals.release_of("worker")
    renewal = await stores.credential_renewals.claim([Network.X])
    assert renewal is not None
    await stores.credential_renewals.postpone(renewal, 60, had_no_effect=True)
    await stores.credential_renewals.store(renewal, "token", lifetime)
    await stores.credential_renewals.give_up(renewal)
    await stores.credential_renewals.refuse(renewal, "UNAUTHORIZED", "no")
    await query_verifications(stores, account.id)


async def query_verifications(stores: Stores, account_id: str) -> None:
    due = {"verify_at": datetime(2020, 1, 1, tzinfo=UTC), "warn_at": datetime(2020, 1, 1, tzinfo=UTC)}
    change = {"$set": due, "$unset": {"renew_at": "", "renewal": ""}}
    await stores.mongo["accounts"].update_one({"_id": account_id}, change)
    await stores.credential_warnings.send_due(10)
    await stores.credential_verifications.release_of("worker")
    verification = await stores.credential_verifications.claim([Network.X])
    assert verification is not None
    await stores.credential_verifications.postpone(verification)
    await stores.credential_verifications.accept(verification, VerifiedAccount("7", "@harbour"))
    await stores.credential_verifications.refuse(verification, "UNAUTHORIZED", "no")


async def query_summaries(scenario: TopicScenario) -> None:
    organization_id, store = scenario.organization_id, scenario.stores.publication_summaries
    now, person = await scenario.stores.mongo.now(), UserKey(scenario.organization_id, "ann")
    problems: Document = {"_id": organization_id, "since": now, "reports": 1, "due": now}
    await scenario.stores.mongo["publication_problems"].insert_one(problems)
    claimed = await store.claim()
    assert claimed is not None
    await store.team(organization_id, now)
    for last in (None, now):
        await store.record(person, "2026-11-22", now)
        await store.last_sent(person)
        await store.reopen(person, "2026-11-22", last)
    await store.content(organization_id, now)
    await store.close(claimed)


async def query_webhooks(scenario: TopicScenario) -> None:
    stores, org = scenario.stores, scenario.organization_id
    await stores.users.sign_in(org, "ann", (Role.ADMIN,), "Ann", None)
    manager = WebhookManager(Actor(org, "ann"))
    new = NewWebhook("Warehouse", "https://example.org", "key", WebhookFilter(["MessagePosted", "PostArrived"]))
    webhook = (await stores.webhooks.create(manager, new, None)).webhook
    await stores.webhooks.change(manager, webhook.id, "Lake", webhook.url, webhook.filter)
    await stores.webhooks.rotate(manager, webhook.id, 60, None)
    await stores.webhooks.replay_since(manager, webhook.id, webhook.created_at)
    for each in (manager, WebhookManager(Actor(org, "key"), "key")):
        await stores.webhooks.list_webhooks(each)
    discovery, claims, positions = stores.webhook_discovery, stores.webhook_claims, stores.webhook_positions
    readers = await discovery.readers()
    await scenario.post("hello", "ann")
    await discovery.search_new(readers, await discovery.settled_at(readers))
    await discovery.search_settled(readers)
    await claims.organizations_with_posts()
    (claimed,) = await claims.claim(10)
    await discovery.search_for(webhook, webhook.created_at, True, partial(claims.recover, claimed))
    await claims.end_scan(claimed)
    (waiting,) = await positions.waiting(webhook.id)
    await positions.oldest_waiting([webhook.id])
    epoch, n = waiting.position.epoch, waiting.position.n
    moved = StreamPosition(epoch, n + 1)
    await positions.advance(webhook.id, [Move(waiting.stream, waiting.position, moved, webhook.created_at)])
    await stores.webhooks.replay_after(manager, webhook.id, stream_digest(waiting.stream), epoch, n)
    (claimed,) = await claims.claim(10)
    log = stores.webhook_deliveries
    requested = await log.request_test(webhook)
    for outcome, after in ((None, None), (DeliveryOutcome.WAITING, requested.id)):
        await log.list_deliveries(webhook, outcome, after, 10)
    await log.get(org, requested.id)
    result = DeliveryResult(DeliveryOutcome.FAILED, None, "no", 1)
    await log.finish(requested, SentMessage("message", "MessagePosted", b""), result)
    await claims.wake(webhook.id)
    await claims.renew(claimed)
    await claims.release_of("worker")
    await claims.disable(claimed, DisabledReason.GONE, "gone")
    for notice in await claims.claim_notices(10):
        await claims.end_notice(notice)
    await stores.webhooks.enable(manager, webhook.id)
    for again in await claims.claim(10):
        await claims.fail(again, "m", "no", 0.0)
    await positions.forget(webhook.id, waiting.stream)
    await stores.webhooks.delete(manager, webhook.id)


QUERIES = {
    query_connections: {"account_connections", "accounts"},
    query_summaries: {"publication_problems", "publication_summaries", "publications", "accounts", "users"},
    query_webhooks: {"webhooks", "webhook_positions", "webhook_deliveries", "events"},
    query_identity: {"users", "blocks", "follows", "memberships", "sessions"},
    query_accounts: {"local_accounts", "account_tokens", "account_mails", "invitations", "sign_in_limits", "users"}
    | {"passkeys", "passkey_challenges"},
    query_communities: {"communities", "memberships", "idempotency"},
    query_conversations: {"topics", "memberships", "follows", "blocks", "contact_counts", "communities"}
    | {"outbox", "notifications"},
    query_moderation: {"communities", "memberships", "community_restrictions", "join_requests"},
    query_topics: {"topics", "messages", "read_marks", "streams"},
    query_messages: {"messages", "reactions", "received_reactions", "topics", "idempotency"},
    query_posts: {
        "posts",
        "users",
        "notifications",
        "notification_marks",
        "fan_outs",
        "feed_items",
        "post_sources",
        "post_reactions",
        "post_histories",
    },
    query_search: {"message_terms", "topic_terms", "memberships", "communities", "post_terms"},
    query_feeds: {
        "follows",
        "follow_changes",
        "feeds",
        "feed_items",
        "fan_outs",
        "feed_retries",
        "merged_authors",
        "posts",
    },
    query_mail: {
        "mail_ledger",
        "mail_addresses",
        "mail_domains",
        "mail_days",
        "mail_differences",
        "mail_reports",
        "mail_sources",
    },
    query_files: {"files", "file_usage", "file_removals"},
    query_stamps: {"stamp_catalogues", "stamp_ownerships", "stamp_scans", "posts", "messages", "received_reactions"}
    | {"topics", "notifications"},
    query_calls: {"call_jobs", "call_tasks", "do_not_call", "files"},
    query_retention: {"retention_rules", "call_jobs", "call_tasks", "mail_ledger"},
    query_streams: {"topics", "streams", "events", "outbox", "secrets"},
}
"""Functions that run all queries of an area, each with the collections that it must read."""


async def test_queries_scan_and_sort_no_whole_collection(stores: Stores) -> None:
    scenario = await create_topic_scenario(stores)
    for run_queries, collections in QUERIES.items():
        entries = await profile(stores, run_queries(scenario))
        slow = [describe(entry) for entry in entries if is_slow(entry)]
        assert not slow, "Add an index to storage/indexes/ for:\n" + "\n".join(slow)
        unread = collections - {entry["ns"].partition(".")[2] for entry in entries}
        assert not unread, (
            f"{run_queries.__name__} does not read {sorted(unread)}: call queries of these collections, or remove them"
            " from QUERIES."
        )


def is_slow(entry: Document) -> bool:
    """Returns whether an operation scanned a whole collection, or sorted where an index could give the order."""
    # A search by prefix sorts its few results by handle.
    is_search = "search" in entry["command"].get("filter", {})
    # A sort by a result of $group or $unwind cannot use an index.
    is_ranking = any("$group" in step or "$unwind" in step for step in entry["command"].get("pipeline", ()))
    is_sorted = entry.get("hasSortStage", False) and not (is_search or is_ranking)
    return "COLLSCAN" in entry["planSummary"] or is_sorted


def describe(entry: Document) -> str:
    return f"{entry['ns']} {entry['planSummary']} {entry['command']}"


async def examined_documents(stores: Stores, work: Awaitable[Any]) -> int:
    """Does the work. Returns how many documents MongoDB examined."""
    return sum(entry["docsExamined"] for entry in await profile(stores, work))


async def test_page_of_long_topic_examines_only_its_messages(stores: Stores) -> None:
    documents = [
        {"_id": {"t": topic, "ts": ts}, "author": "ann", "text": "", "reactions": []}
        for topic in ("a", "b", "c")
        for ts in range(1, 2001)
    ]
    await stores.mongo["messages"].insert_many(documents)
    for bounds in ({"oldest": 1000}, {"latest": 1000}, {"latest": NOW}, {"oldest": 1000, "latest": 1900}):
        page = stores.messages.page("b", timeline_range(**bounds, limit=10))
        assert await examined_documents(stores, page) <= 13, bounds
    assert await examined_documents(stores, stores.messages.around("b", 1000, 10)) <= 13


async def test_page_of_many_conversations_examines_only_its_items(stores: Stores) -> None:
    states = {"pair": True, "requested": [], "declined": [], "left": [], "written": True, "asked": False}
    topic = {"org": "o", "title": "", "creator": "bob", "created_at": datetime.now(UTC)}
    documents = [
        {**topic, "_id": f"{n}", "community": f"{n}", "last": n, "direct": {**states, "joined": [f"u{n % 10}", "ann"]}}
        for n in range(3000)
    ]
    await stores.mongo["topics"].insert_many(documents)
    for name, limit in (("ann", 10), ("u7", 10)):
        viewer = User(name, name, name, "o", (), 0, 0)
        for bounds in ({"oldest": 1000}, {"latest": 1000}, {"latest": NOW}):
            page = stores.conversations.page(viewer, ConversationState.JOINED, timeline_range(**bounds, limit=limit))
            assert await examined_documents(stores, page) <= 13, bounds


async def test_blockers_lookup_reads_no_documents_and_few_keys(stores: Stores) -> None:
    blocks = [{"org": "o", "user": f"user-{n:05}", "blocked": "ann"} for n in range(5000)]
    await stores.mongo["blocks"].insert_many(blocks)
    listeners = [f"user-{n:05}" for n in range(0, 6000, 300)]

    async def look_up() -> None:
        assert await stores.relations.blockers_among("o", "ann", listeners) == set(listeners[:17])
        assert await stores.relations.blockers_among("o", "bob", listeners) == set()

    entries = await profile(stores, look_up())
    assert sum(entry["docsExamined"] for entry in entries) == 0
    assert sum(entry["keysExamined"] for entry in entries) <= FEW_BLOCKERS + 3 * len(listeners)


async def test_home_reader_examines_few_merged_authors(stores: Stores) -> None:
    """The organization has thousands of merged authors, of whom the reader follows some."""
    authors = [f"author-{n}" for n in range(5000)]
    await stores.mongo["merged_authors"].insert_many({"_id": {"o": "o", "u": author}} for author in authors)
    follows = [{"org": "o", "follower": "bob", "followee": author} for author in (*authors[::500], "ann")]
    await stores.mongo["follows"].insert_many(follows)
    reader = load_reader(stores.home, "o", "bob", NOBODY)
    entries = await profile(stores, reader)
    assert sum(entry["keysExamined"] for entry in entries) <= FEW_MERGED_AUTHORS + 10 * len(follows)
    assert (await load_reader(stores.home, "o", "bob", NOBODY)).merged == set(authors[::500])


async def test_unread_count_examines_a_hundred_messages_at_most(stores: Stores) -> None:
    documents = [{"_id": {"t": "b", "ts": ts}, "author": "ann", "text": "", "reactions": []} for ts in range(5000)]
    await stores.mongo["messages"].insert_many(documents)
    assert await examined_documents(stores, stores.topics.unread_count("b", MAX_TIMESTAMP, "bob", NOBODY)) <= 102


async def test_unread_counts_examine_a_hundred_messages_of_each_topic(stores: Stores) -> None:
    documents = [
        {"_id": {"t": topic, "ts": ts}, "author": "ann", "text": "", "reactions": []}
        for topic in "abcd"
        for ts in range(2000)
    ]
    await stores.mongo["messages"].insert_many(documents)
    heads = [(topic, int(MAX_TIMESTAMP)) for topic in "abc"]
    for blocked in (NOBODY, BLOCKED):
        counts = stores.topics.unread_counts(heads, "bob", blocked)
        assert await examined_documents(stores, counts) <= 3 * 102


async def test_newest_topics_examine_only_their_items(stores: Stores) -> None:
    topic = {"org": "o", "title": "", "creator": "bob", "created_at": datetime.now(UTC)}
    documents = [{**topic, "_id": f"{n}", "community": f"{n % 4}", "last": n} for n in range(2000)]
    await stores.mongo["topics"].insert_many(documents)
    assert await examined_documents(stores, stores.topics.newest(["0", "1", "2"], 10)) <= 30
    newest = await stores.topics.newest(["0", "3"], 2)
    assert {id_: [each.id for each in topics] for id_, topics in newest.items()} == {
        "0": ["1996", "1992"],
        "3": ["1999", "1995"],
    }


async def test_worst_domains_examines_only_domains_with_mail_that_day(stores: Stores) -> None:
    """Other organizations have mail on that day, and the organization has mail on other days."""
    day, history = 20_000, [[day, 1, 0, 1, 0, []] for day in range(19_600, 20_000)]
    documents = [
        {
            "_id": f"{n} {org}",
            "org": org,
            "domain": f"d{n}",
            "by": [{"source": "mta", "days": history}],
            "recent": [{"day": last, "sent": n, "bounced": n} for last in (day - 1, day if n < busy else day + 1)],
        }
        for org, busy in (("a", 3), ("b", 50))
        for n in range(100)
    ]
    await stores.mongo["mail_domains"].insert_many(documents)
    assert await examined_documents(stores, stores.bounce_rates.worst_domains("a", day)) <= 3


async def test_indexes_after_second_start_are_unchanged(stores: Stores) -> None:
    async def existing() -> dict[str, set[str]]:
        return {name: set(await stores.mongo[name].index_information()) for name in INDEXES}

    before = await existing()
    await prepare_database(stores.mongo)
    assert await existing() == before
    assert all(len(before[name]) == 1 + len(models) for name, models in INDEXES.items())


DOCUMENTS: dict[str, Any] = {
    "audit": identity.AuditEntryDocument,
    "sessions": identity.SessionDocument,
    "provider_logouts": identity.ProviderLogoutDocument,
    "access_changes": identity.AccessChangeDocument,
    "reserved_handles": identity.ReservedHandleDocument,
    "erasures": privacy.ErasureDocument,
    "retention_rules": privacy.RetentionRuleDocument,
    "exports": privacy.ExportDocument,
    "export_chunks": privacy.ExportChunkDocument,
    "service_keys": identity.ServiceKeyDocument,
    "webhooks": webhooks.WebhookDocument,
    "webhook_positions": webhooks.WebhookPositionDocument,
    "webhook_deliveries": webhooks.WebhookDeliveryDocument,
    "webhook_searches": webhooks.WebhookSearchDocument,
    "post_terms": feed.PostTermsDocument,
    "message_terms": search.MessageTermsDocument,
    "topic_terms": search.TopicTermsDocument,
    "users": identity.UserDocument,
    "organization_settings": identity.OrganizationSettingsDocument,
    "stamp_catalogues": stamps.StampCatalogueDocument,
    "stamp_ownerships": stamps.StampOwnershipDocument,
    "stamp_scans": stamps.StampScanDocument,
    "local_accounts": accounts.LocalAccountDocument,
    "passkeys": passkeys.PasskeyDocument,
    "passkey_challenges": passkeys.PasskeyChallengeDocument,
    "account_tokens": accounts.AccountTokenDocument,
    "account_mails": accounts.AccountMailDocument,
    "sign_in_limits": accounts.SignInLimitDocument,
    "invitations": accounts.InvitationDocument,
    "blocks": identity.BlockDocument,
    "mutes": identity.MuteDocument,
    "follows": identity.FollowDocument,
    "follow_changes": identity.FollowChangeDocument,
    "communities": chat.CommunityDocument,
    "memberships": chat.MembershipDocument,
    "community_restrictions": chat.RestrictionDocument,
    "join_requests": chat.JoinRequestDocument,
    "contact_counts": conversations.ContactCountDocument,
    "slow_mode_posts": chat.SlowModePostDocument,
    "content_reports": content_reports.ContentReportDocument,
    "topics": chat.TopicDocument,
    "activity": chat.TopicActivityDocument,
    "messages": chat.MessageDocument,
    "reactions": reactions.ReactionDocument,
    "received_reactions": reactions.ReceivedReactionDocument,
    "read_marks": chat.ReadMarkDocument,
    "posts": feed.PostDocument,
    "post_sources": feed.PostSourceDocument,
    "post_reactions": feed.PostReactionDocument,
    "post_histories": feed.PostHistoryDocument,
    "merged_authors": feed.MergedAuthorDocument,
    "feed_items": feed.FeedItemDocument,
    "feeds": feed.FeedDocument,
    "fan_outs": feed.FanOutDocument,
    "files": files.FileDocument,
    "file_removals": files.FileRemovalDocument,
    "file_usage": files.FileUsageDocument,
    "feed_retries": feed.FeedRetryDocument,
    "accounts": publishing.AccountDocument,
    "account_connections": publishing.AccountConnectionDocument,
    "scheduled_posts": publishing.ScheduledPostDocument,
    "publications": publishing.PublicationDocument,
    "publication_problems": publishing.PublicationProblemsDocument,
    "publication_summaries": publishing.PublicationSummaryDocument,
    "sandbox_posts": publishing.SandboxPostDocument,
    "call_jobs": calls.CallJobDocument,
    "call_tasks": calls.CallTaskDocument,
    "call_drafts": calls.CallDraftDocument,
    "call_row_errors": calls.CallRowErrorDocument,
    "call_limits": calls.CallLimitsDocument,
    "do_not_call": calls.DoNotCallDocument,
    "simulated_calls": calls.SimulatedCallDocument,
    "streams": streams.StreamDocument,
    "events": streams.EventDocument,
    "outbox": streams.OutboxDocument,
    "notifications": streams.NotificationDocument,
    "notification_marks": streams.NotificationMarkDocument,
    "notification_settings": offline.NotificationSettingsDocument,
    "notification_channels": offline.NotificationChannelDocument,
    "notification_scans": offline.NotificationScanDocument,
    "idempotency": IdempotencyKeyDocument,
    "workers": WorkerDocument,
    "mail_tails": MailTailDocument,
    "process_locks": LockDocument,
    "fences": FenceDocument,
    "secrets": SecretDocument,
    "data_version": DataVersionDocument,
    "key_fingerprints": KeyFingerprintsDocument,
}
"""The document type of each collection. Those of the mail area are not checked."""

AREAS = (
    search,
    accounts,
    calls,
    chat,
    conversations,
    feed,
    files,
    identity,
    offline,
    privacy,
    publishing,
    streams,
    webhooks,
)


def lacks_path(hint: Any, path: str) -> bool:
    """Returns whether no TypedDict in the type hint has the path, which is a key of an index."""
    if not hasattr(hint, "__total__"):
        return all(lacks_path(member, path) for member in get_args(hint))
    name, _, rest = path.partition(".")
    hints = get_type_hints(hint)
    return name not in hints or bool(rest and lacks_path(hints[name], rest))


def test_index_keys_are_fields_of_the_document_type() -> None:
    wrong = [
        f"{collection}.{path}"
        for collection, document in DOCUMENTS.items()
        for model in INDEXES.get(collection, ())
        for path in (*model.document["key"], *model.document.get("partialFilterExpression", {}))
        if lacks_path(document, path)
    ]
    assert not wrong, f"No field of the collection's TypedDict: {wrong}"


def test_document_types_are_all_assigned_to_a_collection() -> None:
    types = {type_ for area in AREAS for type_ in vars(area).values() if "_id" in getattr(type_, "__annotations__", {})}
    missing = sorted(type_.__name__ for type_ in types - set(DOCUMENTS.values()))
    assert not missing, f"Add the collections of {missing} to DOCUMENTS in tests/storage/test_indexes.py."
    unknown = {name for name in INDEXES.keys() - DOCUMENTS.keys() if not name.startswith("mail_")}
    assert not unknown, f"Add the types of {sorted(unknown)} to DOCUMENTS."
