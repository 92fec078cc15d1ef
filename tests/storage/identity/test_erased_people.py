"""Writes about people whose erasure was requested are refused, and no search finds the people."""

from datetime import timedelta

import pytest

from storage.chat.reactions.changes import EraseReaction
from storage.chat.roles import CommunityRole, Moderator
from storage.errors import Forbidden, NotFound
from storage.feed.content_reports.changes import NewReport
from storage.feed.content_reports.records import ContentReportCategory, ContentReportSubject
from storage.identity.audit import Actor
from storage.identity.erased_people import check_not_erased, is_being_erased
from storage.identity.handles.suggestions import free_handle
from storage.identity.mentions import find_mentioned
from storage.identity.records import User, user_stream
from storage.notifications import NotificationKind, notification_ref
from storage.streams.outbox import add_rows
from tests.storage.topic_scenario import TopicScenario
from tests.waiting import poll_until_true

pytestmark = pytest.mark.anyio

ANN = Moderator("ann")


async def sign_in(scenario: TopicScenario, id_: str) -> User:
    return await scenario.stores.users.sign_in(scenario.organization_id, id_, (), f"Bo {id_}", id_)


async def erased_person(scenario: TopicScenario) -> User:
    """Returns a person whose erasure was requested."""
    person = await sign_in(scenario, "quill")
    await scenario.stores.erasures.request(Actor(*person.key), person.id, "quill")
    return person


async def test_person_counts_as_erased_from_the_request_on(scenario: TopicScenario) -> None:
    mongo, other = scenario.stores.mongo, await sign_in(scenario, "other")
    person = await erased_person(scenario)
    assert (await is_being_erased(mongo, person.key), await is_being_erased(mongo, other.key)) == (True, False)
    await check_not_erased(mongo, other.key)
    with pytest.raises(NotFound):
        await check_not_erased(mongo, person.key)


async def test_erased_person_becomes_no_member(scenario: TopicScenario) -> None:
    community, moderation, person = scenario.community, scenario.stores.moderation, await erased_person(scenario)
    await scenario.stores.mongo["join_requests"].insert_one(
        {"_id": {"c": community.id, "u": person.id}, "message": "", "at": await scenario.stores.mongo.now()}
    )
    joins = (
        moderation.add_member(community, ANN, person),
        moderation.decide_join_request(community, ANN, person, True),
        moderation.request_to_join(community, person, ""),
        scenario.stores.communities.join(community, person),
    )
    for join in joins:
        # The person's own acts may be refused as those of a person without access.
        with pytest.raises((NotFound, Forbidden)):
            await join
    await add_rows(scenario.stores.mongo, scenario.community_stream, "InvitedMember", [person.id])
    scenario.stores.outbox.nudge(scenario.community_stream.name)
    assert await poll_until_true(lambda: is_relayed(scenario))
    assert not await scenario.stores.communities.is_member(community.id, person.id)


async def is_relayed(scenario: TopicScenario) -> bool:
    """Returns whether no outbox row is left."""
    return await scenario.stores.mongo["outbox"].count_documents({}) == 0


async def test_moderators_do_not_act_on_erased_people(scenario: TopicScenario) -> None:
    community, moderation, person = scenario.community, scenario.stores.moderation, await erased_person(scenario)
    until = await scenario.stores.mongo.now() + timedelta(days=1)
    for act in (
        moderation.ban_member(community, ANN, person.id, None, "rude"),
        moderation.mute(community, ANN, person.id, until),
        moderation.kick(community, ANN, person.id),
        moderation.set_role(community, ANN, person.id, CommunityRole.OWNER),
    ):
        with pytest.raises(NotFound):
            await act
    assert await scenario.stores.mongo["community_restrictions"].count_documents({"_id.u": person.id}) == 0


async def test_erased_people_are_neither_blocked_nor_reported(scenario: TopicScenario) -> None:
    person = await erased_person(scenario)
    with pytest.raises(NotFound):
        await scenario.stores.relations.block(scenario.organization_id, "ann", person.id)
    kind, category = ContentReportSubject.USER, ContentReportCategory.OTHER
    report = NewReport(scenario.organization_id, kind, person.id, None, person.id, "ann", category, "rude", person.name)
    with pytest.raises(NotFound):
        await scenario.stores.content_reports.file(report)


async def test_erased_people_are_neither_found_nor_mentioned(scenario: TopicScenario) -> None:
    users, person = scenario.stores.users, await sign_in(scenario, "quill")
    await scenario.stores.communities.join(scenario.community, person)
    await scenario.stores.erasures.request(Actor(*person.key), person.id, "quill")
    for community_id in (None, scenario.community.id):
        assert await users.search(scenario.organization_id, "qui", 10, community_id) == []
    assert await find_mentioned(users, scenario.organization_id, "Hello @quill") == []


async def test_late_notifications_of_erased_people_are_dropped(scenario: TopicScenario) -> None:
    person = await erased_person(scenario)
    stream = user_stream(*person.key)
    await add_rows(scenario.stores.mongo, stream, "Notify", [notification_ref(NotificationKind.FOLLOW, "ann")])
    scenario.stores.outbox.nudge(stream.name)
    assert await poll_until_true(lambda: is_relayed(scenario))
    assert await scenario.stores.mongo["notifications"].count_documents({"_id.u": person.id}) == 0


async def test_person_who_blocked_the_moderator_is_not_added(scenario: TopicScenario) -> None:
    person, stores = await sign_in(scenario, "quill"), scenario.stores
    await stores.communities.join(scenario.community, person)
    await stores.communities.leave(scenario.community, person.id)
    await stores.relations.block(scenario.organization_id, person.id, "ann")
    with pytest.raises(Forbidden, match="invitation"):
        await stores.moderation.add_member(scenario.community, ANN, person)
    await stores.relations.unblock(scenario.organization_id, person.id, "ann")
    await stores.moderation.add_member(scenario.community, ANN, person)
    assert await stores.communities.is_member(scenario.community.id, person.id)


async def test_reaction_of_banned_person_is_erased(scenario: TopicScenario) -> None:
    person, stores = await sign_in(scenario, "quill"), scenario.stores
    await stores.communities.join(scenario.community, person)
    message = await scenario.post()
    await stores.messages.add_reaction(scenario.organization_id, message.key, person.id, "🐟")
    await stores.moderation.ban_member(scenario.community, ANN, person.id, None, "rude")
    await stores.moderation.set_archived(scenario.community, ANN, True)
    with pytest.raises(Forbidden):
        await stores.messages.remove_reaction(scenario.organization_id, message.key, person.id, "🐟")
    change = EraseReaction(message.key, scenario.organization_id, person.id, "🐟")
    assert (await stores.sequencer.commit(scenario.stream, change)).reaction_counts == ()
    assert await stores.mongo["reactions"].count_documents({}) == 0


async def test_handle_of_erased_person_is_given_to_no_account(scenario: TopicScenario) -> None:
    await erased_person(scenario)
    mongo, organization_id = scenario.stores.mongo, scenario.organization_id
    await mongo["users"].update_one({"_id.id": "quill"}, {"$set": {"handle": "deleted_1"}})
    handle = await mongo.transact(lambda session: free_handle(mongo, organization_id, "quill", session))
    assert handle == "quill-2"
