"""The list of users whose access was changed: how long a user is on it."""

from datetime import timedelta

import pytest

from storage.identity.access_changes import OVERLAP
from storage.identity.audit import Actor
from storage.ids import UserKey
from storage.stores import Stores

pytestmark = pytest.mark.anyio


async def test_deactivated_user_is_listed_for_the_overlap(shared_stores: Stores, admin: Actor) -> None:
    changes, key = shared_stores.access_changes, UserKey(admin.organization_id, "ann")
    began_at = await shared_stores.clock.now()
    assert key not in await changes.users_since(began_at)
    await shared_stores.user_administration.deactivate(admin, "ann", "left")
    assert key in await changes.users_since(began_at)
    assert key in await changes.users_since(began_at + OVERLAP)
    assert key not in await changes.users_since(began_at + OVERLAP + timedelta(minutes=5))
