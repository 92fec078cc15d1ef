"""The mail of a digest: its subject, its texts in each language, its links and its headers."""

from dataclasses import replace

import pytest

from jobs.notifications import digest_texts
from jobs.notifications.digest_texts import HEADINGS
from storage.identity.accounts.local_accounts import MailLanguage
from storage.notifications.settings import NotificationCategory, NotificationSettingsChange
from tests.jobs.notifications.conftest import OfflineScenario, address_of
from tests.resolvers.chat.test_conversations import start
from tests.resolvers.people import Person
from tests.twins.mail_server import MailServer

pytestmark = pytest.mark.anyio


async def test_unread_notifications_are_one_mail(offline: OfflineScenario, server: MailServer, bob: Person) -> None:
    chat = offline.chat
    message = await chat.ann.post(chat.topic, "Look <b>@bob</b>")
    conversation = await start(chat.ann, bob)
    await chat.ann.post(conversation, "Are you there?")
    assert await offline.mail(server) == 1
    assert await offline.mail(server) == 0
    (mail,) = server.mails
    text, html = offline.text_of(mail), offline.text_of(mail, "html")
    assert (mail["Subject"], mail["To"]) == ("2 unread notifications on Noroshi", "bob <bob@example.org>")
    link = f"http://127.0.0.1:8000/#/topic/{chat.topic}/{message['timestamp']}"
    for part in ("Direct messages", "ann wrote to you", "Are you there?", "Mentions", "ann mentioned you", link):
        assert part in text
        assert part in html
    assert "Look <b>@bob</b>" in text
    assert "Look &lt;b&gt;@bob&lt;/b&gt;" in html
    assert "<b>" not in html


async def test_header_offers_one_click_over_https(offline: OfflineScenario, server: MailServer, bob: Person) -> None:
    jobs = replace(offline.jobs, base_url=f"https://{'a' * 60}.example.org")
    await offline.chat.ann.post(offline.chat.topic, "@bob")
    await offline.mail(server, jobs)
    (mail,) = server.mails
    link = mail["List-Unsubscribe"]
    assert link.startswith(f"<https://{'a' * 60}.example.org/unsubscribe/")
    assert link.endswith(">")
    assert mail["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    assert link[1:-1] in offline.text_of(mail)
    # Programs that follow links do not decode headers.
    assert f"\r\nList-Unsubscribe: {link}\r\n".encode() in server.contents[0]
    assert not {"bob", "acme", address_of(bob)} & set(link.split("/"))


async def test_header_without_https_offers_no_one_click(
    offline: OfflineScenario, server: MailServer, bob: Person
) -> None:
    await offline.chat.ann.post(offline.chat.topic, "@bob")
    await offline.mail(server)
    assert server.mails[0]["List-Unsubscribe"].startswith("<http://127.0.0.1:8000/unsubscribe/")
    assert server.mails[0]["List-Unsubscribe-Post"] is None


async def test_long_digest_in_japanese_shows_the_newest(
    offline: OfflineScenario, server: MailServer, bob: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = 3
    monkeypatch.setattr(digest_texts, "MAX_SHOWN", shown)
    await offline.jobs.stores.notification_settings.change(
        offline.key(bob), NotificationSettingsChange(language=MailLanguage.JA)
    )
    for n in range(shown + 2):
        await offline.chat.ann.post(offline.chat.topic, f"{n}. @bob .{n}")
    await offline.mail(server)
    (mail,) = server.mails
    text = offline.text_of(mail)
    assert mail["Subject"] == f"Noroshi の未読の通知 {shown + 2} 件"
    assert (text.count("さんがあなたにメンションしました"), "ほか 2 件" in text) == (shown, True)
    assert f"  {shown + 1}. @bob" in text
    assert "  1. @bob" not in text


def test_every_category_has_a_heading_in_each_language() -> None:
    assert all(headings.keys() == set(NotificationCategory) for headings in HEADINGS.values())
