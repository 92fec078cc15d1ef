"""Fills a running product with demo data through its public API, as the demo users.

Repeating the fill within a day changes nothing: creations have idempotency keys, scheduled posts are recognized by
their texts, and existing avatars, banners and pictures stay. The last message of the last topic is posted at the end.
If it exists, the demo is complete and nothing is sent.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, TypeVar
from uuid import uuid4

import httpx2

from server.demo.call_lists import call_limits, call_lists
from server.demo.cast import BLOCKED, BLOCKER, DEMO_USERS, DemoCommunity, DemoTopic, DemoUser, all_topics, user
from server.demo.conversations import DemoConversation, DemoReaction, conversation
from server.demo.deliveries import days_of_mail, senders
from server.demo.picture_filling import choose_pictures
from server.demo.posts import follows, posts
from server.demo.private_filling import answer_post, open_thread, start_talks
from server.demo.schedule import ZONE, planner, scheduled_posts
from server.processes import StartupError

MAX_CONCURRENT = 50
REACTIONS_PER_REQUEST = 15
MAX_TRIES = 5
RETRY_S = 0.5
# The server asks for a longer wait if a setting is missing, such as the telephony provider. Waiting does not help then.
MAX_RETRY_S = 10.0
TIMEOUT_S = 30.0

ShowFillProgress = Callable[[int, int], None]
Result = TypeVar("Result")
PostedMessage = dict[str, Any]

VIEWER = "query Viewer { viewer { id } }"
SCHEDULED = 'query Scheduled { scheduledPosts(latest: "now") { items { text } } }'
SCHEDULE_POST = "mutation SchedulePost($input: SchedulePostInput!) { schedulePost(input: $input) { id } }"
CREATE_COMMUNITY = "mutation CreateCommunity($input: CreateCommunityInput!) { createCommunity(input: $input) { id } }"
JOIN_COMMUNITY = "mutation JoinCommunity($id: ID!) { joinCommunity(communityId: $id) { id } }"
CREATE_TOPIC = "mutation CreateTopic($input: CreateTopicInput!) { createTopic(input: $input) { id } }"
POST_MESSAGE = "mutation PostMessage($input: PostMessageInput!) { postMessage(input: $input) { id timestamp } }"
MARK_READ = "mutation MarkRead($id: ID!, $at: Timestamp!) { markRead(topicId: $id, timestamp: $at) { id } }"
BLOCK_USER = "mutation BlockUser($id: ID!) { blockUser(userId: $id) { id } }"
FOLLOW = "mutation Follow($id: ID!) { follow(userId: $id) { id } }"
CREATE_POST = "mutation CreatePost($input: CreatePostInput!) { createPost(input: $input) { id } }"
SET_CALL_LIMITS = "mutation SetCallLimits($input: CallLimitsInput!) { setCallLimits(input: $input) { id } }"
LAUNCH_CALL_JOB = "mutation LaunchCallJob($input: LaunchCallJobInput!) { launchCallJob(input: $input) { id } }"
RECORD_DELIVERIES = (
    "mutation RecordDeliveries($events: [DeliveryEventInput!]!) { recordDeliveries(events: $events) { accepted } }"
)
FILLED = """
query Filled($limit: Int!) {
  communities(joined: true, limit: 20) {
    name topics(limit: 20) { title messages(latest: "now", limit: $limit) { items { id } } }
  }
}
"""


class DemoError(StartupError):
    """The product refused an operation. The message names the operation and the server's reason."""


class _RetryLater(DemoError):
    """The server asks the client to retry later."""

    def __init__(self, message: str, retry_after_s: float) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


@dataclass(frozen=True, slots=True)
class CreatedTopic:
    """A topic that exists in the product, and the conversation to post in it."""

    id: str
    community: DemoCommunity
    plan: DemoTopic
    conversation: DemoConversation

    @property
    def steps(self) -> int:
        """The number of its messages, reactions and read marks."""
        return len(self.conversation.lines) + len(self.conversation.reactions) + len(self.conversation.read)


async def fill(base_url: str, token_for: Callable[[DemoUser], str], progress: ShowFillProgress | None = None) -> None:
    """Fills the product at `base_url`. `progress` is called with the steps done and the total.

    Raises: DemoError; httpx2.HTTPError when the product does not answer.
    """
    async with httpx2.AsyncClient(base_url=base_url, timeout=TIMEOUT_S, trust_env=False) as client:
        api = _DemoClient(client, token_for)
        if not await _is_filled(api):
            await _DemoFill(api, progress or (lambda done, total: None)).run()


async def _is_filled(api: "_DemoClient") -> bool:
    *_, (community, topic) = all_topics()
    answer = await api.run(user(community.members[0]), FILLED, limit=topic.size)
    pages = {
        (existing["name"], each["title"]): each["messages"]["items"]
        for existing in answer["communities"]
        for each in existing["topics"]
    }
    return len(pages.get((community.name, topic.title), ())) >= topic.size


class _DemoClient:
    """Runs operations in the name of demo users, at most MAX_CONCURRENT at once."""

    def __init__(self, client: httpx2.AsyncClient, token_for: Callable[[DemoUser], str]) -> None:
        self._client = client
        # The writes of a token with the role SERVICE are not limited.
        tokens = {each.id: token_for(replace(each, roles=(*each.roles, "SERVICE"))) for each in DEMO_USERS}
        self._headers = {id_: {"Authorization": f"Bearer {token}"} for id_, token in tokens.items()}
        self._slots = asyncio.Semaphore(MAX_CONCURRENT)

    async def run(self, demo_user: DemoUser, document: str, **variables: object) -> dict[str, Any]:
        """Returns the data of one operation. Retries temporary failures, as every operation is idempotent.

        Raises: DemoError, httpx2.HTTPError.
        """
        for tries_left in reversed(range(MAX_TRIES)):
            try:
                return await self._try(demo_user, document, variables)
            except (_RetryLater, httpx2.TransportError) as error:
                wait_s = error.retry_after_s if isinstance(error, _RetryLater) else RETRY_S
                if not tries_left or wait_s > MAX_RETRY_S:
                    raise
                await asyncio.sleep(wait_s)
        raise AssertionError("unreachable")

    async def _try(self, demo_user: DemoUser, document: str, variables: dict[str, object]) -> dict[str, Any]:
        async with self._slots:
            body = {"query": document, "variables": variables}
            response = await self._client.post("/graphql", json=body, headers=self._headers[demo_user.id])
        failure = f"{_operation_name(document)} as {demo_user.id} failed"
        try:
            answer: dict[str, Any] = response.json()
        except ValueError:
            raise DemoError(f"{failure}: HTTP {response.status_code}") from None
        for error in answer.get("errors") or ():
            raise _refusal(failure, error)
        data: dict[str, Any] = answer["data"]
        return data

    async def upload(self, demo_user: DemoUser, path: str, data: bytes) -> None:
        """Sends the bytes of an upload. Raises: DemoError, httpx2.HTTPError."""
        response = await self._client.put(path, content=data, headers=self._headers[demo_user.id])
        if response.status_code != HTTPStatus.NO_CONTENT:
            raise DemoError(f"The upload as {demo_user.id} failed: HTTP {response.status_code}")


class _DemoFill:
    """One fill of a product, with its progress."""

    def __init__(self, api: _DemoClient, progress: ShowFillProgress) -> None:
        self._api, self._progress = api, progress
        self._done = self._total = 0

    async def run(self) -> None:
        """Creates everything. Posts the last topic's last message at the end, since it marks the demo as complete."""
        await _run_all(self._api.run(each, VIEWER) for each in DEMO_USERS)
        communities = {community.key: community for community, _ in all_topics()}
        ids = dict(zip(communities, await _run_all(map(self._create_community, communities.values())), strict=True))
        topics = await _run_all(
            self._create_topic(ids[community.key], community, topic) for community, topic in all_topics()
        )
        self._total = sum(topic.steps for topic in topics)
        await self._follow_and_post()
        await _run_if_set_up(self._launch_calls())
        await _run_if_set_up(self._record_mail())
        *others, last = topics
        last_line = len(last.conversation.lines) - 1
        await _run_all(
            [
                self._fill_topic(last, last_line),
                *(self._fill_topic(topic, len(topic.conversation.lines)) for topic in others),
                choose_pictures(self._api, ids),
            ]
        )
        await _run_all([self._schedule_posts(), start_talks(self._api), open_thread(self._api, topics[0].id)])
        await self._api.run(user(BLOCKER), BLOCK_USER, id=user(BLOCKED).id)
        await self._post_message(last, last_line)

    async def _follow_and_post(self) -> None:
        """Creates follows before posts, and each author's posts in order. Workers deliver them to the followers."""
        await _run_all(self._api.run(follower, FOLLOW, id=followed.id) for follower, followed in follows())
        by_author: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for key, author, text in posts():
            by_author[author.handle].append((key, text))
        created = await _run_all(self._create_posts(user(handle), written) for handle, written in by_author.items())
        await answer_post(self._api, created[0][0])

    async def _create_posts(self, author: DemoUser, written: Sequence[tuple[str, str]]) -> list[str]:
        """Creates posts, and returns their ids."""
        inputs = [{"text": text, "idempotencyKey": key} for key, text in written]
        answers = [await self._api.run(author, CREATE_POST, input=fields) for fields in inputs]
        return [answer["createPost"]["id"] for answer in answers]

    async def _launch_calls(self) -> None:
        """Sets the call limits, then launches the lists in order. Workers start calling at once."""
        await _run_all(self._api.run(admin, SET_CALL_LIMITS, input=limits) for admin, limits in call_limits())
        for each in call_lists():
            await self._api.run(each.operator, LAUNCH_CALL_JOB, input=each.input)

    async def _record_mail(self) -> None:
        """Records the mail of all days. Events that a run on the same day recorded change nothing."""
        for events in days_of_mail(datetime.now(UTC)):
            await _run_all(self._api.run(each, RECORD_DELIVERIES, events=events) for each in senders())

    async def _create_community(self, community: DemoCommunity) -> str:
        """Creates a community, lets its other members join, and returns its id."""
        founder, *others = map(user, community.members)
        fields = {"name": community.name, "description": community.description}
        fields["idempotencyKey"] = f"demo-{community.key}"
        created = await self._api.run(founder, CREATE_COMMUNITY, input=fields)
        id_: str = created["createCommunity"]["id"]
        await _run_all(self._api.run(each, JOIN_COMMUNITY, id=id_) for each in others)
        return id_

    async def _create_topic(self, community_id: str, community: DemoCommunity, topic: DemoTopic) -> CreatedTopic:
        fields = {"communityId": community_id, "title": topic.title, "idempotencyKey": _topic_key(community, topic)}
        created = await self._api.run(user(community.members[0]), CREATE_TOPIC, input=fields)
        return CreatedTopic(created["createTopic"]["id"], community, topic, conversation(community, topic))

    async def _fill_topic(self, topic: CreatedTopic, size: int) -> None:
        """Posts `size` lines one after the other, because replies follow questions. Adds reactions and read marks."""
        posted = [await self._post_message(topic, n) for n in range(size)]
        requests = [
            self._add_reactions(posted, handle, batch)
            for handle, batch in _batches_by_author(topic.conversation.reactions)
        ]
        requests += [
            self._mark_read(topic, posted[min(n, size - 1)], handle) for handle, n in topic.conversation.read.items()
        ]
        await _run_all(requests)

    async def _post_message(self, topic: CreatedTopic, n: int) -> PostedMessage:
        line = topic.conversation.lines[n]
        key = f"{_topic_key(topic.community, topic.plan)}-{n}"
        fields = {"topicId": topic.id, "text": line.text, "stampId": line.stamp_id, "idempotencyKey": key}
        answer = await self._api.run(user(line.author), POST_MESSAGE, input=fields)
        self._advance(1)
        posted: PostedMessage = answer["postMessage"]
        return posted

    async def _add_reactions(self, posted: list[PostedMessage], handle: str, reactions: Sequence[DemoReaction]) -> None:
        variables = {f"m{n}": posted[each.line]["id"] for n, each in enumerate(reactions)}
        variables |= {f"e{n}": each.emoji for n, each in enumerate(reactions)}
        await self._api.run(user(handle), _reactions_mutation(len(reactions)), **variables)
        self._advance(len(reactions))

    async def _mark_read(self, topic: CreatedTopic, posted: PostedMessage, handle: str) -> None:
        await self._api.run(user(handle), MARK_READ, id=topic.id, at=posted["timestamp"])
        self._advance(1)

    async def _schedule_posts(self) -> None:
        """Schedules the posts whose texts are not scheduled yet.

        The due times, which are part of the input, differ between runs. So each run has its own idempotency keys.
        """
        existing = await self._api.run(planner(), SCHEDULED)
        texts = {each["text"] for each in existing["scheduledPosts"]["items"]}
        for post in scheduled_posts(datetime.now(UTC)):
            times = {"dueAt": post.due_at.isoformat(), "timeZone": ZONE.key}
            fields = {"text": post.text, "toHomeFeed": True, "idempotencyKey": str(uuid4()), **times}
            if post.text not in texts:
                await self._api.run(planner(), SCHEDULE_POST, input=fields)

    def _advance(self, steps: int) -> None:
        self._done += steps
        self._progress(self._done, self._total)


async def _run_if_set_up(work: Coroutine[Any, Any, None]) -> None:
    """Runs a part of the fill. Leaves it out if the product lacks a setting, such as the telephony provider."""
    try:
        await work
    except _RetryLater as refused:
        if refused.retry_after_s <= MAX_RETRY_S:
            raise


async def _run_all(work: Iterable[Coroutine[Any, Any, Result]]) -> list[Result]:
    """Runs all coroutines concurrently. The first failure cancels the rest and is raised without an exception group."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(each) for each in work]
    except* (DemoError, httpx2.HTTPError) as failures:
        raise failures.exceptions[0] from None
    return [task.result() for task in tasks]


def _batches_by_author(reactions: Sequence[DemoReaction]) -> Iterator[tuple[str, list[DemoReaction]]]:
    """Yields each author's reactions in batches of at most REACTIONS_PER_REQUEST."""
    by_author: dict[str, list[DemoReaction]] = defaultdict(list)
    for reaction in reactions:
        by_author[reaction.author].append(reaction)
    for author, own in by_author.items():
        for start in range(0, len(own), REACTIONS_PER_REQUEST):
            yield author, own[start : start + REACTIONS_PER_REQUEST]


def _reactions_mutation(count: int) -> str:
    """Returns a mutation that adds `count` reactions. The text depends on the count only, so servers can cache it."""
    declared = ", ".join(f"$m{n}: ID!, $e{n}: String!" for n in range(count))
    added = " ".join(f"a{n}: addReaction(messageId: $m{n}, emoji: $e{n}) {{ id }}" for n in range(count))
    return f"mutation AddReactions({declared}) {{ {added} }}"


def _topic_key(community: DemoCommunity, topic: DemoTopic) -> str:
    return f"demo-{community.key}-{topic.theme}"


def _operation_name(document: str) -> str:
    return document.split()[1].partition("(")[0]


def _refusal(failure: str, error: dict[str, Any]) -> DemoError:
    extensions = error.get("extensions") or {}
    message = f"{failure}: {error.get('message')} ({extensions.get('code')})"
    retry_after_ms = extensions.get("retryAfterMs")
    return DemoError(message) if retry_after_ms is None else _RetryLater(message, retry_after_ms / 1000)
