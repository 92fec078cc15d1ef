"""Composition root of storage: opens all stores of a process and closes them."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

from arq.connections import ArqRedis
from redis.asyncio import Redis

from storage.calls.calls import CallStore
from storage.calls.do_not_call import DoNotCallStore
from storage.calls.expired_data import ExpiredCallData
from storage.calls.jobs import CallJobStore
from storage.calls.recordings import CallRecordings
from storage.calls.wake_ups import WakeUpChannel
from storage.chat.communities import CommunityStore
from storage.chat.community_pictures import CommunityPictureStore
from storage.chat.conversations.contacts import CONTACTS_PER_DAY
from storage.chat.conversations.expired_messages import ExpiredDirectMessages
from storage.chat.conversations.store import ConversationStore
from storage.chat.messages import MessageStore
from storage.chat.moderation import ModerationStore
from storage.chat.reactions.store import ReactionStore
from storage.chat.search.messages import MessageSearch
from storage.chat.search.topics import TopicSearch
from storage.chat.stamps.ownerships import StampPackOwnerships
from storage.chat.stamps.packs import StampPackStore
from storage.chat.threads.store import ThreadStore
from storage.chat.topics import TopicStore
from storage.feed.content_reports.effects import ContentReportEffects
from storage.feed.content_reports.store import ContentReportStore
from storage.feed.edits import PostEdits
from storage.feed.fan_outs import FanOutStore
from storage.feed.feeds import FeedItemStore
from storage.feed.follows import FollowStore
from storage.feed.home import HomeFeedStore
from storage.feed.posts import PostStore
from storage.feed.reactions import PostReactionStore
from storage.feed.search import PostSearch
from storage.feed.stamp_rules.activity import StampRuleActivity
from storage.feed.stamp_rules.counts import ActivityCounts
from storage.feed.stamp_rules.evaluation import StampRuleEvaluation
from storage.feed.stamp_rules.walk import StampRuleWalk
from storage.feed.subscribers import HomeSubscribers, ListSubscribers
from storage.files.checks import FileChecks
from storage.files.deletion import FileDeletion
from storage.files.library import MediaLibrary
from storage.files.objects import MEMORY, FileObjects, open_objects
from storage.files.preview_pictures import PreviewPictures
from storage.files.profile_pictures import ProfilePictures
from storage.files.uploads import DEFAULT_FILE_LIMITS, FileLimits, UploadStore
from storage.identity.access_changes import AccessChanges
from storage.identity.accounts.attempt_limits import AttemptLimits
from storage.identity.accounts.invitations import Invitations
from storage.identity.accounts.local_accounts import LocalAccounts
from storage.identity.accounts.mails import LocalAccountMails
from storage.identity.accounts.password_sessions import PasswordSessions
from storage.identity.accounts.passwords import PasswordHashes
from storage.identity.accounts.registration import Registrations
from storage.identity.accounts.tokens import LocalAccountTokens
from storage.identity.administration import UserAdministration
from storage.identity.audit import AuditLog
from storage.identity.keys.recognition import KeyRecognizer
from storage.identity.keys.store import ServiceKeyStore
from storage.identity.mutes import MuteStore
from storage.identity.passkeys.sessions import PasskeySessions
from storage.identity.passkeys.store import PasskeyStore
from storage.identity.people_search import PeopleSearch
from storage.identity.presence.online import OnlinePeople
from storage.identity.presence.settings import PresenceSettingsStore
from storage.identity.presence.typing_hub import TypingHub
from storage.identity.provider_logins import ProviderLogins
from storage.identity.relations import RelationStore
from storage.identity.sessions import DEFAULT_LIFETIMES, SessionLifetimes, SessionStore
from storage.identity.users import ROLE_LIFETIME_DAYS, UserStore
from storage.locks import Locks
from storage.mail.addresses import AddressKeys
from storage.mail.aggregation import Aggregator
from storage.mail.book import AddressBook
from storage.mail.expired_events import ExpiredDeliveryEvents
from storage.mail.ledger import Ledger
from storage.mail.rates import BounceRates
from storage.mail.reports import MailReportClaims
from storage.migrations.start import prepare_database
from storage.mongo import DEFAULT_DRIVER, Driver, Mongo, connect
from storage.mongo.clock import DatabaseClock
from storage.notifications import NotificationStore
from storage.notifications.channels import NotificationChannels
from storage.notifications.digests import DigestStore
from storage.notifications.settings import NotificationSettingsStore
from storage.privacy.erasures import ErasureStore
from storage.privacy.exports import ExportStore
from storage.privacy.retention_rules import RetentionRuleStore
from storage.privacy.steps import Eraser
from storage.publishing.accounts import ConnectedAccountStore
from storage.publishing.claims import PublicationClaims
from storage.publishing.credentials.connections import AccountConnectionStore
from storage.publishing.credentials.renewals import CredentialRenewals
from storage.publishing.credentials.verifications import CredentialVerifications
from storage.publishing.credentials.warnings import CredentialWarnings
from storage.publishing.held_posts import HeldPostStore
from storage.publishing.posts import ScheduledPostStore
from storage.publishing.reports.summaries import PublicationSummaryStore
from storage.redis.connections import redis_client
from storage.redis.keys import RedisKeys
from storage.redis.persisted_documents import PersistedDocuments
from storage.redis.queue import JobQueue, arq_client
from storage.secrets.credentials import CredentialCipher
from storage.stores.event_kinds import OUTBOX_RELAYS, EventSubjectReader
from storage.stores.stores import Stores
from storage.streams.event_sender import EventSender
from storage.streams.hub import Hub
from storage.streams.log import EventLog
from storage.streams.outbox import Outbox
from storage.streams.sequencer import Sequencer
from storage.webhooks.claims import WebhookClaims
from storage.webhooks.deliveries import WebhookDeliveries
from storage.webhooks.discovery import WebhookDiscovery
from storage.webhooks.positions import WebhookPositions
from storage.webhooks.rounds import WebhookRounds
from storage.webhooks.store import WebhookStore

FAN_OUT_MAX_FOLLOWERS = 10_000
NO_CREDENTIAL_KEYS: Mapping[str, bytes] = {}
NO_ADDRESS_KEYS = AddressKeys()


@asynccontextmanager
async def open_stores(
    mongodb_uri: str,
    redis_url: str,
    database: str,
    driver: Driver = DEFAULT_DRIVER,
    fan_out_max_followers: int = FAN_OUT_MAX_FOLLOWERS,
    credential_keys: Mapping[str, bytes] = NO_CREDENTIAL_KEYS,
    address_keys: AddressKeys = NO_ADDRESS_KEYS,
    roles_last_days: int = ROLE_LIFETIME_DAYS,
    session_lifetimes: SessionLifetimes = DEFAULT_LIFETIMES,
    contacts_per_day: int = CONTACTS_PER_DAY,
    files_address: str = MEMORY,
    file_limits: FileLimits = DEFAULT_FILE_LIMITS,
    has_roles_from_tokens: bool = True,
    *,
    is_prepared: bool = False,
    worker: str = "",
) -> AsyncIterator[Stores]:
    """Connects, creates missing collections, starts the hub, the event sender and the outbox; stops them at the end.

    Fails if MongoDB does not answer or the data need `noroshi migrate`, but works without Redis. Posts of authors with
    more than `fan_out_max_followers` followers are merged on read. A user's role lasts for `roles_last_days` after the
    last token that had it; without `has_roles_from_tokens`, no token gives more than MEMBER. A person brings at most
    `contacts_per_day` people into conversations in 24 hours. Without `credential_keys` (by version, newest first) no
    accounts can be connected. Files are stored at `files_address`, by default in the memory of the process. With
    `is_prepared`, collections and indexes are not compared with this release. `worker` is the name of this process in
    its leases; without one, they end only when their time is over.
    """
    async with AsyncExitStack() as stack:
        mongo = connect(mongodb_uri, database, driver)
        stack.push_async_callback(mongo.close)
        arq = await stack.enter_async_context(arq_client(redis_url))
        redis = await stack.enter_async_context(redis_client(redis_url, Redis, answer_timeout_s=None))
        if not is_prepared:
            await prepare_database(mongo)
        cipher = CredentialCipher(credential_keys)
        limits = fan_out_max_followers, roles_last_days, has_roles_from_tokens, session_lifetimes, contacts_per_day
        objects = open_objects(files_address)
        async with _started(
            mongo, redis, arq, RedisKeys(database), *limits, cipher, address_keys, objects, file_limits, worker
        ) as stores:
            yield stores


@asynccontextmanager
async def _started(
    mongo: Mongo,
    redis: Redis,
    arq: ArqRedis,
    keys: RedisKeys,
    fan_out_max_followers: int,
    roles_last_days: int,
    has_roles_from_tokens: bool,
    session_lifetimes: SessionLifetimes,
    contacts_per_day: int,
    credentials: CredentialCipher,
    address_keys: AddressKeys,
    objects: FileObjects,
    file_limits: FileLimits,
    worker: str,
) -> AsyncIterator[Stores]:
    """Creates the stores, starts their background tasks, and stops these at the end."""
    event_sender = EventSender(redis, keys)
    outbox = Outbox(mongo, OUTBOX_RELAYS)
    sequencer = Sequencer(mongo, event_sender.send, outbox.nudge)
    clock, call_wake_ups = DatabaseClock(mongo), WakeUpChannel(redis, keys)
    communities, moderation = CommunityStore(mongo, sequencer), ModerationStore(mongo, sequencer, clock)
    topics, messages = TopicStore(mongo, sequencer, clock), MessageStore(mongo, sequencer)
    conversations = ConversationStore(mongo, sequencer, outbox, contacts_per_day)
    home_subscribers = HomeSubscribers(mongo)
    posts, feeds = PostStore(mongo, sequencer, fan_out_max_followers), FeedItemStore(mongo, outbox, home_subscribers)
    fan_outs, notifications = FanOutStore(mongo, outbox), NotificationStore(mongo)
    call_jobs = CallJobStore(mongo, sequencer, call_wake_ups)
    call_recordings = CallRecordings(mongo, objects, file_limits, worker)
    post_reactions = PostReactionStore(mongo, sequencer, posts)
    scheduled_posts = ScheduledPostStore(mongo, sequencer, posts)
    exports, bounce_rates, content_reports = (
        ExportStore(mongo, outbox),
        BounceRates(mongo),
        ContentReportStore(mongo, sequencer),
    )
    subjects = EventSubjectReader(
        communities,
        topics,
        messages,
        posts,
        notifications,
        fan_outs,
        call_jobs,
        scheduled_posts,
        exports,
        content_reports,
        conversations,
        bounce_rates,
    )
    event_log = EventLog(mongo)
    hub, locks = Hub(redis, keys, event_log, subjects), Locks(mongo, worker=worker)
    audit, access_changes = AuditLog(mongo), AccessChanges(mongo)
    sessions = SessionStore(mongo, clock, access_changes, session_lifetimes)
    users = UserStore(mongo, clock, roles_last_days, has_roles_from_tokens)
    local_accounts, account_tokens = LocalAccounts(mongo, PasswordHashes()), LocalAccountTokens(mongo)
    account_mails, file_deletion = LocalAccountMails(mongo), FileDeletion(mongo, objects)
    attempt_limits = AttemptLimits(mongo)
    passkeys = PasskeyStore(mongo, local_accounts, sessions, audit, access_changes)
    invitations = Invitations(mongo, audit, access_changes, account_mails, outbox)
    administration, queue = UserAdministration(mongo, audit, access_changes, sessions), JobQueue(arq, keys)
    follows, accounts = FollowStore(mongo, sequencer), ConnectedAccountStore(mongo, credentials)
    notification_settings = NotificationSettingsStore(mongo)
    stamp_ownerships = StampPackOwnerships(mongo, sequencer, audit)
    stamp_rule_evaluation = StampRuleEvaluation(mongo, stamp_ownerships, ActivityCounts(mongo))
    webhook_positions, webhook_claims, webhook_deliveries = (
        WebhookPositions(mongo, event_log),
        WebhookClaims(mongo, credentials, worker),
        WebhookDeliveries(mongo),
    )
    stores = Stores(
        mongo=mongo,
        redis=redis,
        keys=keys,
        clock=clock,
        users=users,
        user_administration=administration,
        audit=audit,
        access_changes=access_changes,
        sessions=sessions,
        local_accounts=local_accounts,
        password_sessions=PasswordSessions(
            mongo, local_accounts, account_tokens, sessions, users, audit, access_changes, attempt_limits
        ),
        passkeys=passkeys,
        passkey_sessions=PasskeySessions(mongo, passkeys, sessions),
        registrations=Registrations(mongo, local_accounts, account_tokens, invitations, audit, passkeys, sessions),
        invitations=invitations,
        account_tokens=account_tokens,
        account_mails=account_mails,
        attempt_limits=attempt_limits,
        provider_logins=ProviderLogins(mongo, clock, audit, access_changes, users, sessions, invitations),
        erasures=ErasureStore(mongo, access_changes, sessions),
        exports=exports,
        retention_rules=RetentionRuleStore(mongo, audit),
        expired_call_data=ExpiredCallData(mongo, call_recordings),
        expired_events=ExpiredDeliveryEvents(mongo),
        expired_messages=ExpiredDirectMessages(mongo, messages),
        eraser=Eraser(
            mongo,
            sequencer,
            messages,
            posts,
            post_reactions,
            follows,
            communities,
            conversations,
            accounts,
            file_deletion,
            address_keys,
        ),
        service_keys=ServiceKeyStore(mongo),
        key_recognizer=KeyRecognizer(mongo, clock, users),
        relations=RelationStore(mongo),
        mutes=MuteStore(mongo),
        online=OnlinePeople(redis, keys),
        persisted_documents=PersistedDocuments(redis, keys),
        typing=TypingHub(redis, keys),
        presence_settings=PresenceSettingsStore(mongo, audit),
        communities=communities,
        moderation=moderation,
        topics=topics,
        conversations=conversations,
        messages=messages,
        people_search=PeopleSearch(mongo, users),
        message_search=MessageSearch(mongo, messages, topics, communities),
        topic_search=TopicSearch(mongo, topics, communities),
        reactions=ReactionStore(mongo),
        stamp_packs=StampPackStore(mongo, audit),
        stamp_ownerships=stamp_ownerships,
        stamp_rule_evaluation=stamp_rule_evaluation,
        stamp_rule_activity=StampRuleActivity(mongo, event_log, locks, stamp_rule_evaluation),
        stamp_rule_walk=StampRuleWalk(mongo, stamp_ownerships, stamp_rule_evaluation),
        threads=ThreadStore(mongo, sequencer, topics),
        posts=posts,
        post_reactions=post_reactions,
        post_edits=PostEdits(mongo, sequencer, posts),
        post_search=PostSearch(mongo, posts),
        fan_outs=fan_outs,
        follows=follows,
        feeds=feeds,
        home=HomeFeedStore(mongo, posts),
        home_subscribers=home_subscribers,
        list_subscribers=ListSubscribers(mongo),
        notifications=notifications,
        notification_settings=notification_settings,
        notification_channels=NotificationChannels(mongo, worker),
        digests=DigestStore(mongo, notification_settings),
        call_jobs=call_jobs,
        calls=CallStore(mongo, sequencer, call_wake_ups),
        call_wake_ups=call_wake_ups,
        do_not_call=DoNotCallStore(mongo),
        call_recordings=call_recordings,
        accounts=accounts,
        account_connections=AccountConnectionStore(mongo, clock, credentials),
        publication_summaries=PublicationSummaryStore(mongo),
        credential_renewals=CredentialRenewals(mongo, clock, credentials, worker),
        credential_verifications=CredentialVerifications(mongo, worker),
        credential_warnings=CredentialWarnings(mongo),
        scheduled_posts=scheduled_posts,
        held_posts=HeldPostStore(mongo, sequencer, scheduled_posts),
        claims=PublicationClaims(mongo, worker),
        webhooks=WebhookStore(mongo, credentials, audit, clock),
        webhook_claims=webhook_claims,
        webhook_deliveries=webhook_deliveries,
        webhook_discovery=WebhookDiscovery(mongo, event_log, topics, communities, webhook_positions, webhook_claims),
        webhook_positions=webhook_positions,
        webhook_rounds=WebhookRounds(mongo, webhook_deliveries, webhook_claims, webhook_positions),
        events=event_log,
        sequencer=sequencer,
        outbox=outbox,
        hub=hub,
        queue=queue,
        locks=locks,
        ledger=Ledger(mongo, address_keys),
        aggregator=Aggregator(mongo, locks, outbox),
        address_book=AddressBook(mongo, address_keys),
        bounce_rates=bounce_rates,
        reports=MailReportClaims(mongo),
        content_reports=content_reports,
        report_effects=ContentReportEffects(
            content_reports, communities, moderation, messages, posts, administration, queue
        ),
        file_objects=objects,
        uploads=UploadStore(mongo, objects, file_limits),
        preview_pictures=PreviewPictures(mongo, objects, file_limits),
        file_checks=FileChecks(mongo, objects),
        file_deletion=file_deletion,
        media_library=MediaLibrary(mongo),
        profile_pictures=ProfilePictures(mongo),
        community_pictures=CommunityPictureStore(sequencer),
    )
    event_sender.start()
    outbox.start(sequencer)
    hub.start()
    stores.online.start()
    stores.typing.start()
    try:
        yield stores
    finally:
        await stores.typing.close()
        await stores.online.close()
        await hub.close()
        await outbox.close()
        await sequencer.close()
        await call_wake_ups.close()
        await event_sender.close()
