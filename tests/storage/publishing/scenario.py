"""A scenario for publishing tests: an organization with a topic, an author with all rights, and accounts."""

import secrets
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from storage.identity.records import User
from storage.identity.roles import Role
from storage.mongo import Document
from storage.publishing.accounts import NewAccount
from storage.publishing.networks import MediaKind, Network
from storage.publishing.records import (
    AccountTarget,
    ConnectedAccount,
    HomeFeedTarget,
    Publication,
    ScheduledMedia,
    ScheduledPost,
    Target,
    TopicTarget,
)
from storage.publishing.scheduling import NewScheduledPost
from storage.stores import Stores
from tests.storage.topic_scenario import TopicScenario, create_topic_scenario

IMAGE = ScheduledMedia("https://example.org/a.png", "A hill", MediaKind.IMAGE)


@dataclass(frozen=True)
class PublishingScenario:
    """Ann is the author: an OPERATOR and a member of the topic's community."""

    stores: Stores
    place: TopicScenario
    ann: User

    @property
    def organization_id(self) -> str:
        return self.place.organization_id

    @property
    def topic(self) -> TopicTarget:
        return TopicTarget(self.place.topic.id, self.place.community.id)

    @property
    def home(self) -> HomeFeedTarget:
        return HomeFeedTarget(self.ann.id)

    def through(self, stores: Stores) -> "PublishingScenario":
        """Returns the scenario with another process's stores."""
        return replace(self, stores=stores, place=self.place.through(stores))

    async def now(self) -> datetime:
        """Returns the time of the database's clock."""
        answer = await self.stores.mongo.database.command("hello")
        now: datetime = answer["localTime"].replace(tzinfo=UTC)
        return now

    async def account(
        self, network: Network = Network.SANDBOX, secret: str = "ok", base_url: str | None = None
    ) -> ConnectedAccount:
        """Connects an account."""
        new = NewAccount(self.organization_id, network, f"our {network.value}", base_url)
        return await self.stores.accounts.connect(new, secret, None)

    async def new(self, *targets: Target, in_s: float = 60.0, **more: Any) -> NewScheduledPost:
        """Returns a post to schedule, due in `in_s` seconds."""
        due_at = more.pop("due_at", None) or await self.now() + timedelta(seconds=in_s)
        base = NewScheduledPost(self.organization_id, self.ann.id, "hello", (), targets, due_at, "UTC", 3600)
        return replace(base, **more)

    async def schedule(self, *targets: Target, in_s: float = 60.0, **more: Any) -> ScheduledPost:
        """Schedules a post, to the topic if no target is named."""
        new = await self.new(*(targets or (self.topic,)), in_s=in_s, **more)
        return await self.stores.scheduled_posts.schedule(new, None)

    async def publications(self, post: ScheduledPost) -> list[Publication]:
        """Returns the post's publications as they are now."""
        return await self.stores.scheduled_posts.publications_of(post.id)

    async def only(self, post: ScheduledPost) -> Publication:
        """Returns the post's only publication as it is now."""
        (publication,) = await self.publications(post)
        return publication

    async def claimed(self, post: ScheduledPost) -> Publication:
        """Claims the post's only publication."""
        found = await self.stores.claims.claim(1000)
        (publication,) = [each for each in found if each.scheduled_post_id == post.id]
        return publication

    async def stored(self, publication: Publication) -> Document:
        """Returns the stored document."""
        row: Document | None = await self.stores.mongo["publications"].find_one({"_id": publication.id})
        assert row is not None
        return row

    async def pass_time(self, seconds: float) -> None:
        """Simulates time by moving every stored moment of the organization back."""
        await pass_time(self.stores, self.organization_id, seconds)

    async def messages(self) -> list[Document]:
        """Returns the topic's messages."""
        return await self.place.messages()

    async def events(self) -> list[tuple[str, str]]:
        """Returns kind and id of the events of the organization's jobs stream."""
        rows = self.stores.mongo["events"].find({"_id.s": f"jobs:{self.organization_id}"}).sort("_id", 1)
        return [(row["kind"], row["ref"]) async for row in rows]


async def pass_time(stores: Stores, organization_id: str, seconds: float) -> None:
    """Simulates time by moving every stored moment of an organization's publications back."""
    publications, posts = stores.mongo["publications"], stores.mongo["scheduled_posts"]
    moments = ("due", "late_at", "wake_at", "upload_at", "mail_at", "step.at", "step.first_at", "upload.expires_at")
    for moment in moments:
        await publications.update_many({"org": organization_id, moment: {"$type": "date"}}, _back(moment, seconds))
    await posts.update_many({"org": organization_id}, _back("due", seconds))


def _back(moment: str, seconds: float) -> list[Document]:
    return [{"$set": {moment: {"$subtract": [f"${moment}", int(seconds * 1000)]}}}]


async def create_publishing_scenario(stores: Stores) -> PublishingScenario:
    """Creates a scenario in an organization of its own."""
    place = await create_topic_scenario(stores, secrets.token_hex(6))
    roles = [Role.OPERATOR]
    ann = await stores.users.sign_in(place.organization_id, "ann", roles, "Ann", None, "ann@example.org")
    return PublishingScenario(stores, place, ann)


def account_target(account: ConnectedAccount) -> AccountTarget:
    """Returns the target of an account."""
    return AccountTarget(account.id, account.network)
