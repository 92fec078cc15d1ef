"""An organization with an object of every type. Each text in it contains its mark, a word that names it."""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from storage.calls.calls import NextCall, TimedStart
from storage.calls.job_changes import NewCallJob
from storage.calls.records import TaskKey
from storage.calls.windows import WEEK, CallingWindow
from storage.chat.moderation_changes import Moderator
from storage.chat.records import Community
from storage.chat.roles import CommunityRole
from storage.chat.visibility import CommunityVisibility
from storage.feed.content_reports.changes import Verdict
from storage.feed.content_reports.records import (
    ContentReportDecision,
    ContentReportSubject,
    content_report_id,
)
from storage.identity.access_changes import UserKey
from storage.identity.accounts.invitations import NewInvitation
from storage.identity.accounts.local_accounts import Language
from storage.identity.audit import Actor, AuditAction, TargetKind, audit_document
from storage.identity.keys.records import NewServiceKey
from storage.identity.roles import Role
from storage.identity.session_records import NewSession, SignInMethod
from storage.identity.sessions import token_hash
from storage.ids import PostKey, message_key, new_id
from storage.link_previews import LinkPreview
from storage.mongo import Session
from storage.publishing.accounts import NewAccount
from storage.publishing.networks import MediaKind, Network
from storage.publishing.records import AccountTarget, Publication, PublishingPhase, ScheduledMedia
from storage.publishing.scheduling import NewScheduledPost as NewScheduledPost
from storage.publishing.transitions import MANUAL, BeginAttempt, MarkPublished, MarkUnknown
from storage.stores import Stores
from tests.resolvers.people import REACT, Person, SignIn

DUE_AT = datetime(2030, 1, 1, tzinfo=UTC)
UNBLOCK = 'mutation ($reason: String!) { unblockAddress(address: "ann@example.org", reason: $reason) { address } }'
REPORT = """
mutation ($id: ID!, $text: String!) {
  reportContent(subject: MESSAGE, subjectId: $id, category: HARASSMENT, text: $text)
}
"""
MARK_READ = "mutation ($topic: ID!, $at: Timestamp!) { markRead(topicId: $topic, timestamp: $at) { id } }"


CALLS = frozenset({"CallJob", "Call"})
PUBLISHING = frozenset({"ConnectedAccount", "ScheduledPost", "Publication"})
INVITATIONS = frozenset({"Invitation", "InvitationToken"})
"""Types whose objects are slow to create. `renew` creates new ones only on request."""


@dataclass
class OrganizationScenario:
    """An organization of five people. Ann is the author and has every role. Cat replies. Ann blocked Dog.

    Ann and Owl own the community, from which Elk is banned. Fox is being erased.

    `ids` has the id of an object of every type with ids.
    """

    mark: str
    organization_id: str
    ann: Person
    cat: Person
    dog: Person
    ids: dict[str, str] = field(default_factory=dict)

    @property
    def stores(self) -> Stores:
        return self.ann.stores

    @property
    def superuser(self) -> Person:
        """Ann with a token of every role."""
        return replace(self.ann, roles=frozenset(Role))

    async def renew(self, types: Collection[str] = CALLS | PUBLISHING | INVITATIONS) -> dict[str, str]:
        """Creates a message, a post and objects of these types, and makes Ann and Cat members. Returns all ids."""
        await self.restore_community()
        message = await self.ann.post(self.ids["Topic"], f"{self.mark} @{self.mark}_cat https://{self.mark}.example/")
        self.ids |= {"Message": message["id"], "Post": await self.create_post(), "Session": await self.begin_session()}
        if not INVITATIONS.isdisjoint(types):
            await self.invite()
        if not {"ContentReport", "Subject"}.isdisjoint(types):
            await self.report_message()
        if not CALLS.isdisjoint(types):
            await self.launch_call_jobs()
        if not PUBLISHING.isdisjoint(types):
            await self.schedule_posts()
        if "ServiceKey" in types or "ServiceKey" not in self.ids:
            await self.create_service_key()
        return self.ids

    async def create_service_key(self) -> None:
        """Creates two service keys, of which `ids` names the one that a list begins with."""
        actor, new = Actor(self.organization_id, self.ann.id), NewServiceKey(f"{self.mark} service", ["chat:read"])
        created = [await self.stores.service_keys.create(actor, new) for _ in range(2)]
        self.ids["ServiceKey"] = max(each.key.id for each in created)

    async def restore_community(self) -> None:
        """Makes Ann an owner, and Cat and Dog members of the community, which fields may have changed."""
        communities, moderation, owl = self.stores.communities, self.stores.moderation, Moderator("owl")
        community = await communities.get(self.organization_id, self.ids["Community"])
        await moderation.set_archived(community, owl, False)
        await moderation.set_role(community, owl, "owl", CommunityRole.OWNER)
        if await moderation.role(community.id, self.dog.id) is not None:
            await moderation.set_role(community, owl, self.dog.id, CommunityRole.MEMBER)
        await moderation.unban(community, owl, self.dog.id)
        await moderation.mute(community, owl, self.dog.id, None)
        for person in (self.ann, self.cat, self.dog):
            await person.join(community.id)
        await moderation.set_role(community, owl, self.ann.id, CommunityRole.OWNER)

    async def begin_session(self) -> str:
        """Begins a session of Ann's, and returns its id."""
        ann = UserKey(self.organization_id, self.ann.id)
        new = NewSession(ann, SignInMethod.OIDC, f"{self.mark} address", f"{self.mark} agent")
        return token_hash(await self.stores.sessions.begin(new))

    async def invite(self) -> None:
        """Creates an invitation to the community for an address, and one to the organization for many people."""
        actor = Actor(self.organization_id, self.ann.id)
        anyone = NewInvitation(Role.MEMBER, None, None, 100, timedelta(days=1), Language.EN)
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
        new = NewAccount(organization_id, Network.SANDBOX, f"{mark} account", None)
        account = await stores.accounts.connect(new, "lose", None)
        media = [ScheduledMedia(f"https://{mark}.example/a.png", f"{mark} hill", MediaKind.IMAGE)]
        target = AccountTarget(account.id, account.network)
        post = NewScheduledPost(organization_id, self.ann.id, f"{mark} text", media, [target], DUE_AT, "UTC", 3600)
        self.ids["ConnectedAccount"] = account.id
        # Without media, so that every target takes it.
        self.ids["ScheduledPost"] = (await stores.scheduled_posts.schedule(replace(post, media=()), None)).id
        self.ids["Publication"] = (await self._publish(post)).id

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

    async def report_message(self) -> None:
        """Leaves an open report of a new message of Dog's by Ann, and a message of Dog's that is not reported."""
        message, other = [await self.dog.post(self.ids["Topic"], f"{self.mark} noise") for _ in range(2)]
        self.ids["Subject"] = other["id"]
        await self.ann.run(REPORT, id=message["id"], text=f"{self.mark} loud")
        self.ids["ContentReport"] = content_report_id(
            self.organization_id, ContentReportSubject.MESSAGE, message["id"], self.ann.id
        )

    async def create_post(self) -> str:
        """Creates a post of Ann's with every optional field, and returns its id."""
        text = f"{self.mark} @{self.mark}_cat #{self.mark} https://{self.mark}.example/"
        return await self.ann.create_post(text, mediaUrls=[f"https://{self.mark}.example/a.png"])


async def create_organization(sign_in: SignIn, mark: str, organization_id: str | None = None) -> OrganizationScenario:
    """Creates an organization, by default with the mark as its id.

    Ann and Cat have the same ids in every organization. Organizations with the same mark have equal contents.
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
    await organization.stores.call_jobs.set_limits(organization_id, 1000, 100)
    job_with_bad_row = NewCallJob(organization_id, "ann", f"{mark} bad", "words", None, None, 1, 60, 60)
    await organization.stores.call_jobs.launch(
        job_with_bad_row, f"phone_number,{mark}\n+819012345678,{'x' * 3000}\n", None
    )
    await organization.renew()
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
    message = await ann.post(
        topic, f"{organization.mark} @{organization.mark}_cat https://{organization.mark}.example/", stampId="hello"
    )
    await cat.run(REACT, id=message["id"], emoji="🐟")
    await ann.run(MARK_READ, topic=topic, at=message["timestamp"])
    url = f"https://{organization.mark}.example/"
    preview = LinkPreview(
        url, f"{organization.mark} title", f"{organization.mark} words", f"{url}a.png", f"{organization.mark} site"
    )
    await organization.stores.messages.set_preview(message_key(message["id"]), url, preview)
    organization.ids["Message"] = message["id"]
    await _add_reports(organization)
    organization.ids["Job"] = await organization.create_post()
    await _add_audit_entries(organization)
    await organization.superuser.run(UNBLOCK, reason=f"{organization.mark} asked for it")


async def _add_reports(organization: OrganizationScenario) -> None:
    """Leaves an open report, and decided ones of Ann's message, about which Owl warned her, and of Dog's by Ann."""
    ann, cat, dog, topic = organization.ann, organization.cat, organization.dog, organization.ids["Topic"]
    await organization.report_message()
    for author, reporter in ((ann, cat), (dog, ann)):
        message = await author.post(topic, f"{organization.mark} gossip")
        await reporter.run(REPORT, id=message["id"], text=f"{organization.mark} rude")
        await _warn(organization, message["id"], reporter)


async def _warn(organization: OrganizationScenario, message_id: str, reporter: Person) -> None:
    """Decides the reporter's report of the message."""
    reports, organization_id = organization.stores.content_reports, organization.organization_id
    id_ = content_report_id(organization_id, ContentReportSubject.MESSAGE, message_id, reporter.id)
    verdict = Verdict(ContentReportDecision.WARN, f"{organization.mark} note", None)
    await reports.decide(await reports.get(organization_id, id_), Moderator("owl"), verdict)


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
    types = ("Community", "Topic", "ConnectedAccount", "ScheduledPost", "Publication", "AuditEntry", "Session")
    types = (*types, "ServiceKey", "ContentReport", *INVITATIONS)
    return {"Message": message, "Subject": message, **people, **posts, **calls, **{name: new_id() for name in types}}
