"""An organization with an object of every type. Each text in it contains its mark, a word that names it."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from secrets import token_bytes

from bson import ObjectId

from storage.calls.calls import NextCall, TimedStart
from storage.calls.job_changes import NewCallJob
from storage.calls.records import TaskKey
from storage.calls.windows import WEEK, CallingWindow
from storage.chat.changes import NewMessage
from storage.chat.records import Community, CommunityVisibility
from storage.chat.roles import CommunityRole, Moderator
from storage.chat.stamps.ownerships import StampPackGiver
from storage.chat.stamps.rules import StampPackAvailability
from storage.errors import Conflict
from storage.feed.changes import NewPost
from storage.feed.content_reports.changes import ReportRuling
from storage.feed.content_reports.records import (
    ContentReportDecision,
    ContentReportSubject,
    content_report_id,
)
from storage.feed.edits import NewText
from storage.feed.records import PostParentKind
from storage.files.attachments import NewAttachment
from storage.files.link_previews import LinkPreview, PreviewPicture
from storage.files.pictures import DecodedPicture, EncodedPicture
from storage.files.records import FileState, UploadPurpose
from storage.identity.accounts.invitations import NewInvitation
from storage.identity.accounts.local_accounts import MailLanguage
from storage.identity.audit import Actor, AuditAction, TargetKind, audit_document
from storage.identity.keys.records import NewServiceKey
from storage.identity.mutes import MuteSubject
from storage.identity.passkeys.records import NewPasskey
from storage.identity.records import user_document_id
from storage.identity.roles import Role
from storage.identity.session_records import NewSession, SignInMethod
from storage.ids import PostKey, UserKey, message_key, new_id, post_key
from storage.mail.addresses import Address
from storage.mail.decisions.address_decisions import AddressDecision
from storage.mail.decisions.policies import DEFAULT_POLICY
from storage.mongo import Session
from storage.notifications.channels import PushSubscription
from storage.notifications.settings import NotificationLevel, NotificationPlace, NotificationPlaceKind
from storage.publishing.accounts import AccountToConnect
from storage.publishing.attention import HoldForAttention
from storage.publishing.networks import MediaKind, Network
from storage.publishing.records import (
    AccountTarget,
    HomeFeedTarget,
    Publication,
    PublishingPhase,
    ScheduledMedia,
    VerifiedAccount,
)
from storage.publishing.scheduling import NewScheduledPost
from storage.publishing.transitions import MANUAL, BeginAttempt, MarkPublished, MarkUnknown
from storage.secrets.random_tokens import token_digest
from storage.stores import Stores
from storage.webhooks.deliveries import DeliveryResult, SentMessage
from storage.webhooks.records import DeliveryOutcome, NewWebhook, WebhookFilter
from storage.webhooks.store import WebhookManager
from tests.resolvers.people import REACT, Person, SignIn, until_outbox_is_empty

DUE_AT = datetime(2030, 1, 1, tzinfo=UTC)
UNBLOCK = 'mutation ($reason: String!) { unblockAddress(address: "ann@example.org", reason: $reason) { address } }'
REPORT = """
mutation ($id: ID!, $text: String!) {
  reportContent(subject: MESSAGE, subjectId: $id, category: HARASSMENT, text: $text)
}
"""
MARK_READ = "mutation ($topic: ID!, $at: Timestamp!) { markRead(topicId: $topic, timestamp: $at) { id } }"
PICTURE_UPLOADS = {
    "AvatarUpload": UploadPurpose.AVATAR,
    "BannerUpload": UploadPurpose.BANNER,
    "CommunityBannerUpload": UploadPurpose.BANNER,
    "CommunityPictureUpload": UploadPurpose.AVATAR,
    "StampUpload": UploadPurpose.STAMP,
}
"""Purposes of the uploads that mutations use up, by type."""


@dataclass
class OrganizationScenario:
    """An organization. Ann is the author and has every role. Cat replies. Ann blocked Dog.

    Ann and Owl own the community, from which Elk is banned. Fox is being erased. Yak, who owns a
    community, is deactivated.

    `ids` has the id of an object of every type with ids.
    """

    mark: str
    organization_id: str
    ann: Person
    cat: Person
    dog: Person
    ids: dict[str, str] = field(default_factory=dict)
    _restored_state: tuple[object, ...] | None = None
    """State of the community after it was last restored. It is restored only after a mutation has changed it."""

    @property
    def stores(self) -> Stores:
        return self.ann.stores

    @property
    def superuser(self) -> Person:
        """Ann with a token of every role."""
        return replace(self.ann, roles=frozenset(Role))

    async def renew(self, types: Collection[str]) -> dict[str, str]:
        """Creates new objects of these types, and makes Ann, Cat and Dog members. Returns the ids of all types."""
        if types and self._restored_state != await self._community_state():
            await self.restore_community()
            self._restored_state = await self._community_state()
        for create in dict.fromkeys(self._creators[each] for each in types if each in self._creators):
            await create()
        return self.ids

    async def create_everything(self) -> None:
        """Creates an object of each type that mutations use up, except reports."""
        await self.renew(self._creators.keys() - {"ContentReport", "Subject"})

    @property
    def _creators(self) -> dict[str, Callable[[], Awaitable[None]]]:
        """Coroutine functions that create new objects, for each type whose objects mutations use up."""
        return {
            "Message": self.post_message,
            "Post": self.renew_post,
            "Passkey": self.add_passkey,
            "PushDevice": self.register_device,
            "ServiceKey": self.create_service_key,
            **dict.fromkeys(("Webhook", "WebhookDelivery"), self.create_webhook),
            "HeldPost": self.hold_post,
            "RefusedPublication": self.refuse_credentials,
            "Upload": self.upload_file,
            **{name: partial(self.renew_upload, name) for name in PICTURE_UPLOADS},
            "LibraryFile": self.add_to_library,
            "StampPack": self.create_stamp_pack,
            **dict.fromkeys(("Invitation", "InvitationToken"), self.invite),
            **dict.fromkeys(("Session", "UsersSession"), self.begin_sessions),
            **dict.fromkeys(("ContentReport", "Subject"), self.report_message),
            **dict.fromkeys(("Conversation", "RequestedConversation"), self.start_conversations),
            **dict.fromkeys(("CallJob", "Call"), self.launch_call_jobs),
            **dict.fromkeys(("ConnectedAccount", "ScheduledPost", "Publication"), self.schedule_posts),
        }

    async def post_message(self) -> None:
        """Posts a message of Ann's with a mention and a link."""
        text = f"{self.mark} @{self.mark}_cat https://{self.mark}.example/"
        self.ids["Message"] = (await self.ann.post(self.ids["Topic"], text))["id"]

    async def register_device(self) -> None:
        """Registers a browser of Ann's for pushes."""
        url, agent = f"https://push.example.org/{self.mark}/{new_id()}", f"{self.mark} browser"
        owner = UserKey(self.organization_id, self.ann.id)
        subscription = PushSubscription(url, b"", b"")
        device = await self.stores.notification_channels.add_device(owner, subscription, None, agent)
        self.ids["PushDevice"] = device.id

    async def renew_post(self) -> None:
        """Creates a post of Ann's."""
        self.ids["Post"] = await self.create_post()

    async def start_conversations(self) -> None:
        """Starts a group of Ann's with Cat and Emu, and a group of Emu's that Ann is asked to join."""
        stores, organization_id = self.stores, self.organization_id
        people = (self.ann.id, self.cat.id, f"emu-of-{self.mark}")
        ann, cat, emu = [await stores.users.get(organization_id, each) for each in people]
        self.ids["Partner"] = emu.id
        for starter, others, name in ((ann, [cat, emu], "Conversation"), (emu, [ann, cat], "RequestedConversation")):
            started = await stores.conversations.start(starter, others, f"{self.mark} boat", None)
            new = NewMessage(started.id, started.id, starter.id, f"{self.mark} direct", None, ())
            await stores.messages.post(new)
            self.ids[name] = started.id

    async def hold_post(self) -> None:
        """Schedules a post of Yak, who is deactivated meanwhile, so that the post is held."""
        organization_id, stores = self.organization_id, self.stores
        users, yak = stores.mongo["users"], {"_id": user_document_id(organization_id, "yak")}
        stored = await users.find_one_and_update(yak, {"$unset": {"deactivated_at": ""}})
        targets = [HomeFeedTarget("yak")]
        new = NewScheduledPost(organization_id, "yak", f"{self.mark} text", (), targets, DUE_AT, "UTC", 3600)
        self.ids["HeldPost"] = (await stores.scheduled_posts.schedule(new, None)).id
        await users.update_one(yak, {"$set": {"deactivated_at": stored["deactivated_at"]}})
        await stores.held_posts.hold_posts_of(organization_id, "yak")

    async def upload_file(self) -> None:
        """Uploads a picture of Ann's, which is ready to be attached."""
        self.ids["Upload"] = await self._upload(UploadPurpose.ATTACHMENT)

    async def renew_upload(self, name: str) -> None:
        """Uploads a picture of Ann's, which is ready to be shown as an avatar, a banner or a stamp."""
        self.ids[name] = await self._upload(PICTURE_UPLOADS[name])

    async def add_to_library(self) -> None:
        """Uploads a picture of Ann's, and adds it to her library."""
        self.ids["LibraryFile"] = await self._upload(UploadPurpose.ATTACHMENT)
        owner = UserKey(self.organization_id, self.ann.id)
        await self.stores.media_library.add(owner, NewAttachment(self.ids["LibraryFile"], f"{self.mark} hill"))

    async def create_stamp_pack(self) -> None:
        """Creates a pack with the stamp "lit", which Ann gave to Dog. Removes all other packs."""
        packs, actor = self.stores.stamp_packs, Actor(self.organization_id, self.ann.id, is_command_line=True)
        for each in await packs.list_packs(self.organization_id):
            await packs.remove(actor, each.id)
        pack = await packs.create(actor, f"{self.mark} pack")
        await packs.add_stamp(actor, pack.id, "lit", await self._upload(UploadPurpose.STAMP))
        given = await packs.set_availability(actor, pack.id, StampPackAvailability.GIVEN, None)
        with suppress(Conflict):  # A deactivated person gets none.
            dog = UserKey(self.organization_id, self.dog.id)
            await self.stores.stamp_ownerships.give(dog, given, StampPackGiver(Moderator(self.ann.id, True)))
        self.ids["StampPack"] = pack.id

    async def _upload(self, purpose: UploadPurpose) -> str:
        stores, data = self.stores, f"{self.mark} pixels".encode()
        owner = UserKey(self.organization_id, self.ann.id)
        created = await stores.uploads.create(owner, f"{self.mark}.png", len(data), purpose)
        await stores.uploads.append(created, data)
        picture = EncodedPicture("image/png", 3, 2, data)
        while (await stores.uploads.get(owner, created.id)).state is not FileState.READY:
            # A check is due from the next millisecond on.
            if (file := await stores.file_checks.claim()) is not None:
                await stores.file_checks.accept_picture(file, DecodedPicture(picture, [picture], "LKO2"))
        return created.id

    async def create_service_key(self) -> None:
        """Creates two service keys, of which `ids` names the one that a list begins with."""
        actor, new = Actor(self.organization_id, self.ann.id), NewServiceKey(f"{self.mark} service", ["chat:read"])
        created = [await self.stores.service_keys.create(actor, new) for _ in range(2)]
        self.ids["ServiceKey"] = max(each.key.id for each in created)

    async def create_webhook(self) -> None:
        """Creates a webhook with two deliveries, of which `ids` names the later one. Deletes earlier webhooks."""
        stores, manager = self.stores, WebhookManager(Actor(self.organization_id, self.ann.id))
        if "ServiceKey" not in self.ids:
            await self.create_service_key()
        for each in await stores.webhooks.list_webhooks(manager):
            await stores.webhooks.delete(manager, each.id)
        filter_ = WebhookFilter(["MessagePosted"])
        new = NewWebhook(f"{self.mark} warehouse", f"https://{self.mark}.example/", self.ids["ServiceKey"], filter_)
        webhook = (await stores.webhooks.create(manager, new, None)).webhook
        failed = {"$set": {"error": f"{self.mark} is away"}}
        await stores.mongo["webhooks"].update_one({"_id": webhook.id}, failed)
        results = [DeliveryResult(DeliveryOutcome.DELIVERED, 200, f"{self.mark} thanks", 1) for _ in range(2)]
        message = SentMessage(f"{self.mark} message", "MessagePosted", self.mark.encode())
        await stores.webhook_deliveries.record(webhook, [(message, each) for each in results])
        self.ids |= {"Webhook": webhook.id, "WebhookDelivery": max(each.id for each in results)}

    async def _community_state(self) -> tuple[object, ...]:
        """Returns the members, the restrictions, and what is archived."""
        mongo, community = self.stores.mongo, self.ids["Community"]
        memberships = await mongo.find("memberships", {"community": community}, {"user": 1, "role": 1}, [("_id", 1)])
        restrictions = await mongo.find("community_restrictions", {"_id.c": community}, sort=[("_id.u", 1)])
        topics = await mongo.find("topics", {"_id": self.ids["Topic"]}, {"archived_at": 1})
        return memberships, restrictions, topics

    async def restore_community(self) -> None:
        """Makes Ann an owner, and Cat and Dog members. Mutations that were executed may have changed the community."""
        communities, moderation, owl = self.stores.communities, self.stores.moderation, Moderator("owl")
        community = await communities.get(self.organization_id, self.ids["Community"])
        await moderation.set_archived(community, owl, False)
        await self.stores.topics.set_archived(self.ids["Topic"], False, Moderator("owl"))
        await moderation.set_role(community, owl, "owl", CommunityRole.OWNER)
        if await moderation.role(community.id, self.dog.id) is not None:
            await moderation.set_role(community, owl, self.dog.id, CommunityRole.MEMBER)
        await moderation.unban(community, owl, self.dog.id)
        await moderation.mute(community, owl, self.dog.id, None)
        await self.reactivate_dog()
        for person in (self.ann, self.cat, self.dog):
            await person.join(community.id)
        await moderation.set_role(community, owl, self.ann.id, CommunityRole.OWNER)

    async def reactivate_dog(self) -> None:
        """Gives Dog access again, whom administrators deactivate."""
        operator = Actor(self.organization_id, self.ann.id, is_command_line=True)
        await self.stores.user_administration.reactivate(operator, self.dog.id)

    async def begin_sessions(self) -> None:
        """Begins a session of Ann's, and one of Dog's, whom administrators sign out."""
        await self.reactivate_dog()
        for name, user_id in (("Session", self.ann.id), ("UsersSession", self.dog.id)):
            user = UserKey(self.organization_id, user_id)
            new = NewSession(user, SignInMethod.OIDC, f"{self.mark} address", f"{self.mark} agent")
            self.ids[name] = token_digest(await self.stores.sessions.begin(new))

    async def add_passkey(self) -> None:
        """Gives Ann a local account with one passkey."""
        key, now = user_document_id(self.organization_id, self.ann.id), datetime.now(UTC)
        account = {"address": f"{self.mark}@ann.example", "hash": "x", "language": "en", "password_at": now, "at": now}
        await self.stores.mongo["local_accounts"].update_one({"_id": key}, {"$set": account}, upsert=True)
        await self.stores.mongo["passkeys"].delete_many({"org": self.organization_id, "user": self.ann.id})
        new = NewPasskey(token_bytes(32), token_bytes(32), b"key", 0, False, f"{self.mark} phone")
        self.ids["Passkey"] = (await self.stores.passkeys.add(Actor(self.organization_id, self.ann.id), new)).id

    async def invite(self) -> None:
        """Creates an invitation to the community for an address, and one to the organization for many people."""
        actor = Actor(self.organization_id, self.ann.id)
        anyone = NewInvitation(Role.MEMBER, None, None, 100, timedelta(days=1), MailLanguage.EN)
        one = replace(anyone, community_id=self.ids["Community"], address=f"{self.mark}@example.org", max_uses=1)
        await self.stores.invitations.create(actor, one, None)
        created = await self.stores.invitations.create(actor, anyone, None)
        self.ids |= {"Invitation": created.invitation.id, "InvitationToken": created.token or ""}

    async def launch_call_jobs(self) -> None:
        """Launches two jobs. The call of the first job is refused, the call of the second job stays active."""
        organization_id = self.organization_id
        for is_refused in (True, False):
            new = NewCallJob(
                organization_id, "ann", f"{self.mark} job", f"{self.mark} words", None, self.window, 1, 60, 60
            )
            csv = f"phone_number,{self.mark}\n+819012345678,{self.mark}\n"
            job = await self.stores.call_jobs.launch(new, csv, None)
            next_call = NextCall(TaskKey(job.id, 2), "+819012345678")
            while not isinstance(start := await self.stores.calls.start(organization_id, next_call, 1), TimedStart):
                await asyncio.sleep(0.01)
            if is_refused:
                await self.stores.calls.fail(start.call, f"{self.mark} refused")
        self.ids |= {"CallJob": job.id, "Call": start.call.id}

    @property
    def window(self) -> CallingWindow:
        """A window that is always open."""
        return CallingWindow("00:00", "00:00", "UTC", WEEK)

    async def schedule_posts(self) -> None:
        """Connects an account, schedules a post, and leaves a publication in the state UNKNOWN."""
        mark, organization_id, stores = self.mark, self.organization_id, self.stores
        verified = VerifiedAccount(handle=f"{mark}@example.org")
        new = AccountToConnect(organization_id, Network.SANDBOX, f"{mark} account", None, verified=verified)
        account = await stores.accounts.connect(new, "lose", None)
        media = [ScheduledMedia(f"https://{mark}.example/a.png", f"{mark} hill", MediaKind.IMAGE)]
        target = AccountTarget(account.id, account.network)
        post = NewScheduledPost(organization_id, self.ann.id, f"{mark} text", media, [target], DUE_AT, "UTC", 3600)
        self.ids["ConnectedAccount"] = account.id
        # Without media, so that every target takes it.
        self.ids["ScheduledPost"] = (await stores.scheduled_posts.schedule(replace(post, media=()), None)).id
        self.ids["Publication"] = (await self._publish(post)).id

    async def refuse_credentials(self) -> None:
        """Leaves a publication of Ann's that waits for other credentials of its account."""
        mark, organization_id, stores = self.mark, self.organization_id, self.stores
        new = AccountToConnect(organization_id, Network.SANDBOX, f"{mark} account", None)
        account = await stores.accounts.connect(new, "ok", None)
        targets, due_at = [AccountTarget(account.id, account.network)], datetime.now(UTC).replace(microsecond=0)
        post = NewScheduledPost(organization_id, self.ann.id, f"{mark} text", (), targets, due_at, "UTC", 3600)
        scheduled = await stores.scheduled_posts.schedule(post, None)
        (claim,) = [each for each in await stores.claims.claim(1000) if each.scheduled_post_id == scheduled.id]
        nonce = (await stores.accounts.sealed_credentials(account))["nonce"]
        hold = HoldForAttention(claim, "UNAUTHORIZED", f"{mark} is refused", nonce)
        self.ids["RefusedPublication"] = (await stores.scheduled_posts.apply(hold)).id

    async def _publish(self, post: NewScheduledPost) -> Publication:
        """Publishes two posts. The second call gets no answer. Returns the second publication, which is UNKNOWN."""
        stores = self.stores
        publications = []
        for _ in range(2):
            due = replace(post, due_at=datetime.now(UTC).replace(microsecond=0) - timedelta(seconds=1))
            scheduled = await stores.scheduled_posts.schedule(due, None)
            claims = await stores.claims.claim(1000)
            (claim,) = [each for each in claims if each.scheduled_post_id == scheduled.id]
            publications.append(await stores.scheduled_posts.apply(BeginAttempt(claim, PublishingPhase.CALLING, "key")))
        mark_published = MarkPublished(
            publications[0], f"{self.mark} id", f"https://{self.mark}.example/", f"{self.mark} said so"
        )
        await stores.scheduled_posts.apply(mark_published)
        return await stores.scheduled_posts.apply(MarkUnknown(publications[1], f"{self.mark} is silent", MANUAL))

    async def emit_on_every_stream(self) -> None:
        """Emits an event on every stream that Ann may subscribe to."""
        await self.cat.post(self.ids["Topic"], f"{self.mark} @{self.mark}_ann")
        self.ids["Job"] = await self.create_post()
        await self.report_message()
        id_ = self.ids["Conversation"]
        await self.stores.messages.post(NewMessage(id_, id_, self.cat.id, f"{self.mark} ahoy", None, ()))
        await self.stores.typing.begin(self.ids["Topic"], self.ids["Partner"])

    async def report_message(self) -> None:
        """Posts two messages as Dog. Ann reports the first, and the report stays open. Nobody reports the second."""
        message, other = [await self.dog.post(self.ids["Topic"], f"{self.mark} noise") for _ in range(2)]
        self.ids["Subject"] = other["id"]
        await self.ann.run(REPORT, id=message["id"], text=f"{self.mark} loud")
        self.ids["ContentReport"] = content_report_id(
            self.organization_id, ContentReportSubject.MESSAGE, message["id"], self.ann.id
        )

    async def create_post(self) -> str:
        """Creates a post of Ann's with every optional field, and returns its id."""
        text = f"{self.mark} @{self.mark}_cat #{self.mark} #words https://{self.mark}.example/"
        return await self.ann.create_post(text, mediaUrls=[f"https://{self.mark}.example/a.png"])


async def create_organization(sign_in: SignIn, mark: str, organization_id: str | None = None) -> OrganizationScenario:
    """Creates an organization, by default with the mark as its id.

    Ann, Cat, Owl and Yak have the same ids in every organization. Organizations with the same mark have equal contents.
    """
    organization_id = organization_id or mark
    ann, cat, dog = [
        await sign_in(id_, organization_id, roles, name=f"{mark} {name}", handle=f"{mark}_{name}")
        for id_, name, roles in (
            ("ann", "ann", list(Role)),
            ("cat", "cat", [Role.MEMBER]),
            (f"dog-of-{mark}", "dog", [Role.MEMBER]),
        )
    ]
    await sign_in.stores.users.sign_in(
        *(organization_id, ann.id, list(Role), f"{mark} ann", None, f"{mark}@mail.example"), is_email_verified=True
    )
    await sign_in.stores.users.change_profile(Actor(organization_id, ann.id), {"bio": f"{mark} fishes"})
    organization = OrganizationScenario(mark, organization_id, ann, cat, dog, {"User": dog.id, "Author": dog.id})
    organization.ids["Community"] = await organization.ann.create_community(
        f"{mark} Fishers", description=f"{mark} on the sea"
    )
    community = await organization.stores.communities.get(organization_id, organization.ids["Community"])
    owl = await sign_in("owl", organization_id, [Role.MEMBER], name=f"{mark} owl", handle=f"{mark}_owl")
    await owl.join(community.id)
    await organization.stores.moderation.set_role(community, Moderator(ann.id), "owl", CommunityRole.OWNER)
    await sign_in(f"elk-of-{mark}", organization_id, [Role.MEMBER], name=f"{mark} elk", handle=f"{mark}_elk")
    await organization.stores.moderation.ban_member(
        community, Moderator(ann.id), f"elk-of-{mark}", None, f"{mark} reason"
    )
    await add_join_request(organization, community, await sign_in(f"emu-of-{mark}", organization_id))
    fox = await sign_in(f"fox-of-{mark}", organization_id, [Role.MEMBER], name=f"{mark} fox", handle="fox")
    await organization.stores.erasures.request(Actor(organization_id, fox.id), fox.id, "fox")
    organization.ids["ErasedUser"] = fox.id
    organization.ids["Topic"] = await organization.ann.create_topic(organization.ids["Community"], f"{mark} Tides")
    organization.ids["Node"] = organization.ids["Topic"]
    await organization.stores.call_jobs.set_limits(organization_id, 1000, 100)
    job_with_bad_row = NewCallJob(organization_id, "ann", f"{mark} bad", "words", None, None, 1, 60, 60)
    await organization.stores.call_jobs.launch(
        job_with_bad_row, f"phone_number,{mark}\n+819012345678,{'x' * 3000}\n", None
    )
    yak = await sign_in("yak", organization_id, [Role.MEMBER], name=f"{mark} yak", handle=f"{mark}_yak")
    yurts = [await yak.create_community(f"{mark} Yurt", description=mark) for _ in range(2)]
    organization.ids["CommunityWithoutOwner"] = min(yurts)
    actor = Actor(organization_id, ann.id, f"{mark} address", f"{mark} agent")
    await organization.stores.user_administration.deactivate(actor, "yak", f"{mark} reason")
    await organization.create_everything()
    await _add_content(organization)
    return organization


async def add_join_request(organization: OrganizationScenario, community: Community, person: Person) -> None:
    """Leaves a request of the person to join the community, which is public again afterwards."""
    moderation, ann = organization.stores.moderation, Moderator(organization.ann.id)
    assert person.user is not None
    await moderation.update_community(community, ann, None, None, CommunityVisibility.LISTED)
    await moderation.request_to_join(community, person.user, f"{organization.mark} please")
    await moderation.update_community(community, ann, None, None, CommunityVisibility.PUBLIC)


async def _add_content(organization: OrganizationScenario) -> None:
    ann, cat, topic = organization.ann, organization.cat, organization.ids["Topic"]
    await ann.block(organization.dog)
    await _add_mutes(organization)
    attachment = {"uploadId": organization.ids["Upload"], "altText": f"{organization.mark} hill"}
    text = f"{organization.mark} @{organization.mark}_cat https://{organization.mark}.example/"
    message = await ann.post(topic, text, stampId="hello", attachments=[attachment])
    await organization.upload_file()
    await cat.run(REACT, id=message["id"], emoji="🐟")
    await ann.run(MARK_READ, topic=topic, at=message["timestamp"])
    url = f"https://{organization.mark}.example/"
    title, words, site = (f"{organization.mark} {each}" for each in ("title", "words", "site"))
    picture = PreviewPicture(f"{url}a.png", 640, 400, f"{organization.mark} blurhash")
    preview = LinkPreview(url, title, words, f"{url}a.png", site, picture)
    await organization.stores.messages.set_preview(message_key(message["id"]), url, preview)
    organization.ids["Message"] = message["id"]
    await cat.post(topic, f"{organization.mark} reply", replyTo=message["id"])
    await until_outbox_is_empty(organization.stores)
    await _add_reports(organization)
    organization.ids["Job"] = await organization.create_post()
    await _add_responses(organization)
    await _add_audit_entries(organization)
    await _add_mail_changes(organization)
    await organization.superuser.run(UNBLOCK, reason=f"{organization.mark} asked for it")


async def _add_responses(organization: OrganizationScenario) -> None:
    """Lets Cat reply to a post of Ann's, edit the reply, quote the post, repost it and react to it."""
    cat, posts = organization.cat, organization.stores.posts
    post = await posts.get(post_key(organization.organization_id, organization.ids["Job"]))
    parent = post.as_parent(PostParentKind.REPLY)
    reply = NewPost(organization.organization_id, cat.id, f"{organization.mark} reply", (), (), (), parent=parent)
    key = (await posts.create(reply)).key
    await organization.stores.post_edits.edit(key, cat.id, NewText(f"{organization.mark} late reply", (), ()))
    quoted = post.as_parent(PostParentKind.QUOTE)
    await posts.create(NewPost(organization.organization_id, cat.id, organization.mark, (), (), (), parent=quoted))
    await posts.repost(cat.id, post)
    await organization.stores.post_reactions.add(post, cat.id, "🐟")


async def _add_mutes(organization: OrganizationScenario) -> None:
    """Mutes a user, a topic, a community and a post for Ann, which hides nothing that other tests look for."""
    mutes, owner = organization.stores.mutes, UserKey(organization.organization_id, organization.ann.id)
    quiet = await organization.ann.create_topic(organization.ids["Community"], f"{organization.mark} Quiet")
    community = await organization.ann.create_community(f"{organization.mark} Quiet", description=organization.mark)
    await mutes.mute(owner, MuteSubject.COMMUNITY, community, None)
    organization.ids["Mute"] = (await mutes.mute(owner, MuteSubject.TOPIC, quiet, None)).id
    await mutes.mute(owner, MuteSubject.USER, organization.dog.id, None)
    post = await organization.ann.create_post(f"{organization.mark} Quiet")
    await mutes.mute(owner, MuteSubject.POST, post, None)
    settings = organization.stores.notification_settings
    await settings.set_level(owner, NotificationPlace(NotificationPlaceKind.TOPIC, quiet), NotificationLevel.NOTHING)
    await settings.set_level(
        owner, NotificationPlace(NotificationPlaceKind.COMMUNITY, community), NotificationLevel.NOTHING
    )


async def _add_reports(organization: OrganizationScenario) -> None:
    """Leaves two open reports and two decided ones: by Cat about Ann, and by Ann about Dog. Owl warned Ann and Dog.

    One of the open reports is of a direct message of Cat.
    """
    ann, cat, dog, topic = organization.ann, organization.cat, organization.dog, organization.ids["Topic"]
    direct = await cat.post(organization.ids["Conversation"], f"{organization.mark} quarrel")
    await ann.run(REPORT, id=direct["id"], text=f"{organization.mark} rude")
    await organization.report_message()
    for author, reporter in ((ann, cat), (dog, ann)):
        message = await author.post(topic, f"{organization.mark} gossip")
        await reporter.run(REPORT, id=message["id"], text=f"{organization.mark} rude")
        await _warn(organization, message["id"], reporter)


async def _warn(organization: OrganizationScenario, message_id: str, reporter: Person) -> None:
    """Decides the reporter's report of the message as Owl, with a warning of the author."""
    reports, organization_id = organization.stores.content_reports, organization.organization_id
    id_ = content_report_id(organization_id, ContentReportSubject.MESSAGE, message_id, reporter.id)
    ruling = ReportRuling(ContentReportDecision.WARN, f"{organization.mark} note", None)
    await reports.decide(await reports.get(organization_id, id_), Moderator("owl"), ruling)


async def _add_mail_changes(organization: OrganizationScenario) -> None:
    """Sets a policy, and blocks a domain and an address by hand."""
    book, org, reason = organization.stores.address_book, organization.organization_id, f"{organization.mark} words"
    blocked = Address(f"{organization.mark}@mail.example", "mail.example")
    await book.policies.set(org, DEFAULT_POLICY, 0, organization.dog.id, reason, None, keep_addresses=True)
    await book.set_domain_blocked(org, f"{organization.mark}.example", True, organization.dog.id, reason)
    await book.decisions.store([blocked], AddressDecision(org, True, organization.dog.id, reason))
    newest, *_ = await book.changes.page(org, [], None, 2)
    organization.ids["MailChange"] = newest.id


async def _add_audit_entries(organization: OrganizationScenario) -> None:
    """Adds two entries of the audit log about Dog."""
    mark, stores, dog = organization.mark, organization.stores, organization.dog
    actor = Actor(organization.organization_id, dog.id, f"{mark} address", f"{mark} agent")
    now = await stores.clock.now()
    action = AuditAction.USER_DEACTIVATED
    entries = [audit_document(actor, action, TargetKind.USER, dog.id, now, reason=f"{mark} words") for _ in range(2)]

    async def insert(session: Session) -> None:
        for entry in entries:
            await stores.audit.insert(entry, session)

    await stores.mongo.transact(insert)
    organization.ids |= {"AuditEntry": max(entry["_id"] for entry in entries), "Actor": dog.id}


def unknown_ids() -> dict[str, str]:
    """Returns well-formed ids of objects that do not exist."""
    timestamp = 1700000000000000
    post = PostKey("canary", timestamp).id
    message = f"{new_id()}-{timestamp}"
    people, posts = (
        dict.fromkeys(("User", "Author", "Actor", "ErasedUser"), "nobody"),
        dict.fromkeys(("Post", "Job"), post),
    )
    calls = {"CallJob": new_id(), "Call": f"{new_id()}-2-1"}
    types = (
        "Community",
        "CommunityWithoutOwner",
        "Topic",
        "Node",
        "ConnectedAccount",
        "ScheduledPost",
        "Publication",
        "AuditEntry",
        "Session",
        "UsersSession",
    )
    types = (
        *types,
        "Conversation",
        "RequestedConversation",
        "Partner",
        "Passkey",
        "PushDevice",
        "ServiceKey",
        "Webhook",
        "WebhookDelivery",
        "ContentReport",
        "HeldPost",
        "RefusedPublication",
        "Invitation",
        "InvitationToken",
        "Upload",
        *PICTURE_UPLOADS,
        "LibraryFile",
        "StampPack",
    )
    return {
        "Message": message,
        "Subject": message,
        "MailChange": str(ObjectId()),
        "Mute": f"USER:{new_id()}",
        **people,
        **posts,
        **calls,
        **{name: new_id() for name in types},
    }
