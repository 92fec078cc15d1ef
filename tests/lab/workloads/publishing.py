"""Publishing: scheduled posts to a topic, the author's home feed and twins of two networks; some are cancelled."""

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.lab.history import FINAL
from tests.lab.session import RETRY_S, Laboratory, WorkloadSession, micros
from tests.twins.mastodon import MastodonTwin
from tests.twins.twin import NetworkTwin
from tests.twins.webhook import WebhookTwin

AREA = "publishing"
AUTHORS = 2
FINISH_DEADLINE_S = 300.0
FINAL_STATES = {"PUBLISHED", "FAILED", "CANCELLED"}
PUBLICATIONS = "publications { id state publishedAt externalId error { code } }"
CONNECT = "mutation ($input: ConnectAccountInput!) { connectAccount(input: $input) { id } }"
SCHEDULE = f"mutation ($input: SchedulePostInput!) {{ schedulePost(input: $input) {{ id {PUBLICATIONS} }} }}"
CANCEL = f"mutation ($id: ID!) {{ cancelScheduledPost(id: $id) {{ id {PUBLICATIONS} }} }}"
SCHEDULED = f"query ($id: ID!) {{ scheduledPost(id: $id) {{ id {PUBLICATIONS} }} }}"
COMMUNITY = "mutation ($input: CreateCommunityInput!) { createCommunity(input: $input) { id } }"
TOPIC = "mutation ($input: CreateTopicInput!) { createTopic(input: $input) { id } }"
MESSAGES = """query ($id: ID!, $oldest: Timestamp!) {
  messages(topicId: $id, oldest: $oldest, limit: 999, inclusive: false) { items { timestamp text } } }"""
POSTS = """query ($id: ID!, $oldest: Timestamp!) {
  posts(authorId: $id, oldest: $oldest, limit: 999, inclusive: false) { items { timestamp text } } }"""


@dataclass
class PublishingWorkload:
    """Authors with the role OPERATOR, the topic that they publish to, and the twins."""

    laboratory: Laboratory
    mastodon: NetworkTwin
    hook: NetworkTwin
    topic: str = ""
    accounts: dict[str, str] = field(default_factory=dict)
    scheduled: dict[str, str] = field(default_factory=dict)
    """Ids of acknowledged posts by text."""

    async def prepare(self) -> None:
        """Creates the topic and connects the accounts."""
        founder = self._session("editor0")
        community = await founder.run_until_ok(
            "createCommunity", {}, COMMUNITY, input={"name": "News", "idempotencyKey": "news"}
        )
        for number in range(1, AUTHORS):
            join = "mutation ($id: ID!) { joinCommunity(communityId: $id) { id } }"
            await self._session(f"editor{number}").run_until_ok("membershipOfNews", {}, join, id=community["id"])
        topic = {"communityId": community["id"], "title": "News", "idempotencyKey": "news-topic"}
        self.topic = (await founder.run_until_ok("createTopic", {}, TOPIC, input=topic))["id"]
        hook = {"network": "WEBHOOK", "baseUrl": f"{self.hook.url}/hook", "credentials": WebhookTwin.secret}
        mastodon = {"network": "MASTODON", "baseUrl": self.mastodon.url, "credentials": MastodonTwin.token}
        for name, account in {"hook": hook, "mastodon": mastodon}.items():
            account |= {"name": name, "idempotencyKey": name}
            self.accounts[name] = (await founder.run_until_ok("connectAccount", {}, CONNECT, input=account))["id"]

    async def run(self) -> None:
        """Lets the authors schedule and cancel posts until the run ends."""
        await asyncio.gather(*(self._schedule(self._session(f"editor{n}")) for n in range(AUTHORS)))

    async def finish(self) -> None:
        """Waits until every publication has its outcome, and reads all targets."""
        begin = self.laboratory.history.now()
        open_posts = dict(self.scheduled)
        session = self._session("editor0").as_final()
        while open_posts:
            for text, id_ in list(open_posts.items()):
                post = await session.run_until_ok(
                    "scheduledPost", {"text": text}, SCHEDULED, _states_and_errors, id=id_
                )
                if {state for state, *_ in post} <= FINAL_STATES:
                    del open_posts[text]
            if self.laboratory.history.now() > begin + FINISH_DEADLINE_S:
                break
            await asyncio.sleep(RETRY_S)
        await self._read_targets(session)

    async def _read_targets(self, session: WorkloadSession) -> None:
        await self._read_all(session, "topic", MESSAGES, self.topic)
        for number in range(AUTHORS):
            await self._read_all(session, f"home of editor{number}", POSTS, f"editor{number}")
        for name, twin in {"hook": self.hook, "mastodon": self.mastodon}.items():
            posts = [[post.text, post.at] for post in twin.ledger]
            now = self.laboratory.history.now()
            self.laboratory.history.record(FINAL, AREA, "published", {"target": name}, now, "ok", posts)

    async def _read_all(self, session: WorkloadSession, target: str, query: str, id_: str) -> None:
        oldest, items = "0.000000", [("", 0.0)]
        while items:
            arguments = {"target": target}
            items = await session.run_until_ok("published", arguments, query, _texts_and_times, id=id_, oldest=oldest)
            if items:
                microseconds = round(max(at for _, at in items) * 1_000_000)
                oldest = f"{microseconds // 1_000_000}.{microseconds % 1_000_000:06d}"

    def _session(self, name: str) -> WorkloadSession:
        return self.laboratory.session(name, AREA, "OPERATOR")

    async def _schedule(self, session: WorkloadSession) -> None:
        number = 0
        while not self.laboratory.ended.is_set():
            number += 1
            text = f"{session.process}-news-{number}"
            await self._schedule_one(session, text)
            if text in self.scheduled and session.rng.random() < 0.2:
                await self.laboratory.pause(session.rng.uniform(0, 4))
                await session.run("cancel", {"text": text}, CANCEL, _states_and_errors, id=self.scheduled[text])
            await self.laboratory.pause(session.rng.uniform(0.2, 1.5))

    async def _schedule_one(self, session: WorkloadSession, text: str) -> None:
        due_at = self.laboratory.history.now() + session.rng.uniform(1, 12)
        due_at = round(due_at, 3)
        target = session.rng.choice(("topic", "home", "hook", "mastodon"))
        arguments = {
            "text": text,
            "target": f"home of {session.process}" if target == "home" else target,
            "due": due_at,
        }
        post: dict[str, Any] = {"text": text, "idempotencyKey": text, "toHomeFeed": target == "home"}
        post["dueAt"] = (datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=round(due_at * 1000))).isoformat()
        post["toTopicIds"] = [self.topic] if target == "topic" else []
        post["toAccountIds"] = [self.accounts[target]] if target in self.accounts else []
        for _ in range(session.rng.choice((1, 4))):
            outcome, result = await session.run("schedule", arguments, SCHEDULE, lambda post: post["id"], input=post)
            if outcome == "ok":
                self.scheduled[text] = result
                return
            await self.laboratory.pause(session.rng.uniform(0.1, 1.0))


def _states_and_errors(post: dict[str, Any]) -> list[Any]:
    return [[each["state"], (each["error"] or {}).get("code")] for each in post["publications"]]


def _texts_and_times(page: dict[str, Any]) -> list[tuple[str, float]]:
    return [(item["text"], micros(item["timestamp"]) / 1_000_000) for item in page["items"]]
