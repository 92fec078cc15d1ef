"""Held posts through the API: deactivation holds them, and an ADMIN lists and releases them."""

import pytest

from storage.identity.roles import Role
from tests.resolvers.people import ChatScenario, SignIn

pytestmark = pytest.mark.anyio

SCHEDULE = "mutation ($input: SchedulePostInput!) { done: schedulePost(input: $input) { id } }"
DEACTIVATE = 'mutation { deactivateUser(userId: "bob", reason: "left") { id } }'
HELD = "{ heldScheduledPosts { id heldSince author { id } state } }"
RELEASE = """
mutation ($id: ID!, $user: ID!, $due: DateTime, $local: LocalDateTime) {
  done: releaseScheduledPost(heldPostId: $id, responsibleUserId: $user, dueAt: $due, dueAtLocal: $local) {
    heldSince dueAt author { id }
  }
}
"""


async def test_posts_of_deactivated_person_wait_for_an_admin(chat: ChatScenario, sign_in: SignIn) -> None:
    ada = await sign_in("ada", roles=[Role.ADMIN])
    due = {"dueAt": "2030-01-01T00:00:00Z", "timeZone": "UTC"}
    post = (await chat.bob.do(SCHEDULE, input={"text": "hi", "toTopicIds": [chat.topic], **due}))["id"]
    assert await ada.code(RELEASE, id=post, user="ann") == "CONFLICT"
    await ada.run(DEACTIVATE)
    (held,) = (await ada.run(HELD))["heldScheduledPosts"]
    assert held["heldSince"]
    assert (held["id"], held["author"], held["state"]) == (post, {"id": "bob"}, "SCHEDULED")
    assert (await ada.fails(RELEASE, id=post, user="eve"))["field"] == "responsibleUserId"
    assert (await ada.fails(RELEASE, id=post, user="bob"))["field"] == "responsibleUserId"
    assert await ada.code(RELEASE, id=post, user="nobody") == "NOT_FOUND"
    released = await ada.do(RELEASE, id=post, user="ann", due="2030-01-02T00:00:00Z")
    assert released == {"heldSince": None, "dueAt": "2030-01-02T00:00:00.000Z", "author": {"id": "ann"}}
    assert (await ada.run(HELD))["heldScheduledPosts"] == []


async def test_held_post_is_released_for_a_local_time(chat: ChatScenario, sign_in: SignIn) -> None:
    ada = await sign_in("ada", roles=[Role.ADMIN])
    due = {"dueAt": "2030-01-01T00:00:00+09:00", "timeZone": "Asia/Tokyo"}
    post = (await chat.bob.do(SCHEDULE, input={"text": "hi", "toTopicIds": [chat.topic], **due}))["id"]
    await ada.run(DEACTIVATE)
    new_time = {"id": post, "user": "ann", "local": "2030-01-02T09:00"}
    assert (await ada.fails(RELEASE, **new_time, due="2030-01-02T00:00:00Z"))["field"] == "dueAtLocal"
    assert (await ada.fails(RELEASE, id=post, user="ann", due="2030-01-02T00:00:00+01:00"))["field"] == "dueAt"
    assert (await ada.do(RELEASE, **new_time))["dueAt"] == "2030-01-02T00:00:00.000Z"


async def test_only_administrators_list_and_release_held_posts(chat: ChatScenario, sign_in: SignIn) -> None:
    for role in (Role.MEMBER, Role.OPERATOR, Role.SERVICE):
        other = await sign_in(f"user-{role.value}", roles=[role])
        assert await other.code(HELD) == "FORBIDDEN"
        assert await other.code(RELEASE, id="x", user="ann") == "FORBIDDEN"
