"""The search for new notifications: events of one instant that fill a page."""

from datetime import timedelta

import pytest

from storage.identity.records import user_stream
from storage.ids import UserKey
from storage.notifications import arrivals
from storage.notifications.arrivals import NOTIFIED, SCAN_ID, SCANS, NotificationArrivals
from storage.notifications.channels import CHANNELS, PushSubscription
from storage.stores import Stores

pytestmark = pytest.mark.anyio

PEOPLE = [UserKey("org", name) for name in ("ann", "bob", "eve", "dan", "fay")]


async def test_all_people_of_one_instant_are_found(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page with room for two events ends inside the instant."""
    monkeypatch.setattr(arrivals, "PAGE_SIZE", 2)
    channels, now = stores.notification_channels, await stores.mongo.now()
    for person in PEOPLE:
        await channels.add_device(person, PushSubscription(f"https://{person.user_id}", b"", b""), None, None)
        event = {
            "_id": {"s": user_stream(*person).name, "n": 1},
            "kind": NOTIFIED,
            "ref": round((now + timedelta(hours=1)).timestamp() * 1_000_000),
            "at": now,
        }
        await stores.mongo["events"].insert_one(event)
    await stores.mongo[SCANS].insert_one({"_id": SCAN_ID, "at": now - timedelta(hours=1)})
    assert await NotificationArrivals(stores.mongo, channels).sweep(0.0, 0.0) == len(PEOPLE)
    assert await stores.mongo[CHANNELS].count_documents({"due": {"$exists": True}}) == len(PEOPLE)
