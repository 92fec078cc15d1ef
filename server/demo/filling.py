"""Puts the demo into a running product by its public API, as its people would: they found, join, follow, post, react.

Doing it again within a day changes nothing, because whatever is made has an idempotency key; once the last topic holds
all its messages, the last of which is posted last of all, nothing is done at all.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

import httpx2

from server.demo.cast import BLOCKED, BLOCKER, DEMO_USERS, DemoCommunity, DemoTopic, DemoUser, all_topics, user
from server.demo.lists import limits, lists
from server.demo.posts import follows, posts
from server.demo.schedule import ZONE, planned, planner
from server.demo.talk import Reaction, Talk, talk
from server.processes import StartupError

AT_ONCE = 50
REACTIONS_A_REQUEST = 15
TRIES = 5
RETRY_S = 0.5
TIMEOUT_S = 30.0

Progress = Callable[[int, int], None]
Result = TypeVar("Result")
Posted = dict[str, Any]

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
FILLED = """
query Filled($limit: Int!) {
  communities(joined: true, limit: 20) {
    name topics(limit: 20) { title messages(latest: "now", limit: $limit) { items { id } } }
  }
}
"""


class DemoError(StartupError):
    """The product refused something: names the operation and what the server said."""


class _NotNow(DemoError):
    """The server asks to come back later."""

    def __init__(self, message: str, retry_after_s: float) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


@dataclass(frozen=True, slots=True)
class Place:
    """A topic that exists, with all that is going to happen in it."""

    id: str
    community: DemoCommunity
    topic: DemoTopic
    talk: Talk

    @property
    def steps(self) -> int:
        """How many messages, reactions and read marks there are."""
        return len(self.talk.lines) + len(self.talk.reactions) + len(self.talk.read)


async def fill(base_url: str, token_for: Callable[[DemoUser], str], progress: Progress | None = None) -> None:
    """Fills the product at `base_url`; `progress` hears how many steps are done, and of how many.

    Raises: DemoError; httpx2.HTTPError when the product does not answer.
    """
    async with httpx2.AsyncClient(base_url=base_url, timeout=TIMEOUT_S, trust_env=False) as client:
        api = _Api(client, token_for)
        if not await _is_filled(api):
            await _Filling(api, progress or (lambda done, total: None)).run()


async def _is_filled(api: "_Api") -> bool:
    *_, (community, topic) = all_topics()
    answer = await api.run(user(community.members[0]), FILLED, limit=topic.size)
    pages = {
        (found["name"], each["title"]): each["messages"]["items"]
        for found in answer["communities"]
        for each in found["topics"]
    }
    return len(pages.get((community.name, topic.title), ())) >= topic.size


class _Api:
    """Operations in the name of demo users, so many at once."""

    def __init__(self, client: httpx2.AsyncClient, token_for: Callable[[DemoUser], str]) -> None:
        self._client = client
        self._headers = {each.id: {"Authorization": f"Bearer {token_for(each)}"} for each in DEMO_USERS}
        self._slots = asyncio.Semaphore(AT_ONCE)

    async def run(self, who: DemoUser, document: str, **variables: object) -> dict[str, Any]:
        """The data of one operation; what fails for the moment is tried again, as every operation may be repeated.

        Raises: DemoError, httpx2.HTTPError.
        """
        for tries_left in reversed(range(TRIES)):
            try:
                return await self._try(who, document, variables)
            except (_NotNow, httpx2.TransportError) as error:
                if not tries_left:
                    raise
                await asyncio.sleep(error.retry_after_s if isinstance(error, _NotNow) else RETRY_S)
        raise AssertionError("unreachable")

    async def _try(self, who: DemoUser, document: str, variables: dict[str, object]) -> dict[str, Any]:
        async with self._slots:
            body = {"query": document, "variables": variables}
            response = await self._client.post("/graphql", json=body, headers=self._headers[who.id])
        what = f"{_name(document)} as {who.id} failed"
        try:
            answer: dict[str, Any] = response.json()
        except ValueError:
            raise DemoError(f"{what}: HTTP {response.status_code}") from None
        for error in answer.get("errors") or ():
            raise _refusal(what, error)
        data: dict[str, Any] = answer["data"]
        return data


class _Filling:
    """One run, step by step."""

    def __init__(self, api: _Api, progress: Progress) -> None:
        self._api, self._progress = api, progress
        self._done = self._total = 0

    async def run(self) -> None:
        """Everything but the last topic's last message, then this: it tells that all is done."""
        await _together(self._api.run(each, VIEWER) for each in DEMO_USERS)
        communities = {community.key: community for community, _ in all_topics()}
        ids = dict(zip(communities, await _together(map(self._found, communities.values())), strict=True))
        places = await _together(self._open(ids[community.key], community, topic) for community, topic in all_topics())
        self._total = sum(place.steps for place in places)
        await self._feed()
        await self._call()
        *others, last = places
        closing = len(last.talk.lines) - 1
        await _together([self._fill(last, closing), *(self._fill(place, len(place.talk.lines)) for place in others)])
        await self._schedule()
        await self._api.run(user(BLOCKER), BLOCK_USER, id=user(BLOCKED).id)
        await self._post(last, closing)

    async def _feed(self) -> None:
        """Whom they follow, then what they posted, each author's in order; workers bring it to the followers."""
        await _together(self._api.run(one, FOLLOW, id=other.id) for one, other in follows())
        by_author: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for key, author, text in posts():
            by_author[author.handle].append((key, text))
        await _together(self._write(user(handle), written) for handle, written in by_author.items())

    async def _write(self, author: DemoUser, written: Sequence[tuple[str, str]]) -> None:
        for key, text in written:
            await self._api.run(author, CREATE_POST, input={"text": text, "idempotencyKey": key})

    async def _call(self) -> None:
        """Limits first, then what is called within them, in the order of the lists; workers begin at once."""
        await _together(self._api.run(who, SET_CALL_LIMITS, input=wanted) for who, wanted in limits())
        for each in lists():
            await self._api.run(each.operator, LAUNCH_CALL_JOB, input=each.input)

    async def _found(self, community: DemoCommunity) -> str:
        """The id of the community, which its other members have joined."""
        founder, *others = map(user, community.members)
        given = {"name": community.name, "description": community.description}
        wanted = {**given, "idempotencyKey": f"demo-{community.key}"}
        created = await self._api.run(founder, CREATE_COMMUNITY, input=wanted)
        id_: str = created["createCommunity"]["id"]
        await _together(self._api.run(each, JOIN_COMMUNITY, id=id_) for each in others)
        return id_

    async def _open(self, community_id: str, community: DemoCommunity, topic: DemoTopic) -> Place:
        wanted = {"communityId": community_id, "title": topic.title, "idempotencyKey": _key(community, topic)}
        created = await self._api.run(user(community.members[0]), CREATE_TOPIC, input=wanted)
        return Place(created["createTopic"]["id"], community, topic, talk(community, topic))

    async def _fill(self, place: Place, size: int) -> None:
        """So many lines, one after the other, so that answers follow their questions; then reactions and marks."""
        posted = [await self._post(place, n) for n in range(size)]
        requests = [self._react(posted, handle, some) for handle, some in _by_author(place.talk.reactions)]
        requests += [self._mark(place, posted[min(n, size - 1)], handle) for handle, n in place.talk.read.items()]
        await _together(requests)

    async def _post(self, place: Place, n: int) -> Posted:
        line = place.talk.lines[n]
        key = f"{_key(place.community, place.topic)}-{n}"
        wanted = {"topicId": place.id, "text": line.text, "stampId": line.stamp_id, "idempotencyKey": key}
        answer = await self._api.run(user(line.author), POST_MESSAGE, input=wanted)
        self._advance(1)
        posted: Posted = answer["postMessage"]
        return posted

    async def _react(self, posted: list[Posted], handle: str, reactions: Sequence[Reaction]) -> None:
        variables = {f"m{n}": posted[each.line]["id"] for n, each in enumerate(reactions)}
        variables |= {f"e{n}": each.emoji for n, each in enumerate(reactions)}
        await self._api.run(user(handle), _add_reactions(len(reactions)), **variables)
        self._advance(len(reactions))

    async def _mark(self, place: Place, posted: Posted, handle: str) -> None:
        await self._api.run(user(handle), MARK_READ, id=place.id, at=posted["timestamp"])
        self._advance(1)

    async def _schedule(self) -> None:
        """What is not there yet, by its text: keys would want the due times of the first run."""
        there = await self._api.run(planner(), SCHEDULED)
        written = {each["text"] for each in there["scheduledPosts"]["items"]}
        for post in planned(datetime.now(UTC)):
            given = {"text": post.text, "toHomeFeed": True, "dueAt": post.due_at.isoformat(), "timeZone": ZONE.key}
            if post.text not in written:
                await self._api.run(planner(), SCHEDULE_POST, input=given)

    def _advance(self, steps: int) -> None:
        self._done += steps
        self._progress(self._done, self._total)


async def _together(work: Iterable[Coroutine[Any, Any, Result]]) -> list[Result]:
    """All of it at once; the first failure ends the rest and is raised by itself."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(each) for each in work]
    except* (DemoError, httpx2.HTTPError) as failures:
        raise failures.exceptions[0] from None
    return [task.result() for task in tasks]


def _by_author(reactions: Sequence[Reaction]) -> Iterator[tuple[str, list[Reaction]]]:
    """Each author's reactions, as many as one request may hold."""
    by_author: dict[str, list[Reaction]] = defaultdict(list)
    for reaction in reactions:
        by_author[reaction.author].append(reaction)
    for author, own in by_author.items():
        for start in range(0, len(own), REACTIONS_A_REQUEST):
            yield author, own[start : start + REACTIONS_A_REQUEST]


def _add_reactions(count: int) -> str:
    """One mutation that adds so many reactions; for each count always the same text, which servers cache."""
    declared = ", ".join(f"$m{n}: ID!, $e{n}: String!" for n in range(count))
    added = " ".join(f"a{n}: addReaction(messageId: $m{n}, emoji: $e{n}) {{ id }}" for n in range(count))
    return f"mutation AddReactions({declared}) {{ {added} }}"


def _key(community: DemoCommunity, topic: DemoTopic) -> str:
    return f"demo-{community.key}-{topic.theme}"


def _name(document: str) -> str:
    return document.split()[1].partition("(")[0]


def _refusal(what: str, error: dict[str, Any]) -> DemoError:
    extensions = error.get("extensions") or {}
    message = f"{what}: {error.get('message')} ({extensions.get('code')})"
    retry_after_ms = extensions.get("retryAfterMs")
    return DemoError(message) if retry_after_ms is None else _NotNow(message, retry_after_ms / 1000)
