"""Scheduled posts through the API: targets, limits, time zones, revisions, the timeline and visibility."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.resolvers.people import Answer, ChatScenario, Person

pytestmark = pytest.mark.anyio

POST = """
fragment post on ScheduledPost {
  id timestamp text dueAt timeZone maxLatenessS state revision editable author { id } media { url altText kind }
  publications {
    id state mediaState lateness: latenessMs
    target { type: __typename ... on TopicTarget { topic { id } } ... on AccountTarget { account { id } }
             ... on HomeFeedTarget { author { id } } }
  }
}
"""
SCHEDULE = "mutation ($input: SchedulePostInput!) { done: schedulePost(input: $input) { ...post } }" + POST
SCHEDULE_LOCAL = (
    "mutation ($input: SchedulePostAtLocalTimeInput!) { done: schedulePostAtLocalTime(input: $input) { ...post } }"
    + POST
)
UPDATE = (
    "mutation ($id: ID!, $input: UpdateScheduledPostInput!) { done: updateScheduledPost(id: $id, input: $input) "
    "{ ...post } }" + POST
)
CANCEL = "mutation ($id: ID!) { done: cancelScheduledPost(id: $id) { ...post } }" + POST
GET = "query ($id: ID!) { done: scheduledPost(id: $id) { ...post } }" + POST
PAGE = (
    "query ($states: [ScheduledPostState!], $oldest: Timestamp, $latest: Timestamp, $limit: Int! = 50) { done: "
    "scheduledPosts(states: $states, oldest: $oldest, latest: $latest, limit: $limit) "
    "{ items { ...post } hasOlder hasNewer } }" + POST
)
DUE = "2030-01-01T00:00:00Z"
PNG = {"url": "https://example.org/a.png", "altText": "A hill"}


async def schedule(person: Person, **more: Any) -> Answer:
    return await person.do(SCHEDULE, input={"text": "hello", "toHomeFeed": True, "dueAt": DUE, **more})


async def refusal_of_input(person: Person, **more: Any) -> tuple[str, str]:
    extensions = await person.fails(SCHEDULE, input={"text": "hello", "toHomeFeed": True, "dueAt": DUE, **more})
    return extensions["code"], extensions.get("field", "")


async def connect_account(person: Person, network: str = "SANDBOX", credentials: str = "ok") -> str:
    connect = "mutation ($input: ConnectAccountInput!) { done: connectAccount(input: $input) { id } }"
    base_url = "https://mastodon.example" if network == "MASTODON" else None
    input_ = {"network": network, "name": network, "credentials": credentials, "baseUrl": base_url}
    return str((await person.do(connect, input=input_))["id"])


async def test_post_goes_to_several_targets(chat: ChatScenario, operator: Person) -> None:
    await operator.join(chat.community)
    sandbox = await connect_account(operator)
    post = await schedule(operator, toTopicIds=[chat.topic, chat.topic], toAccountIds=[sandbox])
    assert (post["state"], post["revision"], post["editable"]) == ("SCHEDULED", 1, True)
    assert [each["target"] for each in post["publications"]] == [
        {"type": "HomeFeedTarget", "author": {"id": "boss"}},
        {"type": "TopicTarget", "topic": {"id": chat.topic}},
        {"type": "AccountTarget", "account": {"id": sandbox}},
    ]
    assert (await operator.do(GET, id=post["id"])) == post
    assert post["timestamp"] == "1893456000.000000"
    assert post["dueAt"] == "2030-01-01T00:00:00.000Z"


async def test_post_beyond_limits_of_any_target_is_refused(chat: ChatScenario, operator: Person) -> None:
    await operator.join(chat.community)
    mastodon, instagram = (
        await connect_account(operator, "MASTODON", "t"),
        await connect_account(operator, "INSTAGRAM", "1:t"),
    )
    bad = "BAD_USER_INPUT"
    assert await refusal_of_input(operator, toHomeFeed=False) == (bad, "toHomeFeed")
    assert await refusal_of_input(operator, text="") == (bad, "text")
    assert await refusal_of_input(operator, text=" ", media=[PNG]) == (bad, "text")
    assert await refusal_of_input(operator, text="x" * 501, toAccountIds=[mastodon]) == (bad, "text")
    assert await refusal_of_input(operator, toAccountIds=[instagram]) == (bad, "media")
    assert await refusal_of_input(operator, media=[PNG], toTopicIds=[chat.topic]) == (bad, "media")
    assert await refusal_of_input(operator, media=[PNG] * 5, toHomeFeed=False, toAccountIds=[mastodon]) == (
        bad,
        "media",
    )
    assert await refusal_of_input(operator, media=[{"url": "file:///a"}]) == (bad, "url")
    assert await refusal_of_input(operator, timeZone="Tokyo") == (bad, "timeZone")
    assert await refusal_of_input(operator, maxLatenessS=0) == (bad, "maxLatenessS")
    assert await refusal_of_input(operator, dueAt="2020-01-01T00:00:00Z") == (bad, "dueAt")
    assert await refusal_of_input(operator, dueAt="2030-03-31T02:30:00+02:00", timeZone="Europe/Berlin") == (
        bad,
        "dueAt",
    )
    assert (await schedule(operator, text="", media=[PNG]))["media"] == [{**PNG, "kind": "IMAGE"}]


async def test_external_targets_need_operator(chat: ChatScenario, operator: Person) -> None:
    sandbox = await connect_account(operator)
    assert (await refusal_of_input(chat.ann, toAccountIds=[sandbox]))[0] == "FORBIDDEN"
    assert (await refusal_of_input(chat.eve, toTopicIds=[chat.topic]))[0] == "FORBIDDEN"
    assert (await refusal_of_input(chat.ann, toTopicIds=["none"]))[0] == "NOT_FOUND"
    assert (await schedule(chat.ann, toTopicIds=[chat.topic]))["state"] == "SCHEDULED"


async def test_repeated_key_schedules_once(chat: ChatScenario) -> None:
    posts = await asyncio.gather(*(schedule(chat.ann, idempotencyKey="k") for _ in range(3)))
    assert len({post["id"] for post in posts}) == 1
    assert (await refusal_of_input(chat.ann, idempotencyKey="k", text="other"))[0] == "CONFLICT"


async def test_repeated_key_with_another_offset_is_one_post(chat: ChatScenario) -> None:
    times = ("06-01T00:00:00Z", "06-01T09:00:00+09:00", "05-31T19:00:00-05:00", "06-01T00:00:00.000+00:00")
    posts = [await schedule(chat.ann, idempotencyKey="k", dueAt=f"2030-{each}") for each in times]
    assert len({post["id"] for post in posts}) == 1
    assert (await refusal_of_input(chat.ann, idempotencyKey="k", dueAt="2030-06-01T00:00:00+09:00"))[0] == "CONFLICT"


async def test_offset_that_contradicts_the_zone_moves_no_post(chat: ChatScenario) -> None:
    contradiction = {"dueAt": "2031-03-15T09:00:00-05:00", "timeZone": "America/New_York"}
    assert await refusal_of_input(chat.ann, **contradiction) == ("BAD_USER_INPUT", "dueAt")
    post = await schedule(chat.ann, dueAt="2031-03-15T09:00:00-04:00", timeZone="America/New_York")
    for due in ("2031-03-15T09:00:00-05:00", "2031-03-15T09:00:00+01:00"):
        refusal = await chat.ann.fails(UPDATE, id=post["id"], input={"dueAt": due})
        assert (refusal["code"], refusal["field"]) == ("BAD_USER_INPUT", "dueAt")
    assert (await chat.ann.do(GET, id=post["id"]))["dueAt"] == "2031-03-15T13:00:00.000Z"


async def test_local_time_is_scheduled_and_rescheduled(chat: ChatScenario) -> None:
    content = {"text": "hello", "toHomeFeed": True, "timeZone": "Africa/Casablanca", "idempotencyKey": "k"}
    posts = [
        await chat.ann.do(SCHEDULE_LOCAL, input={**content, "dueAtLocal": each})
        for each in ("2030-06-01T09:00", "2030-06-01T09:00:00")
    ]
    assert len({post["id"] for post in posts}) == 1
    assert (posts[0]["dueAt"], posts[0]["timeZone"]) == ("2030-06-01T08:00:00.000Z", "Africa/Casablanca")
    later = await chat.ann.do(UPDATE, id=posts[0]["id"], input={"dueAtLocal": "2030-06-02T10:00"})
    assert (later["dueAt"], later["timeZone"]) == ("2030-06-02T09:00:00.000Z", "Africa/Casablanca")
    moved = {"dueAtLocal": "2030-06-02T10:00", "timeZone": "Asia/Tokyo"}
    assert (await chat.ann.do(UPDATE, id=posts[0]["id"], input=moved))["dueAt"] == "2030-06-02T01:00:00.000Z"


async def test_skipped_and_repeated_local_times_are_refused(chat: ChatScenario) -> None:
    post = await schedule(chat.ann, timeZone="Europe/Dublin")
    for local in ("2030-03-31T01:30", "2030-10-27T01:30"):
        new = {"text": "hello", "toHomeFeed": True, "timeZone": "Europe/Dublin", "dueAtLocal": local}
        refusals = [
            await chat.ann.fails(SCHEDULE_LOCAL, input=new),
            await chat.ann.fails(UPDATE, id=post["id"], input={"dueAtLocal": local}),
        ]
        assert {(each["code"], each["field"]) for each in refusals} == {("BAD_USER_INPUT", "dueAtLocal")}


async def test_update_with_two_due_times_is_refused(chat: ChatScenario) -> None:
    post = await schedule(chat.ann)
    both = {"dueAt": DUE, "dueAtLocal": "2030-01-01T00:00"}
    refusal = await chat.ann.fails(UPDATE, id=post["id"], input=both)
    assert (refusal["code"], refusal["field"]) == ("BAD_USER_INPUT", "dueAtLocal")


async def test_update_changes_only_named_fields(chat: ChatScenario) -> None:
    post = await schedule(chat.ann, toTopicIds=[chat.topic])
    changed = await chat.ann.do(UPDATE, id=post["id"], input={"text": "edited", "toHomeFeed": False})
    assert (changed["text"], changed["revision"], changed["dueAt"]) == ("edited", 2, post["dueAt"])
    assert [each["id"] for each in changed["publications"]] == [post["publications"][1]["id"]]
    rescheduled = await chat.ann.do(
        UPDATE, id=post["id"], input={"dueAt": "2030-06-01T09:00:00+09:00", "timeZone": "Asia/Tokyo", "revision": 2}
    )
    assert (rescheduled["dueAt"], rescheduled["timeZone"], rescheduled["revision"]) == (
        "2030-06-01T00:00:00.000Z",
        "Asia/Tokyo",
        3,
    )
    assert await chat.ann.code(UPDATE, id=post["id"], input={"text": "x", "revision": 2}) == "CONFLICT"
    assert await chat.ann.code(UPDATE, id=post["id"], input={"toTopicIds": []}) == "BAD_USER_INPUT"
    assert await chat.ann.code(UPDATE, id=post["id"], input={"media": [PNG]}) == "BAD_USER_INPUT"


async def test_concurrent_updates_without_revision_all_apply(chat: ChatScenario) -> None:
    post = await schedule(chat.ann)
    edits = [{"text": "a"}, {"timeZone": "Asia/Tokyo"}, {"maxLatenessS": 60}]
    await asyncio.gather(*(chat.ann.do(UPDATE, id=post["id"], input=edit) for edit in edits))
    updated = await chat.ann.do(GET, id=post["id"])
    assert (updated["text"], updated["timeZone"], updated["maxLatenessS"], updated["revision"]) == (
        "a",
        "Asia/Tokyo",
        60,
        4,
    )


async def test_cancelled_post_is_final(chat: ChatScenario) -> None:
    post = await schedule(chat.ann)
    cancelled = await chat.ann.do(CANCEL, id=post["id"])
    assert (cancelled["state"], cancelled["editable"]) == ("CANCELLED", False)
    assert await chat.ann.code(CANCEL, id=post["id"]) == "CONFLICT"
    assert await chat.ann.code(UPDATE, id=post["id"], input={"text": "x"}) == "CONFLICT"


async def test_authors_see_own_posts_and_operators_all(chat: ChatScenario, operator: Person) -> None:
    post_of_ann, post_of_bob = await schedule(chat.ann), await schedule(chat.bob)
    pages = {person.id: await person.do(PAGE, latest="now") for person in (chat.ann, chat.bob, chat.eve, operator)}
    ids = {name: [item["id"] for item in page["items"]] for name, page in pages.items()}
    assert ids == {
        "ann": [post_of_ann["id"]],
        "bob": [post_of_bob["id"]],
        "eve": [],
        "boss": [post_of_bob["id"], post_of_ann["id"]],
    }
    assert await chat.bob.code(GET, id=post_of_ann["id"]) == "FORBIDDEN"
    assert await chat.bob.code(CANCEL, id=post_of_ann["id"]) == "FORBIDDEN"
    assert await operator.code(UPDATE, id=post_of_ann["id"], input={"text": "not mine"}) == "FORBIDDEN"
    assert (await operator.do(CANCEL, id=post_of_ann["id"]))["state"] == "CANCELLED"


async def test_timeline_is_by_due_time_and_filtered_by_state(chat: ChatScenario) -> None:
    due_times = [f"2030-01-0{day}T00:00:00Z" for day in (3, 1, 2)]
    posts = [await schedule(chat.ann, dueAt=due) for due in due_times]
    await chat.ann.do(CANCEL, id=posts[1]["id"])
    newest = await chat.ann.do(PAGE, latest="now", limit=2)
    assert [item["id"] for item in newest["items"]] == [posts[0]["id"], posts[2]["id"]]
    assert (newest["hasOlder"], newest["hasNewer"]) == (True, False)
    first = await chat.ann.do(PAGE, oldest="0000000000.000000", limit=1, states=["SCHEDULED"])
    assert [item["id"] for item in first["items"]] == [posts[2]["id"]]
    assert (first["hasOlder"], first["hasNewer"]) == (False, True), (
        "Posts in other states do not count as older or newer."
    )
    cancelled = await chat.ann.do(PAGE, latest="now", states=["CANCELLED", "FAILED"])
    assert [item["id"] for item in cancelled["items"]] == [posts[1]["id"]]
    assert await chat.ann.code(PAGE) == "BAD_USER_INPUT"


async def test_post_due_soon_wakes_worker(chat: ChatScenario) -> None:
    soon = (datetime.now(UTC) + timedelta(seconds=2)).isoformat()
    post = await schedule(chat.ann, dueAt=soon)
    queue = chat.ann.stores.keys.queue("publishing")
    queued_jobs = await chat.ann.stores.redis.zrange(queue, 0, -1)
    assert any(post["id"] in name.decode() for name in queued_jobs)
    later_post = await schedule(chat.ann)
    assert not any(later_post["id"] in name.decode() for name in await chat.ann.stores.redis.zrange(queue, 0, -1))
