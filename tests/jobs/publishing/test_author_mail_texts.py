"""Mails to authors say in both languages which post, what happened, why, and what to do next."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from jobs.publishing.author_mail_texts import EXCERPT_CHARS, ReportedPost, TargetText, author_mail
from storage.identity.accounts.local_accounts import MailLanguage
from storage.identity.records import User
from storage.publishing.records import PublicationError, post_record, publication_record
from storage.publishing.reports.records import ReportReason
from tests.storage.publishing.in_memory_posts import stored_post, stored_publication

BASE = "https://noroshi.example.org"
STORED_POST: Any = stored_post(zone="Asia/Tokyo", text="**Open** at 9")
STORED_PUBLICATION: Any = stored_publication()
POST = post_record(STORED_POST)
PUBLICATION = replace(publication_record(STORED_PUBLICATION), error=PublicationError("REFUSED", "<Too long>"))
ANN = User("ann", "ann", "Ann", "acme", (), 0, 0, email="ann@example.org")
SHOP = TargetText("ACCOUNT", "Shop (MASTODON)")
TARGETS = [SHOP, TargetText("TOPIC", "Tides"), TargetText("REMOVED_TOPIC"), TargetText("HOME_FEED")]


def reported(reason: ReportReason = ReportReason.FAILED, target: TargetText = SHOP) -> ReportedPost:
    return ReportedPost(reason, PUBLICATION, POST, target)


@pytest.mark.parametrize("language", MailLanguage)
@pytest.mark.parametrize("reason", ReportReason)
@pytest.mark.parametrize("target", TARGETS)
def test_every_report_has_texts(language: MailLanguage, reason: ReportReason, target: TargetText) -> None:
    mail = author_mail(ANN, reported(reason, target), language, BASE)
    assert (mail.to_name, mail.to_address, mail.recipient) == ("Ann", "ann@example.org", ANN.key)
    assert mail.html is not None
    for words in (
        target.name,
        "2026-11-21 20:59 (Asia/Tokyo)",
        "Open at 9",
        f"{BASE}/#/publishing/calendar/today/post",
    ):
        assert words in mail.text
        assert words in mail.html
    assert "{" not in mail.subject + mail.text


def test_subjects_and_next_steps_differ() -> None:
    for language in MailLanguage:
        mails = [author_mail(ANN, reported(reason), language, BASE) for reason in ReportReason]
        assert len({mail.subject for mail in mails}) == len(ReportReason)
        assert len({mail.text.splitlines()[-2] + mail.text.splitlines()[-3] for mail in mails}) == len(ReportReason)


def test_texts_of_people_are_no_html() -> None:
    mail = author_mail(replace(ANN, name="<b>Ann</b>"), reported(), MailLanguage.EN, BASE)
    assert mail.html is not None
    assert "&lt;b&gt;Ann" in mail.html
    assert "Reason: &lt;Too long&gt; (REFUSED)" in mail.html
    assert "Reason: <Too long> (REFUSED)" in mail.text
    assert '<html lang="EN">' in mail.html or '<html lang="en">' in mail.html


def test_long_text_is_shortened_and_missing_facts_are_left_out() -> None:
    long = ReportedPost(ReportReason.FAILED, PUBLICATION, replace(POST, text="x" * 999), SHOP)
    assert f"Text: {'x' * (EXCERPT_CHARS - 1)}…" in author_mail(ANN, long, MailLanguage.EN, BASE).text
    bare = ReportedPost(ReportReason.LATE, replace(PUBLICATION, error=None), replace(POST, text=""), SHOP)
    text = author_mail(ANN, bare, MailLanguage.EN, BASE).text
    assert "Reason:" not in text
    assert "Text:" not in text


def test_lateness_is_in_minutes() -> None:
    late = replace(PUBLICATION, published_at=PUBLICATION.due_at + timedelta(minutes=5, seconds=20))
    text = author_mail(ANN, ReportedPost(ReportReason.LATE, late, POST, SHOP), MailLanguage.EN, BASE).text
    assert "was published 5 min late." in text
