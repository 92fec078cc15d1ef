"""Feeds: posts, follows, home feeds, and subscriptions to home feeds."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from tests.client import SubscriptionSocket
from tests.lab.checkers.feeds import kept_posts
from tests.lab.history import History, Outcome, select
from tests.lab.session import RETRY_S, Laboratory, WorkloadSession, micros, timestamp
from tests.lab.workloads.topic_subscribers import CONNECT_TIMEOUT_S, SOCKET_ERRORS

AREA = "feed"
AUTHORS, READERS = 3, 3
FINISH_DEADLINE_S = 240.0
CREATE = "mutation ($input: CreatePostInput!) { createPost(input: $input) { timestamp } }"
FOLLOW = "mutation ($id: ID!) { follow(userId: $id) { id } }"
FOLLOWERS = "query ($id: ID!) { user(id: $id) { followerCount } }"
HOME = """query ($oldest: Timestamp, $latest: Timestamp, $limit: Int!) {
  homeFeed(oldest: $oldest, latest: $latest, limit: $limit, inclusive: false) { hasNewer items { timestamp text } } }"""
EVENTS = """subscription ($since: Cursor) { homeFeedEvents(since: $since) {
  kind: __typename ... on Event { cursor } ... on StreamReady { resumed } ... on PostArrived { post { text } } } }"""


@dataclass
class HomeSubscriber:
    """A reader who subscribes to the home feed, loses the socket, and resumes after the last received event."""

    session: WorkloadSession
    cursor: str | None = None
    received: set[str] = field(default_factory=set)
    first_ready: float | None = None

    async def run(self) -> None:
        """Subscribes again and again until the run ends."""
        while not self.session.laboratory.ended.is_set():
            await self.subscribe(self.session.rng.uniform(2, 25))
            await self.session.laboratory.pause(RETRY_S)

    async def subscribe(self, seconds: float, expected: frozenset[str] = frozenset()) -> None:
        """Records one subscription. Ends the subscription early if it has received all posts of `expected`."""
        begin = self.session.history.now()
        result: dict[str, Any] = {"resumed": None, "ready": None, "events": []}
        arguments = {"since": self.cursor}
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S) as deadline, self.session.socket() as socket:
                await socket.subscribe(EVENTS, since=self.cursor)
                await self._receive_event(socket, result)
                deadline.reschedule(asyncio.get_running_loop().time() + seconds)
                while not expected or not expected <= self.received:
                    await self._receive_event(socket, result)
        except SOCKET_ERRORS as error:
            result["ended"] = f"{type(error).__name__}: {error}"
        outcome: Outcome = "fail" if result["ready"] is None else "ok"
        self.session.history.record(self.session.process, AREA, "homeSubscription", arguments, begin, outcome, result)

    async def _receive_event(self, socket: SubscriptionSocket, result: dict[str, Any]) -> None:
        event = await socket.next_event()
        self.cursor = event["cursor"]
        if event["kind"] == "StreamReady":
            result |= {"resumed": event["resumed"], "ready": self.session.history.now()}
            self.first_ready = self.first_ready or result["ready"]
        elif event["kind"] == "PostArrived":
            result["events"].append([event["cursor"], event["post"]["text"]])
            self.received.add(event["post"]["text"])


@dataclass
class FeedWorkload:
    """Authors and readers. Reader n follows author n after some time, and all other authors from the beginning."""

    laboratory: Laboratory
    subscribers: list[HomeSubscriber] = field(default_factory=list)

    async def prepare(self) -> None:
        """Makes every reader follow most of the authors."""
        for author in range(AUTHORS):
            await self._session(f"author{author}").run_until_ok("viewer", {}, "{ viewer { id } }")
        for reader in range(READERS):
            for author in range(AUTHORS):
                if author != reader:
                    await self._follow(reader, author)

    async def run(self) -> None:
        """Lets all users act until the run ends."""
        self.subscribers = [HomeSubscriber(self._session(f"reader{n}")) for n in range(READERS)]
        await asyncio.gather(
            *(self._post(self._session(f"author{n}")) for n in range(AUTHORS)),
            *(self._read(self._session(f"reader{n}")) for n in range(READERS)),
            *(self._follow_later(n) for n in range(READERS)),
            *(subscriber.run() for subscriber in self.subscribers),
        )

    async def finish(self) -> None:
        """Waits until each reader's feed and subscription have every post, and reads all feeds."""
        operations = list(select(self.laboratory.history.operations, "createPost", outcome=None))
        await asyncio.gather(*(self._finish_reader(n, operations) for n in range(READERS)))
        for author in range(AUTHORS):
            session = self._session(f"author{author}").as_final()
            name = f"author{author}"
            await session.run_until_ok("followers", {"user": name}, FOLLOWERS, _follower_count, id=name)

    async def _finish_reader(self, number: int, posts: History) -> None:
        session, begin = self._session(f"reader{number}"), self.laboratory.history.now()
        missing = kept_posts(posts, [f"author{n}" for n in range(AUTHORS)])
        while missing and self.laboratory.history.now() < begin + FINISH_DEADLINE_S:
            missing -= await self._read_all(session)
            await asyncio.sleep(RETRY_S)
        subscriber = self.subscribers[number]
        ready, author = subscriber.first_ready or begin, f"author{number}"
        later = [
            operation
            for operation in select(posts, "createPost")
            if operation["process"] != author and operation["begin"] > ready
        ]
        expected = frozenset(operation["arguments"]["text"] for operation in later)
        while not expected <= subscriber.received and self.laboratory.history.now() < begin + FINISH_DEADLINE_S:
            await subscriber.subscribe(20.0, expected)
        await self._read_all(session.as_final(), reader=f"reader{number}")

    def _session(self, name: str) -> WorkloadSession:
        return self.laboratory.session(name, AREA)

    async def _post(self, session: WorkloadSession) -> None:
        number = 0
        while not self.laboratory.ended.is_set():
            number += 1
            text = f"{session.process}-{number}"
            key = {"text": text, "idempotencyKey": text}
            for _ in range(session.rng.choice((1, 3, 10))):
                outcome, _result = await session.run("createPost", {"text": text}, CREATE, _timestamp, input=key)
                if outcome == "ok":
                    await self._read_newest(session)
                    break
                await self.laboratory.pause(session.rng.uniform(0.1, 1.0))
            await self.laboratory.pause(session.rng.uniform(0.2, 1.5))

    async def _read(self, session: WorkloadSession) -> None:
        while not self.laboratory.ended.is_set():
            await self._read_newest(session)
            await self.laboratory.pause(session.rng.uniform(0.2, 1.0))

    async def _read_newest(self, session: WorkloadSession) -> None:
        arguments = {"oldest": None, "latest": "now", "limit": 20, "reader": session.process}
        await session.run("homeFeed", arguments, HOME, _feed_page, latest="now", limit=20)

    async def _read_all(self, session: WorkloadSession, reader: str | None = None) -> set[str]:
        """Reads the whole feed, and returns the texts."""
        position, has_newer, texts = 0, True, set()
        while has_newer:
            arguments = {"oldest": position, "latest": None, "limit": 999, "reader": reader or session.process}
            page = await session.run_until_ok(
                "homeFeed", arguments, HOME, _feed_page, oldest=timestamp(position), limit=999
            )
            texts |= {text for _, text in page["items"]}
            position, has_newer = max([position, *(at for at, _ in page["items"])]), page["newer"]
        return texts

    async def _follow(self, reader: int, author: int) -> None:
        session = self._session(f"reader{reader}")
        await session.run_until_ok("follow", {"author": f"author{author}"}, FOLLOW, id=f"author{author}")

    async def _follow_later(self, number: int) -> None:
        await self.laboratory.pause(self.laboratory.random(f"follow{number}").uniform(5, 60))
        await self._follow(number, number)


def _timestamp(post: dict[str, Any]) -> int:
    return micros(post["timestamp"])


def _follower_count(user: dict[str, Any]) -> Any:
    return user["followerCount"]


def _feed_page(page: dict[str, Any]) -> dict[str, Any]:
    return {"items": [[micros(item["timestamp"]), item["text"]] for item in page["items"]], "newer": page["hasNewer"]}
