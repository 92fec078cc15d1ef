"""Ids in tokens may look like expressions of MongoDB's update pipelines. They are stored as they are."""

import pytest

from storage.identity.audit import Actor
from storage.identity.roles import Role
from storage.mail.book import AddressBook
from storage.stores import Stores
from tests.keys import ADDRESS_KEYS

pytestmark = pytest.mark.anyio

EXPRESSION = "$_id"


async def test_erasure_keeps_who_requested_it(stores: Stores) -> None:
    user = await stores.users.sign_in(EXPRESSION, EXPRESSION, [Role.MEMBER], "Ann", None)
    erasure = await stores.erasures.request(Actor(EXPRESSION, EXPRESSION), EXPRESSION, user.handle)
    assert erasure.requested_by_id == EXPRESSION


async def test_difference_between_books_keeps_its_organization(stores: Stores) -> None:
    book = AddressBook(stores.mongo, ADDRESS_KEYS)
    standings = await book.look_up(EXPRESSION, ["ann@example.org"])
    await book.record_differences(EXPRESSION, standings, {"ann@example.org": True})
    assert [each["org"] async for each in stores.mongo["mail_differences"].find()] == [EXPRESSION]
