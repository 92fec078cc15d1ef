"""OPERATORs and ADMINs are notified once of failed, unknown and held publications of others."""

import asyncio
from datetime import timedelta

import pytest

from storage.identity.roles import Role
from storage.identity.users import ROLE_LIFETIME_DAYS
from storage.publishing.events import NOTIFY_TEAM
from storage.publishing.reports.team import MAX_TEAM, find_team
from storage.publishing.transitions import MarkFailed
from storage.streams.log import jobs_stream
from storage.streams.outbox import add_rows
from tests.resolvers.people import until_outbox_is_empty
from tests.storage.publishing.scenario import PublishingScenario

pytestmark = pytest.mark.anyio


async def sign_in(scenario: PublishingScenario, id_: str, *roles: Role) -> None:
    await scenario.stores.users.sign_in(scenario.organization_id, id_, roles, id_, None, f"{id_}@example.org")


async def change_user(scenario: PublishingScenario, id_: str, **fields: object) -> None:
    user = {"org": scenario.organization_id, "id": id_}
    await scenario.stores.mongo["users"].update_one({"_id": user}, {"$set": fields})


async def team(scenario: PublishingScenario) -> list[str]:
    """Returns the ids of the people of the team."""
    found = await find_team(scenario.stores.mongo, scenario.organization_id, await scenario.now())
    return [person["_id"]["id"] for person in found]


async def notified(scenario: PublishingScenario) -> list[tuple[str, str]]:
    """Returns who was notified of publications, and the kind of each notification."""
    await until_outbox_is_empty(scenario.stores)
    query = {"_id.o": scenario.organization_id, "publication": {"$ne": None}}
    rows = await scenario.stores.mongo["notifications"].find(query).to_list(None)
    return sorted((row["_id"]["u"], row["kind"]) for row in rows)


async def test_team_has_operators_and_admins_with_access(scenario: PublishingScenario) -> None:
    for id_ in ("bob", "cat", "dan", "eve", "fay"):
        await sign_in(scenario, id_, Role.OPERATOR)
    await sign_in(scenario, "gus", Role.ADMIN)
    await sign_in(scenario, "hal", Role.MEMBER)
    long_ago = await scenario.now() - timedelta(days=ROLE_LIFETIME_DAYS + 2)
    await change_user(scenario, "bob", deactivated_at=long_ago)
    await change_user(scenario, "cat", erasing_at=long_ago)
    await change_user(scenario, "dan", service=True)
    await change_user(scenario, "eve", role_seen={"OPERATOR": long_ago})
    await change_user(scenario, "fay", role_seen={"OPERATOR": long_ago}, roles_granted=True)
    assert await team(scenario) == ["ann", "fay", "gus"]


async def test_team_is_limited(scenario: PublishingScenario) -> None:
    for number in range(MAX_TEAM + 1):
        await sign_in(scenario, f"op{number:02}", Role.OPERATOR)
    assert len(await team(scenario)) == MAX_TEAM


async def test_team_is_notified_once_and_author_not_twice(scenario: PublishingScenario) -> None:
    await sign_in(scenario, "bob", Role.OPERATOR)
    await sign_in(scenario, "gus", Role.ADMIN)
    await sign_in(scenario, "hal", Role.MEMBER)
    claimed = await scenario.claim(await scenario.schedule(in_s=-1))
    failed = await scenario.stores.scheduled_posts.apply(MarkFailed(claimed, "REFUSED", "no"))
    expected = [(id_, "PUBLICATION_FAILED") for id_ in ("ann", "bob", "gus")]
    assert await notified(scenario) == expected
    stream, ref = jobs_stream(scenario.organization_id), f"{failed.id}/FAILED/1"
    await asyncio.gather(*(add_rows(scenario.stores.mongo, stream, NOTIFY_TEAM, [ref]) for _ in range(3)))
    scenario.stores.outbox.nudge(stream.name)
    assert await notified(scenario) == expected


async def test_team_is_not_notified_of_late_publications(scenario: PublishingScenario) -> None:
    await sign_in(scenario, "bob", Role.OPERATOR)
    publication = await scenario.publication(await scenario.schedule())
    stream = jobs_stream(scenario.organization_id)
    await add_rows(scenario.stores.mongo, stream, NOTIFY_TEAM, [f"{publication.id}/LATE/1"])
    scenario.stores.outbox.nudge(stream.name)
    assert await notified(scenario) == []
    stored = await scenario.stores.mongo["publication_problems"].find_one({"_id": scenario.organization_id})
    assert stored is not None
    assert stored["reports"] == 1


async def test_report_of_removed_publication_notifies_nobody(scenario: PublishingScenario) -> None:
    stream = jobs_stream(scenario.organization_id)
    await add_rows(scenario.stores.mongo, stream, NOTIFY_TEAM, ["gone/FAILED/1"])
    scenario.stores.outbox.nudge(stream.name)
    assert await notified(scenario) == []
