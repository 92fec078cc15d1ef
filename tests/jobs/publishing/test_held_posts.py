"""Posts of deactivated authors wait for an administrator, who releases or cancels them."""

import asyncio
from datetime import timedelta

import pytest

from jobs.publishing.publisher import PostPublisher
from storage.errors import BadUserInput, Conflict, Forbidden
from storage.identity.audit import Actor, AuditAction, AuditFilter
from storage.identity.roles import Role
from storage.publishing.editing import ScheduledPostEdit
from storage.publishing.free_timestamps import microseconds
from storage.publishing.records import HomeFeedTarget, PublicationState, ScheduledPost
from tests.storage.publishing.scenario import PublishingScenario, account_target, create_publishing_scenario

pytestmark = pytest.mark.anyio


@pytest.fixture
async def admin(scenario: PublishingScenario) -> Actor:
    """An administrator; Bob is an OPERATOR and a member of the topic's community."""
    users, org = scenario.stores.users, scenario.organization_id
    await users.sign_in(org, "ada", [Role.ADMIN], None, None)
    bob = await users.sign_in(org, "bob", [Role.OPERATOR], None, None)
    await scenario.stores.communities.join(scenario.topic_scenario.community, bob)
    return Actor(org, "ada")


async def deactivate(scenario: PublishingScenario, admin: Actor) -> None:
    """Deactivates Ann without holding her posts, as if the process died in between."""
    await scenario.stores.user_administration.deactivate(admin, "ann", "left")


async def run(publisher: PostPublisher) -> None:
    await publisher.sweep()
    await publisher.wait_until_idle()


async def states(scenario: PublishingScenario, post: ScheduledPost) -> list[tuple[PublicationState, bool]]:
    """Returns the state of each publication, and whether it is held."""
    return [(each.state, each.held_at is not None) for each in await scenario.publications(post)]


HELD = (PublicationState.SCHEDULED, True)
PUBLISHED = (PublicationState.PUBLISHED, False)


async def test_due_posts_of_deactivated_author_are_held(
    scenario: PublishingScenario, publisher: PostPublisher, admin: Actor
) -> None:
    account = await scenario.connect_account()
    targets = (scenario.topic, scenario.home, account_target(account))
    posts = [await scenario.schedule(*targets, in_s=-1) for _ in range(3)]
    await deactivate(scenario, admin)
    await run(publisher)
    assert [await states(scenario, post) for post in posts] == [[HELD] * 3] * 3
    await scenario.pass_time(30)
    assert await publisher.sweep() == 0
    assert await scenario.messages() == []
    held = await scenario.stores.held_posts.list_held(scenario.organization_id, None, 2)
    rest = await scenario.stores.held_posts.list_held(scenario.organization_id, held[-1].id, 2)
    assert [each.id for each in (*held, *rest)] == [post.id for post in posts]
    (first,) = await scenario.stores.held_posts.list_held(scenario.organization_id, None, 1)
    assert first.id == posts[0].id
    assert await scenario.stores.held_posts.list_held(f"{scenario.organization_id}x", None, 10) == []


async def test_hold_leaves_same_user_id_of_other_organization(scenario: PublishingScenario, admin: Actor) -> None:
    other = await create_publishing_scenario(scenario.stores)
    post, other_post = await scenario.schedule(), await other.schedule()
    await deactivate(scenario, admin)
    await scenario.stores.held_posts.hold_posts_of(scenario.organization_id, "ann")
    assert await states(scenario, post) == [HELD]
    assert await states(other, other_post) == [(PublicationState.SCHEDULED, False)]


async def test_released_post_is_published_by_the_responsible_person(
    scenario: PublishingScenario, publisher: PostPublisher, admin: Actor
) -> None:
    account = await scenario.connect_account()
    post = await scenario.schedule(scenario.topic, scenario.home, account_target(account), in_s=-1)
    await deactivate(scenario, admin)
    await run(publisher)
    released = await scenario.stores.held_posts.release(admin, post, "bob", None)
    assert (released.author_id, released.due_at > post.due_at) == ("bob", True)
    await asyncio.sleep(0.1)
    await run(publisher)
    assert await states(scenario, post) == [PUBLISHED] * 3
    assert [each["author"] for each in await scenario.messages()] == ["bob"]
    assert (await scenario.publications(post))[1].target == HomeFeedTarget("bob")
    assert await scenario.stores.held_posts.list_held(scenario.organization_id, None, 10) == []


async def test_claimed_post_of_deactivated_author_is_held(
    scenario: PublishingScenario, publisher: PostPublisher, admin: Actor
) -> None:
    post = await scenario.schedule(in_s=-1)
    claimed = await scenario.claim(post)
    await deactivate(scenario, admin)
    await scenario.stores.held_posts.hold_posts_of(scenario.organization_id, "ann")
    await publisher.publish(claimed, post)
    assert await states(scenario, post) == [HELD]
    assert await scenario.messages() == []
    await scenario.stores.claims.release([claimed])
    assert not await scenario.stores.claims.renew(claimed)
    assert await scenario.stores.claims.claim(10) == []


@pytest.mark.parametrize("is_external", [False, True])
async def test_deactivation_while_rights_are_checked_holds_the_post(
    scenario: PublishingScenario,
    publisher: PostPublisher,
    admin: Actor,
    monkeypatch: pytest.MonkeyPatch,
    is_external: bool,
) -> None:
    users = scenario.stores.users
    read_roles = users.lasting_roles

    async def deactivate_and_read_roles(organization_id: str, user_id: str) -> frozenset[Role]:
        await deactivate(scenario, admin)
        return await read_roles(organization_id, user_id)

    target = account_target(await scenario.connect_account()) if is_external else scenario.topic
    post = await scenario.schedule(target, in_s=-1)
    monkeypatch.setattr(users, "lasting_roles", deactivate_and_read_roles)
    await run(publisher)
    assert await states(scenario, post) == [HELD]


async def test_concurrent_publishing_and_deactivation_lose_nothing(
    scenario: PublishingScenario, publisher: PostPublisher, admin: Actor
) -> None:
    posts = [await scenario.schedule(scenario.topic, scenario.home, in_s=-1) for _ in range(20)]

    async def hold() -> None:
        await deactivate(scenario, admin)
        await scenario.stores.held_posts.hold_posts_of(scenario.organization_id, "ann")

    await asyncio.gather(run(publisher), hold())
    distinct_states = {state for post in posts for state in await states(scenario, post)}
    assert distinct_states <= {HELD, PUBLISHED}
    published = [state for post in posts for state in (await states(scenario, post))[:1] if state == PUBLISHED]
    assert len(await scenario.messages()) == len(published)


async def test_post_is_released_once(scenario: PublishingScenario, publisher: PostPublisher, admin: Actor) -> None:
    post = await scenario.schedule(in_s=-1)
    await deactivate(scenario, admin)
    await run(publisher)
    releases = (scenario.stores.held_posts.release(admin, post, "bob", None) for _ in range(5))
    results = await asyncio.gather(*releases, return_exceptions=True)
    assert [type(each) for each in results].count(Conflict) == 4
    await asyncio.sleep(0.1)
    await run(publisher)
    assert len(await scenario.messages()) == 1
    release_filter = AuditFilter(action=AuditAction.SCHEDULED_POST_RELEASED)
    (entry,) = await scenario.stores.audit.list_entries(scenario.organization_id, release_filter, None, 10)
    assert (entry.actor_id, entry.target_id) == ("ada", post.id)
    assert {each.name: each.value for each in entry.details} == {"author": "ann", "responsible": "bob"}


async def test_hold_is_idempotent_and_emits_one_change(scenario: PublishingScenario, admin: Actor) -> None:
    post = await scenario.schedule(in_s=60)
    await deactivate(scenario, admin)
    emitted = len(await scenario.events())
    for _ in range(2):
        await scenario.stores.held_posts.hold(scenario.organization_id, post.id, "ann")
    publication = await scenario.publication(post)
    assert [ref for _, ref in (await scenario.events())[emitted:]] == [publication.id]
    document = await scenario.stored_document(publication)
    assert not {"claim", "wake_at"} & document.keys()


async def test_release_moves_held_publications_only(
    scenario: PublishingScenario, publisher: PostPublisher, admin: Actor
) -> None:
    """One target was published before the author was deactivated."""
    account = await scenario.connect_account()
    post = await scenario.schedule(scenario.home, account_target(account), in_s=-1)
    of_home_feed = {"post": post.id, "target.kind": "HOME_FEED"}
    await scenario.stores.mongo["publications"].update_one(of_home_feed, {"$unset": {"wake_at": ""}})
    await run(publisher)
    await deactivate(scenario, admin)
    await scenario.stores.held_posts.hold(scenario.organization_id, post.id, "ann")
    assert await states(scenario, post) == [HELD, PUBLISHED]
    moment = (await scenario.now()).replace(microsecond=0) + timedelta(hours=1)
    with pytest.raises(BadUserInput):
        await scenario.stores.held_posts.release(admin, post, "bob", moment - timedelta(hours=3))
    released = await scenario.stores.held_posts.release(admin, post, "bob", moment)
    assert (released.revision, released.due_at, released.timestamp) == (2, moment, microseconds(moment))
    assert await states(scenario, post) == [(PublicationState.SCHEDULED, False), PUBLISHED]
    assert [each.author_id for each in await scenario.publications(post)] == ["bob", "ann"]


async def test_held_post_is_cancelled_but_not_changed(
    scenario: PublishingScenario, publisher: PostPublisher, admin: Actor
) -> None:
    post, org, posts = await scenario.schedule(in_s=-1), scenario.organization_id, scenario.stores.scheduled_posts
    await deactivate(scenario, admin)
    await run(publisher)
    with pytest.raises(Conflict):
        await posts.update(org, post.id, ScheduledPostEdit(text="changed"))
    await posts.cancel(org, post.id)
    assert await states(scenario, post) == [(PublicationState.CANCELLED, False)]
    with pytest.raises(Conflict):
        await scenario.stores.held_posts.release(admin, post, "bob", None)


async def test_active_author_is_not_held_and_operator_releases_nothing(
    scenario: PublishingScenario, publisher: PostPublisher, admin: Actor
) -> None:
    post, held_posts = await scenario.schedule(in_s=60), scenario.stores.held_posts
    await held_posts.hold_posts_of(scenario.organization_id, "ann")
    assert await states(scenario, post) == [(PublicationState.SCHEDULED, False)]
    await deactivate(scenario, admin)
    await held_posts.hold_posts_of(scenario.organization_id, "ann")
    assert await states(scenario, post) == [HELD]
    await scenario.stores.user_administration.set_roles(admin, "bob", {Role.OPERATOR})
    with pytest.raises(Forbidden):
        await held_posts.release(Actor(scenario.organization_id, "bob"), post, "bob", None)
    with pytest.raises(Conflict):
        await held_posts.release(admin, post, "ann", None)
    await scenario.stores.user_administration.reactivate(admin, "ann")
    assert await states(scenario, post) == [HELD]
    assert (await held_posts.release(admin, post, "ann", None)).due_at == post.due_at
