"""Devices for pushes through the API: registered, renewed, taken over, limited and removed."""

import asyncio
from typing import Any

import pytest

from storage.notifications import channels
from tests.resolvers.operations import VALUES
from tests.resolvers.people import ChatScenario

pytestmark = pytest.mark.anyio

REGISTER = "mutation ($input: RegisterPushDeviceInput!) { done: registerPushDevice(input: $input) { id current } }"
REMOVE = "mutation ($id: ID!) { done: removePushDevice(id: $id) { id } }"
LIST = "{ done: pushDevices { id userAgent registeredAt expiresAt current } }"


def subscription(name: str = "a", **more: Any) -> dict[str, Any]:
    keys = {each: VALUES[each] for each in ("publicKey", "authSecret")}
    return {"endpoint": f"https://push.example.org/{name}", **keys, **more}


async def devices(person: Any) -> list[str]:
    return [each["id"] for each in await person.do(LIST)]


async def test_repeated_registration_is_one_device(chat: ChatScenario) -> None:
    registered = await asyncio.gather(*(chat.bob.do(REGISTER, input=subscription()) for _ in range(4)))
    assert len({each["id"] for each in registered}) == 1
    assert await devices(chat.bob) == [registered[0]["id"]]
    assert await devices(chat.ann) == []


async def test_browser_belongs_to_the_person_who_registered_last(chat: ChatScenario) -> None:
    await chat.ann.do(REGISTER, input=subscription())
    taken = await chat.bob.do(REGISTER, input=subscription())
    assert (await devices(chat.ann), await devices(chat.bob)) == ([], [taken["id"]])


async def test_excess_device_replaces_the_oldest(chat: ChatScenario, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channels, "MAX_DEVICES", 2)
    ids = [(await chat.bob.do(REGISTER, input=subscription(name)))["id"] for name in ("a", "b", "c")]
    assert await devices(chat.bob) == [ids[2], ids[1]]


async def test_only_the_owner_removes_a_device(chat: ChatScenario) -> None:
    device = (await chat.bob.do(REGISTER, input=subscription()))["id"]
    assert await chat.ann.code(REMOVE, id=device) == "NOT_FOUND"
    await chat.bob.do(REMOVE, id=device)
    assert await chat.bob.code(REMOVE, id=device) == "NOT_FOUND"
    assert await devices(chat.bob) == []


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("endpoint", "http://push.example.org/a"),
        ("endpoint", "https://"),
        ("endpoint", "https://user:secret@push.example.org/a"),
        ("endpoint", "https://push.example.org/" + "a" * 2000),
        ("endpoint", "https://[broken/"),
        ("publicKey", "short"),
        ("publicKey", "B" + "A" * 86),
        ("authSecret", "AAAA"),
        ("authSecret", "ü"),
    ],
)
async def test_invalid_subscription_is_refused(shared_chat: ChatScenario, field: str, value: str) -> None:
    refused = await shared_chat.bob.fails(REGISTER, input=subscription(**{field: value}))
    assert (refused["code"], refused["field"]) == ("BAD_USER_INPUT", field)


async def test_push_key_is_null_without_a_setting(chat: ChatScenario) -> None:
    assert (await chat.bob.do("{ done: pushKey }")) is None
