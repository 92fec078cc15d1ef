"""Mails to authors about reported posts, in English and Japanese: a text and a simple HTML part."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from html import escape
from typing import NamedTuple
from urllib.parse import quote
from zoneinfo import ZoneInfo

from jobs.providers.mailer import Mail
from storage.identity.accounts.local_accounts import MailLanguage
from storage.identity.formatting import plain_text
from storage.identity.records import User
from storage.publishing.records import Publication, ScheduledPost
from storage.publishing.reports.records import ReportReason

EXCERPT_CHARS = 200


class TargetText(NamedTuple):
    """The kind of a target, and its name in texts."""

    kind: str
    """A key of `_Texts.targets`."""
    name: str = ""


class _ReportTexts(NamedTuple):
    """Texts about one reason: the event and the next step. Placeholders are in braces."""

    subject: str
    happened: str
    next: str


class _Texts(NamedTuple):
    """The texts of one language."""

    greeting: str
    reason: str
    text: str
    link: str
    minutes: str
    targets: Mapping[str, str]
    reports: Mapping[ReportReason, _ReportTexts]


_TEXTS = {
    MailLanguage.EN: _Texts(
        greeting="Hello {name},",
        reason="Reason",
        text="Text",
        link="Open the post",
        minutes="{count} min",
        targets={
            "ACCOUNT": "{name}",
            "TOPIC": "the topic {name}",
            "REMOVED_TOPIC": "a topic",
            "HOME_FEED": "your followers",
        },
        reports={
            ReportReason.FAILED: _ReportTexts(
                "Not published: your post for {target}",
                "your post for {target}, due at {due}, was not published.",
                "It is not tried again by itself. When the reason is gone, open the post and press “Try again now”.",
            ),
            ReportReason.NEEDS_ATTENTION: _ReportTexts(
                "Waiting: your post for {target}",
                "your post for {target}, due at {due}, was not published yet: the network refuses the account.",
                "Ask an operator of your organization to connect the account again. The post is then published at "
                "once, unless it has become too late. Other posts of yours that wait for the account cause no mail.",
            ),
            ReportReason.UNKNOWN: _ReportTexts(
                "Published or not? Your post for {target}",
                "it is not known whether your post for {target}, due at {due}, was published.",
                "Look at the account. Then open the post and answer whether it is there. Do not write it again before: "
                "it might be published twice.",
            ),
            ReportReason.LATE: _ReportTexts(
                "Published late: your post for {target}",
                "your post for {target}, due at {due}, was published {late} late.",
                "There is nothing to do, unless the time matters.",
            ),
        },
    ),
    MailLanguage.JA: _Texts(
        greeting="{name} さん",
        reason="理由",
        text="本文",
        link="投稿を開く",
        minutes="{count} 分",
        targets={
            "ACCOUNT": "{name}",
            "TOPIC": "トピック「{name}」",
            "REMOVED_TOPIC": "トピック",
            "HOME_FEED": "フォロワー",
        },
        reports={
            ReportReason.FAILED: _ReportTexts(
                "公開できませんでした：{target} への予約投稿",
                "{due} に予定されていた {target} への投稿を公開できませんでした。",
                "自動では再試行されません。原因を解消してから、投稿を開いて「今すぐ再試行」を押してください。",
            ),
            ReportReason.NEEDS_ATTENTION: _ReportTexts(
                "待機中：{target} への予約投稿",
                "{due} に予定されていた {target} への投稿は、まだ公開されていません。アカウントの認証情報が拒否されて"
                "います。",
                "組織のオペレーターに、アカウントの再接続を依頼してください。期限内に再接続されれば、すぐに公開されます。"
                "同じアカウントを待つほかの投稿については、メールは送信されません。",
            ),
            ReportReason.UNKNOWN: _ReportTexts(
                "公開されたか不明です：{target} への予約投稿",
                "{due} に予定されていた {target} への投稿が公開されたかどうか、確認できません。",
                "アカウントを確認してから、投稿を開いて結果を回答してください。その前にもう一度投稿すると、二重に公開される"
                "おそれがあります。",
            ),
            ReportReason.LATE: _ReportTexts(
                "遅れて公開されました：{target} への予約投稿",
                "{due} に予定されていた {target} への投稿は、{late}遅れて公開されました。",
                "時刻が重要でなければ、対応は必要ありません。",
            ),
        },
    ),
}


@dataclass(frozen=True, slots=True)
class ReportedPost:
    """A reported publication with its post and its target, as a mail shows it."""

    reason: ReportReason
    publication: Publication
    post: ScheduledPost
    target: TargetText


def author_mail(author: User, reported: ReportedPost, language: MailLanguage, base_url: str) -> Mail:
    """Returns the mail to the author of a reported post."""
    texts, values = _TEXTS[language], _values(reported, language)
    report = texts.reports[reported.reason]
    greeting = texts.greeting.format(name=_line(author.name))
    subject, happened = report.subject.format(**values), report.happened.format(**values)
    facts = _facts(reported, texts)
    link = f"{base_url}/#/publishing/calendar/today/{quote(reported.post.id, safe='')}"
    lines = [greeting, "", happened, "", *(f"{name}: {value}" for name, value in facts.items())]
    text = "\n".join([*lines, "", report.next, link, ""])
    html = _html([greeting, happened], facts, report.next, (link, texts.link), language)
    return Mail(author.name, author.email, subject, text, html, recipient=author.key)


def _values(reported: ReportedPost, language: MailLanguage) -> dict[str, str]:
    texts, late_ms = _TEXTS[language], reported.publication.lateness_ms or 0
    target = texts.targets[reported.target.kind].format(name=_line(reported.target.name))
    minutes = max(1, round(timedelta(milliseconds=late_ms) / timedelta(minutes=1)))
    due = _local(reported.post.due_at, reported.post.time_zone)
    return {"target": target, "due": due, "late": texts.minutes.format(count=minutes)}


def _local(at: datetime, time_zone: str) -> str:
    return f"{at.astimezone(ZoneInfo(time_zone)):%Y-%m-%d %H:%M} ({time_zone})"


def _facts(reported: ReportedPost, texts: _Texts) -> dict[str, str]:
    """Returns the error and the beginning of the text, by their names."""
    error, line = reported.publication.error, _line(plain_text(reported.post.text))
    excerpt = line if len(line) <= EXCERPT_CHARS else f"{line[: EXCERPT_CHARS - 1]}…"
    facts = {} if error is None else {texts.reason: f"{_line(error.message)} ({error.code})"}
    return facts | ({texts.text: excerpt} if excerpt else {})


def _line(text: str) -> str:
    return " ".join(text.split())


def _html(
    paragraphs: list[str], facts: Mapping[str, str], next_: str, link: tuple[str, str], language: MailLanguage
) -> str:
    rows = "<br>".join(f"{escape(name)}: {escape(value)}" for name, value in facts.items())
    address, label = map(escape, link)
    parts = [*map(escape, paragraphs), *([rows] if rows else []), escape(next_), f'<a href="{address}">{label}</a>']
    body = "\n".join(f"<p>{part}</p>" for part in parts)
    style = "font-family:sans-serif;line-height:1.5;max-width:40em"
    return f'<!doctype html>\n<html lang="{language.value}"><body style="{style}">\n{body}\n</body></html>\n'
