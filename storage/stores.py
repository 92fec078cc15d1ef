"""Composition root of storage: opens all stores of a process and closes them."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from arq.connections import ArqRedis
from redis.asyncio import Redis

from storage.calls.calls import CallStore
from storage.calls.do_not_call import DoNotCallStore
from storage.calls.jobs import CallJobStore
from storage.calls.wake_ups import WakeUpChannel
from storage.chat.communities import CommunityStore
from storage.chat.hot_pages import HotPages
from storage.chat.messages import MessageStore
from storage.chat.moderation import ModerationStore
from storage.chat.reactions import ReactionStore
from storage.chat.topics import TopicStore
from storage.event_kinds import OUTBOX_RELAYS, EventSubjectReader
from storage.feed.content_reports.effects import ReportEffects
from storage.feed.content_reports.store import ContentReportStore
from storage.feed.fan_outs import FanOutStore
from storage.feed.feeds import FeedItemStore
from storage.feed.follows import FollowStore
from storage.feed.home import HomeFeedStore
from storage.feed.posts import PostStore
from storage.feed.subscribers import HomeSubscribers
from storage.identity.access_changes import AccessChanges
from storage.identity.accounts.invitations import Invitations
from storage.identity.accounts.local_accounts import LocalAccounts
from storage.identity.accounts.mails import AccountMails
from storage.identity.accounts.password_sessions import PasswordSessions
from storage.identity.accounts.passwords import PasswordHashes
from storage.identity.accounts.registration import Registrations
from storage.identity.accounts.throttle import SignInLimits
from storage.identity.accounts.tokens import AccountTokens
from storage.identity.administration import UserAdministration
from storage.identity.audit import AuditLog
from storage.identity.keys.recognition import KeyRecognizer
from storage.identity.keys.store import ServiceKeyStore
from storage.identity.login_grants import LoginGrants
from storage.identity.relations import RelationStore
from storage.identity.sessions import DEFAULT_LIFETIMES, SessionLifetimes, SessionStore
from storage.identity.users import ROLES_LAST_DAYS, UserStore
from storage.locks import Locks
from storage.mail.addresses import AddressKeys
from storage.mail.aggregation import Aggregator
from storage.mail.book import AddressBook
from storage.mail.ledger import Ledger
from storage.mail.lookup_limiter import LookupLimiter
from storage.mail.rates import BounceRates
from storage.mail.reports import ReportStore
from storage.migrations.start import prepare_database
from storage.mongo import DEFAULT_DRIVER, Driver, Mongo, connect
from storage.mongo.clock import DatabaseClock
from storage.notifications import NotificationStore
from storage.privacy.erasures import ErasureStore
from storage.privacy.exports import ExportStore
from storage.privacy.steps import Eraser
from storage.publishing.accounts import AccountStore
from storage.publishing.claims import ClaimStore
from storage.publishing.posts import ScheduledPostStore
from storage.redis.connections import redis_client
from storage.redis.keys import Keys
from storage.redis.queue import JobQueue, arq_client
from storage.secrets.credentials import CredentialCipher
from storage.streams.hub import Hub
from storage.streams.log import EventLog
from storage.streams.outbox import Outbox
from storage.streams.publisher import Publisher
from storage.streams.sequencer import Sequencer
from storage.streams.write_leases import WriteLeases

FAN_OUT_MAX_FOLLOWERS = 10_000
NO_CREDENTIAL_KEYS: Mapping[str, bytes] = {}
NO_ADDRESS_KEYS = AddressKeys()


@dataclass(frozen=True, slots=True)
class Stores:
    """A process's access to MongoDB and Redis. All fields are safe for concurrent use."""

    mongo: Mongo
    redis: Redis
    keys: Keys
    clock: DatabaseClock
    users: UserStore
    user_administration: UserAdministration
    audit: AuditLog
    access_changes: AccessChanges
    sessions: SessionStore
    local_accounts: LocalAccounts
    password_sessions: PasswordSessions
    registrations: Registrations
    invitations: Invitations
    account_tokens: AccountTokens
    account_mails: AccountMails
    sign_in_limits: SignInLimits
    login_grants: LoginGrants
    erasures: ErasureStore
    eraser: Eraser
    exports: ExportStore
    service_keys: ServiceKeyStore
    key_recognizer: KeyRecognizer
    relations: RelationStore
    communities: CommunityStore
    moderation: ModerationStore
    topics: TopicStore
    messages: MessageStore
    reactions: ReactionStore
    posts: PostStore
    fan_outs: FanOutStore
    follows: FollowStore
    feeds: FeedItemStore
    home: HomeFeedStore
    home_subscribers: HomeSubscribers
    notifications: NotificationStore
    call_jobs: CallJobStore
    calls: CallStore
    call_wake_ups: WakeUpChannel
    do_not_call: DoNotCallStore
    locks: Locks
    accounts: AccountStore
    scheduled_posts: ScheduledPostStore
    claims: ClaimStore
    events: EventLog
    sequencer: Sequencer
    outbox: Outbox
    hub: Hub
    queue: JobQueue
    ledger: Ledger
    aggregator: Aggregator
    address_book: AddressBook
    bounce_rates: BounceRates
    lookup_limiter: LookupLimiter
    reports: ReportStore
    content_reports: ContentReportStore
    report_effects: ReportEffects


@asynccontextmanager
async def open_stores(
    mongodb_uri: str,
    redis_url: str,
    database: str,
    driver: Driver = DEFAULT_DRIVER,
    fan_out_max_followers: int = FAN_OUT_MAX_FOLLOWERS,
    credential_keys: Mapping[str, bytes] = NO_CREDENTIAL_KEYS,
    address_keys: AddressKeys = NO_ADDRESS_KEYS,
    roles_last_days: int = ROLES_LAST_DAYS,
    session_lifetimes: SessionLifetimes = DEFAULT_LIFETIMES,
) -> AsyncIterator[Stores]:
    """Connects, prepares an empty database, and starts the hub, the publisher and the outbox; stops them at the end.

    Fails if MongoDB does not answer or the data need `noroshi migrate`, but works without Redis. Posts of authors with
    more than `fan_out_max_followers` followers are merged on read. A user's role lasts for `roles_last_days` after the
    last token that had it. Without `credential_keys` (by version, newest first) no accounts can be connected.
    """
    async with AsyncExitStack() as stack:
        mongo = connect(mongodb_uri, database, driver)
        stack.push_async_callback(mongo.close)
        arq = await stack.enter_async_context(arq_client(redis_url))
        redis = await stack.enter_async_context(redis_client(redis_url, Redis, answer_timeout_s=None))
        await prepare_database(mongo)
        cipher = CredentialCipher(credential_keys)
        limits = fan_out_max_followers, roles_last_days, session_lifetimes
        async with _started(mongo, redis, arq, Keys(database), *limits, cipher, address_keys) as stores:
            yield stores


@asynccontextmanager
async def _started(
    mongo: Mongo,
    redis: Redis,
    arq: ArqRedis,
    keys: Keys,
    fan_out_max_followers: int,
    roles_last_days: int,
    session_lifetimes: SessionLifetimes,
    credentials: CredentialCipher,
    address_keys: AddressKeys,
) -> AsyncIterator[Stores]:
    """Creates the stores, starts their background tasks, and stops these at the end."""
    publisher = Publisher(redis, keys)
    outbox = Outbox(mongo, OUTBOX_RELAYS)
    hot_pages = HotPages(redis, keys, mongo)
    sequencer = Sequencer(mongo, WriteLeases(redis, keys), publisher.publish, outbox.nudge, hot_pages.extend)
    clock = DatabaseClock(mongo)
    topics, messages = TopicStore(mongo, sequencer, clock), MessageStore(mongo, sequencer, hot_pages)
    home_subscribers = HomeSubscribers(mongo)
    posts, feeds = PostStore(mongo, sequencer, fan_out_max_followers), FeedItemStore(mongo, outbox, home_subscribers)
    fan_outs, notifications = FanOutStore(mongo, outbox), NotificationStore(mongo)
    call_wake_ups = WakeUpChannel(redis, keys)
    call_jobs = CallJobStore(mongo, sequencer, call_wake_ups)
    scheduled_posts = ScheduledPostStore(mongo, sequencer, posts)
    exports = ExportStore(mongo, outbox)
    content_reports = ContentReportStore(mongo, sequencer)
    subjects = EventSubjectReader(
        topics, messages, posts, notifications, fan_outs, call_jobs, scheduled_posts, exports, content_reports
    )
    event_log = EventLog(mongo)
    hub = Hub(redis, keys, event_log, subjects)
    locks = Locks(mongo)
    audit, access_changes = AuditLog(mongo), AccessChanges(mongo)
    sessions = SessionStore(mongo, clock, access_changes, session_lifetimes)
    users = UserStore(mongo, clock, roles_last_days)
    local_accounts, account_tokens = LocalAccounts(mongo, PasswordHashes()), AccountTokens(mongo)
    account_mails = AccountMails(mongo)
    invitations = Invitations(mongo, audit, access_changes, account_mails, outbox)
    administration, queue = UserAdministration(mongo, audit, access_changes, sessions), JobQueue(arq, keys)
    communities, moderation = CommunityStore(mongo, sequencer), ModerationStore(mongo, sequencer, clock)
    follows, accounts = FollowStore(mongo, sequencer), AccountStore(mongo, credentials)
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
            mongo, local_accounts, account_tokens, sessions, users, audit, access_changes
        ),
        registrations=Registrations(mongo, local_accounts, account_tokens, invitations, audit),
        invitations=invitations,
        account_tokens=account_tokens,
        account_mails=account_mails,
        sign_in_limits=SignInLimits(mongo),
        login_grants=LoginGrants(mongo, clock, audit, access_changes),
        erasures=ErasureStore(mongo, access_changes, sessions),
        exports=exports,
        eraser=Eraser(mongo, sequencer, messages, posts, follows, communities, accounts),
        service_keys=ServiceKeyStore(mongo),
        key_recognizer=KeyRecognizer(mongo, clock, users),
        relations=RelationStore(mongo),
        communities=communities,
        moderation=moderation,
        topics=topics,
        messages=messages,
        reactions=ReactionStore(mongo),
        posts=posts,
        fan_outs=fan_outs,
        follows=follows,
        feeds=feeds,
        home=HomeFeedStore(mongo, posts, feeds),
        home_subscribers=home_subscribers,
        notifications=notifications,
        call_jobs=call_jobs,
        calls=CallStore(mongo, sequencer, call_wake_ups),
        call_wake_ups=call_wake_ups,
        do_not_call=DoNotCallStore(mongo),
        accounts=accounts,
        scheduled_posts=scheduled_posts,
        claims=ClaimStore(mongo),
        events=event_log,
        sequencer=sequencer,
        outbox=outbox,
        hub=hub,
        queue=queue,
        locks=locks,
        ledger=Ledger(mongo, address_keys),
        aggregator=Aggregator(mongo, locks),
        address_book=AddressBook(mongo, address_keys),
        bounce_rates=BounceRates(mongo),
        lookup_limiter=LookupLimiter(),
        reports=ReportStore(mongo),
        content_reports=content_reports,
        report_effects=ReportEffects(content_reports, communities, moderation, messages, posts, administration, queue),
    )
    publisher.start()
    outbox.start(sequencer)
    hub.start()
    try:
        yield stores
    finally:
        await hub.close()
        await outbox.close()
        await sequencer.close()
        await hot_pages.close()
        await call_wake_ups.close()
        await publisher.close()
