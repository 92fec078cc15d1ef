"""The root types Query, Mutation and Subscription: one field for each use case of the product."""

from functools import cache

import strawberry
from strawberry.schema.config import StrawberryConfig
from strawberry.schema.name_converter import NameConverter

import resolvers.calls.jobs
import resolvers.calls.limits
import resolvers.chat.conversations
import resolvers.chat.events
import resolvers.content_reports
import resolvers.feed.events
import resolvers.feed.follows
import resolvers.feed.home
import resolvers.feed.list_events
import resolvers.feed.notifications
import resolvers.feed.posts
import resolvers.identity
import resolvers.job_events
import resolvers.mail.rate_events
import resolvers.publishing.accounts
import resolvers.publishing.outcome_checks
import resolvers.publishing.posts
import resolvers.publishing.publications
from resolvers.limits.writes import WriteLimit
from schema.administration.invitations import InvitationMutation, InvitationQuery
from schema.administration.service_keys import ServiceKeyMutation, ServiceKeyQuery
from schema.administration.users import AdministrationMutation, AdministrationQuery
from schema.administration.webhooks import WebhookMutation, WebhookQuery
from schema.binding import ANY_KEY, NO_KEY, field, mutation, subscription
from schema.calls import CallJob, CallLimits, CallQuery, CallTask
from schema.chat.conversations import ConversationMutation, ConversationQuery
from schema.chat.root import ChatMutation, ChatQuery
from schema.content_reports import ContentReportMutation, ContentReportQuery
from schema.events import (
    BounceRateEvent,
    CommunityEvent,
    ContentReportEvent,
    ConversationEvent,
    HomeFeedEvent,
    JobEvent,
    NotificationEvent,
    PostListEvent,
    TopicEvent,
)
from schema.feed.notifications import (
    MuteMutation,
    MuteQuery,
    NotificationSettingsMutation,
    NotificationSettingsQuery,
    NotificationTimeline,
)
from schema.feed.posts import HomeFeedTimeline, Post, PostMutation, PostTimeline
from schema.files import FileMutation, FileQuery
from schema.identity import ProfileMutation, User
from schema.mail.book import MailMutation, MailQuery
from schema.mail.policies import MailPolicyMutation, MailPolicyQuery
from schema.mail.reports import MailReportQuery
from schema.moderation import ModerationMutation, ModerationQuery
from schema.nodes import NodeQuery
from schema.presence import PresenceMutation, PresenceQuery, PresenceSubscription
from schema.privacy import PrivacyMutation, PrivacyQuery, RetentionMutation, RetentionQuery
from schema.publishing import (
    AccountConnectionMutation,
    AccountConnectionQuery,
    ConnectedAccount,
    HeldPostMutation,
    HeldPostQuery,
    Publication,
    ScheduledPost,
    ScheduledPostTimeline,
)
from schema.scalars import SCALARS
from schema.search import SearchQuery
from schema.sessions import PasskeyMutation, PasskeyQuery, SessionMutation, SessionQuery
from schema.values.enum_values import DescribedSchema


@strawberry.type(description="All reads. Unless a description says otherwise, a field needs the role MEMBER.")
class Query(
    ChatQuery,
    ConversationQuery,
    AdministrationQuery,
    ModerationQuery,
    SessionQuery,
    PasskeyQuery,
    InvitationQuery,
    PrivacyQuery,
    ServiceKeyQuery,
    WebhookQuery,
    ContentReportQuery,
    AccountConnectionQuery,
    HeldPostQuery,
    RetentionQuery,
    SearchQuery,
    MuteQuery,
    FileQuery,
    PresenceQuery,
    CallQuery,
    NotificationSettingsQuery,
    MailQuery,
    MailPolicyQuery,
    MailReportQuery,
    NodeQuery,
):
    viewer: User | None = field(
        resolvers.identity.viewer, "Signed-in user; null without a token. Needs no role.", scope=ANY_KEY
    )
    user: User | None = field(
        resolvers.identity.user, "User with this id. NOT_FOUND if the viewer's organization has none. Needs no role."
    )
    users: list[User] = field(
        resolvers.identity.users,
        "Users whose handle, name or a word of the name starts with `query`, ordered by handle. For mentions and "
        "follows.",
    )
    blocked_users: list[User] = field(
        resolvers.identity.blocked_users, "Users whom the viewer blocked, ordered by handle. Needs no role."
    )
    connected_accounts: list[ConnectedAccount] = field(
        resolvers.publishing.accounts.connected_accounts,
        "Connected accounts of the organization, oldest first. Needs the role OPERATOR.",
    )
    scheduled_post: ScheduledPost | None = field(
        resolvers.publishing.posts.scheduled_post,
        "Scheduled post with this id. NOT_FOUND if the organization has none. FORBIDDEN unless the viewer is its "
        "author or has the role OPERATOR.",
    )
    scheduled_posts: ScheduledPostTimeline = field(
        resolvers.publishing.posts.scheduled_posts,
        "Scheduled posts, ordered by due time: the viewer's own posts, or for an OPERATOR all posts of the "
        "organization.",
        is_connection=True,
    )
    home_feed: HomeFeedTimeline = field(
        resolvers.feed.home.home_feed,
        "Posts and reposts of the viewer and of the users whom the viewer follows. "
        "Replies are included if the viewer also follows the author of the other post, or is one of the two authors.",
        is_connection=True,
    )
    local_feed: PostTimeline = field(
        resolvers.feed.posts.local_feed,
        "Posts of all users of the organization, without replies and reposts.",
        is_connection=True,
    )
    post: Post | None = field(
        resolvers.feed.posts.post, "Post with this id. NOT_FOUND if there is none, or if the viewer blocked its author."
    )
    posts: PostTimeline = field(
        resolvers.feed.posts.posts,
        "Posts of one author, with replies and reposts; empty if the viewer blocked the author.",
        is_connection=True,
    )
    hashtag_posts: PostTimeline = field(
        resolvers.feed.posts.hashtag_posts,
        "Posts of the organization with a hashtag.",
        is_connection=True,
    )
    notifications: NotificationTimeline = field(
        resolvers.feed.notifications.notifications,
        "Notifications of the viewer. `NotificationKind` lists their reasons.",
        is_connection=True,
    )
    unread_notification_count: int = field(
        resolvers.feed.notifications.unread_notification_count, "Number of notifications after the viewer's read mark."
    )


@strawberry.type(description="All changes. Unless a description says otherwise, a field needs the role MEMBER.")
class Mutation(
    ChatMutation,
    ConversationMutation,
    AdministrationMutation,
    ModerationMutation,
    SessionMutation,
    PasskeyMutation,
    InvitationMutation,
    PrivacyMutation,
    ServiceKeyMutation,
    WebhookMutation,
    ContentReportMutation,
    AccountConnectionMutation,
    MailMutation,
    MailPolicyMutation,
    HeldPostMutation,
    RetentionMutation,
    MuteMutation,
    PostMutation,
    FileMutation,
    PresenceMutation,
    NotificationSettingsMutation,
    ProfileMutation,
):
    block_user: User = mutation(
        resolvers.identity.block_user,
        "Hides a user's messages, posts, reactions and events from the viewer, ends follows in both directions, and "
        "leaves the viewer's conversation with the user.",
        limit=WriteLimit.FOLLOWS,
    )
    unblock_user: User = mutation(
        resolvers.identity.unblock_user, "Ends a block. Idempotent.", limit=WriteLimit.FOLLOWS
    )
    connect_account: ConnectedAccount = mutation(
        resolvers.publishing.accounts.connect_account,
        "Connects an account of a social network, which must accept the credentials. Needs the role OPERATOR.",
        limit=WriteLimit.OPERATIONS,
    )
    replace_account_credentials: ConnectedAccount = mutation(
        resolvers.publishing.accounts.replace_account_credentials,
        "Replaces the credentials of a connected account, after its network has accepted the new ones. Posts that wait "
        "for the account are published with them. CONFLICT for a disconnected account. Needs the role OPERATOR.",
        limit=WriteLimit.OPERATIONS,
    )
    disconnect_account: ConnectedAccount = mutation(
        resolvers.publishing.accounts.disconnect_account,
        "Disconnects an account: deletes its credentials for good, and fails the publications that wait for it. Needs "
        "the role OPERATOR.",
        limit=WriteLimit.OPERATIONS,
    )
    schedule_post: ScheduledPost = mutation(
        resolvers.publishing.posts.schedule_post,
        "Schedules a post to one or more targets, for an instant. The post is durable when the mutation returns.",
        limit=WriteLimit.SCHEDULES,
    )
    schedule_post_at_local_time: ScheduledPost = mutation(
        resolvers.publishing.posts.schedule_post_at_local_time,
        "Schedules a post to one or more targets, for a local time of a time zone. Otherwise as `schedulePost`.",
        limit=WriteLimit.SCHEDULES,
    )
    update_scheduled_post: ScheduledPost = mutation(
        resolvers.publishing.posts.update_scheduled_post,
        "Changes the viewer's own scheduled post. CONFLICT if one of its publications has started.",
        limit=WriteLimit.SCHEDULES,
    )
    cancel_scheduled_post: ScheduledPost = mutation(
        resolvers.publishing.posts.cancel_scheduled_post,
        "Cancels the publications of a scheduled post that have not started. Authors cancel their own posts, an "
        "OPERATOR any post. CONFLICT if all publications have started.",
        limit=WriteLimit.SCHEDULES,
    )
    resolve_publication: Publication = mutation(
        resolvers.publishing.outcome_checks.resolve_publication,
        "Stores the answer of a person who has looked for the post of an UNKNOWN publication at its account, as "
        "`outcomeCheck` says: it is there (PUBLISHED), it is not (FAILED), or it is not and is published again. "
        "Authors answer for their own publications, an OPERATOR for any. CONFLICT in other states, so one of several "
        "answers counts. That the post is not there is a CONFLICT also while the network is being asked. Publishing "
        "again is one for a disconnected account, an erased post, and files that are no longer kept.",
        limit=WriteLimit.OPERATIONS,
    )
    retry_publication: Publication = mutation(
        resolvers.publishing.publications.retry_publication,
        "Publishes again, at once, what is FAILED or NEEDS_ATTENTION: nothing was published. A failed publication has "
        "`maxLatenessS` again from now. The network is called with the account's present credentials; if it accepts "
        "them, the account's other publications follow. The author retries an own publication, an OPERATOR any. "
        "CONFLICT in other states, for a disconnected account, an erased post, and a failed publication with files, "
        "which are no longer kept for it.",
        limit=WriteLimit.OPERATIONS,
    )
    follow: User = mutation(
        resolvers.feed.follows.follow,
        "Follows a user, and adds their newest posts to the viewer's home feed. Idempotent.",
        limit=WriteLimit.FOLLOWS,
    )
    unfollow: User = mutation(
        resolvers.feed.follows.unfollow,
        "Ends a follow, and removes the user's posts from the viewer's home feed. Idempotent.",
        limit=WriteLimit.FOLLOWS,
    )
    mark_notifications_read: int = mutation(
        resolvers.feed.notifications.mark_notifications_read,
        "Moves the viewer's read mark of notifications forward. Returns the number of notifications after the mark.",
        limit=None,
    )
    set_call_limits: CallLimits = mutation(
        resolvers.calls.limits.set_call_limits,
        "Sets the limits of the organization's calls. They apply to calls that begin later. Needs the role ADMIN.",
        limit=WriteLimit.OPERATIONS,
        scope=NO_KEY,
    )
    launch_call_job: CallJob = mutation(
        resolvers.calls.jobs.launch_call_job,
        "Creates a job that calls a list. A list with an invalid row is REJECTED, and nothing is "
        "dialled. Needs the role OPERATOR.",
        accepts_large_body=True,
        limit=WriteLimit.OPERATIONS,
    )
    pause_call_job: CallJob = mutation(
        resolvers.calls.jobs.pause_call_job,
        "Pauses a job: no further calls begin, calls in progress continue. Needs the role OPERATOR.",
        limit=WriteLimit.OPERATIONS,
    )
    resume_call_job: CallJob = mutation(
        resolvers.calls.jobs.resume_call_job,
        "Resumes a paused job. Needs the role OPERATOR.",
        limit=WriteLimit.OPERATIONS,
    )
    cancel_call_job: CallJob = mutation(
        resolvers.calls.jobs.cancel_call_job,
        "Ends a job: calls that have not begun are CANCELLED, calls in progress continue. Needs the role OPERATOR.",
        limit=WriteLimit.OPERATIONS,
    )
    add_do_not_call: int = mutation(
        resolvers.calls.limits.add_do_not_call,
        "Adds numbers to the do-not-call list. Returns how many were new. Needs the role OPERATOR.",
        limit=WriteLimit.OPERATIONS,
    )
    remove_do_not_call: int = mutation(
        resolvers.calls.limits.remove_do_not_call,
        "Removes numbers from the do-not-call list. Returns how many were listed. Needs the role OPERATOR.",
        limit=WriteLimit.OPERATIONS,
    )
    report_call: CallTask = mutation(
        resolvers.calls.limits.report_call,
        "Stores a report of the telephony service about a call. Idempotent by `callId` and `sequence`. Needs the role "
        "SERVICE.",
        limit=None,
        scope="calls:report",
    )


@strawberry.type(
    description="All subscriptions. Each starts with `StreamReady`, which has a cursor to resume from, and needs "
    "the role MEMBER, unless its description names others."
)
class Subscription(PresenceSubscription):
    topic_events: TopicEvent = subscription(
        resolvers.chat.events.topic_events,
        "Posted, edited, deleted, pinned and unpinned messages of a topic, their reactions, and changes of the topic "
        "itself. FORBIDDEN if the viewer has not joined the community.",
    )
    community_events: CommunityEvent = subscription(
        resolvers.chat.events.community_events,
        "Changes of a community and its topics, new topics, and topics with new messages (each topic at most once a "
        "second).",
    )
    conversation_events: ConversationEvent = subscription(
        resolvers.chat.conversations.conversation_events,
        "Changes of the viewer's conversations: new ones and requests, new messages (each conversation at most once a "
        "second), and changes of the people and the name. `topicEvents` has the messages themselves.",
    )
    home_feed_events: HomeFeedEvent = subscription(
        resolvers.feed.events.home_feed_events, "Posts that are added to the viewer's home feed or removed from it."
    )
    local_events: PostListEvent = subscription(
        resolvers.feed.list_events.local_events,
        "Posts that are added to the organization's local feed or removed from it, without those of blocked and muted "
        "authors. An edit sends no event.",
    )
    hashtag_events: PostListEvent = subscription(
        resolvers.feed.list_events.hashtag_events,
        "Posts that are added to the list of a hashtag or removed from it, also by an edit, without those of blocked "
        "and muted authors.",
    )
    notification_events: NotificationEvent = subscription(
        resolvers.feed.events.notification_events, "New notifications of the viewer."
    )
    content_report_events: ContentReportEvent = subscription(
        resolvers.content_reports.content_report_events,
        "Reports that are filed and decided, among those that `contentReports` lists with the same `communityId`.",
    )
    job_events: JobEvent = subscription(
        resolvers.job_events.job_events,
        "Changes of the organization's publications, call jobs and their calls, call limits, fan-outs and data "
        "exports, limited to those that the viewer may see.",
    )
    bounce_rate_events: BounceRateEvent = subscription(
        resolvers.mail.rate_events.bounce_rate_events,
        "Rates of the days whose mail was counted, at most every 5 seconds. Needs the role OPERATOR or SERVICE.",
    )


class _CachedNameConverter(NameConverter):
    """Strawberry's converter with a cache, since Strawberry converts argument names whenever a field is resolved."""

    apply_naming_config = cache(NameConverter.apply_naming_config)


def build_schema() -> strawberry.Schema:
    """Returns a new schema of the product."""
    return DescribedSchema(
        query=Query,
        mutation=Mutation,
        subscription=Subscription,
        config=StrawberryConfig(scalar_map=SCALARS, name_converter=_CachedNameConverter()),
    )


schema = build_schema()
"""The product's schema. `server.graphql.operations` executes its operations."""
