"""The check of stored numbers on a real server: which are read, in which order, over several pages."""

import pytest

from storage.calls import number_check
from storage.calls.number_check import NumberCheck
from storage.stores import Stores
from tests.storage.calls.stored_calls import ended_job, queued_task, stored_job

pytestmark = pytest.mark.anyio


async def test_waiting_and_listed_numbers_are_read_in_order(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(number_check, "PAGE", 2)
    await stores.do_not_call.add("acme", [f"+8190123456{n}" for n in (72, 70, 71, 74, 73)])
    await stores.do_not_call.add("acme2", ["+819012345600"])
    mongo = stores.mongo
    jobs = [stored_job(_id="new", org="acme", ts=9), stored_job(_id="old", org="acme", ts=3, state="PAUSED")]
    jobs += [stored_job(_id="other", org="globex", ts=4), ended_job("CANCELLED") | {"_id": "ended", "org": "acme"}]
    await mongo["call_jobs"].insert_many(jobs)
    rows = [(job, row) for job in ("new", "old", "other", "ended") for row in (2, 4, 9)]
    tasks = [queued_task(_id={"j": job, "r": row}, phone=f"+{job}{row}") for job, row in rows]
    tasks.append(queued_task(_id={"j": "old", "r": 5}, state="COMPLETED"))
    await mongo["call_tasks"].insert_many(tasks)

    read = [number async for number in NumberCheck(mongo).numbers("acme")]

    assert [number.phone_number for number in read[:5]] == [f"+8190123456{n}" for n in (70, 71, 72, 73, 74)]
    assert not any(number.is_doubtful for number in read[:5])
    waiting = [(number.job["_id"], number.row) for number in read[5:] if number.job is not None]
    assert waiting == [("old", 2), ("old", 4), ("old", 9), ("new", 2), ("new", 4), ("new", 9)]
