"""Notifications, mutes, and the settings by which notifications reach people who are offline."""

from datetime import datetime

import strawberry
from strawberry import ID

import resolvers.feed.notification_settings
import resolvers.feed.notifications
import resolvers.feed.push_devices
import resolvers.mutes
from resolvers.feed.notification_settings import DigestObstacle
from resolvers.limits.writes import WriteLimit
from schema.binding import field, mutation
from schema.chat.communities import Community, Topic
from schema.chat.conversations import Conversation
from schema.chat.messages import Message
from schema.chat.stamps import StampPack
from schema.feed.posts import Post
from schema.identity import User
from schema.publishing import ConnectedAccount, Publication
from schema.timeline import ConnectionPage, Edge, Timeline
from storage.feed.content_reports.records import ContentReportDecision, ContentReportOutcome
from storage.identity.accounts.local_accounts import MailLanguage
from storage.identity.mutes import MuteSubject
from storage.notifications import NotificationKind
from storage.notifications.settings import DigestPeriod, NotificationCategory, NotificationLevel, NotificationPlaceKind
from storage.timeline import Timestamp

strawberry.enum(
    NotificationKind,
    description="The reason for a notification. REACTION: to a message or a post. REPLY: somebody replied to the "
    "viewer's post. REPOST: somebody reposted it. QUOTE: somebody quoted it. PUBLICATION_LATE: a scheduled post of the "
    "viewer was published more than a minute late. ACCOUNT_CREDENTIALS_ENDING: the credentials that the viewer gave to "
    "a connected account end in 14 days, or in 3. ACCOUNT_CREDENTIALS_ENDED: they have ended. ACCOUNT_NEEDS_ATTENTION: "
    "the network refuses them, and no post was due. REPORT_DECIDED: moderators decided about the viewer's report. "
    "WARNING: a moderator warns the viewer. ADDED_TO_COMMUNITY: a moderator made the viewer a member of a community, "
    "or the viewer accepted an invitation to it. THREAD_REPLY: somebody replied in a thread that the viewer follows. "
    "STAMP_PACK_RECEIVED: the viewer earned a pack of stamps, or a moderator gave it. CONVERSATION_REQUEST: somebody "
    "who shares no community with the viewer asks for a conversation; gone when the viewer has accepted or declined. "
    "DIRECT_MESSAGE: a conversation of the viewer has unread messages; the viewer has at most one for each "
    "conversation, and `markRead` of the conversation removes it.",
)


@strawberry.type(description="Something that happened and concerns the viewer, such as a mention.")
class Notification:
    id: ID = strawberry.field(description="Unique identifier. Treat as an opaque string.")
    timestamp: Timestamp = strawberry.field(
        description="When the notification arrived; unique for the viewer, and greater than all earlier timestamps."
    )
    kind: NotificationKind = strawberry.field(description="The reason for the notification.")
    actor: User | None = field(
        resolvers.feed.notifications.actor,
        "User who caused the notification. Null when no user did.",
        batch_resolver=resolvers.feed.notifications.actors,
    )
    message: Message | None = field(
        resolvers.feed.notifications.message,
        (
            "The message with the mention or reaction, or about which moderators decided; for DIRECT_MESSAGE an "
            "unread message, and for CONVERSATION_REQUEST a message of the request. Null for other kinds, and when the "
            "viewer may not read it any more."
        ),
        batch_resolver=resolvers.feed.notifications.messages,
    )
    post: Post | None = field(
        resolvers.feed.notifications.post,
        "The post with the mention, the reply, the quote, or the post that was reposted or reacted to, or about which "
        "moderators decided. Null for other kinds, and when it was deleted. A reply or quote that is deleted takes its "
        "notification with it.",
        batch_resolver=resolvers.feed.notifications.posts,
    )
    subject_id: ID | None = strawberry.field(
        description="Id of the viewer's post to which others replied, which they quoted or reposted, or to which they "
        "reacted; also after the post was deleted. Notifications of one kind with the same id form a group. Null for "
        "other kinds, and for replies and quotes of releases before this field."
    )
    emoji: str | None = field(
        resolvers.feed.notifications.emoji,
        "The emoji of a REACTION, or the name of a stamp between colons, such as `:lit:`. For a post, the emoji with "
        "which the actor reacted first. Null for other kinds, when the viewer may not read the message or post any "
        "more, and for notifications of releases before this field.",
        batch_resolver=resolvers.feed.notifications.emojis,
    )
    report_decision: ContentReportDecision | None = field(
        resolvers.feed.notifications.report_decision,
        "What moderators decided about the viewer's report. Null for other kinds, and when the report was deleted, 180 "
        "days after the decision.",
        batch_resolver=resolvers.feed.notifications.report_decisions,
    )
    report_outcome: ContentReportOutcome | None = field(
        resolvers.feed.notifications.report_outcome,
        "Effect of the decision about the viewer's report. Null for other kinds, and when the report was deleted, 180 "
        "days after the decision.",
        batch_resolver=resolvers.feed.notifications.report_outcomes,
    )
    warning: str | None = field(
        resolvers.feed.notifications.warning,
        "What the moderator wrote to the viewer. Null for other kinds, and 180 days after the warning.",
        batch_resolver=resolvers.feed.notifications.warnings,
    )
    community: Community | None = field(
        resolvers.feed.notifications.community,
        "The community that the viewer was added to. Null for other kinds, and when the viewer may not see it any "
        "more.",
        batch_resolver=resolvers.feed.notifications.communities,
    )
    stamp_pack: StampPack | None = field(
        resolvers.feed.notifications.stamp_pack,
        "The pack of stamps that the viewer earned or was given. Null for other kinds, and when the pack was removed.",
        batch_resolver=resolvers.feed.notifications.stamp_packs,
    )
    conversation: Conversation | None = field(
        resolvers.feed.notifications.conversation,
        "The conversation of a DIRECT_MESSAGE or a CONVERSATION_REQUEST. `topic.unreadCount` is the number of unread "
        "messages. Null for other kinds, and when the viewer does not see the conversation any more.",
        batch_resolver=resolvers.feed.notifications.conversations,
    )
    publication: Publication | None = field(
        resolvers.feed.notifications.publication,
        "The publication that failed, waits, is late, or whose outcome is unknown. OPERATORs are notified of those of "
        "others, too. Null for other kinds, and when the viewer may not see the publication any more.",
        batch_resolver=resolvers.feed.notifications.publications,
    )
    account: ConnectedAccount | None = field(
        resolvers.feed.notifications.account,
        "The connected account whose credentials end or were refused. Null for other kinds, and when the viewer is no "
        "OPERATOR any more.",
        batch_resolver=resolvers.feed.notifications.accounts,
    )


@strawberry.type(description="A page of notifications.")
class NotificationTimeline(ConnectionPage, Timeline):
    items: list[Notification] = strawberry.field(description="The items of the page, in the requested order.")
    edges: list[Edge[Notification]] = strawberry.field(description="The items, the newest first.")
    read_up_to: Timestamp | None = field(
        resolvers.feed.notifications.read_up_to,
        "Timestamp up to which the viewer has read notifications, as `markNotificationsRead` set it; null before the "
        "first time. Notifications with a greater timestamp are unread.",
        queries_per_object=True,
    )


strawberry.enum(
    MuteSubject,
    description="What a person has muted: a user, a topic, a community with all its topics, or a post with all replies "
    "below it.",
)


@strawberry.type(description="The viewer's decision to hear nothing of a user, a topic, a community or a post.")
class Mute:
    id: ID = strawberry.field(description="Id of the mute, unique among the viewer's mutes.")
    subject: MuteSubject = strawberry.field(description="Kind of what is muted.")
    subject_id: ID = strawberry.field(
        description="Id of the muted user, topic or community, or of the first post of the muted conversation."
    )
    user: User | None = field(resolvers.mutes.user, "The muted user; null for another subject.")
    topic: Topic | None = field(
        resolvers.mutes.topic,
        "The muted topic; null for another subject, and for a topic that the viewer may not see any more.",
    )
    community: Community | None = field(
        resolvers.mutes.community,
        "The muted community; null for another subject, and for a community that the viewer may not see any more.",
    )
    post: Post | None = field(
        resolvers.mutes.post,
        "The first post of the muted conversation; null for another subject, and for a post that was deleted or whose "
        "author the viewer has blocked.",
    )
    muted_at: datetime = strawberry.field(description="When the viewer muted the subject, or last changed the end.")
    until: datetime | None = strawberry.field(
        description="When the mute ends; null if it lasts until the viewer ends it."
    )


@strawberry.type
class MuteQuery:
    """The list of mutes."""

    my_mutes: list[Mute] = field(
        resolvers.mutes.my_mutes,
        "Mutes of the viewer that have not ended, ordered by kind and id of the subject. Nobody else sees them.",
    )


@strawberry.type
class MuteMutation:
    """Muting and ending mutes."""

    mute_user: Mute = mutation(
        resolvers.mutes.mute_user,
        "Hides a user's posts from the viewer's home feed, local feed and hashtags, and the user's mentions, reactions "
        "and follows from the viewer's notifications and received reactions. Messages in topics stay visible, as do "
        "posts that are asked for by id or author. The user notices nothing, and follows stay. A repetition replaces "
        "the end. CONFLICT for more than 1000 mutes of the viewer.",
        limit=WriteLimit.FOLLOWS,
    )
    unmute_user: User = mutation(
        resolvers.mutes.unmute_user,
        "Ends the mute of a user. What it hid is shown again. Idempotent.",
        limit=WriteLimit.FOLLOWS,
    )
    mute_topic: Mute = mutation(
        resolvers.mutes.mute_topic,
        "Hides notifications of mentions and reactions in a topic. `Topic.unreadCount` still counts, and events of the "
        "topic still arrive. A repetition replaces the end. CONFLICT for more than 1000 mutes of the viewer.",
        limit=WriteLimit.FOLLOWS,
    )
    unmute_topic: Topic | None = mutation(
        resolvers.mutes.unmute_topic,
        "Ends the mute of a topic. Null if the viewer may not see the topic any more. Idempotent.",
        limit=WriteLimit.FOLLOWS,
    )
    mute_community: Mute = mutation(
        resolvers.mutes.mute_community,
        "Mutes all topics of a community, also those that are created later, as `muteTopic` does. A repetition "
        "replaces the end. CONFLICT for more than 1000 mutes of the viewer.",
        limit=WriteLimit.FOLLOWS,
    )
    unmute_community: Community | None = mutation(
        resolvers.mutes.unmute_community,
        "Ends the mute of a community, but not those of its topics. Null if the viewer may not see the community any "
        "more. Idempotent.",
        limit=WriteLimit.FOLLOWS,
    )
    mute_post: Mute = mutation(
        resolvers.mutes.mute_post,
        "Mutes the conversation of a post: its first post and all replies below that, also later ones. Hides "
        "notifications of replies, quotes, mentions, reposts and reactions in it. The posts stay in feeds and lists. "
        "The mute ends when the first post is deleted; replies that remain can be muted again. A repetition replaces "
        "the end. CONFLICT for more than 1000 mutes of the viewer.",
        limit=WriteLimit.FOLLOWS,
    )
    unmute_post: Post | None = mutation(
        resolvers.mutes.unmute_post,
        "Ends the mute of a post's conversation, by the id of one of its posts or by `Mute.subjectId`. What it hid is "
        "shown again. Null if the viewer may not see the post any more. Idempotent.",
        limit=WriteLimit.FOLLOWS,
    )


strawberry.enum(NotificationPlaceKind, description="Kind of a place that has a level.", name="NotificationPlaceKind")


@strawberry.type(description="The ways by which notifications of a category reach the viewer who is offline.")
class NotificationWays:
    category: NotificationCategory = strawberry.field(description="The category.")
    push: bool = strawberry.field(description="Whether they are pushed to the viewer's devices.")
    mail: bool = strawberry.field(description="Whether they are part of digests.")


@strawberry.type(description="The level that the viewer chose for a topic, a conversation or a community.")
class NotificationPlaceLevel:
    kind: NotificationPlaceKind = strawberry.field(description="TOPIC also for a conversation.")
    place_id: ID = strawberry.field(description="Id of the topic, conversation or community.")
    topic: Topic | None = field(
        resolvers.feed.notification_settings.topic,
        "The topic; null for a conversation or community, and for a topic that the viewer may not see any more.",
    )
    community: Community | None = field(
        resolvers.feed.notification_settings.community,
        "The community; null for a topic, and for a community that the viewer may not see any more.",
    )
    level: NotificationLevel = strawberry.field(description="The notifications that reach the viewer.")


@strawberry.type(description="Local times of every day, between which nothing is pushed or mailed to the viewer.")
class QuietHours:
    start: str = strawberry.field(description="Time of day from which it is quiet, as HH:MM.")
    end: str = strawberry.field(
        description="Time of day until which it is quiet, as HH:MM. If it is before `start`, it is on the next day."
    )
    time_zone: str = strawberry.field(description="IANA time zone of start and end.")


@strawberry.type(
    description="How notifications reach the viewer while the viewer is offline. The list `notifications` does not "
    "depend on these settings."
)
class NotificationSettings:
    ways: list[NotificationWays] = strawberry.field(description="The ways of each category.")
    levels: list[NotificationPlaceLevel] = strawberry.field(
        description="Topics, conversations and communities with a level, at most 200, ordered by kind and id. All "
        "others have the level of their community, or ALL."
    )
    quiet_hours: QuietHours | None = strawberry.field(description="The quiet hours; null if there are none.")
    digest: DigestPeriod = strawberry.field(
        description="How often digests are mailed at most. NEVER by default, and after the viewer has ended digests by "
        "the link in a mail."
    )
    digest_address: str | None = field(
        resolvers.feed.notification_settings.digest_address,
        "The viewer's mail address, to which digests are sent; null if no verified one is known.",
        queries_per_object=True,
    )
    digest_obstacle: DigestObstacle | None = field(
        resolvers.feed.notification_settings.digest_obstacle,
        "Why the viewer gets no digests, whatever the period is; null if nothing prevents them.",
        queries_per_object=True,
    )
    language: MailLanguage = strawberry.field(description="MailLanguage of pushes and digests. English by default.")


@strawberry.type(description="A browser to which notifications are pushed.")
class PushDevice:
    id: ID = strawberry.field(description="Unique identifier. Treat as an opaque string.")
    user_agent: str | None = strawberry.field(
        description="The browser's header User-Agent at the registration; null if there was none."
    )
    registered_at: datetime = strawberry.field(description="When the browser was first registered.")
    expires_at: datetime = strawberry.field(description="When it is removed unless it is registered again before.")
    current: bool = field(
        resolvers.feed.push_devices.current, "Whether the session of this request registered the browser."
    )


@strawberry.type
class NotificationSettingsQuery:
    """Reads of settings and devices."""

    push_key: str | None = field(
        resolvers.feed.push_devices.push_key,
        "The key that browsers need to subscribe to pushes: `applicationServerKey` in base64url. Null if this server "
        "pushes nothing.",
    )
    push_devices: list[PushDevice] = field(
        resolvers.feed.push_devices.push_devices,
        "Browsers to which the viewer's notifications are pushed, newest first.",
    )

    notification_settings: NotificationSettings = field(
        resolvers.feed.notification_settings.notification_settings,
        "How notifications reach the viewer while the viewer is offline.",
    )


@strawberry.type
class NotificationSettingsMutation:
    """Changes of settings and devices."""

    register_push_device: PushDevice = mutation(
        resolvers.feed.push_devices.register_push_device,
        "Registers the browser for pushes, or renews its registration. Afterwards it gets no pushes of another person. "
        "The registration ends with the session, and 60 days after it was last renewed. The 21st browser of the viewer "
        "replaces the oldest. Idempotent.",
        limit=WriteLimit.FOLLOWS,
    )
    remove_push_device: PushDevice = mutation(
        resolvers.feed.push_devices.remove_push_device,
        "Ends pushes to a browser of the viewer.",
        limit=WriteLimit.FOLLOWS,
    )

    set_notification_settings: NotificationSettings = mutation(
        resolvers.feed.notification_settings.set_notification_settings,
        "Changes some of the viewer's settings. Returns all settings.",
        limit=WriteLimit.FOLLOWS,
    )
    set_topic_notifications: NotificationSettings = mutation(
        resolvers.feed.notification_settings.set_topic_notifications,
        "Chooses which notifications of a topic or conversation reach the viewer while the viewer is offline. It has "
        "precedence over the level of the community. CONFLICT for more than 200 levels. Returns all settings. "
        "Idempotent.",
        limit=WriteLimit.FOLLOWS,
    )
    set_community_notifications: NotificationSettings = mutation(
        resolvers.feed.notification_settings.set_community_notifications,
        "Chooses which notifications of a community and its topics reach the viewer while the viewer is offline. "
        "CONFLICT for more than 200 levels. Returns all settings. Idempotent.",
        limit=WriteLimit.FOLLOWS,
    )
