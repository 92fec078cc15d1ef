"""An organization in which Bob has left his mark in everything that one person can show to another.

Ann may block Bob afterwards. Each of Bob's texts and names contains MARK, and only Bob reacts with EMOJIS.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from jobs.fan_out import finish_fan_outs
from storage.chat.roles import Moderator
from storage.feed.content_reports.records import ContentReportSubject, content_report_id
from storage.files.link_previews import LinkPreview
from storage.identity.roles import Role
from storage.ids import UserKey, message_key
from tests.jobs.contexts import job_context
from tests.resolvers.organization_scenario import REPORT, OrganizationScenario, create_organization
from tests.resolvers.people import EDIT, REACT, Answer, Person, SignIn, until_outbox_is_empty
from tests.storage.mail.events import hard
from tests.storage.mail.scenario import MailScenario
from tests.waiting import until

MARK = "weasel"
EMOJIS = "🦡🦨🦫"
HANDLE = "stoat"
"""Bob's handle, which others write in their own texts."""

START = "mutation ($input: StartConversationInput!) { done: startConversation(input: $input) { topic { id } } }"
REPOST = "mutation ($id: ID!) { done: repost(postId: $id) { id } }"
EDIT_POST = "mutation ($id: ID!, $text: String!) { done: editPost(id: $id, text: $text) { id } }"
REACT_TO_POST = "mutation ($id: ID!, $emoji: String!) { done: addPostReaction(postId: $id, emoji: $emoji) { id } }"
MUTE_POST = "mutation ($id: ID!) { mutePost(postId: $id) { id } }"
RENAME = "mutation ($id: ID!, $name: String!) { done: renameConversation(conversationId: $id, name: $name) { id } }"
SET_BIO = f'mutation {{ updateProfile(input: {{ bio: "{MARK} fishes" }}) {{ id }} }}'
SET_AVATAR = "mutation ($id: ID!) { done: setAvatar(uploadId: $id) { id } }"
SET_BANNER = "mutation ($id: ID!) { done: setBanner(uploadId: $id) { id } }"


@dataclass
class BlockedAuthorScenario:
    """Ann, who has every role, Cat, and Bob, who is a member of their community and writes in all places.

    `ids` has objects of Ann and Cat, in which Bob has left marks; `bobs_ids` has objects that Bob wrote.
    """

    organization: OrganizationScenario
    bob: Person
    ids: dict[str, str]
    bobs_ids: dict[str, str] = field(default_factory=dict)
    written_ids: set[str] = field(default_factory=set)
    """Ids of everything that Bob has written."""

    @property
    def ann(self) -> Person:
        return self.organization.superuser

    @property
    def cat(self) -> Person:
        """Cat with a token of every role."""
        return replace(self.organization.cat, roles=frozenset(Role))

    @property
    def marks(self) -> list[str]:
        """Texts that occur only in Bob's profile and in what he wrote."""
        return [MARK, *EMOJIS, *self.written_ids]

    async def write_everywhere(self, emoji: str) -> None:
        """Lets Bob write messages, replies, quotes, posts and reactions, in answer to Cat's."""
        await self.write_messages(self.ids["CatsMessage"], emoji)
        await self.write_posts(self.ids["CatsPost"], emoji)
        await self.show_presence()
        await self.settle()

    async def write_messages(self, message_id: str, emoji: str) -> None:
        """Posts and edits a message with a file and a preview, then replies to a message, quotes it and reacts."""
        topic, mark = self.ids["Topic"], self.organization.mark
        attachments = [{"uploadId": await self.upload(), "altText": MARK}]
        text = f"{MARK} @{mark}_ann @{mark}_cat https://{MARK}.example/"
        posted = await self.bob.post(topic, text, attachments=attachments)
        await self.bob.run(EDIT, id=posted["id"], text=f"late {text}")
        url = f"https://{MARK}.example/"
        preview = LinkPreview(url, MARK, MARK, f"{url}a.png", MARK)
        await self.organization.stores.messages.set_preview(message_key(posted["id"]), url, preview)
        written = [
            posted,
            await self.bob.post(topic, f"{MARK} reply", replyTo=message_id, alsoToTopic=True),
            await self.bob.post(topic, f"{MARK} quote", quotedMessageId=message_id),
            await self.bob.post(self.ids["Conversation"], f"{MARK} aboard"),
        ]
        await self.bob.run(REACT, id=message_id, emoji=emoji)
        self.written_ids |= {each["id"] for each in written}
        self.bobs_ids.setdefault("Message", posted["id"])

    async def write_posts(self, post_id: str, emoji: str) -> None:
        """Creates and edits a post, then replies to a post, quotes it, reposts it and reacts to it."""
        text = f"{MARK} @{self.organization.mark}_ann #{MARK} #words https://{MARK}.example/"
        attachments = [{"uploadId": await self.upload(), "altText": MARK}]
        post = await self.bob.create_post(text, attachments=attachments)
        await self.bob.run(EDIT_POST, id=post, text=f"late {text}")
        written = {
            post,
            await self.bob.create_post(
                f"{MARK} reply #words", inReplyTo=post_id, mediaUrls=[f"https://{MARK}.example/a"]
            ),
            await self.bob.create_post(f"{MARK} quote #words", quoteOf=post_id),
            (await self.bob.do(REPOST, id=post_id))["id"],
        }
        await self.bob.run(REACT_TO_POST, id=post_id, emoji=emoji)
        self.written_ids |= written
        self.bobs_ids.setdefault("Post", post)

    async def answer_bob(self) -> None:
        """Lets Ann and Cat answer what Bob wrote last. His message is pinned and reported, his post muted."""
        topic, message, post = self.ids["Topic"], self.bobs_ids["Message"], self.bobs_ids["Post"]
        mark, cat, stores = self.organization.mark, self.organization.cat, self.organization.stores
        await self.ann.post(topic, f"{mark} to his reply", replyTo=message)
        await cat.post(topic, f"{mark} to him and everybody", replyTo=message, alsoToTopic=True)
        await cat.post(topic, f"{mark} as @{HANDLE} says", quotedMessageId=message)
        await cat.create_post(f"{mark} against it", inReplyTo=post)
        await cat.create_post(f"{mark} see @{HANDLE}", quoteOf=post)
        await cat.run(REPOST, id=post)
        for person in (self.ann, cat):
            await person.run(MUTE_POST, id=post)
        await stores.messages.pin(message_key(message), Moderator("owl"))
        await cat.run(REPORT, id=message, text=f"{mark} loud")
        # Neither Ann nor Cat is the author: nobody sees reports about themselves.
        noise = await self.organization.dog.post(topic, f"{mark} noise")
        await self.bob.run(REPORT, id=noise["id"], text=f"{MARK} rude")
        self.bobs_ids["ContentReport"] = content_report_id(
            self.organization.organization_id, ContentReportSubject.MESSAGE, message, cat.id
        )
        await self.settle()

    async def report_and_name_topic(self) -> None:
        """Lets Bob report a message of Ann's and create a topic."""
        await self.bob.run(REPORT, id=self.ids["Message"], text=f"{MARK} rude")
        await self.bob.create_topic(self.ids["Community"], f"{MARK} den")

    async def end_every_stream(self, text: str, person_id: str) -> None:
        """Emits one more event on every stream of Ann and Cat, with this text or person."""
        topic, mark, stores = self.ids["Topic"], self.organization.mark, self.organization.stores
        organization_id = self.organization.organization_id
        await self.ann.create_topic(self.ids["Community"], text)
        for author, other in ((self.ann, self.organization.cat), (self.organization.cat, self.ann)):
            message = await author.post(topic, f"{text} @{mark}_{other.id}")
            await author.create_post(f"{text} #words")
            # Nobody sees reports about their own messages.
            await other.run(REPORT, id=message["id"], text=text)
        await self.organization.cat.run(RENAME, id=self.ids["Conversation"], name=text)
        await self.settle()
        await stores.call_jobs.set_limits(organization_id, 998, 100)
        await MailScenario(stores, organization_id).add_events(hard())
        stores.online.connect(UserKey(organization_id, person_id))
        await stores.typing.begin(topic, person_id)

    async def renew(self, types: Collection[str]) -> dict[str, str]:
        """Creates new objects of these types, with marks of Bob's on the messages, posts and conversations."""
        organization, bob = self.organization, self.bob
        ids = await organization.renew(types)
        if "Message" in types:
            await bob.run(REACT, id=ids["Message"], emoji=EMOJIS[0])
            self.written_ids.add((await bob.post(ids["Topic"], f"{MARK} reply", replyTo=ids["Message"]))["id"])
        if "Post" in types:
            await self.ann.unblock(bob)
            self.written_ids.add(await bob.create_post(f"{MARK} reply", inReplyTo=ids["Post"]))
            await bob.run(REACT_TO_POST, id=ids["Post"], emoji=EMOJIS[0])
            await self.ann.block(bob)
        if "Conversation" in types:
            started = await organization.cat.do(
                START, input={"userIds": [self.ann.id, bob.id], "groupName": "canary raft"}
            )
            self.written_ids.add((await bob.post(started["topic"]["id"], f"{MARK} aboard"))["id"])
            ids["Conversation"] = started["topic"]["id"]
        ids["Author"] = organization.cat.id
        if types:
            await until_outbox_is_empty(organization.stores)
        return ids

    async def show_presence(self) -> None:
        """Makes Bob online, and lets him type in the topic."""
        stores = self.organization.stores
        assert self.bob.user is not None
        stores.online.connect(self.bob.user.key)

        async def is_online() -> bool:
            return bool(await stores.online.online_among(self.organization.organization_id, [self.bob.id]))

        await until(is_online)
        await stores.typing.begin(self.ids["Topic"], self.bob.id)

    async def settle(self) -> None:
        """Waits until all streams, notifications and home feeds have what was written."""
        await until_outbox_is_empty(self.organization.stores)
        while await finish_fan_outs(job_context(self.organization.stores)):
            pass
        await until_outbox_is_empty(self.organization.stores)

    async def upload(self, type_: str = "Upload") -> str:
        """Uploads a picture of Bob's, and returns its id."""
        bobs = replace(self.organization, mark=MARK, ann=self.bob, ids={})
        await (bobs.upload_file() if type_ == "Upload" else bobs.renew_upload(type_))
        (upload_id,) = bobs.ids.values()
        self.written_ids.add(upload_id)
        return upload_id


async def create_blocked_author(sign_in: SignIn) -> BlockedAuthorScenario:
    """Creates the organization. Ann and Bob follow each other and have a conversation; nobody is blocked yet."""
    organization = await create_organization(sign_in, "canary")
    ann, cat, topic = organization.ann, organization.cat, organization.ids["Topic"]
    bob = await sign_in(f"{MARK}-bob", "canary", [Role.MEMBER], name=f"{MARK} bob", handle=HANDLE)
    scenario = BlockedAuthorScenario(organization, bob, dict(organization.ids))
    await bob.run(SET_BIO)
    await bob.run(SET_AVATAR, id=await scenario.upload("AvatarUpload"))
    await bob.run(SET_BANNER, id=await scenario.upload("BannerUpload"))
    await bob.join(organization.ids["Community"])
    for follower, followee in ((ann, bob), (bob, ann), (cat, bob), (ann, cat)):
        await follower.follow(followee)
    pair = await bob.do(START, input={"userIds": [ann.id]})
    await bob.post(pair["topic"]["id"], f"{MARK} in private")
    group = await cat.do(START, input={"userIds": [ann.id, bob.id], "groupName": "canary raft"})
    scenario.ids |= {
        "Conversation": group["topic"]["id"],
        "Message": (await ann.post(topic, "canary shore"))["id"],
        "CatsMessage": (await cat.post(topic, "canary cliff"))["id"],
        "Post": await ann.create_post("canary bay #words"),
        "CatsPost": await cat.create_post("canary cape #words"),
        "Author": cat.id,
        "Partner": bob.id,
    }
    scenario.bobs_ids |= {
        "Conversation": pair["topic"]["id"],
        "Topic": await bob.create_topic(organization.ids["Community"], f"{MARK} burrow"),
        "User": bob.id,
        "Author": bob.id,
    }
    await scenario.write_messages(scenario.ids["Message"], EMOJIS[0])
    await scenario.write_posts(scenario.ids["Post"], EMOJIS[0])
    await scenario.write_everywhere(EMOJIS[0])
    await scenario.answer_bob()
    return scenario


def marked_paths(root: str, answer: Answer, marks: Collection[str]) -> Iterator[tuple[str, ...]]:
    """Yields the path of each text of an answer that contains a mark: its fields from the root on, with their types."""
    yield from _marked_paths(answer["data"], root, (), marks)


def _marked_paths(value: Any, type_: str, path: tuple[str, ...], marks: Collection[str]) -> Iterator[tuple[str, ...]]:
    if isinstance(value, list):
        for item in value:
            yield from _marked_paths(item, type_, path, marks)
    elif isinstance(value, dict):
        for name, each in value.items():
            step = f"{value.get('__typename', type_)}.{name}"
            yield from _marked_paths(each, "", (*path, step), marks)
    elif isinstance(value, str) and any(mark in value for mark in marks):
        yield path
