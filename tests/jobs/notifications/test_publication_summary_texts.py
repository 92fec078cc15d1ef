"""Summaries show posts by what happened to them, in both languages."""

from dataclasses import replace
from typing import Any

import pytest

from jobs.notifications.digest_texts import DigestLinks
from jobs.notifications.publication_summary_texts import MAX_SHOWN, SummaryPosts, summary_mail
from jobs.providers.mailer import Mail
from storage.identity.accounts.local_accounts import MailLanguage
from storage.publishing.records import post_record
from storage.publishing.reports.records import ReportReason
from tests.storage.publishing.in_memory_posts import stored_post

LINKS = DigestLinks("https://noroshi.example.org", "https://noroshi.example.org/unsubscribe")
STORED_POST: Any = stored_post(text="**High** water")
POST = post_record(STORED_POST)


def mail(summary: SummaryPosts, language: MailLanguage = MailLanguage.EN) -> Mail:
    return summary_mail("Ann  Lee", "ann@example.org", summary, language, LINKS)


@pytest.mark.parametrize("language", MailLanguage)
def test_each_reason_is_a_group(language: MailLanguage) -> None:
    summary = SummaryPosts({reason: [POST] for reason in ReportReason}, ["Shop <1>"])
    written = mail(summary, language)
    assert written.html is not None
    assert written.html.count("<h2") == len(ReportReason) + 1
    assert written.text.count("#/publishing/calendar/today/post") == len(ReportReason)
    assert written.text.count("High water") == written.html.count("High water") == len(ReportReason)
    assert "Shop &lt;1&gt;" in written.html
    assert "Shop <1>" in written.text
    assert "{" not in written.subject + written.text
    assert written.headers["List-Unsubscribe"] == "<https://noroshi.example.org/unsubscribe>"


def test_empty_groups_are_left_out() -> None:
    written = mail(SummaryPosts({ReportReason.FAILED: [replace(POST, text="")], ReportReason.LATE: []}, []))
    assert "Not published (1)" in written.text
    assert "(no text)" in written.text
    for heading in ("Published late", "Accounts to connect again", "Waiting"):
        assert heading not in written.text


def test_long_groups_are_shortened() -> None:
    written = mail(SummaryPosts({ReportReason.FAILED: [POST] * (MAX_SHOWN + 2)}, []))
    assert f"Not published ({MAX_SHOWN + 2})" in written.text
    assert written.text.count("High water") == MAX_SHOWN
    assert "… and 2 more" in written.text
