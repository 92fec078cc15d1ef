"""The choice of digests, and the earliest time of the next digest on days on which clocks change."""

import asyncio
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.ids import UserKey, new_id
from storage.notifications.channels import CHANNELS, NewNotifications
from storage.notifications.digests import next_digest_at
from storage.notifications.quiet_hours import QuietHours
from storage.notifications.settings import DigestPeriod, NotificationSettingsChange, NotificationWay
from storage.privacy.registry import PERSONAL_DATA
from storage.stores import Stores

ZONES = ("UTC", "Asia/Tokyo", "Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "America/Havana")
NEVER, HOURLY, DAILY, WEEKLY = DigestPeriod


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("sent_at", "period", "next_at"),
    [
        ("2026-11-24T12:00:00", HOURLY, "2026-11-24T13:00:00"),
        ("2026-11-24T12:00:00", DAILY, "2026-11-25T12:00:00"),
        ("2026-11-24T12:00:00", WEEKLY, "2026-12-01T12:00:00"),
        # Clocks of Berlin go forward on 2027-03-28 from 02:00 to 03:00, and back on 2027-10-31 from 03:00 to 02:00.
        ("2027-03-27T06:00:00", DAILY, "2027-03-28T05:00:00"),
        ("2027-03-27T01:30:00", DAILY, "2027-03-28T01:30:00"),
        ("2027-10-30T05:00:00", DAILY, "2027-10-31T06:00:00"),
        ("2027-10-30T00:30:00", DAILY, "2027-10-31T00:30:00"),
        ("2027-10-31T01:30:00", DAILY, "2027-11-01T01:30:00"),
        ("2027-10-25T05:00:00", WEEKLY, "2027-11-01T06:00:00"),
    ],
)
def test_next_digest_has_the_same_local_time(sent_at: str, period: DigestPeriod, next_at: str) -> None:
    assert next_digest_at(at(sent_at), period, "Europe/Berlin") == at(next_at)


INSTANTS = st.datetimes(datetime(2026, 1, 1), datetime(2030, 1, 1)).map(lambda each: each.replace(tzinfo=UTC))
MINUTES = st.integers(0, 1439)


@given(INSTANTS, st.sampled_from((DAILY, WEEKLY)), st.sampled_from(ZONES))
def test_days_between_digests_differ_by_the_change_of_clocks(
    sent_at: datetime, period: DigestPeriod, zone: str
) -> None:
    next_at, days = next_digest_at(sent_at, period, zone), timedelta(days=1 if period is DAILY else 7)
    before, after = sent_at.astimezone(ZoneInfo(zone)), next_at.astimezone(ZoneInfo(zone))
    change = (after.utcoffset() or timedelta()) - (before.utcoffset() or timedelta())
    assert abs(next_at - sent_at - days) <= timedelta(hours=1)
    # A local time that does not exist is moved by the change.
    assert after.time() == before.time() or next_at - sent_at == days or change != timedelta()


@given(INSTANTS, MINUTES, MINUTES, st.sampled_from(ZONES))
def test_end_of_quiet_hours_is_not_quiet(now: datetime, start: int, end: int, zone: str) -> None:
    if start == end:
        return
    hours = QuietHours(start, end, zone)
    ends_at = hours.end_after(now)
    if ends_at is not None:
        assert now < ends_at <= now + timedelta(hours=25)
        assert hours.end_after(ends_at) is None


@pytest.mark.anyio
async def test_concurrent_choices_leave_a_channel_if_digests_are_on(shared_stores: Stores) -> None:
    channels = shared_stores.mongo[CHANNELS]
    for _ in range(5):
        owner = UserKey(f"acme-{new_id()}", "ann")
        changes = [NotificationSettingsChange(digest=period) for period in (DAILY, NEVER, HOURLY) * 3]
        await asyncio.gather(*(shared_stores.digests.change_settings(owner, each) for each in changes))
        chosen = (await shared_stores.notification_settings.get(owner)).digest
        found = await channels.find({"org": owner.organization_id}).to_list(None)
        assert [each["period"] for each in found] == ([] if chosen is NEVER else [chosen.value])


@pytest.mark.anyio
async def test_mail_channel_is_exported_and_erased(shared_stores: Stores) -> None:
    owner, other = UserKey(f"acme-{new_id()}", "ann"), UserKey(f"zoo-{new_id()}", "ann")
    for person in (owner, other):
        await shared_stores.digests.change_settings(person, NotificationSettingsChange(digest=DAILY))
    entry, channels = PERSONAL_DATA["notification_channels"], shared_stores.mongo[CHANNELS]
    (channel,) = await channels.find(entry.exports[0].documents.find(owner)).to_list(None)
    exported = entry.exports[0].write(channel)
    assert (exported["way"], exported["period"]) == ("MAIL", "DAILY")
    await channels.delete_many(entry.rules[0].documents.find(owner))
    assert await channels.count_documents({"org": owner.organization_id}) == 0
    assert await channels.count_documents({"org": other.organization_id}) == 1


@pytest.mark.anyio
async def test_shorter_period_ends_the_wait(shared_stores: Stores) -> None:
    owner, stores = UserKey(f"acme-{new_id()}", "ann"), shared_stores

    async def choose(period: DigestPeriod) -> None:
        await stores.digests.change_settings(owner, NotificationSettingsChange(digest=period))

    async def claim() -> list[UserKey]:
        return [each.owner for each in await stores.notification_channels.claim(NotificationWay.MAIL, 99)]

    await choose(WEEKLY)
    arrival = NewNotifications(round(datetime.now(UTC).timestamp() * 1e6) + 60_000_000, frozenset())
    await stores.notification_channels.mark({owner: arrival}, 3600.0)
    await choose(WEEKLY)
    assert owner not in await claim()
    await choose(HOURLY)
    async with asyncio.timeout(30):
        while owner not in await claim():
            await asyncio.sleep(0.01)
