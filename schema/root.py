"""Query, Mutation, Subscription: one field a thing that clients can do. The table of contents of the product."""

from functools import cache
from typing import Any

import strawberry
from graphql.execution import Executor
from strawberry.extensions import SchemaExtension
from strawberry.schema.config import StrawberryConfig
from strawberry.schema.name_converter import NameConverter

import resolvers.calls.jobs
import resolvers.calls.limits
import resolvers.chat.communities
import resolvers.chat.events
import resolvers.chat.messages
import resolvers.chat.stamps
import resolvers.chat.topics
import resolvers.feed.events
import resolvers.feed.follows
import resolvers.feed.home
import resolvers.feed.notifications
import resolvers.feed.posts
import resolvers.identity
import resolvers.job_events
import resolvers.mail.book
import resolvers.mail.deliveries
import resolvers.publishing.accounts
import resolvers.publishing.posts
import resolvers.publishing.publications
from schema.binding import field, mutation, subscription
from schema.calls import CallJob, CallJobTimeline, CallLimits, CallListCheck, CallTask
from schema.chat import (
    Community,
    Message,
    MessageTimeline,
    ReactionTimeline,
    Stamp,
    Topic,
    TopicTimeline,
    TrendingTopic,
)
from schema.errors import PresentErrors
from schema.events import CommunityEvent, HomeFeedEvent, JobEvent, NotificationEvent, TopicEvent
from schema.feed import HomeFeedTimeline, NotificationTimeline, Post, PostTimeline
from schema.identity import User
from schema.mail import AddressStanding, BounceRate, DomainStanding, RecordDeliveriesResult
from schema.publishing import ConnectedAccount, Publication, ScheduledPost, ScheduledPostTimeline
from schema.scalars import SCALARS


@strawberry.type(description="Everything that can be read.")
class Query:
    viewer: User | None = field(resolvers.identity.viewer, "The signed-in user; null without a token.")
    user: User | None = field(resolvers.identity.user, "A user of the viewer's organization.")
    users: list[User] = field(
        resolvers.identity.users,
        "By handle or name, for mentions and for following; members of one community first when one is given.",
    )
    blocked_users: list[User] = field(resolvers.identity.blocked_users, "Whom the viewer blocked, by handle.")
    communities: list[Community] = field(
        resolvers.chat.communities.communities, "By name; `after` is the id of the last one seen."
    )
    community: Community | None = field(resolvers.chat.communities.community, "One community.")
    topic: Topic | None = field(resolvers.chat.topics.topic, "One topic.")
    community_topics: TopicTimeline = field(
        resolvers.chat.communities.community_topics, "A community's topics by last activity."
    )
    message: Message | None = field(resolvers.chat.messages.message, "One message, if the viewer may see it.")
    messages: MessageTimeline = field(
        resolvers.chat.topics.messages, "A topic's timeline. FORBIDDEN without having joined.", for_audiences=True
    )
    messages_around: MessageTimeline = field(
        resolvers.chat.topics.messages_around,
        "limit messages centred on a timestamp, ascending: up to half older, the rest at or after it.",
        for_audiences=True,
    )
    trending_topics: list[TrendingTopic] = field(
        resolvers.chat.communities.trending_topics,
        "Topics by recent posting rate, hottest first; of the whole organization.",
    )
    stamps: list[Stamp] = field(resolvers.chat.stamps.stamps, "All stamps that can be posted.")
    reactions_received: ReactionTimeline = field(
        resolvers.chat.messages.reactions_received, "Who reacted to the viewer's messages."
    )
    connected_accounts: list[ConnectedAccount] = field(
        resolvers.publishing.accounts.connected_accounts,
        "The organization's connected accounts, oldest first. Needs the role OPERATOR.",
    )
    scheduled_post: ScheduledPost | None = field(
        resolvers.publishing.posts.scheduled_post, "One scheduled post of the viewer's; to an OPERATOR anybody's."
    )
    scheduled_posts: ScheduledPostTimeline = field(
        resolvers.publishing.posts.scheduled_posts,
        "By due time: the viewer's own, to an OPERATOR the organization's.",
    )
    address_book: list[AddressStanding] = field(
        resolvers.mail.book.address_book, "One row per asked address, same order, duplicates kept; at most 1000."
    )
    domain_standings: list[DomainStanding] = field(
        resolvers.mail.book.domain_standings, "One row per asked domain, same order; at most 1000."
    )
    bounce_rates: list[BounceRate] = field(
        resolvers.mail.book.bounce_rates, "By UTC day, both ends included; all domains together when none is named."
    )
    home_feed: HomeFeedTimeline = field(
        resolvers.feed.home.home_feed, "The posts of those whom the viewer follows, and the own ones."
    )
    local_feed: PostTimeline = field(resolvers.feed.posts.local_feed, "Everyone's posts in the viewer's organization.")
    post: Post | None = field(resolvers.feed.posts.post, "One post.")
    posts: PostTimeline = field(resolvers.feed.posts.posts, "One author's posts; none of somebody blocked.")
    hashtag_posts: PostTimeline = field(resolvers.feed.posts.hashtag_posts, "Posts with a hashtag.")
    notifications: NotificationTimeline = field(
        resolvers.feed.notifications.notifications, "What the viewer was told: mentions, reactions, follows."
    )
    unread_notification_count: int = field(
        resolvers.feed.notifications.unread_notification_count, "How many notifications lie after the read mark."
    )
    call_job: CallJob | None = field(resolvers.calls.jobs.call_job, "One call job. For operators.")
    call_jobs: CallJobTimeline = field(resolvers.calls.jobs.call_jobs, "Call jobs by creation. For operators.")
    call_limits: CallLimits = field(
        resolvers.calls.limits.call_limits, "How much the organization may call at once. For operators."
    )
    do_not_call: list[bool] = field(
        resolvers.calls.limits.do_not_call, "Which numbers must not be called, in the order of asking. For operators."
    )
    check_call_list: CallListCheck = field(
        resolvers.calls.jobs.check_call_list, "Checks a list without storing or dialling anything. For operators."
    )


@strawberry.type(description="Everything that can be changed.")
class Mutation:
    create_community: Community = mutation(
        resolvers.chat.communities.create_community, "Founds a community; the viewer is its first member."
    )
    join_community: Community = mutation(resolvers.chat.communities.join_community, "Joins a community; twice is once.")
    leave_community: Community = mutation(
        resolvers.chat.communities.leave_community, "Leaves a community; ends its subscriptions within 5 seconds."
    )
    create_topic: Topic = mutation(resolvers.chat.communities.create_topic, "Opens a topic in a joined community.")
    post_message: Message = mutation(resolvers.chat.messages.post_message, "Posts to a topic. Durable when it returns.")
    edit_message: Message = mutation(resolvers.chat.messages.edit_message, "Replaces the text of one's own message.")
    delete_message: Message = mutation(
        resolvers.chat.messages.delete_message, "Leaves a tombstone. One's own; ADMIN any."
    )
    add_reaction: Message = mutation(resolvers.chat.messages.add_reaction, "Reacts to a message; twice is once.")
    remove_reaction: Message = mutation(
        resolvers.chat.messages.remove_reaction, "Takes a reaction back; without one nothing changes."
    )
    mark_read: Topic = mutation(resolvers.chat.topics.mark_read, "Moves the read mark forward; it never moves back.")
    block_user: User = mutation(
        resolvers.identity.block_user, "Hides somebody's messages, reactions and events, and ends follows both ways."
    )
    unblock_user: User = mutation(resolvers.identity.unblock_user, "Ends a block.")
    connect_account: ConnectedAccount = mutation(
        resolvers.publishing.accounts.connect_account, "Connects an account. Needs the role OPERATOR."
    )
    disconnect_account: ConnectedAccount = mutation(
        resolvers.publishing.accounts.disconnect_account,
        "Forgets what opens an account, for good, and fails what waits for it. Needs the role OPERATOR.",
    )
    schedule_post: ScheduledPost = mutation(
        resolvers.publishing.posts.schedule_post, "Schedules a post to one or several targets. Durable when it returns."
    )
    update_scheduled_post: ScheduledPost = mutation(
        resolvers.publishing.posts.update_scheduled_post,
        "Changes one's own scheduled post. CONFLICT once something of it has started.",
    )
    cancel_scheduled_post: ScheduledPost = mutation(
        resolvers.publishing.posts.cancel_scheduled_post,
        "Cancels what has not started; CONFLICT with nothing left. One's own; an OPERATOR any.",
    )
    resolve_publication: Publication = mutation(
        resolvers.publishing.publications.resolve_publication,
        "Settle a publication whose outcome is unknown, after looking at the account.",
    )
    record_deliveries: RecordDeliveriesResult = mutation(
        resolvers.mail.deliveries.record_deliveries,
        "At-least-once safe: events are counted once by eventId. At most 1000 a call.",
    )
    unblock_address: AddressStanding = mutation(
        resolvers.mail.book.unblock_address, "Starts an address's counters over; who and why is kept."
    )
    set_domain_blocked: DomainStanding = mutation(
        resolvers.mail.book.set_domain_blocked,
        "Block or allow a domain by hand; null goes back to the rule. Who and why is kept.",
    )
    follow: User = mutation(
        resolvers.feed.follows.follow,
        "Follows somebody, and brings their newest posts into the home feed; twice is once.",
    )
    unfollow: User = mutation(
        resolvers.feed.follows.unfollow, "Follows somebody no more, and takes their posts out of the home feed."
    )
    create_post: Post = mutation(
        resolvers.feed.posts.create_post,
        "Posts. When it returns, the post is durable and in the author's own feed; workers bring it to the followers.",
    )
    delete_post: Post = mutation(
        resolvers.feed.posts.delete_post, "Takes a post out of every feed. One's own; ADMIN any."
    )
    mark_notifications_read: int = mutation(
        resolvers.feed.notifications.mark_notifications_read,
        "Moves the read mark forward, never back. Returns how many are still unread.",
    )
    set_call_limits: CallLimits = mutation(
        resolvers.calls.limits.set_call_limits,
        "Holds for every call that begins from now on; calls under way go on. ADMIN only.",
    )
    launch_call_job: CallJob = mutation(
        resolvers.calls.jobs.launch_call_job,
        "Begins to call a list. With any bad row the job is REJECTED, and nothing is dialled. For operators.",
    )
    pause_call_job: CallJob = mutation(
        resolvers.calls.jobs.pause_call_job, "Begins no more calls of it; those under way go on. For operators."
    )
    resume_call_job: CallJob = mutation(resolvers.calls.jobs.resume_call_job, "Goes on with it. For operators.")
    cancel_call_job: CallJob = mutation(
        resolvers.calls.jobs.cancel_call_job,
        "Ends it; what was not called yet is CANCELLED, calls under way go on. For operators.",
    )
    add_do_not_call: int = mutation(
        resolvers.calls.limits.add_do_not_call, "Numbers that no job calls; returns how many were new. For operators."
    )
    remove_do_not_call: int = mutation(
        resolvers.calls.limits.remove_do_not_call, "Allows them again; returns how many were there. For operators."
    )
    report_call: CallTask = mutation(
        resolvers.calls.limits.report_call,
        "How the telephony side reports progress; idempotent by (callId, sequence). SERVICE only.",
    )


@strawberry.type(description="Everything that can be listened to. Each begins with StreamReady.")
class Subscription:
    topic_events: TopicEvent = subscription(
        resolvers.chat.events.topic_events, "What happens to the messages of a topic. FORBIDDEN without having joined."
    )
    community_events: CommunityEvent = subscription(
        resolvers.chat.events.community_events,
        "New topics, and which topics have new messages (at most once a second each): what a sidebar needs.",
    )
    home_feed_events: HomeFeedEvent = subscription(
        resolvers.feed.events.home_feed_events, "Posts that come into the viewer's home feed, and that leave it."
    )
    notification_events: NotificationEvent = subscription(
        resolvers.feed.events.notification_events, "What the viewer is told of."
    )
    job_events: JobEvent = subscription(
        resolvers.job_events.job_events,
        "Publications, call jobs and fan-outs of the viewer's organization, or of one of them; what the viewer may not "
        "see is withheld.",
    )


def build_schema(*extensions: type[SchemaExtension], executor: type[Executor[Any]] | None = None) -> strawberry.Schema:
    """The schema, with further extensions around the presentation of errors, and another executor than Strawberry's."""
    return _Schema(
        query=Query,
        mutation=Mutation,
        subscription=Subscription,
        config=StrawberryConfig(scalar_map=SCALARS, name_converter=_Names()),
        extensions=[PresentErrors, *extensions],
        execution_context_class=executor,
    )


class _Names(NameConverter):
    """Strawberry's, which asks for the names of arguments again whenever a field is resolved."""

    apply_naming_config = cache(NameConverter.apply_naming_config)


class _Schema(strawberry.Schema):
    def process_errors(self, errors: object, execution_context: object = None) -> None:
        """Nothing: PresentErrors logs what is unexpected, and expected errors are no news."""


schema = build_schema()
