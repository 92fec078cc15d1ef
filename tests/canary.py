"""A person whose name, handle, addresses and texts are unique, and a search for them in everything that is stored."""

import base64
import io
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

import bson
from redis.asyncio import Redis

from resolvers.context import Client, Context
from storage.identity.roles import Role
from storage.ids import message_key
from storage.link_previews import LinkPreview
from storage.mongo import Mongo
from storage.publishing.records import PublishingPhase
from storage.publishing.transitions import MANUAL, BeginAttempt, MarkPublished, MarkUnknown
from storage.stores import Stores
from tests.resolvers.people import DELETE, EDIT, REACT, Person, SignIn

WORD = "zorblax"
ADDRESS = "203.0.113.77"
STRINGS = (WORD, ADDRESS)
"""Strings that nobody else uses. Each text about the person contains the word."""

CONNECT = "mutation ($input: ConnectAccountInput!) { done: connectAccount(input: $input) { id } }"
SCHEDULE = "mutation ($input: SchedulePostInput!) { done: schedulePost(input: $input) { id } }"
UNBLOCK = 'mutation ($reason: String!) { unblockAddress(address: "ann@example.org", reason: $reason) { address } }'
BLOCK_DOMAIN = """
mutation ($reason: String!) { setDomainBlocked(domain: "example.org", blocked: true, reason: $reason) { domain } }
"""
MARK_READ = "mutation ($topic: ID!, $at: Timestamp!) { markRead(topicId: $topic, timestamp: $at) { id } }"
MARK_NOTIFICATIONS = "mutation ($at: Timestamp!) { markNotificationsRead(timestamp: $at) }"
BAN = """
mutation ($community: ID!, $user: ID!, $reason: String!) {
  banMember(communityId: $community, userId: $user, reason: $reason) { until }
}
"""
ASK = """
mutation ($community: ID!, $message: String!) {
  done: requestToJoin(communityId: $community, message: $message) { id }
}
"""


class CanaryPerson(Person):
    """A person with a recognizable client."""

    @property
    def context(self) -> Context:
        return replace(super().context, client=Client(ADDRESS, f"{WORD} browser"))


async def create_canary(stores: Stores, organization: str = "acme") -> tuple[CanaryPerson, Person]:
    """Returns a person who has used everything, and Bob, with whom the person had to do."""
    sign_in = SignIn(stores)
    roles = [Role.MEMBER, Role.OPERATOR]
    await stores.users.sign_in(organization, "user-1", roles, f"{WORD} Q", f"{WORD}_q", f"{WORD}@example.net")
    signed_in = await sign_in("user-1", organization, roles)
    canary = CanaryPerson(stores, signed_in.user, signed_in.roles)
    bob = await sign_in("bob", organization)
    await _local_account(stores, organization)
    await _chat(stores, canary, bob, await sign_in("eve", organization))
    await _feed(canary, bob)
    await _publish(stores, canary)
    await canary.run(UNBLOCK, reason=f"{WORD} asked for it")
    await canary.run(BLOCK_DOMAIN, reason=f"{WORD} asked for it")
    return canary, bob


async def _local_account(stores: Stores, organization: str) -> None:
    """Stores what a local account with links, mails and an invitation leaves."""
    address, until = {"org": organization, "address": f"{WORD}@example.net"}, datetime.now(UTC) + timedelta(days=1)
    account = {"_id": {"org": organization, "id": "user-1"}, "address": address["address"], "hash": "x"}
    times = {"language": "EN", "password_at": until, "at": until}
    await stores.mongo["local_accounts"].insert_one({**account, **times})
    link = {**address, "digest": organization, "digests": [organization], "expires_at": until, "due": until}
    for collection in ("account_tokens", "account_mails", "invitations"):
        await stores.mongo[collection].insert_one({"_id": f"{organization}-1", **link})


async def _chat(stores: Stores, canary: Person, bob: Person, eve: Person) -> None:
    own = await canary.create_community("Fishers", idempotencyKey=f"{WORD}-key")
    topic = await canary.create_topic(own, "Tides")
    await bob.join(own)
    text = f"{WORD} @bob https://example.org/{WORD}"
    message = await canary.post(topic, text, stampId="hello", idempotencyKey=f"{WORD}-key-2")
    url = f"https://example.org/{WORD}"
    preview = LinkPreview(url, f"{WORD} title", f"{WORD} words", f"{url}.png", WORD)
    await stores.messages.set_preview(message_key(message["id"]), url, preview)
    edited = await canary.post(topic, f"{WORD} first")
    await canary.do(EDIT, id=edited["id"], text=f"{WORD} second")
    await canary.do(DELETE, id=(await canary.post(topic, f"{WORD} third"))["id"])
    others = await bob.post(topic, "Hello")
    await canary.do(REACT, id=others["id"], emoji="🐟")
    await bob.do(REACT, id=message["id"], emoji="🦀")
    await canary.run(MARK_READ, topic=topic, at=others["timestamp"])
    await eve.join(own)
    await canary.run(BAN, community=own, user=eve.id, reason=f"{WORD} reason")


async def _feed(canary: Person, bob: Person) -> None:
    await canary.follow(bob)
    await bob.follow(canary)
    await canary.create_post(f"{WORD} #{WORD} @bob", mediaUrls=[f"https://example.org/{WORD}.png"])
    await bob.create_post("Hello")
    await canary.run(MARK_NOTIFICATIONS, at="1.000000")


async def _publish(stores: Stores, canary: Person) -> None:
    """Connects an account, publishes two posts to it, the second with an unknown outcome, and schedules a third."""
    secret = {"network": "SANDBOX", "name": f"{WORD} account", "credentials": "ok"}
    account = (await canary.do(CONNECT, input=secret))["id"]
    common = {"text": f"{WORD} text", "toAccountIds": [account], "timeZone": "UTC"}
    due = (datetime.now(UTC) - timedelta(seconds=1)).isoformat()
    for _ in range(2):
        await canary.do(SCHEDULE, input={**common, "dueAt": due})
    first, second = [
        await stores.scheduled_posts.apply(BeginAttempt(claim, PublishingPhase.CALLING, claim.id))
        for claim in await stores.claims.claim(10)
    ]
    posts = stores.mongo["sandbox_posts"]
    await posts.insert_one({"_id": {"account": account, "key": first.id}, "id": "1", "text": f"{WORD} text"})
    await stores.scheduled_posts.apply(MarkPublished(first, WORD, f"https://example.org/{WORD}", WORD))
    await stores.scheduled_posts.apply(MarkUnknown(second, f"{WORD} is silent", MANUAL))
    await canary.do(SCHEDULE, input={**common, "dueAt": "2030-01-01T00:00:00Z", "toHomeFeed": True})


def encodings(text: str) -> Iterator[bytes]:
    """Yields the forms in which a text may be stored: as it is, escaped, and in the parts of its base64 form."""
    data = text.encode()
    yield from (data, data.hex().encode(), quote(text, safe="").encode(), data.decode().encode("utf-16-le"))
    for offset in range(3):
        # The characters that encode neighbouring bytes are cut off.
        encoded = base64.b64encode(b"\0" * offset + data)
        yield encoded[-(-offset * 4 // 3) : len(encoded) // 4 * 4 - 4]


NEEDLES = {text: [needle.lower() for needle in encodings(text)] for text in STRINGS}


def found_strings(data: bytes, strings: Sequence[str] = STRINGS) -> list[str]:
    """Returns the strings that the data hold in any encoding that the product uses, also compressed."""
    searched = b"\n".join(expanded(data)).lower()
    return [text for text in strings if any(needle in searched for needle in NEEDLES[text])]


def expanded(data: bytes) -> Iterator[bytes]:
    """Yields the data, and what they contain in compressed form."""
    yield data
    if data[:2] == b"\x1f\x8b":
        yield zlib.decompress(data, 31)
    if zipfile.is_zipfile(io.BytesIO(data)):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            yield from (archive.read(name) for name in archive.namelist())


async def documents_with_strings(mongo: Mongo) -> dict[str, list[str]]:
    """Returns the documents that hold any of the strings, by collection."""
    found: dict[str, list[str]] = {}
    for name in await mongo.database.list_collection_names():
        async for document in mongo[name].find():
            if found_strings(bson.encode(document)):
                found.setdefault(name, []).append(repr(document))
    return found


async def keys_with_strings(redis: Redis, prefix: str) -> list[str]:
    """Returns the Redis keys of a database whose names or values hold any of the strings."""
    return [
        key.decode()
        async for key in redis.scan_iter(match=f"*{prefix}*", count=1000)
        if found_strings(key + (await redis.dump(key) or b""))
    ]
