"""An organization with one of everything, and a mark in every text of it."""

from dataclasses import dataclass, field, replace

from storage.chat.records import LinkPreview, message_key
from storage.feed.records import PostKey
from storage.identity import Role
from storage.ids import new_id
from storage.stores import Stores
from tests.resolvers.people import REACT, Person, SignIn

UNBLOCK = 'mutation ($reason: String!) { unblockAddress(address: "ann@example.org", reason: $reason) { address } }'
MARK_READ = "mutation ($topic: ID!, $at: Timestamp!) { markRead(topicId: $topic, timestamp: $at) { id } }"


@dataclass
class World:
    """Ann writes, Cat answers, Dog is blocked by Ann. `ids` has one id of every type that has ids."""

    mark: str
    ann: Person
    cat: Person
    dog: Person
    ids: dict[str, str] = field(default_factory=dict)

    @property
    def stores(self) -> Stores:
        return self.ann.stores

    @property
    def chief(self) -> Person:
        """Ann with a token of every role."""
        return replace(self.ann, roles=frozenset(Role))

    async def renew(self) -> dict[str, str]:
        """The ids, with a message that nothing was done to; Ann and Cat are members again."""
        for person in (self.ann, self.cat):
            if not await self.stores.communities.is_member(self.ids["Community"], person.id):
                await person.join(self.ids["Community"])
        message = await self.ann.post(self.ids["Topic"], f"{self.mark} @{self.mark}_cat https://{self.mark}.example/")
        self.ids |= {"Message": message["id"], "Post": await self.create_post()}
        return self.ids

    async def stir(self) -> None:
        """Lets something happen in every stream that Ann listens to."""
        await self.cat.post(self.ids["Topic"], f"{self.mark} @{self.mark}_ann")
        self.ids["Job"] = await self.create_post()

    async def create_post(self) -> str:
        """The id of a post of Ann's that has everything that a post can have."""
        text = f"{self.mark} @{self.mark}_cat #{self.mark} https://{self.mark}.example/"
        return await self.ann.create_post(text, mediaUrls=[f"https://{self.mark}.example/a.png"])


async def build(sign_in: SignIn, mark: str) -> World:
    """The world of the organization named by the mark. Ann and Cat have the same ids in every organization."""
    ann, cat, dog = [
        await sign_in(id_, mark, name=f"{mark} {name}", handle=f"{mark}_{name}")
        for id_, name in (("ann", "ann"), ("cat", "cat"), (f"dog-of-{mark}", "dog"))
    ]
    world = World(mark, ann, cat, dog, {"User": dog.id, "Author": dog.id})
    world.ids["Community"] = await world.ann.found(f"{mark} Fishers", description=f"{mark} on the sea")
    world.ids["Topic"] = await world.ann.open_topic(world.ids["Community"], f"{mark} Tides")
    await world.renew()
    await _fill(world)
    return world


async def _fill(world: World) -> None:
    ann, cat, topic = world.ann, world.cat, world.ids["Topic"]
    await ann.block(world.dog)
    message = await ann.post(topic, f"{world.mark} @{world.mark}_cat https://{world.mark}.example/", stampId="hello")
    await cat.run(REACT, id=message["id"], emoji="🐟")
    await ann.run(MARK_READ, topic=topic, at=message["timestamp"])
    url = f"https://{world.mark}.example/"
    preview = LinkPreview(url, f"{world.mark} title", f"{world.mark} words", f"{url}a.png", f"{world.mark} site")
    await world.stores.messages.set_preview(message_key(message["id"]), url, preview)
    world.ids["Message"] = message["id"]
    world.ids["Job"] = await world.create_post()
    await world.chief.run(UNBLOCK, reason=f"{world.mark} asked for it")


def never_existed() -> dict[str, str]:
    """Ids that look like real ones and name nothing."""
    timestamp = 1700000000000000
    post = PostKey("canary", timestamp).id
    message = f"{new_id()}-{timestamp}"
    people, posts = dict.fromkeys(("User", "Author"), "nobody"), dict.fromkeys(("Post", "Job"), post)
    return {"Community": new_id(), "Topic": new_id(), "Message": message, **people, **posts}
