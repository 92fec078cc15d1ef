"""jobEvents: each viewer receives the events of the jobs that they may see, in order, after the cursor."""

import pytest

from storage.chat.roles import Moderator
from storage.feed.changes import NewPost
from storage.feed.records import Post
from storage.identity.roles import Role
from storage.stores import Stores
from tests.resolvers.people import Person, SignIn, until_outbox_is_empty

pytestmark = pytest.mark.anyio

JOB_EVENTS = """
subscription ($job: ID, $since: Cursor) {
  jobEvents(jobId: $job, since: $since) {
    type: __typename
    ... on Event { cursor }
    ... on StreamReady { resumed }
    ... on FanOutChanged { fanOut { id postId state total delivered failed } }
  }
}
"""


async def post(person: Person) -> Post:
    assert person.user is not None
    new = NewPost(person.user.organization_id, person.id, "Lit", (), (), ())
    return await person.stores.posts.create(new)


async def test_author_receives_own_fan_out_events_only(sign_in: SignIn, stores: Stores) -> None:
    ann, bob = await sign_in("ann"), await sign_in("bob")
    async with ann.subscribed(JOB_EVENTS) as ann_subscription, bob.subscribed(JOB_EVENTS) as bob_subscription:
        posts = [await post(each) for each in (ann, bob, ann)]
        fan_outs = [(await ann_subscription.next_event())["fanOut"] for _ in range(2)]
        assert [each["postId"] for each in fan_outs] == [posts[0].id, posts[2].id]
        assert fan_outs[0] == {
            "id": f"FanOut:{posts[0].id}", "postId": posts[0].id,
            "state": "PENDING", "total": 0, "delivered": 0, "failed": 0,
        }  # fmt: skip
        assert (await bob_subscription.next_event())["fanOut"]["postId"] == posts[1].id


async def test_events_of_one_job_are_filtered_by_id(sign_in: SignIn, stores: Stores) -> None:
    ann = await sign_in("ann")
    first, second = await post(ann), await post(ann)
    await until_outbox_is_empty(stores)
    async with ann.subscribed(JOB_EVENTS, job=second.id) as events:
        for each in (first, second):
            await stores.posts.delete(each.key, Moderator("ann"))
        assert (await events.next_event())["fanOut"]["postId"] == second.id


async def test_cursor_continues_after_withheld_events(sign_in: SignIn, stores: Stores) -> None:
    ann, bob = await sign_in("ann"), await sign_in("bob")
    async with ann.subscribed(JOB_EVENTS) as events:
        await post(bob)
        first = await post(ann)
        event = await events.next_event()
        assert event["fanOut"]["postId"] == first.id
    second = await post(ann)
    async with ann.subscribed(JOB_EVENTS, since=event["cursor"]) as events:
        assert (await events.next_event())["fanOut"]["postId"] == second.id


async def test_unknown_job_is_not_found_and_post_of_others_forbidden(sign_in: SignIn) -> None:
    ann, bob, ann_elsewhere = await sign_in("ann"), await sign_in("bob"), await sign_in("ann", "globex")
    bobs_post = (await post(bob)).id
    for person, job, code in (
        (ann, "nothing", "NOT_FOUND"),
        (ann_elsewhere, bobs_post, "NOT_FOUND"),
        (ann, bobs_post, "FORBIDDEN"),
    ):
        async for answer in person.answers(JOB_EVENTS, job=job):
            assert [error["extensions"]["code"] for error in answer["errors"]] == [code]


async def test_call_events_are_withheld_from_members(sign_in: SignIn) -> None:
    operator, member = await sign_in("ann", roles=[Role.ADMIN]), await sign_in("bob")
    limits = {"concurrentCalls": 0, "callsPerSecond": 1}
    call_list = {"name": "Reminders", "scenario": "Hello", "csv": "phone_number\n+819012345678\n"}
    async with (
        operator.subscribed(JOB_EVENTS) as operator_subscription,
        member.subscribed(JOB_EVENTS) as member_subscription,
    ):
        await operator.do("mutation ($i: CallLimitsInput!) { done: setCallLimits(input: $i) { id } }", i=limits)
        await operator.do("mutation ($i: LaunchCallJobInput!) { done: launchCallJob(input: $i) { id } }", i=call_list)
        kinds = [(await operator_subscription.next_event())["type"] for _ in range(2)]
        assert kinds == ["CallLimitsChanged", "CallJobChanged"]
        own_post = await post(member)
        event = await member_subscription.next_event()
        assert (event["type"], event["fanOut"]["postId"]) == ("FanOutChanged", own_post.id)
