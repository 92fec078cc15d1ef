"""Texts of pushes and digests, in English and Japanese, and the places in the web client that they open."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

from jobs.notifications.unread import UnreadItem
from storage.identity.accounts.local_accounts import MailLanguage
from storage.identity.formatting import plain_text
from storage.notifications import NotificationKind
from storage.timeline import format_timestamp

EXCERPT_CHARS = 160
MAX_KEYS = 30
"""A push of more items has no keys, and so replaces nothing that a page has shown."""

NEW_MESSAGES = {NotificationKind.MENTION, NotificationKind.THREAD_REPLY}
"""Kinds of notifications about a new message. Each has the same key as the message itself."""

ABOUT_ACCOUNTS = {
    NotificationKind.ACCOUNT_CREDENTIALS_ENDING,
    NotificationKind.ACCOUNT_CREDENTIALS_ENDED,
    NotificationKind.ACCOUNT_NEEDS_ATTENTION,
}
"""Kinds of notifications about a connected account. They open the screen that lists the accounts."""

DIRECT_MESSAGE = "DIRECT_MESSAGE"

TITLES: Mapping[MailLanguage, Mapping[str, str]] = {
    MailLanguage.EN: {
        "MENTION": "{name} mentioned you",
        "REPLY": "{name} replied to your post",
        "QUOTE": "{name} quoted your post",
        "REACTION": "{name} reacted to what you wrote",
        "REPOST": "{name} reposted your post",
        "FOLLOW": "{name} follows you",
        "THREAD_REPLY": "{name} replied in a thread",
        "PUBLICATION_FAILED": "A scheduled post was not published",
        "PUBLICATION_UNKNOWN": "It is not known whether a scheduled post was published",
        "PUBLICATION_NEEDS_ATTENTION": "A scheduled post waits: the network refused the account's credentials",
        "PUBLICATION_LATE": "A scheduled post was published late",
        "ACCOUNT_CREDENTIALS_ENDING": "The credentials of a connected account end soon",
        "ACCOUNT_CREDENTIALS_ENDED": "The credentials of a connected account have ended",
        "ACCOUNT_NEEDS_ATTENTION": "A connected account needs other credentials",
        "REPORT_DECIDED": "Moderators decided about your report",
        "WARNING": "A moderator has warned you",
        "ADDED_TO_COMMUNITY": "You are a member of a community now",
        "STAMP_PACK_RECEIVED": "You have a new pack of stamps",
        "CONVERSATION_REQUEST": "{name} would like to talk to you",
        DIRECT_MESSAGE: "{name} wrote to you",
    },
    MailLanguage.JA: {
        "MENTION": "{name} さんがあなたにメンションしました",
        "REPLY": "{name} さんがあなたの投稿に返信しました",
        "QUOTE": "{name} さんがあなたの投稿を引用しました",
        "REACTION": "{name} さんがリアクションしました",
        "REPOST": "{name} さんがあなたの投稿をリポストしました",
        "FOLLOW": "{name} さんがあなたをフォローしました",
        "THREAD_REPLY": "{name} さんがスレッドに返信しました",
        "PUBLICATION_FAILED": "予約投稿を公開できませんでした",
        "PUBLICATION_UNKNOWN": "予約投稿が公開されたかどうか不明です",
        "PUBLICATION_NEEDS_ATTENTION": "アカウントの認証情報が拒否されたため、予約投稿が待機しています",
        "PUBLICATION_LATE": "予約投稿が予定より遅れて公開されました",
        "ACCOUNT_CREDENTIALS_ENDING": "連携アカウントの認証情報の期限が近づいています",
        "ACCOUNT_CREDENTIALS_ENDED": "連携アカウントの認証情報の期限が切れました",
        "ACCOUNT_NEEDS_ATTENTION": "連携アカウントの認証情報を更新する必要があります",
        "REPORT_DECIDED": "モデレーターがあなたの報告について決定しました",
        "WARNING": "モデレーターから警告がありました",
        "ADDED_TO_COMMUNITY": "コミュニティのメンバーになりました",
        "STAMP_PACK_RECEIVED": "新しいスタンプパックを獲得しました",
        "CONVERSATION_REQUEST": "{name} さんがあなたとの会話を希望しています",
        DIRECT_MESSAGE: "{name} さんからメッセージ",
    },
}
_SUMMARIES = {MailLanguage.EN: "{count} new notifications", MailLanguage.JA: "新しい通知 {count} 件"}


@dataclass(frozen=True, slots=True)
class ShownNotification:
    """The title and body of a push, and the place in the web client that it opens, such as `#/notifications`.

    `keys` identify the items. `tag` is that of the one item, or None for several.
    """

    title: str
    body: str
    place: str
    tag: str | None
    keys: list[str]


def shown_notification(items: list[UnreadItem], language: MailLanguage) -> ShownNotification:
    """Returns what one push shows for one or more items."""
    keys = [key(item) for item in items] if len(items) <= MAX_KEYS else []
    if len(items) == 1:
        (item,) = items
        return ShownNotification(title(item, language), excerpt(item.text), place(item), tag(item), keys)
    summary = _SUMMARIES[language].format(count=len(items))
    lines = "\n".join(title(item, language) for item in items[:3])
    return ShownNotification(summary, lines, "#/notifications", None, keys)


def title(item: UnreadItem, language: MailLanguage) -> str:
    """Returns what happened, in one line."""
    kind = DIRECT_MESSAGE if item.notification is None else item.notification.kind.value
    name = "" if item.actor is None else " ".join(item.actor.name.split())
    return TITLES[language][kind].format(name=name)


def excerpt(text: str) -> str:
    """Returns the beginning of a text, in one line and without its formatting."""
    line = " ".join(plain_text(text).split())
    return line if len(line) <= EXCERPT_CHARS else f"{line[: EXCERPT_CHARS - 1]}…"


def key(item: UnreadItem) -> str:
    """Returns what identifies an item. A message has one key, as a direct message and as a notification."""
    if item.notification is None or (item.notification.kind in NEW_MESSAGES and item.message is not None):
        return place(item)
    return f"{place(item)}?{format_timestamp(item.notification.timestamp)}"


def place(item: UnreadItem) -> str:
    """Returns the fragment of the web client's address for an item."""
    if item.message is not None:
        return f"{tag(item)}/{format_timestamp(item.message.timestamp)}"
    return tag(item)


def tag(item: UnreadItem) -> str:
    """Returns the place of an item without the position there. A device shows one notification for each tag."""
    if item.message is not None:
        return f"#/topic/{quote(item.message.topic_id, safe='')}"
    if item.post is not None:
        return f"#/post/{quote(item.post.id, safe='')}"
    notification = item.notification
    if notification is not None and notification.kind is NotificationKind.ADDED_TO_COMMUNITY:
        return f"#/community/{quote(notification.community_id or '', safe='')}"
    if notification is not None and notification.kind is NotificationKind.FOLLOW and item.actor is not None:
        return f"#/person/{quote(item.actor.id, safe='')}"
    if notification is not None and notification.kind in ABOUT_ACCOUNTS:
        return "#/publishing"
    return "#/notifications"
