"""Rights in a community, at the moment of the commit: the check of the request came before."""

from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

from storage.chat.roles import Moderator
from storage.errors import Forbidden, NotFound
from storage.feed.changes import NewPost
from storage.feed.follows import FollowPair
from storage.identity.records import User, user_document_id
from storage.mongo import Document
from tests.storage.topic_scenario import TopicScenario

pytestmark = pytest.mark.anyio

ANN = Moderator("ann")
Restrict = Callable[[TopicScenario, User], Awaitable[object]]


async def join(scenario: TopicScenario, name: str) -> User:
    user = await scenario.stores.users.sign_in(scenario.organization_id, name, (), None, None)
    await scenario.stores.communities.join(scenario.community, user)
    return user


async def mute(scenario: TopicScenario, user: User) -> None:
    until = await scenario.stores.mongo.now() + timedelta(hours=1)
    await scenario.stores.moderation.mute(scenario.community, ANN, user.id, until)


async def ban(scenario: TopicScenario, user: User) -> None:
    await scenario.stores.moderation.ban_member(scenario.community, ANN, user.id, None, "spam")


async def kick(scenario: TopicScenario, user: User) -> None:
    await scenario.stores.moderation.kick(scenario.community, ANN, user.id)


async def leave(scenario: TopicScenario, user: User) -> None:
    await scenario.stores.communities.leave(scenario.community, user.id)


async def deactivate(scenario: TopicScenario, user: User) -> None:
    key, now = user_document_id(*user.key), await scenario.stores.mongo.now()
    await scenario.stores.mongo["users"].update_one({"_id": key}, {"$set": {"deactivated_at": now}})


async def archive(scenario: TopicScenario, user: User) -> None:
    await scenario.stores.moderation.set_archived(scenario.community, ANN, True)


@pytest.mark.parametrize("restrict", [mute, ban, kick, leave, deactivate, archive])
async def test_restricted_person_starts_no_topic(scenario: TopicScenario, restrict: Restrict) -> None:
    bob, topics = await join(scenario, "bob"), scenario.stores.topics
    await topics.create(scenario.community, bob.id, "Before", None)
    await restrict(scenario, bob)
    with pytest.raises(Forbidden):
        await topics.create(scenario.community, bob.id, "After", None)
    query: Document = {"community": scenario.community.id, "title": "After"}
    assert await scenario.stores.mongo["topics"].count_documents(query) == 0


async def test_former_member_follows_no_thread(scenario: TopicScenario) -> None:
    bob, threads = await join(scenario, "bob"), scenario.stores.threads
    message = await scenario.post()
    thread = await threads.open(scenario.organization_id, message.key, "ann")
    await leave(scenario, bob)
    with pytest.raises(Forbidden):
        await threads.follow(thread.id, bob.id)
    assert await threads.followed_among([thread.id], bob.id) == set()


async def test_deactivated_person_changes_nothing(scenario: TopicScenario) -> None:
    bob, stores, organization_id = await join(scenario, "bob"), scenario.stores, scenario.organization_id
    message, other = await scenario.post(author="bob"), await scenario.post()
    cyd = await stores.users.sign_in(organization_id, "cyd", (), None, None)
    post = await stores.posts.create(NewPost(organization_id, "ann", "hello", (), (), ()))
    own_post = await stores.posts.create(NewPost(organization_id, "bob", "hello", (), (), ()))
    await deactivate(scenario, bob)
    before = await stored(scenario)
    for write in (
        scenario.post("after", "bob"),
        stores.messages.edit(message.key, "bob", "after", ()),
        stores.messages.delete(message.key, Moderator("bob")),
        stores.messages.add_reaction(organization_id, other.key, "bob", "👍"),
        stores.messages.remove_reaction(organization_id, other.key, "bob", "👍"),
        stores.threads.open(organization_id, other.key, "bob"),
        stores.conversations.start(bob, [cyd], "", None),
        stores.posts.create(NewPost(organization_id, "bob", "after", (), (), ())),
        stores.posts.delete(own_post.key, Moderator("bob")),
        stores.post_reactions.add(post, "bob", "👍"),
        stores.follows.follow(FollowPair(organization_id, "bob", "ann")),
        stores.communities.join(scenario.community, bob),
    ):
        with pytest.raises(Forbidden, match="deactivated"):
            await write
    assert await stored(scenario) == before


async def test_person_who_is_being_erased_is_found_by_nobody(scenario: TopicScenario) -> None:
    stores, organization_id = scenario.stores, scenario.organization_id
    cyd = await stores.users.sign_in(organization_id, "cyd", (), None, None)
    ann = await stores.users.get(organization_id, "ann")
    key, now = user_document_id(*cyd.key), await stores.mongo.now()
    await stores.mongo["users"].update_one({"_id": key}, {"$set": {"erasing_at": now, "deactivated_at": now}})
    before = await stored(scenario)
    for write in (
        stores.follows.follow(FollowPair(organization_id, "ann", "cyd")),
        stores.conversations.start(ann, [cyd], "", None),
        stores.moderation.add_member(scenario.community, ANN, cyd),
    ):
        with pytest.raises(NotFound):
            await write
    assert await stored(scenario) == before


async def stored(scenario: TopicScenario) -> dict[str, list[Document]]:
    """Returns the documents of the collections that people's changes write."""
    names = ("messages", "reactions", "posts", "post_reactions", "follows", "memberships")
    return {name: await scenario.stores.mongo[name].find().sort("_id").to_list(None) for name in names}
