"""People who leave a group and come back, who block one another, and who follow threads."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.lab.session import Laboratory, WorkloadSession
from tests.lab.workloads.topic_messages import POST, new_message, posted_message, read_all, read_page

LEAVER, WATCHER, BLOCKER, BLOCKED = "leaver", "watcher", "blocker", "blocked"
ATTEMPTS_AFTER_LEAVING = 3
START = "mutation ($input: StartConversationInput!) { startConversation(input: $input) { topic { id } } }"
ACCEPT = "mutation ($id: ID!) { acceptConversation(conversationId: $id) { state } }"
ADD = "mutation ($id: ID!, $people: [ID!]!) { addToConversation(conversationId: $id, userIds: $people) { id } }"
LEAVE = "mutation ($id: ID!) { leaveConversation(conversationId: $id) }"
BLOCK = "mutation ($id: ID!) { %sUser(userId: $id) { id } }"
FOLLOW = "mutation ($id: ID!) { %sThread(messageId: $id) { id } }"
FOLLOWED = '{ followedThreads(latest: "now", limit: 50) { items { parentMessage { id } } } }'


@dataclass
class ConversationChanges:
    """The people who change conversations while others write."""

    laboratory: Laboratory
    area: str
    group: str
    """Id of a group."""

    adder: str
    """A person of the group, who adds people."""

    threads: Mapping[str, str]
    """Id of the thread of each parent in the group; more are added while people reply."""

    intrude: Callable[[WorkloadSession], Awaitable[None]]
    """Makes one attempt to read, find or write something without the right to do so."""

    pair: str = ""
    """Id of the conversation of the person who blocks and the one who is blocked."""

    async def prepare(self) -> None:
        """Adds the people to the group, and starts the conversation of two."""
        for name in (LEAVER, WATCHER, BLOCKER, BLOCKED):
            await self._session(name).run_until_ok("viewer", {}, "{ viewer { id } }")
        for name in (LEAVER, WATCHER):
            await self._join(name)
        await self._start_pair()
        await self._session(BLOCKED).run_until_ok("acceptConversation", {}, ACCEPT, id=self.pair)

    async def run(self) -> None:
        """Lets the people act until the run ends."""
        await asyncio.gather(self._come_and_go(), self._block_and_unblock(), self._defy(), self._follow())

    async def finish(self) -> None:
        """Reads the conversation of two, and which threads the follower follows."""
        await read_all(self._session(BLOCKED).as_final(), self.pair)
        await self._session(WATCHER).as_final().run_until_ok("followedThreads", {}, FOLLOWED, _parents)

    def _session(self, name: str, *more: str) -> WorkloadSession:
        return self.laboratory.session("-".join((name, *more)), self.area, user=name)

    async def _join(self, name: str) -> None:
        adder = self._session(self.adder, "adder")
        await adder.run_until_ok("addToConversation", {}, ADD, id=self.group, people=[name])
        await self._session(name).run_until_ok("acceptConversation", {}, ACCEPT, id=self.group)

    async def _start_pair(self) -> None:
        started = await self._session(BLOCKER).run_until_ok(
            "startConversation", {}, START, input={"userIds": [BLOCKED]}
        )
        self.pair = started["id"]

    async def _come_and_go(self) -> None:
        """Leaves the group, tries to read it, and joins it again. Nobody who has left reads anything."""
        session = self._session(LEAVER)
        while not self.laboratory.ended.is_set():
            await read_page(session, self.group, latest="now", limit=5)
            await self.laboratory.pause(session.rng.uniform(0.5, 2.0))
            await session.run_until_ok("leaveConversation", {}, LEAVE, id=self.group)
            for _ in range(ATTEMPTS_AFTER_LEAVING):
                await self.intrude(session)
            await self._join(LEAVER)

    async def _block_and_unblock(self) -> None:
        """Blocks a person, reads the conversation twice as that person, ends the block and starts again."""
        blocker, reader = self._session(BLOCKER), self._session(BLOCKED, "reader")
        while not self.laboratory.ended.is_set():
            await self.laboratory.pause(blocker.rng.uniform(0.5, 3.0))
            await self._change_block(blocker, "block")
            await read_page(reader, self.pair, latest="now", limit=5)
            await self.laboratory.pause(blocker.rng.uniform(0.5, 2.0))
            await read_page(reader, self.pair, latest="now", limit=5)
            await self._change_block(blocker, "unblock")
            await self._start_pair()

    async def _change_block(self, blocker: WorkloadSession, change: str) -> None:
        await blocker.run_until_ok("block", {"topic": self.pair, "change": change}, BLOCK % change, id=BLOCKED)

    async def _defy(self) -> None:
        """Writes to the conversation again and again, also while it is refused because of the block."""
        session, number = self._session(BLOCKED), 0
        while not self.laboratory.ended.is_set():
            number += 1
            text = f"defiant{number}"
            arguments, input_ = {"topic": self.pair, "text": text}, new_message(self.pair, text)
            await session.run("defy", arguments, POST, posted_message, input=input_)
            await self.laboratory.pause(session.rng.uniform(0.02, 0.2))

    async def _follow(self) -> None:
        session = self._session(WATCHER)
        while not self.laboratory.ended.is_set():
            if self.threads:
                message, change = session.rng.choice([*self.threads]), session.rng.choice(("follow", "unfollow"))
                arguments = {"message": message, "change": change}
                await session.run_until_ok("followThread", arguments, FOLLOW % change, id=message)
            await self.laboratory.pause(session.rng.uniform(0.2, 1.0))


def _parents(page: dict[str, Any]) -> list[str]:
    return [item["parentMessage"]["id"] for item in page["items"]]
