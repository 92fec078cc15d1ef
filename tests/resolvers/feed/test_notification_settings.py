"""The settings of offline notifications through the API: changes, refused values, and places that become hidden."""

from typing import Any

import pytest

from tests.resolvers.people import ChatScenario

pytestmark = pytest.mark.anyio

FIELDS = """
{ ways { category push mail } levels { kind placeId level topic { id } community { id } }
  quietHours { start end timeZone } digest language }
"""
READ = "{ done: notificationSettings " + FIELDS + "}"
CHANGE = "mutation ($input: NotificationSettingsInput!) { done: setNotificationSettings(input: $input)" + FIELDS + "}"
TOPIC = (
    "mutation ($id: ID!, $level: NotificationLevel) { done: setTopicNotifications(topicId: $id, level: $level)"
    + FIELDS
    + "}"
)
COMMUNITY = TOPIC.replace("setTopicNotifications(topicId", "setCommunityNotifications(communityId")
NIGHT = {"start": "22:00", "end": "07:00", "timeZone": "Asia/Tokyo"}


async def test_changes_leave_other_settings_unchanged(chat: ChatScenario) -> None:
    before = await chat.bob.do(READ)
    assert (before["digest"], before["language"], before["quietHours"], before["levels"]) == ("NEVER", "EN", None, [])
    change = {"ways": [{"category": "FOLLOW", "push": True, "mail": False}], "quietHours": NIGHT, "digest": "DAILY"}
    await chat.bob.do(CHANGE, input=change)
    after = await chat.bob.do(CHANGE, input={"language": "JA"})
    assert after == await chat.bob.do(READ)
    assert (after["digest"], after["language"], after["quietHours"]) == ("DAILY", "JA", NIGHT)
    changed = [each for each in after["ways"] if each not in before["ways"]]
    assert changed == [{"category": "FOLLOW", "push": True, "mail": False}]
    assert (await chat.bob.do(CHANGE, input={"quietHours": None}))["quietHours"] is None
    assert await chat.ann.do(READ) == before


@pytest.mark.parametrize(
    ("input_", "field"),
    [
        ({"quietHours": {**NIGHT, "start": "24:00"}}, "start"),
        ({"quietHours": {**NIGHT, "end": "7:00"}}, "end"),
        ({"quietHours": {**NIGHT, "end": "22:00"}}, "end"),
        ({"quietHours": {**NIGHT, "timeZone": "Mars/Olympus"}}, "timeZone"),
        ({"ways": [{"category": "FOLLOW", "push": True, "mail": False}] * 2}, "ways"),
    ],
)
async def test_invalid_settings_are_refused(chat: ChatScenario, input_: dict[str, Any], field: str) -> None:
    refused = await chat.bob.fails(CHANGE, input=input_)
    assert (refused["code"], refused["field"]) == ("BAD_USER_INPUT", field)


async def test_levels_are_set_shown_and_removed(chat: ChatScenario) -> None:
    await chat.bob.do(COMMUNITY, id=chat.community, level="NOTHING")
    chosen = await chat.bob.do(TOPIC, id=chat.topic, level="MENTIONS")
    community, topic = chosen["levels"]
    assert (community["level"], community["community"], community["topic"]) == ("NOTHING", {"id": chat.community}, None)
    assert (topic["level"], topic["topic"], topic["kind"]) == ("MENTIONS", {"id": chat.topic}, "TOPIC")
    assert [each["kind"] for each in (await chat.bob.do(TOPIC, id=chat.topic))["levels"]] == ["COMMUNITY"]


async def test_level_of_a_hidden_place_can_only_be_removed(chat: ChatScenario) -> None:
    private = await chat.ann.create_community("Cave", visibility="PRIVATE")
    topic = await chat.ann.create_topic(private)
    add = "mutation ($c: ID!, $u: ID!) { addMember(communityId: $c, userId: $u) { role } }"
    await chat.ann.run(add, c=private, u=chat.bob.id)
    await chat.bob.do(TOPIC, id=topic, level="NOTHING")
    await chat.bob.leave(private)
    (level,) = (await chat.bob.do(READ))["levels"]
    assert (level["placeId"], level["topic"], level["community"]) == (topic, None, None)
    assert await chat.bob.code(TOPIC, id=topic, level="ALL") == "NOT_FOUND"
    assert (await chat.bob.do(TOPIC, id=topic))["levels"] == []
    for operation, id_ in ((TOPIC, topic), (COMMUNITY, private), (TOPIC, "unknown")):
        assert await chat.bob.code(operation, id=id_) == "NOT_FOUND"
