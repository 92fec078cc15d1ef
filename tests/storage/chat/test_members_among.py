"""Who of many belongs to a community: as looked up one by one, and for more users than one read takes."""

import pytest

from storage.batch_loader import MAX_KEYS
from tests.storage.places import Place

pytestmark = pytest.mark.anyio


async def test_of_many_users_those_are_found_who_belong_to_this_community(place: Place) -> None:
    community, users = place.community.id, [f"user{number}" for number in range(2 * MAX_KEYS + 5)]
    joined = {*users[::7], users[0], users[-1]}
    common = {"org": place.community.organization_id}
    rows = [{**common, "community": community, "user": id_, "handle": id_} for id_ in joined]
    elsewhere = [{**common, "community": "another", "user": id_, "handle": id_} for id_ in users]
    await place.stores.mongo["memberships"].insert_many([*rows, *elsewhere])
    assert await place.stores.communities.members_among(community, set(users)) == joined


@pytest.mark.parametrize("asked", [[], ["ann"], ["bob"], ["ann", "bob"]])
async def test_few_are_looked_up_as_well(place: Place, asked: list[str]) -> None:
    assert await place.stores.communities.members_among(place.community.id, asked) == {"ann"} & set(asked)
