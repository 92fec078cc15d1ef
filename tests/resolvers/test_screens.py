"""The lists of the web client's screens take few round trips to MongoDB, however many items they have."""

import pytest

from storage.mongo import Driver
from tests.resolvers.people import SignIn
from tests.screens.data import ScreenSizes, fill_screens
from tests.screens.operations import SCREENS

pytestmark = pytest.mark.anyio

FEW, MANY = 3, 12
# Why some lists take more than three: docs/adr/0094-let-screens-take-a-trip-for-each-level.md.
MAX_ROUND_TRIPS = dict.fromkeys(SCREENS, 3) | {
    # The communities, their topics, the last messages and read marks, and the authors and unread counts.
    "sidebar: communities": 4,
    # The memberships, the threads, their messages and read marks, and the authors and unread counts.
    "sidebar: threads": 4,
    # The feed's items, their posts, the posts that these answer, and the authors.
    "home": 5,
}


def sizes(items: int) -> ScreenSizes:
    """Returns the same number of items for most lists, but notifications and posts of all kinds."""
    return ScreenSizes(items, items, items, items, 4 * items, items, items, 2 * items)


async def test_lists_take_few_round_trips(sign_in: SignIn, mongo_driver: Driver) -> None:
    if mongo_driver != "pymongo":
        pytest.skip("Only the connections of PyMongo's own driver are recorded.")
    few, many = [await fill_screens(sign_in, sizes(count), f"org{count}") for count in (FEW, MANY)]
    for screen, limit in MAX_ROUND_TRIPS.items():
        expected, actual = await few.round_trips(screen), await many.round_trips(screen)
        assert len(actual.trips) <= limit, f"{screen}: {actual.trips}"
        assert sorted(actual.commands) == sorted(expected.commands), screen
