"""Search of people in the store: the pages of a community are complete although some members are being erased."""

import pytest

from storage.identity.audit import Actor
from storage.identity.people_search import PeopleQuery
from storage.stores import Stores
from tests.resolvers.people import Person, SignIn

pytestmark = pytest.mark.anyio


async def test_page_of_a_community_is_filled_past_erased_people(stores: Stores) -> None:
    sign_in = SignIn(stores)
    ann = await sign_in("ann")
    community = await ann.create_community()
    people: list[Person] = [await sign_in(f"zoe{number}") for number in range(6)]
    for person in people:
        await person.join(community)
    for number in (0, 1, 3):
        actor = Actor("acme", "ann", is_command_line=True)
        await ann.stores.erasures.request(actor, f"zoe{number}", f"zoe{number}")
    search = ann.stores.people_search
    page = await search.page("acme", PeopleQuery(["zoe"], community), None, 2)
    assert [match.user.id for match in page] == ["zoe2", "zoe4"]
    rest = await search.page("acme", PeopleQuery(["zoe"], community), "zoe4", 2)
    assert [match.user.id for match in rest] == ["zoe5"]
