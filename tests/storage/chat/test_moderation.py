"""Acts of moderators against concurrent posts and joins. The order of commits is read from MongoDB's change stream."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from storage.chat.records import Community, CommunityVisibility, Message
from storage.chat.roles import CommunityRole, Moderator
from storage.errors import BadUserInput, Conflict, Forbidden, NotFound
from storage.identity.audit import AuditFilter
from storage.identity.roles import Role
from storage.stores import Stores
from storage.streams.changes import Batch
from storage.streams.sequencer import Sequencer
from tests.storage.topic_scenario import OpenStores, TopicScenario
from tests.unclosed_sockets import may_leave_sockets

pytestmark = pytest.mark.anyio

ANN = Moderator("ann")
RecordedCommits = list[tuple[str, str]]
"""Kind of the commit ("post" or "ban") and id of the person, in the order of commits."""


async def join(scenario: TopicScenario, *names: str) -> None:
    for name in names:
        user = await scenario.stores.users.sign_in(scenario.organization_id, name, (), None, None)
        await scenario.stores.communities.join(scenario.community, user)


@asynccontextmanager
async def recorded_commits(scenario: TopicScenario) -> AsyncIterator[RecordedCommits]:
    """Records posts and bans of the scenario in the order in which MongoDB committed them, until the block ends."""
    commits: RecordedCommits = []
    async with await scenario.stores.mongo.database.watch(full_document="updateLookup") as stream:

        async def record() -> None:
            async for change in stream:
                if change["ns"]["coll"] == "messages" and change["documentKey"]["_id"]["t"] == scenario.topic.id:
                    commits.append(("post", change["fullDocument"]["author"]))
                elif change["ns"]["coll"] == "community_restrictions" and "ban" in (change["fullDocument"] or {}):
                    commits.append(("ban", change["documentKey"]["_id"]["u"]))

        task = asyncio.create_task(record())
        yield commits
        await scenario.post("the last commit", "nobody")
        while ("post", "nobody") not in commits:
            assert not task.done()
            await asyncio.sleep(0.01)
        task.cancel()


async def post_until_refused(scenario: TopicScenario, author: str) -> None:
    while True:
        try:
            await scenario.post("spam", author)
        except Forbidden:
            return


@may_leave_sockets
async def test_no_post_is_committed_after_a_ban(scenario: TopicScenario, open_process: OpenStores) -> None:
    await join(scenario, "bob")
    async with open_process() as other, recorded_commits(scenario) as commits:
        posters = [scenario.with_stores([scenario.stores, other][number % 2]) for number in range(20)]
        posts = [asyncio.create_task(post_until_refused(each, "bob")) for each in posters]
        while len(commits) < 30:
            await asyncio.sleep(0.01)
        await other.moderation.ban_member(scenario.community, ANN, "bob", None, "spam")
        await asyncio.gather(*posts)
    ban = commits.index(("ban", "bob"))
    assert ban > 29
    assert ("post", "bob") not in commits[ban:]


def slow_down_first_post(scenario: TopicScenario, monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Delays the commit of the scenario's next post by a second. Returns the event that its reads are done."""
    has_read = asyncio.Event()
    store = Sequencer._store

    async def slow_store(sequencer: Sequencer, batch: Batch, session: Any) -> None:
        if sequencer is scenario.stores.sequencer and batch.stream == scenario.stream and not has_read.is_set():
            has_read.set()
            await asyncio.sleep(1)
        await store(sequencer, batch, session)

    monkeypatch.setattr(Sequencer, "_store", slow_store)
    return has_read


async def test_archive_waits_for_a_slow_post_that_did_not_see_it(
    scenario: TopicScenario, open_process: OpenStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    has_read = slow_down_first_post(scenario, monkeypatch)
    async with open_process() as other:
        post = asyncio.create_task(scenario.post("slow"))
        await has_read.wait()
        await other.moderation.set_archived(scenario.community, ANN, True)
        is_stored = await other.mongo["messages"].count_documents({"text": "slow"}) == 1
        (outcome,) = await asyncio.gather(post, return_exceptions=True)
    assert isinstance(outcome, Message | Forbidden), repr(outcome)
    assert is_stored is isinstance(outcome, Message)


@may_leave_sockets
async def test_ban_waits_for_a_slow_post_that_did_not_see_it(
    scenario: TopicScenario, open_process: OpenStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The post's transaction has read that its author is not banned, and is committed a second later."""
    await join(scenario, "bob")
    has_read = slow_down_first_post(scenario, monkeypatch)
    async with open_process() as other, recorded_commits(scenario) as commits:
        post = asyncio.create_task(scenario.post("slow", "bob"))
        await has_read.wait()
        await other.moderation.ban_member(scenario.community, ANN, "bob", None, "spam")
        (outcome,) = await asyncio.gather(post, return_exceptions=True)
    assert isinstance(outcome, Message | Forbidden), repr(outcome)
    assert (("post", "bob") in commits) is isinstance(outcome, Message)
    bans = [index for index, commit in enumerate(commits) if commit == ("ban", "bob")]
    assert len(bans) == 1
    assert ("post", "bob") not in commits[bans[0] :]


async def test_demotion_waits_for_a_slow_act_that_did_not_see_it(
    scenario: TopicScenario, open_process: OpenStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The transaction of the act has read that its actor is a moderator, and is committed a second later."""
    await join(scenario, "bob")
    await scenario.stores.moderation.set_role(scenario.community, ANN, "bob", CommunityRole.MODERATOR)
    has_read = slow_down_first_post(scenario, monkeypatch)
    async with open_process() as other:
        act = asyncio.create_task(scenario.stores.topics.rename(scenario.topic, "Slow", Moderator("bob")))
        await has_read.wait()
        await other.moderation.set_role(scenario.community, ANN, "bob", CommunityRole.MEMBER)
        title = (await other.topics.get(scenario.organization_id, scenario.topic.id)).title
        (outcome,) = await asyncio.gather(act, return_exceptions=True)
    assert outcome is None or isinstance(outcome, Forbidden), repr(outcome)
    assert (title == "Slow") is (outcome is None)
    assert (await scenario.stores.topics.get(scenario.organization_id, scenario.topic.id)).title == title


async def test_admitted_request_of_a_kicked_member_is_refused(scenario: TopicScenario) -> None:
    """The membership was checked before the kick, so only the commit can refuse the message."""
    await join(scenario, "bob")
    message = await scenario.post("before", "bob")
    await scenario.stores.moderation.kick(scenario.community, ANN, "bob")
    messages, organization = scenario.stores.messages, scenario.organization_id
    for write in (
        scenario.post("after", "bob"),
        messages.edit(message.key, "bob", "after", ()),
        messages.add_reaction(organization, message.key, "bob", "👍"),
        messages.remove_reaction(organization, message.key, "bob", "👍"),
        messages.delete(message.key, Moderator("bob")),
    ):
        with pytest.raises(Forbidden):
            await write
    await join(scenario, "bob")
    await scenario.post("again", "bob")


async def test_joins_that_race_a_ban_leave_no_member(scenario: TopicScenario, open_process: OpenStores) -> None:
    await join(scenario, "bob")
    bob = await scenario.stores.users.get(scenario.organization_id, "bob")
    async with open_process() as other:

        async def join_repeatedly(stores: Stores) -> None:
            for _ in range(10):
                await stores.communities.join(scenario.community, bob)

        joins = [join_repeatedly([scenario.stores, other][number % 2]) for number in range(10)]
        ban = other.moderation.ban_member(scenario.community, ANN, "bob", None, "spam")
        *results, _ = await asyncio.gather(*joins, ban, return_exceptions=True)
    assert {type(result) for result in results} <= {Forbidden, type(None)}
    assert not await scenario.stores.communities.is_member(scenario.community.id, "bob")
    with pytest.raises(Forbidden, match="banned"):
        await scenario.stores.communities.join(scenario.community, bob)


async def test_ban_ends_at_its_time_or_by_a_moderator(scenario: TopicScenario) -> None:
    await join(scenario, "bob")
    moderation, now = scenario.stores.moderation, await scenario.stores.mongo.now()
    with pytest.raises(BadUserInput):
        await moderation.ban_member(scenario.community, ANN, "bob", now - timedelta(seconds=1), "spam")
    await moderation.ban_member(scenario.community, ANN, "bob", now + timedelta(seconds=4), "spam")
    (ban,) = await moderation.bans(scenario.community.id, None, 10)
    assert (ban.user_id, ban.banned_by_id, ban.reason) == ("bob", "ann", "spam")
    with pytest.raises(Forbidden, match="until 20"):
        await join(scenario, "bob")
    while await moderation.bans(scenario.community.id, None, 10):
        await asyncio.sleep(0.1)
    await join(scenario, "bob")
    await moderation.ban_member(scenario.community, ANN, "bob", None, "spam")
    assert [each.until for each in await moderation.bans(scenario.community.id, None, 10)] == [None]
    await moderation.unban(scenario.community, ANN, "bob")
    assert await moderation.bans(scenario.community.id, None, 10) == []
    await join(scenario, "bob")


async def test_mute_refuses_writes_and_outlives_rejoining(scenario: TopicScenario) -> None:
    await join(scenario, "bob")
    moderation, now = scenario.stores.moderation, await scenario.stores.mongo.now()
    message = await scenario.post("before", "bob")
    await moderation.mute(scenario.community, ANN, "bob", now + timedelta(hours=1))
    await scenario.stores.communities.leave(scenario.community, "bob")
    await join(scenario, "bob")
    for write in (
        scenario.post("after", "bob"),
        scenario.stores.messages.edit(message.key, "bob", "after", ()),
        scenario.stores.messages.add_reaction(scenario.organization_id, message.key, "bob", "👍"),
    ):
        with pytest.raises(Forbidden, match="muted in this community until 20") as refusal:
            await write
        assert refusal.value.extensions["until"]
    await moderation.mute(scenario.community, ANN, "bob", None)
    await scenario.post("after", "bob")
    assert await scenario.stores.mongo["community_restrictions"].count_documents({"_id.c": scenario.community.id}) == 0


async def test_last_owner_cannot_leave_or_be_demoted(scenario: TopicScenario) -> None:
    await join(scenario, "bob")
    moderation, communities, community = scenario.stores.moderation, scenario.stores.communities, scenario.community
    for act in (communities.leave(community, "ann"), moderation.set_role(community, ANN, "ann", CommunityRole.MEMBER)):
        with pytest.raises(Conflict, match="at least one owner"):
            await act
    await moderation.set_role(community, ANN, "bob", CommunityRole.OWNER)
    # Both owners leave and give up their role at once. One of them must stay an owner.
    acts = [communities.leave(community, name) for name in ("ann", "bob")]
    acts += [moderation.set_role(community, Moderator(name), name, CommunityRole.MEMBER) for name in ("ann", "bob")]  # type: ignore[misc]
    results = await asyncio.gather(*acts, return_exceptions=True)
    assert all(isinstance(result, Community | Conflict | Forbidden | None) for result in results), results
    owners = await moderation.members(community.id, CommunityRole.OWNER, None, 10)
    assert len(owners) == 1


async def test_commit_refuses_acts_on_equal_or_higher_ranks(scenario: TopicScenario) -> None:
    await join(scenario, "bob", "cyd", "dan")
    moderation, community = scenario.stores.moderation, scenario.community
    for name in ("bob", "cyd"):
        await moderation.set_role(community, ANN, name, CommunityRole.MODERATOR)
    until = await scenario.stores.mongo.now() + timedelta(hours=1)
    for actor, target in (
        ("bob", "ann"),
        ("bob", "cyd"),
        ("dan", "bob"),
        ("dan", "eve"),
        ("eve", "dan"),
        ("bob", "bob"),
    ):
        moderator = Moderator(actor)
        for act in (
            moderation.kick(community, moderator, target),
            moderation.ban_member(community, moderator, target, None, "x"),
            moderation.unban(community, moderator, target),
            moderation.mute(community, moderator, target, until),
        ):
            with pytest.raises(Forbidden):
                await act
    assert await scenario.stores.mongo["community_restrictions"].count_documents({"_id.c": community.id}) == 0
    for moderator in (Moderator("bob"), Moderator("dan"), Moderator("zoe", is_admin=True)):
        with pytest.raises(Forbidden, match="Only an owner"):
            await moderation.set_role(community, moderator, "dan", CommunityRole.OWNER)
    await scenario.stores.users.sign_in(scenario.organization_id, "zoe", (Role.ADMIN,), None, None)
    await moderation.kick(community, Moderator("zoe", is_admin=True), "dan")
    await moderation.kick(community, ANN, "bob")
    assert [each.user_id for each in await moderation.members(community.id, None, None, 10)] == ["ann", "cyd"]


async def test_commit_refuses_changes_by_lower_ranks(scenario: TopicScenario) -> None:
    await join(scenario, "bob", "dan")
    moderation, community = scenario.stores.moderation, scenario.community
    await moderation.set_role(community, ANN, "bob", CommunityRole.MODERATOR)
    for moderator in (Moderator("bob"), Moderator("dan"), Moderator("zoe", is_admin=True)):
        for change in (
            moderation.update_community(community, moderator, "Harbour", None, None),
            moderation.set_archived(community, moderator, True),
        ):
            with pytest.raises(Forbidden, match="Only an owner"):
                await change
    eve = await scenario.stores.users.sign_in(scenario.organization_id, "eve", (), None, None)
    for addition in (
        moderation.add_member(community, Moderator("dan"), eve),
        moderation.decide_join_request(community, Moderator("dan"), eve, True),
    ):
        with pytest.raises(Forbidden):
            await addition


async def test_hidden_or_archived_community_takes_no_request(scenario: TopicScenario) -> None:
    eve = await scenario.stores.users.sign_in(scenario.organization_id, "eve", (), None, None)
    moderation, community = scenario.stores.moderation, scenario.community
    await moderation.update_community(community, ANN, None, None, CommunityVisibility.PRIVATE)
    with pytest.raises(NotFound):
        await moderation.request_to_join(community, eve, "")
    await moderation.update_community(community, ANN, None, None, CommunityVisibility.LISTED)
    await moderation.set_archived(community, ANN, True)
    with pytest.raises(Forbidden, match="archived"):
        await moderation.request_to_join(community, eve, "")
    assert await moderation.join_requests(community.id, None, 10) == []


async def test_community_without_members_or_owners_gets_an_owner(scenario: TopicScenario) -> None:
    community, moderation = scenario.community, scenario.stores.moderation
    await join(scenario, "bob")
    # Earlier versions stored no roles, and let the founder leave.
    await scenario.stores.mongo["memberships"].delete_one({"community": community.id, "user": "ann"})
    await scenario.stores.users.sign_in(scenario.organization_id, "zoe", (Role.ADMIN,), None, None)
    await moderation.set_role(community, Moderator("zoe", is_admin=True), "bob", CommunityRole.OWNER)
    assert await moderation.role(community.id, "bob") is CommunityRole.OWNER
    await scenario.stores.mongo["memberships"].delete_many({"community": community.id})
    await scenario.stores.mongo["communities"].update_one({"_id": community.id}, {"$set": {"members": 0}})
    await join(scenario, "cyd")
    assert await moderation.role(community.id, "cyd") is CommunityRole.OWNER


async def test_each_act_leaves_one_audit_entry_in_its_commit(scenario: TopicScenario) -> None:
    await join(scenario, "bob")
    moderation, community = scenario.stores.moderation, scenario.community
    message, until = await scenario.post("x", "bob"), await scenario.stores.mongo.now() + timedelta(hours=1)
    for _ in range(2):
        await moderation.set_role(community, ANN, "bob", CommunityRole.MODERATOR)
        await scenario.stores.messages.delete(message.key, Moderator("ann", is_admin=True))
    await moderation.mute(community, ANN, "bob", until)
    for _ in range(2):
        await moderation.mute(community, ANN, "bob", None)
        await moderation.kick(community, ANN, "bob")
    await moderation.ban_member(community, ANN, "bob", until, "spam")
    for _ in range(2):
        await moderation.unban(community, ANN, "bob")
    with pytest.raises(Forbidden):
        await moderation.kick(community, Moderator("bob"), "ann")
    entries = await scenario.stores.audit.list_entries(scenario.organization_id, AuditFilter(), None, 20)
    assert {(entry.actor_id, entry.target_id) for entry in entries} == {("ann", "bob")}
    assert [entry.action.value.removeprefix("COMMUNITY_") for entry in reversed(entries)] == [
        "ROLE_SET",
        "MESSAGE_DELETED",
        "MEMBER_MUTED",
        "MEMBER_UNMUTED",
        "MEMBER_KICKED",
        "MEMBER_BANNED",
        "MEMBER_UNBANNED",
    ]
    assert {"community", "reason", "until"} == {detail.name for detail in entries[1].details}
