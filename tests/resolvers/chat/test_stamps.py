"""The catalogue of stamps, and messages with stamps."""

import pytest

from storage.chat.stamps import STAMPS
from tests.resolvers.people import ChatScenario

pytestmark = pytest.mark.anyio

LIST = "{ stamps { id name imageUrl } }"


async def test_stamps_are_listed_with_their_pictures(chat: ChatScenario) -> None:
    listed = (await chat.ann.run(LIST))["stamps"]
    assert listed == [{"id": each.id, "name": each.name, "imageUrl": each.image_url} for each in STAMPS]
    assert len({stamp["id"] for stamp in listed}) == len(listed) > 0
    assert all(stamp["imageUrl"].startswith("/stamps/") for stamp in listed)


async def test_every_stamp_can_be_posted(chat: ChatScenario) -> None:
    query = """
    mutation ($input: PostMessageInput!) { postMessage(input: $input) { stamp { id name imageUrl } } }
    """
    for stamp in (await chat.ann.run(LIST))["stamps"]:
        posted = await chat.ann.run(query, input={"topicId": chat.topic, "stampId": stamp["id"]})
        assert posted["postMessage"]["stamp"] == stamp
