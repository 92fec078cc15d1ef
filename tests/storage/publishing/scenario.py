"""The scenario of publishing tests: an organization with a topic, and an author who is an OPERATOR."""

import secrets
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from storage.files.pictures import DecodedPicture, EncodedPicture
from storage.identity.records import User
from storage.identity.roles import Role
from storage.identity.users import ROLE_LIFETIME_DAYS
from storage.mongo import Document
from storage.publishing.accounts import AccountToConnect
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
from storage.secrets.credentials import CredentialCipher
from storage.stores import Stores
from tests.databases import CREDENTIAL_KEYS
from tests.storage.topic_scenario import TopicScenario, create_topic_scenario

IMAGE = ScheduledMedia("https://example.org/a.png", "A hill", MediaKind.IMAGE)


@dataclass(frozen=True)
class PublishingScenario:
    """An organization and its author Ann, who is an OPERATOR and a member of the topic's community."""

    stores: Stores
    topic_scenario: TopicScenario
    ann: User

    @property
    def organization_id(self) -> str:
        return self.topic_scenario.organization_id

    @property
    def topic(self) -> TopicTarget:
        """The topic as a target."""
        return TopicTarget(self.topic_scenario.topic.id, self.topic_scenario.community.id)

    @property
    def home(self) -> HomeFeedTarget:
        """Ann's home feed as a target."""
        return HomeFeedTarget(self.ann.id)

    def with_stores(self, stores: Stores) -> "PublishingScenario":
        """Returns the scenario with another process's stores."""
        return replace(self, stores=stores, topic_scenario=self.topic_scenario.with_stores(stores))

    async def end_roles(self, *roles: Role) -> None:
        """Ends roles of Ann: a token last contained them longer ago than roles last."""
        at = await self.now() - timedelta(days=ROLE_LIFETIME_DAYS + 2)
        times = {f"role_seen.{role.value}": at for role in roles}
        user_id = {"org": self.organization_id, "id": self.ann.id}
        await self.stores.mongo["users"].update_one({"_id": user_id}, {"$set": times})

    async def now(self) -> datetime:
        """Returns the time of the database's clock."""
        answer = await self.stores.mongo.database.command("hello")
        now: datetime = answer["localTime"].replace(tzinfo=UTC)
        return now

    async def connect_account(
        self, network: Network = Network.SANDBOX, secret: str = "ok", base_url: str | None = None
    ) -> ConnectedAccount:
        """Connects an account."""
        new = AccountToConnect(self.organization_id, network, f"our {network.value}", base_url)
        return await self.stores.accounts.connect(new, secret, None)

    async def credentials_nonce(self, publication: Publication) -> bytes:
        """Returns the nonce of the credentials of the publication's account."""
        account = await self.stored_account(publication)
        nonce: bytes = account["credentials"]["nonce"]
        return nonce

    async def stored_account(self, publication: Publication) -> Document:
        """Returns the stored document of the publication's account."""
        assert isinstance(publication.target, AccountTarget)
        account: Document | None = await self.stores.mongo["accounts"].find_one({"_id": publication.target.account_id})
        assert account is not None
        return account

    async def replace_credentials(self, account: ConnectedAccount, secret: str) -> None:
        """Stores other credentials of an account, and does nothing else."""
        sealed = CredentialCipher(CREDENTIAL_KEYS).seal(secret, account.id)
        await self.stores.mongo["accounts"].update_one({"_id": account.id}, {"$set": {"credentials": sealed}})

    async def new_post(self, *targets: Target, in_s: float = 60.0, **more: Any) -> NewScheduledPost:
        """Returns a new post, due in `in_s` seconds. It is not scheduled yet."""
        due_at = more.pop("due_at", None) or await self.now() + timedelta(seconds=in_s)
        base = NewScheduledPost(self.organization_id, self.ann.id, "hello", (), targets, due_at, "UTC", 3600)
        return replace(base, **more)

    async def schedule(self, *targets: Target, in_s: float = 60.0, **more: Any) -> ScheduledPost:
        """Schedules a post. Without targets, the target is the topic."""
        new = await self.new_post(*(targets or (self.topic,)), in_s=in_s, **more)
        return await self.stores.scheduled_posts.schedule(new, None)

    async def upload(self, data: bytes, content_type: str, *, owner: User | None = None) -> str:
        """Uploads a file of Ann, or of another person, that is ready to be attached. Returns its id.

        An image counts as decoded, with 30 by 20 pixels.
        """
        stores, key = self.stores, (owner or self.ann).key
        file = await stores.uploads.append(await stores.uploads.create(key, "a file", len(data)), data)
        claimed = await stores.file_checks.claim()
        assert claimed is not None
        assert claimed.id == file.id
        if content_type.startswith("image/"):
            picture = EncodedPicture(content_type, 30, 20, data)
            await stores.file_checks.accept_picture(claimed, DecodedPicture(picture, [], "LKO2"))
        else:
            await stores.file_checks.accept(claimed, content_type)
        return file.id

    async def publications(self, post: ScheduledPost) -> list[Publication]:
        """Returns the post's publications as they are now."""
        return await self.stores.scheduled_posts.publications_of(post.id)

    async def publication(self, post: ScheduledPost) -> Publication:
        """Returns the post's only publication as it is now."""
        (publication,) = await self.publications(post)
        return publication

    async def claim(self, post: ScheduledPost) -> Publication:
        """Claims all due publications. Returns the post's only publication."""
        claims = await self.stores.claims.claim(1000)
        (publication,) = [each for each in claims if each.scheduled_post_id == post.id]
        return publication

    async def stored_document(self, publication: Publication) -> Document:
        """Returns the publication's stored document."""
        row: Document | None = await self.stores.mongo["publications"].find_one({"_id": publication.id})
        assert row is not None
        return row

    async def pass_time(self, seconds: float) -> None:
        """Simulates the passing of time: moves the dates of the organization's posts and publications back."""
        await pass_time(self.stores, self.organization_id, seconds)

    async def messages(self) -> list[Document]:
        """Returns the topic's messages."""
        return await self.topic_scenario.messages()

    async def events(self) -> list[tuple[str, str]]:
        """Returns the kind and the reference of each event in the organization's jobs stream."""
        rows = self.stores.mongo["events"].find({"_id.s": f"jobs:{self.organization_id}"}).sort("_id", 1)
        return [(row["kind"], row["ref"]) async for row in rows]


async def pass_time(stores: Stores, organization_id: str, seconds: float) -> None:
    """Simulates the passing of time: moves the dates of an organization's posts and publications back."""
    of_organization, back_ms = {"org": organization_id}, int(seconds * 1000)
    names = "due", "late_at", "late_from", "wake_at", "upload_at", "mail_at"
    fields = {name: _moved_back(name, back_ms) for name in names}
    parts = {"progress": _with_dates_back("progress", back_ms, "at", "first_at")}
    parts |= {"upload": _with_dates_back("upload", back_ms, "expires_at")}
    await stores.mongo["publications"].update_many(of_organization, [{"$set": fields | parts}])
    await stores.mongo["scheduled_posts"].update_many(of_organization, [{"$set": {"due": fields["due"]}}])


async def pass_account_time(stores: Stores, organization_id: str, seconds: float) -> None:
    """Simulates the passing of time: moves the dates of an organization's accounts back."""
    names, back_ms = ("expires_at", "renew_at", "verify_at", "verified_at", "warn_at"), int(seconds * 1000)
    fields = {name: _moved_back(name, back_ms) for name in names}
    await stores.mongo["accounts"].update_many({"org": organization_id}, [{"$set": fields}])


def _moved_back(field: str, back_ms: int) -> Document:
    """An expression for the field's value: an earlier date if it is a date, otherwise the value as it is, or none."""
    value = f"${field}"
    return {"$cond": [{"$eq": [{"$type": value}, "date"]}, {"$subtract": [value, back_ms]}, value]}


def _with_dates_back(part: str, back_ms: int, *dates: str) -> Document:
    """An expression for an embedded document with earlier dates. What is no document stays as it is."""
    value, moved = f"${part}", {date: _moved_back(f"{part}.{date}", back_ms) for date in dates}
    return {"$cond": [{"$eq": [{"$type": value}, "object"]}, {"$mergeObjects": [value, moved]}, value]}


async def create_publishing_scenario(stores: Stores) -> PublishingScenario:
    """Creates a scenario in a new organization."""
    topic_scenario = await create_topic_scenario(stores, secrets.token_hex(6))
    roles = [Role.OPERATOR]
    ann = await stores.users.sign_in(topic_scenario.organization_id, "ann", roles, "Ann", None, "ann@example.org")
    return PublishingScenario(stores, topic_scenario, ann)


def account_target(account: ConnectedAccount) -> AccountTarget:
    """Returns the target of an account."""
    return AccountTarget(account.id, account.network)
