"""The stores of a process, in one object."""

from dataclasses import dataclass

from redis.asyncio import Redis

from storage.calls.calls import CallStore
from storage.calls.do_not_call import DoNotCallStore
from storage.calls.expired_data import ExpiredCallData
from storage.calls.jobs import CallJobStore
from storage.calls.recordings import CallRecordings
from storage.calls.wake_ups import WakeUpChannel
from storage.chat.communities import CommunityStore
from storage.chat.community_pictures import CommunityPictureStore
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
from storage.feed.stamp_rules.evaluation import StampRuleEvaluation
from storage.feed.stamp_rules.walk import StampRuleWalk
from storage.feed.subscribers import HomeSubscribers, ListSubscribers
from storage.files.checks import FileChecks
from storage.files.deletion import FileDeletion
from storage.files.library import MediaLibrary
from storage.files.objects import FileObjects
from storage.files.preview_pictures import PreviewPictures
from storage.files.profile_pictures import ProfilePictures
from storage.files.uploads import UploadStore
from storage.identity.access_changes import AccessChanges
from storage.identity.accounts.attempt_limits import AttemptLimits
from storage.identity.accounts.invitations import Invitations
from storage.identity.accounts.local_accounts import LocalAccounts
from storage.identity.accounts.mails import LocalAccountMails
from storage.identity.accounts.password_sessions import PasswordSessions
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
from storage.identity.sessions import SessionStore
from storage.identity.users import UserStore
from storage.locks import Locks
from storage.mail.aggregation import Aggregator
from storage.mail.book import AddressBook
from storage.mail.expired_events import ExpiredDeliveryEvents
from storage.mail.ledger import Ledger
from storage.mail.rates import BounceRates
from storage.mail.reports import MailReportClaims
from storage.mongo import Mongo
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
from storage.redis.keys import RedisKeys
from storage.redis.persisted_documents import PersistedDocuments
from storage.redis.queue import JobQueue
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


@dataclass(frozen=True, slots=True)
class Stores:
    """A process's access to MongoDB and Redis. All fields are safe for concurrent use."""

    mongo: Mongo
    redis: Redis
    keys: RedisKeys
    clock: DatabaseClock
    users: UserStore
    user_administration: UserAdministration
    audit: AuditLog
    access_changes: AccessChanges
    sessions: SessionStore
    local_accounts: LocalAccounts
    password_sessions: PasswordSessions
    passkeys: PasskeyStore
    passkey_sessions: PasskeySessions
    registrations: Registrations
    invitations: Invitations
    account_tokens: LocalAccountTokens
    account_mails: LocalAccountMails
    attempt_limits: AttemptLimits
    provider_logins: ProviderLogins
    erasures: ErasureStore
    eraser: Eraser
    exports: ExportStore
    retention_rules: RetentionRuleStore
    expired_call_data: ExpiredCallData
    expired_events: ExpiredDeliveryEvents
    expired_messages: ExpiredDirectMessages
    service_keys: ServiceKeyStore
    key_recognizer: KeyRecognizer
    relations: RelationStore
    mutes: MuteStore
    online: OnlinePeople
    persisted_documents: PersistedDocuments
    typing: TypingHub
    presence_settings: PresenceSettingsStore
    communities: CommunityStore
    moderation: ModerationStore
    topics: TopicStore
    conversations: ConversationStore
    messages: MessageStore
    message_search: MessageSearch
    people_search: PeopleSearch
    topic_search: TopicSearch
    reactions: ReactionStore
    stamp_packs: StampPackStore
    stamp_ownerships: StampPackOwnerships
    stamp_rule_evaluation: StampRuleEvaluation
    stamp_rule_activity: StampRuleActivity
    stamp_rule_walk: StampRuleWalk
    threads: ThreadStore
    posts: PostStore
    post_reactions: PostReactionStore
    post_edits: PostEdits
    post_search: PostSearch
    fan_outs: FanOutStore
    follows: FollowStore
    feeds: FeedItemStore
    home: HomeFeedStore
    home_subscribers: HomeSubscribers
    list_subscribers: ListSubscribers
    notifications: NotificationStore
    notification_settings: NotificationSettingsStore
    notification_channels: NotificationChannels
    digests: DigestStore
    call_jobs: CallJobStore
    calls: CallStore
    call_wake_ups: WakeUpChannel
    do_not_call: DoNotCallStore
    call_recordings: CallRecordings
    locks: Locks
    accounts: ConnectedAccountStore
    account_connections: AccountConnectionStore
    publication_summaries: PublicationSummaryStore
    credential_renewals: CredentialRenewals
    credential_verifications: CredentialVerifications
    credential_warnings: CredentialWarnings
    scheduled_posts: ScheduledPostStore
    held_posts: HeldPostStore
    claims: PublicationClaims
    webhooks: WebhookStore
    webhook_claims: WebhookClaims
    webhook_deliveries: WebhookDeliveries
    webhook_discovery: WebhookDiscovery
    webhook_positions: WebhookPositions
    webhook_rounds: WebhookRounds
    events: EventLog
    sequencer: Sequencer
    outbox: Outbox
    hub: Hub
    queue: JobQueue
    ledger: Ledger
    aggregator: Aggregator
    address_book: AddressBook
    bounce_rates: BounceRates
    reports: MailReportClaims
    content_reports: ContentReportStore
    report_effects: ContentReportEffects
    file_objects: FileObjects
    uploads: UploadStore
    preview_pictures: PreviewPictures
    file_checks: FileChecks
    file_deletion: FileDeletion
    media_library: MediaLibrary
    profile_pictures: ProfilePictures
    community_pictures: CommunityPictureStore
