"""Mutes: unique, limited and read in batches."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from storage.errors import BadUserInput, Conflict, NotFound
from storage.identity import mutes
from storage.identity.mutes import MUTES, HiddenSubjects, MuteSubject
from storage.identity.roles import Role
from storage.ids import UserKey
from storage.stores import Stores

pytestmark = pytest.mark.anyio


@pytest.fixture
async def ann(shared_stores: Stores, org: str) -> UserKey:
    """A user who exists."""
    await shared_stores.users.sign_in(org, "ann", [Role.MEMBER], None, None)
    return UserKey(org, "ann")


async def test_mutes_are_read_by_kind_and_person(shared_stores: Stores, ann: UserKey) -> None:
    store, bob = shared_stores.mutes, UserKey(ann.organization_id, "bob")
    await shared_stores.users.sign_in(*bob, [Role.MEMBER], None, None)
    for subject, id_ in zip(MuteSubject, "xyzp", strict=True):
        await store.mute(ann, subject, id_, None)
    await store.mute(bob, MuteSubject.USER, "ann", None)
    of_ann, of_bob, of_nobody = await asyncio.gather(
        store.muted_by(*ann), store.muted_by(*bob), store.muted_by(ann.organization_id, "an")
    )
    assert of_ann == HiddenSubjects(*(frozenset({id_}) for id_ in "xyzp"))
    assert of_bob == HiddenSubjects(users=frozenset({"ann"}))
    assert of_nobody == await store.muted_by(ann.organization_id + "x", "ann") == HiddenSubjects()


async def test_ended_mutes_hide_and_count_nothing(
    shared_stores: Stores, ann: UserKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The TTL index deletes an ended mute up to a minute later."""
    monkeypatch.setattr(mutes, "MAX_MUTES", 1)
    store, ended = shared_stores.mutes, datetime.now(UTC) - timedelta(days=1)
    await store.mute(ann, MuteSubject.USER, "bob", None)
    await shared_stores.mongo[MUTES].update_one({"_id.o": ann.organization_id}, {"$set": {"until": ended}})
    assert await store.muted_by(*ann) == HiddenSubjects()
    assert await store.list_mutes(ann, None, None, 10) == []
    await store.mute(ann, MuteSubject.USER, "eve", None)


async def test_concurrent_mutes_do_not_exceed_the_limit(
    shared_stores: Stores, ann: UserKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mutes, "MAX_MUTES", 3)
    store = shared_stores.mutes
    names = [f"u{number}" for number in range(6)]
    results = await asyncio.gather(
        *(store.mute(ann, MuteSubject.USER, name, None) for name in names), return_exceptions=True
    )
    assert sum(isinstance(each, Conflict) for each in results) == 3
    muted = await store.list_mutes(ann, None, None, 10)
    assert len(muted) == 3
    await store.mute(ann, MuteSubject.USER, muted[0].subject_id, datetime(2100, 1, 1, tzinfo=UTC))


async def test_concurrent_mutes_of_one_subject_store_one_mute(shared_stores: Stores, ann: UserKey) -> None:
    store = shared_stores.mutes
    await asyncio.gather(*(store.mute(ann, MuteSubject.USER, "bob", None) for _ in range(5)))
    assert [each.id for each in await store.list_mutes(ann, None, None, 10)] == ["USER:bob"]
    assert [await store.unmute(ann, MuteSubject.USER, "bob") for _ in range(2)] == [True, False]


async def test_mute_of_unknown_person_or_with_past_end_fails(shared_stores: Stores, ann: UserKey) -> None:
    with pytest.raises(NotFound):
        await shared_stores.mutes.mute(UserKey(ann.organization_id, "nobody"), MuteSubject.USER, "bob", None)
    with pytest.raises(BadUserInput):
        await shared_stores.mutes.mute(ann, MuteSubject.USER, "bob", await shared_stores.mongo.now())
    assert await shared_stores.mutes.list_mutes(ann, None, None, 10) == []
