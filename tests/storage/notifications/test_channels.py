"""Claims on channels: those of a dead worker are released, and others are not."""

from collections.abc import Sequence

import pytest

from storage.ids import UserKey
from storage.notifications.channels import ClaimedChannel, NewNotifications, NotificationChannels, PushSubscription
from storage.notifications.settings import NotificationWay
from storage.stores import Stores

pytestmark = pytest.mark.anyio

PEOPLE = [UserKey("org", name) for name in ("ann", "bob", "eve")]


async def add_due_devices(channels: NotificationChannels) -> None:
    """Adds a device of each person, with a notification to send."""
    for person in PEOPLE:
        await channels.add_device(person, PushSubscription(f"https://{person.user_id}", b"", b""), None, None)
    at = 2_000_000_000_000_000
    assert await channels.mark({person: NewNotifications(at, frozenset()) for person in PEOPLE}, 0) == len(PEOPLE)


async def test_channels_of_dead_worker_are_claimed_at_once(stores: Stores) -> None:
    channels, dead = stores.notification_channels, NotificationChannels(stores.mongo, "dead")
    await add_due_devices(channels)

    async def claim(by: NotificationChannels, limit: int) -> Sequence[ClaimedChannel]:
        return await by.claim(NotificationWay.PUSH, limit)

    lost, failed = await claim(dead, 2)
    (kept,) = await claim(channels, 2)
    # The next try of the second channel is planned, and no claim holds it.
    assert await dead.postpone(failed, None, retry_s=30)
    assert await channels.release_of("dead") == 1
    (again,) = await claim(channels, 3)
    assert (again.id, again.sending_id) == (lost.id, lost.sending_id)
    assert not await dead.finish(lost, 0)
    assert await channels.finish(again, 0)
    assert await channels.finish(kept, 0)
    assert await channels.release_of("dead") == 0
