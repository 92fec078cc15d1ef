"""The mail of a daily summary of publications, in English and Japanese: a text and a simple HTML part."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import NamedTuple
from urllib.parse import quote

from jobs.notifications.digest_texts import DigestLinks, html_link, unsubscribe_headers
from jobs.notifications.texts import excerpt
from jobs.providers.mailer import Mail
from storage.identity.accounts.local_accounts import MailLanguage
from storage.publishing.records import ScheduledPost
from storage.publishing.reports.records import ReportReason

MAX_SHOWN = 10
"""How many posts of each reason a summary shows. It gives the number of the others."""


@dataclass(frozen=True, slots=True)
class SummaryPosts:
    """The posts of a summary by reason, the newest first, and names of accounts that need attention."""

    posts: Mapping[ReportReason, Sequence[ScheduledPost]]
    accounts: Sequence[str]


class _Texts(NamedTuple):
    """The fixed texts of a summary. Placeholders are in braces."""

    subject: str
    greeting: str
    reasons: Mapping[ReportReason, str]
    accounts: str
    no_text: str
    more: str
    calendar: str
    settings: str
    end: str


_TEXTS = {
    MailLanguage.EN: _Texts(
        subject="Scheduled posts on Noroshi that may need you",
        greeting="Hello {name}, this is the daily summary of scheduled posts of your organization:",
        reasons={
            ReportReason.FAILED: "Not published ({count})",
            ReportReason.NEEDS_ATTENTION: "Waiting for other credentials of an account ({count})",
            ReportReason.UNKNOWN: "Published or not: somebody has to look ({count})",
            ReportReason.LATE: "Published late ({count})",
        },
        accounts="Accounts to connect again ({count})",
        no_text="(no text)",
        more="… and {count} more",
        calendar="Open the calendar",
        settings="Settings of these mails",
        end="End these mails",
    ),
    MailLanguage.JA: _Texts(
        subject="Noroshi の予約投稿：確認が必要なもの",
        greeting="{name} さん、組織の予約投稿の 1 日のまとめです。",
        reasons={
            ReportReason.FAILED: "公開できなかった投稿（{count} 件）",
            ReportReason.NEEDS_ATTENTION: "アカウントの再接続を待っている投稿（{count} 件）",
            ReportReason.UNKNOWN: "公開されたかどうか確認が必要な投稿（{count} 件）",
            ReportReason.LATE: "遅れて公開された投稿（{count} 件）",
        },
        accounts="再接続が必要なアカウント（{count} 件）",
        no_text="（本文なし）",
        more="… ほか {count} 件",
        calendar="カレンダーを開く",
        settings="このメールの設定",
        end="このメールを停止する",
    ),
}

_Line = tuple[str, str | None]
"""A line, and the address that it links to."""


def summary_mail(
    to_name: str, to_address: str, summary: SummaryPosts, language: MailLanguage, links: DigestLinks
) -> Mail:
    """Returns the mail of a summary."""
    texts = _TEXTS[language]
    greeting = texts.greeting.format(name=" ".join(to_name.split()))
    groups = _groups(summary, texts, links.base)
    footer = {
        texts.calendar: f"{links.base}/#/publishing",
        texts.settings: f"{links.base}/#/notificationSettings",
        texts.end: links.unsubscribe,
    }
    text, html = _text(greeting, groups, footer), _html(greeting, groups, footer, language)
    return Mail(to_name, to_address, texts.subject, text, html, unsubscribe_headers(links.unsubscribe))


def _groups(summary: SummaryPosts, texts: _Texts, base: str) -> dict[str, list[_Line]]:
    """Returns the lines of each group by its heading."""
    groups: dict[str, list[_Line]] = {}
    for reason, heading in texts.reasons.items():
        posts = summary.posts.get(reason, ())
        lines: list[_Line] = [
            (excerpt(post.text) or texts.no_text, f"{base}/#/publishing/calendar/today/{quote(post.id, safe='')}")
            for post in posts
        ]
        groups |= _group(heading, lines, texts.more)
    return groups | _group(texts.accounts, [(" ".join(name.split()), None) for name in summary.accounts], texts.more)


def _group(heading: str, lines: list[_Line], more: str) -> dict[str, list[_Line]]:
    if not lines:
        return {}
    others = len(lines) - MAX_SHOWN
    rest: list[_Line] = [(more.format(count=others), None)] if others > 0 else []
    return {heading.format(count=len(lines)): lines[:MAX_SHOWN] + rest}


def _text(greeting: str, groups: Mapping[str, Sequence[_Line]], footer: Mapping[str, str]) -> str:
    lines = [greeting]
    for heading, group in groups.items():
        lines += ["", heading, ""]
        for line, address in group:
            lines += [f"  {line}", *([f"  {address}"] if address is not None else [])]
    return "\n".join([*lines, "", "--", *(f"{name}: {address}" for name, address in footer.items()), ""])


def _html(
    greeting: str, groups: Mapping[str, Sequence[_Line]], footer: Mapping[str, str], language: MailLanguage
) -> str:
    parts = [f"<p>{escape(greeting)}</p>"]
    for heading, group in groups.items():
        parts.append(f'<h2 style="font-size:1.1em">{escape(heading)}</h2>')
        shown = [escape(line) if address is None else html_link(address, line) for line, address in group]
        parts.append(f"<p>{'<br>'.join(shown)}</p>")
    parts += ["<hr>", f"<p>{'<br>'.join(html_link(address, name) for name, address in footer.items())}</p>"]
    body = "\n".join(parts)
    style = "font-family:sans-serif;line-height:1.5;max-width:40em"
    return f'<!doctype html>\n<html lang="{language.value}"><body style="{style}">\n{body}\n</body></html>\n'
