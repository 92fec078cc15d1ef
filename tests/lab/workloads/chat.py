"""Chat: posts, pages by `oldest` and `latest`, reactions, read marks and memberships."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from tests.lab.session import Laboratory, WorkloadSession, micros, timestamp
from tests.lab.workloads.topic_messages import POST, new_message, posted_message, read_all, read_page
from tests.lab.workloads.topic_subscribers import TopicSubscriber

AREA = "chat"
POSTERS, PAGERS, SUBSCRIBERS, REACTORS, MARKERS, JOINERS = 3, 3, 2, 2, 2, 2
TOPICS = 2
EMOJIS = ("👍", "🔥", "🎉")
REACTION = "mutation ($id: ID!, $emoji: String!) { %s(messageId: $id, emoji: $emoji) { id } }"
REACTIONS = "query ($id: ID!) { message(id: $id) { reactions { emoji count users(limit: 50) { id } } } }"
MARK = "mutation ($topic: ID!, $at: Timestamp!) { markRead(topicId: $topic, timestamp: $at) { readUpTo } }"
READ_UP_TO = "query ($topic: ID!) { topic(id: $topic) { readUpTo } }"
MEMBERSHIP = "mutation ($id: ID!) { %sCommunity(communityId: $id) { id } }"
MEMBERS = "query ($id: ID!) { community(id: $id) { memberCount members(limit: 100) { id } } }"


@dataclass
class ChatWorkload:
    """The users of one community with TOPICS topics."""

    laboratory: Laboratory
    community: str = ""
    topics: list[str] = field(default_factory=list)
    posted: list[tuple[str, str, int]] = field(default_factory=list)
    """Topic, id and timestamp of each acknowledged message."""

    subscribers: list[TopicSubscriber] = field(default_factory=list)

    async def prepare(self) -> None:
        """Creates the community and its topics. Every user joins, except those who join and leave later."""
        founder = self._session("founder")
        create = "mutation ($input: CreateCommunityInput!) { createCommunity(input: $input) { id } }"
        key = {"name": "Hills", "idempotencyKey": "hills"}
        self.community = (await founder.run_until_ok("createCommunity", {}, create, input=key))["id"]
        create = "mutation ($input: CreateTopicInput!) { createTopic(input: $input) { id } }"
        for number in range(TOPICS):
            topic = {"communityId": self.community, "title": f"Hill {number}", "idempotencyKey": f"hill-{number}"}
            self.topics.append((await founder.run_until_ok("createTopic", {}, create, input=topic))["id"])
        for name, count in {"poster": POSTERS, "pager": PAGERS, "subscriber": SUBSCRIBERS, "marker": MARKERS}.items():
            await asyncio.gather(*(self._change_membership(self._session(f"{name}{n}"), "join") for n in range(count)))
        await asyncio.gather(*(self._change_membership(self._session(f"reactor{n}"), "join") for n in range(REACTORS)))
        await self._change_membership(founder, "join")

    async def run(self) -> None:
        """Lets all users act until the run ends."""
        self.subscribers = [
            TopicSubscriber(self._session(f"subscriber{n}"), self.topics[n % TOPICS]) for n in range(SUBSCRIBERS)
        ]
        await asyncio.gather(
            *(self._post(self._session(f"poster{n}")) for n in range(POSTERS)),
            *(self._page_forward(self._session(f"pager{n}"), self.topics[n % TOPICS]) for n in range(PAGERS - 1)),
            self._page_anywhere(self._session(f"pager{PAGERS - 1}")),
            *(subscriber.run() for subscriber in self.subscribers),
            *(self._react(self._session(f"reactor{n}")) for n in range(REACTORS)),
            *(self._move_read_mark(self._session(f"marker{n}"), self.topics[n % TOPICS]) for n in range(MARKERS)),
            *(self._join_and_leave(self._session(f"joiner{n}")) for n in range(JOINERS)),
        )

    async def finish(self) -> None:
        """Posts a last message to each topic, waits until each subscriber has received it, and reads everything."""
        poster = self._session("poster0")
        for number, topic in enumerate(self.topics):
            text = f"last-{number}"
            await poster.run_until_ok(
                "post", {"topic": topic, "text": text}, POST, posted_message, input=new_message(topic, text)
            )
            readers = [each for each in self.subscribers if each.topic == topic]
            await asyncio.gather(*(each.read_until(text) for each in readers))
        founder = self._session("founder").as_final()
        await asyncio.gather(*(read_all(founder, topic) for topic in self.topics))
        for number in range(MARKERS):
            marker = self._session(f"marker{number}")
            await self._read_mark(marker, self.topics[number % TOPICS])
        await founder.run_until_ok("members", {}, MEMBERS, _members, id=self.community)
        for id_ in sorted(
            {
                operation["arguments"]["message"]
                for operation in founder.history.operations
                if operation["operation"] == "react"
            }
        ):
            await founder.run_until_ok("reactions", {"message": id_}, REACTIONS, _reactions, id=id_)

    def _session(self, name: str) -> WorkloadSession:
        return self.laboratory.session(name, AREA)

    async def _post(self, session: WorkloadSession) -> None:
        number = 0
        while not self.laboratory.ended.is_set():
            number += 1
            topic, text = session.rng.choice(self.topics), f"{session.process}-{number}"
            for _ in range(session.rng.choice((1, 3, 10))):
                arguments = {"topic": topic, "text": text}
                outcome, result = await session.run(
                    "post", arguments, POST, posted_message, input=new_message(topic, text)
                )
                if outcome == "ok":
                    self.posted.append((topic, result["id"], result["timestamp"]))
                    break
                await self.laboratory.pause(session.rng.uniform(0.1, 1.0))
            await self.laboratory.pause(session.rng.uniform(0.02, 0.5))

    async def _page_forward(self, session: WorkloadSession, topic: str) -> None:
        position = 0
        while not self.laboratory.ended.is_set():
            limit = session.rng.choice((1, 3, 10, 50, 999))
            outcome, page = await read_page(session, topic, oldest=position, limit=limit, inclusive=False)
            if outcome == "ok" and page["items"]:
                position = page["items"][-1][0]
            await self.laboratory.pause(session.rng.uniform(0.02, 0.3))

    async def _page_anywhere(self, session: WorkloadSession) -> None:
        while not self.laboratory.ended.is_set():
            topic, limit = session.rng.choice(self.topics), session.rng.choice((1, 5, 30, 200))
            bounds = sorted(session.rng.choice(self.posted)[2] for _ in range(2)) if self.posted else [0, 1]
            arguments: dict[str, Any] = session.rng.choice(
                (
                    {"latest": "now"},
                    {"latest": "now"},
                    {"latest": bounds[1]},
                    {"oldest": bounds[0]},
                    {"oldest": bounds[0], "latest": bounds[1]},
                )
            )
            inclusive = session.rng.random() < 0.5
            await read_page(session, topic, limit=limit, inclusive=inclusive, **arguments)
            await self.laboratory.pause(session.rng.uniform(0.02, 0.2))

    async def _react(self, session: WorkloadSession) -> None:
        while not self.laboratory.ended.is_set():
            if self.posted:
                _, message, _ = session.rng.choice(self.posted[-20:])
                emoji, field_ = (
                    session.rng.choice(EMOJIS),
                    session.rng.choice(("addReaction", "addReaction", "removeReaction")),
                )
                arguments = {"message": message, "emoji": emoji, "add": field_ == "addReaction"}
                await session.run_until_ok("react", arguments, REACTION % field_, id=message, emoji=emoji)
            await self.laboratory.pause(session.rng.uniform(0.1, 0.6))

    async def _move_read_mark(self, session: WorkloadSession, topic: str) -> None:
        while not self.laboratory.ended.is_set():
            if timestamps := [at for topic_id, _, at in self.posted[-50:] if topic_id == topic]:
                at = session.rng.choice(timestamps)
                arguments = {"topic": topic, "timestamp": at}
                await session.run("markRead", arguments, MARK, _read_up_to, topic=topic, at=timestamp(at))
                await session.run("readUpTo", {"topic": topic}, READ_UP_TO, _read_up_to, topic=topic)
            await self.laboratory.pause(session.rng.uniform(0.2, 0.8))

    async def _join_and_leave(self, session: WorkloadSession) -> None:
        change = "join"
        while not self.laboratory.ended.is_set():
            await self._change_membership(session, change)
            change = session.rng.choice(("join", "leave"))
            await self.laboratory.pause(session.rng.uniform(0.3, 1.5))

    async def _change_membership(self, session: WorkloadSession, change: str) -> None:
        await session.run_until_ok("membership", {"change": change}, MEMBERSHIP % change, id=self.community)

    async def _read_mark(self, session: WorkloadSession, topic: str) -> None:
        await session.run_until_ok("readUpTo", {"topic": topic}, READ_UP_TO, _read_up_to, topic=topic)


def _reactions(message: dict[str, Any]) -> list[Any]:
    return [[each["emoji"], each["count"], [user["id"] for user in each["users"]]] for each in message["reactions"]]


def _read_up_to(topic: dict[str, Any]) -> int | None:
    return None if topic["readUpTo"] is None else micros(topic["readUpTo"])


def _members(community: dict[str, Any]) -> dict[str, Any]:
    return {"count": community["memberCount"], "members": [user["id"] for user in community["members"]]}
