"""The migration that adds what policies apply to."""

import pytest

from storage.mail.decisions.policies import MailPolicy
from storage.migrations import address_faults
from storage.migrations.address_faults import add_address_faults
from tests.storage.mail.events import event, hard, ok, soft
from tests.storage.mail.scenario import MailScenario

pytestmark = pytest.mark.anyio

ADDRESSES = [f"{name}@example.org" for name in ("fine", "gone", "full", "once", "complained")]


async def forget_faults(mail: MailScenario) -> None:
    """Leaves the summaries as the release before wrote them."""
    update = {"$unset": {"summary.faults": "", "summary.ended": ""}}
    await mail.stores.mongo["mail_addresses"].update_many({"org": mail.org}, update)


@pytest.mark.parametrize("batch", [1, 2, 1000])
async def test_addresses_of_earlier_releases_follow_policies(
    mail: MailScenario, batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(address_faults, "BATCH", batch)
    await mail.add_events(
        ok("fine@example.org"),
        hard("gone@example.org"),
        *(soft("full@example.org", days=day) for day in range(3)),
        soft("once@example.org"),
        event("complained@example.org", complaint=True),
    )
    before = await mail.standings(ADDRESSES)
    await forget_faults(mail)
    assert await mail.standings(ADDRESSES) == before, "Until the migration, the default policy applies."
    for _ in range(2):
        await add_address_faults(mail.stores.mongo)
        assert await mail.standings(ADDRESSES) == before
    await mail.stores.address_book.policies.set(mail.org, MailPolicy(soft_bounce_days=1), 0, "op", "", None)
    assert [each.blocked for each in await mail.standings(ADDRESSES)] == [False, True, True, True, True]
