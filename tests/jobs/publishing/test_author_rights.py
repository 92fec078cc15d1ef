"""Rights of authors at the due moment. An author keeps the roles of earlier tokens for some time."""

import pytest

from jobs.publishing.author_rights import author_and_missing_role
from jobs.publishing.publisher import PostPublisher
from storage.identity.roles import Role
from storage.publishing.networks import Network
from storage.publishing.records import PublicationState
from tests.jobs.publishing.runs import connected_twin
from tests.storage.publishing.scenario import PublishingScenario, account_target

pytestmark = pytest.mark.anyio


async def test_token_with_fewer_roles_fails_no_scheduled_post(
    scenario: PublishingScenario, publisher: PostPublisher
) -> None:
    async with connected_twin(scenario, Network.WEBHOOK) as (twin, account):
        posts = [await scenario.schedule(account_target(account), scenario.home, in_s=-1) for _ in range(5)]
        for role in (Role.SERVICE, Role.MEMBER):
            await scenario.stores.users.sign_in(scenario.organization_id, "ann", [role], None, None)
        await publisher.sweep()
        await publisher.wait_until_idle()
        states = {each.state for post in posts for each in await scenario.publications(post)}
        assert states == {PublicationState.PUBLISHED}
        assert len(twin.ledger) == 5


async def test_author_whose_roles_ended_may_not_publish(scenario: PublishingScenario, publisher: PostPublisher) -> None:
    async with connected_twin(scenario, Network.WEBHOOK) as (twin, account):
        post = await scenario.schedule(account_target(account), scenario.home, in_s=-1)
        await scenario.end_roles(*Role)
        await publisher.sweep()
        await publisher.wait_until_idle()
        errors = [each.error for each in await scenario.publications(post)]
        assert [error and error.code for error in errors] == ["FORBIDDEN", "FORBIDDEN"]
        assert {error and error.message for error in errors} == {
            "The author no longer has the role OPERATOR.",
            "The author no longer has the role MEMBER.",
        }
        assert twin.ledger == []


async def test_role_that_includes_the_needed_role_suffices(scenario: PublishingScenario) -> None:
    users = scenario.stores.users
    await scenario.end_roles(*Role)
    await users.sign_in(scenario.organization_id, "ann", [Role.ADMIN], None, None)
    publication = await scenario.claim(await scenario.schedule(in_s=-1))
    missing = {role: (await author_and_missing_role(users, publication, role))[1] for role in Role}
    assert {role for role, reason in missing.items() if reason is not None} == {Role.SERVICE}
