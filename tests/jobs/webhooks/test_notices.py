"""The mail about a disabled webhook: once to each active administrator with an address."""

from dataclasses import replace
from pathlib import Path

import pytest

from jobs.providers.mailer import Mailer
from jobs.webhooks.notices import send_webhook_notices
from storage.identity.roles import Role
from tests.jobs.webhooks.conftest import DISABLE, WebhookScenario
from tests.twins.mail_server import mail_server

pytestmark = pytest.mark.anyio


async def test_administrators_get_one_mail_about_a_disabled_webhook(webhooks: WebhookScenario) -> None:
    receiver, chat, users = await webhooks.receiver(), webhooks.chat, webhooks.stores.users
    for name in ("ada", "boss"):
        await users.sign_in("acme", name, [Role.ADMIN], name.title(), None, f"{name}@example.org")
    await users.sign_in("acme", "ann", [Role.MEMBER], "Ann", None, "ann@example.org")
    await webhooks.create(receiver)
    receiver.status = 410
    await chat.ann.post(chat.topic, "Hello")
    await webhooks.deliver()
    async with mail_server() as server:
        jobs = replace(webhooks.jobs, mailer=Mailer(server.url, "noroshi@example.org", Path()))
        assert await send_webhook_notices(jobs) == 1
        assert await send_webhook_notices(jobs) == 0
        assert sorted(str(mail["to"]) for mail in server.mails) == ["Ada <ada@example.org>", "Boss <boss@example.org>"]
        text = str(server.mails[0].get_payload())
    assert "The address answered 410 Gone." in text
    assert receiver.address in text.replace("=\n", "")


async def test_mail_is_sent_later_if_the_server_is_away(webhooks: WebhookScenario) -> None:
    receiver, chat, mongo = await webhooks.receiver(), webhooks.chat, webhooks.stores.mongo
    await webhooks.stores.users.sign_in("acme", "ada", [Role.ADMIN], "Ada", None, "ada@example.org")
    await webhooks.create(receiver)
    receiver.status = 410
    await chat.ann.post(chat.topic, "Hello")
    await webhooks.deliver()
    away = replace(webhooks.jobs, mailer=Mailer("smtp://127.0.0.1:1", "noroshi@example.org", Path()))
    assert await send_webhook_notices(away) == 1
    assert await mongo["webhooks"].count_documents({"notice_due": {"$exists": True}}) == 1


async def test_requested_disabling_is_not_mailed(webhooks: WebhookScenario) -> None:
    id_ = await webhooks.create(await webhooks.receiver())
    await webhooks.ada.run(DISABLE, id=id_)
    assert await send_webhook_notices(webhooks.jobs) == 0
