"""Reads what a channel has to send: unread notifications and messages that their owner may see and wants."""

from dataclasses import dataclass

from storage.chat.records import Message
from storage.feed.records import Post
from storage.identity.mutes import HiddenSubjects
from storage.identity.records import User
from storage.ids import MessageKey, UserKey
from storage.notifications import Notification, NotificationKind
from storage.notifications.channels import ClaimedChannel
from storage.notifications.settings import NotificationSettings
from storage.stores import Stores

MAX_NOTIFICATIONS = 100
"""How many unread notifications one push or digest takes into account, the newest."""

ABOUT_OWN_MESSAGES = {NotificationKind.REACTION, NotificationKind.REPORT_DECIDED, NotificationKind.WARNING}
"""Kinds whose message the owner knows already."""


@dataclass(frozen=True, slots=True)
class UnreadItem:
    """An unread notification, or the newest unread message of a conversation, for which `notification` is None."""

    notification: Notification | None
    actor: User | None
    message: Message | None = None
    post: Post | None = None

    @property
    def text(self) -> str:
        """The text of the message or post; empty without one."""
        content = self.message or self.post
        return "" if content is None else content.text


async def unread_items(stores: Stores, channel: ClaimedChannel, settings: NotificationSettings) -> list[UnreadItem]:
    """Returns the unread items in the channel's range, the newest first; at most one for each conversation."""
    hidden = await _hidden_subjects(stores, channel.owner)
    found = await stores.notifications.unread_between(
        channel.owner, channel.after, channel.up_to, hidden, MAX_NOTIFICATIONS
    )
    wanted = [each for each in found if settings.is_wanted(each, channel.way)]
    items = [item for each in wanted if (item := await _notification_item(stores, channel.owner, each)) is not None]
    return [*await _direct_messages(stores, channel, settings, hidden, items), *items]


async def _hidden_subjects(stores: Stores, owner: UserKey) -> HiddenSubjects:
    muted = await stores.mutes.muted_by(*owner)
    return muted._replace(users=muted.users | await stores.relations.blocked_users_of(*owner))


async def _notification_item(stores: Stores, owner: UserKey, notification: Notification) -> UnreadItem | None:
    """Returns the item; None if its message or post was deleted, or if the owner may not read it any more.

    None also for people who have left the community to which they were added: it may be private.
    """
    actor_id = notification.actor_id
    actor = None if actor_id is None else await stores.users.find(owner.organization_id, actor_id)
    if notification.message is not None:
        is_new = notification.kind not in ABOUT_OWN_MESSAGES
        message = await _readable_message(stores, owner, notification.message, is_new)
        return None if message is None else UnreadItem(notification, actor, message=message)
    if notification.post is not None:
        post = await stores.posts.find(notification.post)
        return None if post is None else UnreadItem(notification, actor, post=post)
    if notification.kind is NotificationKind.ADDED_TO_COMMUNITY and not await stores.communities.is_member(
        notification.community_id or "", owner.user_id
    ):
        return None
    return UnreadItem(notification, actor)


async def _readable_message(stores: Stores, owner: UserKey, key: MessageKey, is_new: bool) -> Message | None:
    """Returns a message that the owner may read; None also for a new message that was read in its topic."""
    topic = await stores.topics.find(owner.organization_id, key.topic_id)
    if topic is None or not await stores.communities.is_member(topic.community_id, owner.user_id):
        return None
    if is_new and key.timestamp <= (await stores.topics.read_up_to(key.topic_id, owner.user_id) or 0):
        return None
    message = await stores.messages.find(key)
    return None if message is None or message.deleted_at is not None else message


async def _direct_messages(
    stores: Stores,
    channel: ClaimedChannel,
    settings: NotificationSettings,
    hidden: HiddenSubjects,
    items: list[UnreadItem],
) -> list[UnreadItem]:
    """Returns the newest unread message of each conversation, unless a notification is about the same message."""
    owner, notified = channel.owner, {item.message.key for item in items if item.message is not None}
    found = []
    for topic_id in channel.topic_ids:
        if topic_id in hidden.topics or not settings.is_conversation_wanted(topic_id, channel.way):
            continue
        message = await _newest_unread(stores, channel, topic_id, hidden.users)
        if message is not None and message.content_key not in notified:
            author = await stores.users.find(owner.organization_id, message.author_id)
            found.append(UnreadItem(None, author, message=message))
    return sorted(found, key=lambda item: item.message.timestamp if item.message else 0, reverse=True)


async def _newest_unread(
    stores: Stores, channel: ClaimedChannel, topic_id: str, blocked: frozenset[str]
) -> Message | None:
    """Returns the newest message in the channel's range, if another person wrote it and the owner has not read it."""
    owner = channel.owner
    topic = await stores.topics.find(owner.organization_id, topic_id)
    # People who were asked to join, and have not accepted, get nothing.
    joined = await stores.conversations.joined_people(owner.organization_id, topic_id)
    if topic is None or owner.user_id not in (joined or ()):
        return None
    message = await stores.messages.last_message(topic_id, topic.last_activity, blocked)
    if message is None or message.author_id == owner.user_id or message.deleted_at is not None:
        return None
    read_up_to = await stores.topics.read_up_to(topic_id, owner.user_id) or 0
    return message if max(read_up_to, channel.after) < message.timestamp <= channel.up_to else None
