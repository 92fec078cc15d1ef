"""The mail of a digest, in English and Japanese: a text and a simple HTML part, grouped by category."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple

from jobs.notifications.texts import excerpt, place, title
from jobs.notifications.unread import UnreadItem
from jobs.providers.mailer import Mail
from storage.identity.accounts.local_accounts import MailLanguage
from storage.notifications.settings import CATEGORIES, NotificationCategory

MAX_SHOWN = 30
"""How many notifications a digest shows. It gives the number of the others."""

HEADINGS: Mapping[MailLanguage, Mapping[NotificationCategory, str]] = {
    MailLanguage.EN: {
        NotificationCategory.DIRECT_MESSAGE: "Direct messages",
        NotificationCategory.MENTION: "Mentions",
        NotificationCategory.REPLY: "Replies and quotes",
        NotificationCategory.REACTION: "Reactions and reposts",
        NotificationCategory.FOLLOW: "New followers",
        NotificationCategory.PUBLICATION: "Scheduled posts",
        NotificationCategory.MODERATION: "Decisions and warnings of moderators",
        NotificationCategory.MEMBERSHIP: "Communities",
        NotificationCategory.STAMP_PACK: "Stamps",
    },
    MailLanguage.JA: {
        NotificationCategory.DIRECT_MESSAGE: "ダイレクトメッセージ",
        NotificationCategory.MENTION: "メンション",
        NotificationCategory.REPLY: "返信と引用",
        NotificationCategory.REACTION: "リアクションとリポスト",
        NotificationCategory.FOLLOW: "新しいフォロワー",
        NotificationCategory.PUBLICATION: "予約投稿",
        NotificationCategory.MODERATION: "モデレーターの決定と警告",
        NotificationCategory.MEMBERSHIP: "コミュニティ",
        NotificationCategory.STAMP_PACK: "スタンプ",
    },
}


class _Texts(NamedTuple):
    """The fixed texts of a digest. Placeholders are in braces."""

    subject: str
    subject_of_one: str
    greeting: str
    more: str
    settings: str
    end: str


_TEXTS = {
    MailLanguage.EN: _Texts(
        "{count} unread notifications on Noroshi",
        "1 unread notification on Noroshi",
        "Hello {name}, you have not read this yet:",
        "… and {count} more",
        "Settings of these mails",
        "End these mails",
    ),
    MailLanguage.JA: _Texts(
        "Noroshi の未読の通知 {count} 件",
        "Noroshi の未読の通知 1 件",
        "{name} さん、まだ読んでいない通知があります。",
        "… ほか {count} 件",
        "このメールの設定",
        "このメールを停止する",
    ),
}


class DigestLinks(NamedTuple):
    """The addresses that a digest needs."""

    base: str
    """Address of the web client, without a slash at the end."""

    unsubscribe: str
    """Address that ends the digests."""


def digest_mail(
    to_name: str, to_address: str, items: Sequence[UnreadItem], language: MailLanguage, links: DigestLinks
) -> Mail:
    """Returns the mail that shows unread items."""
    texts, count = _TEXTS[language], len(items)
    subject = texts.subject_of_one if count == 1 else texts.subject.format(count=count)
    greeting = texts.greeting.format(name=" ".join(to_name.split()))
    groups, more = _groups(items[:MAX_SHOWN]), max(0, count - MAX_SHOWN)
    footer = {texts.settings: f"{links.base}/#/notificationSettings", texts.end: links.unsubscribe}
    if more:
        footer = {texts.more.format(count=more): f"{links.base}/#/notifications"} | footer
    text = _text(greeting, groups, footer, language, links.base)
    html = _html(greeting, groups, footer, language, links.base)
    return Mail(to_name, to_address, subject, text, html, unsubscribe_headers(links.unsubscribe))


def unsubscribe_headers(unsubscribe: str) -> dict[str, str]:
    """Returns the headers by which mail programs offer to end the mails: with one click by https (RFC 8058)."""
    headers = {"List-Unsubscribe": f"<{unsubscribe}>"}
    if unsubscribe.startswith("https:"):
        headers["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
    return headers


_Groups = Mapping[NotificationCategory, Sequence[UnreadItem]]


def _groups(items: Sequence[UnreadItem]) -> _Groups:
    groups: dict[NotificationCategory, list[UnreadItem]] = {category: [] for category in NotificationCategory}
    for item in items:
        notification = item.notification
        category = NotificationCategory.DIRECT_MESSAGE if notification is None else CATEGORIES[notification.kind]
        groups[category].append(item)
    return {category: group for category, group in groups.items() if group}


def _text(greeting: str, groups: _Groups, footer: Mapping[str, str], language: MailLanguage, base: str) -> str:
    lines = [greeting]
    for category, items in groups.items():
        lines += ["", HEADINGS[language][category], ""]
        for item in items:
            shown = (title(item, language), excerpt(item.text), f"{base}/{place(item)}")
            lines += [f"  {line}" for line in shown if line] + [""]
    lines += ["--", *(f"{name}: {address}" for name, address in footer.items()), ""]
    return "\n".join(lines)


def _html(greeting: str, groups: _Groups, footer: Mapping[str, str], language: MailLanguage, base: str) -> str:
    parts = [f"<p>{escape(greeting)}</p>"]
    for category, items in groups.items():
        parts.append(f'<h2 style="font-size:1.1em">{escape(HEADINGS[language][category])}</h2>')
        for item in items:
            link = html_link(f"{base}/{place(item)}", title(item, language))
            parts.append(f"<p>{link}<br>{escape(excerpt(item.text))}</p>")
    parts += ["<hr>", f"<p>{'<br>'.join(html_link(address, name) for name, address in footer.items())}</p>"]
    body = "\n".join(parts)
    style = "font-family:sans-serif;line-height:1.5;max-width:40em"
    return f'<!doctype html>\n<html lang="{language.value}"><body style="{style}">\n{body}\n</body></html>\n'


def html_link(address: str, text: str) -> str:
    """Returns a link of a mail."""
    return f'<a href="{escape(address)}">{escape(text)}</a>'
