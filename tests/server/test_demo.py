"""The demo's content is valid, it is created only once, and each failure is one line."""

import asyncio
import csv
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any

import httpx2
import pytest

from schema.root import schema
from server.auth.tokens import mint
from server.demo import DEMO_USERS, DemoError, DemoUser, fill, filling, private_filling, uploads
from server.demo.call_lists import call_lists
from server.demo.cast import BLOCKED, BLOCKER, COMMUNITIES, STRANGERS, DemoCommunity, DemoTopic, all_topics, user
from server.demo.conversations import ASIDES, WORDS, DemoConversation, conversation, scenes
from server.demo.deliveries import SENT_A_DAY, days_of_mail, senders
from server.demo.posts import follows
from server.demo.posts import posts as demo_posts
from server.demo.private_talk import TALKS, THREAD_REPLIES
from server.demo.schedule import planner, scheduled_posts
from server.graphql import Operations
from storage.chat.stamps.catalogue import find_stamp
from tests.product import NO_WRITE_LIMITS, eventually
from tests.server.demo_talks import TALKS_QUERY, expected_talk, shown_talk, shown_threads
from tests.serving import WebProcess, web_process

CONVERSATIONS = [(community, topic, conversation(community, topic)) for community, topic in all_topics()]


class TestCast:
    def test_users_have_unique_ids_and_handles(self) -> None:
        assert (
            len({each.id for each in DEMO_USERS}) == len({each.handle for each in DEMO_USERS}) == len(DEMO_USERS) == 10
        )
        assert {each.organization_id for each in DEMO_USERS} == {"acme", "globex"}
        assert {role for each in DEMO_USERS for role in each.roles} <= {"MEMBER", "OPERATOR", "SERVICE", "ADMIN"}

    def test_community_has_three_members_of_one_organization(self) -> None:
        for community in COMMUNITIES:
            assert len({user(handle).organization_id for handle in community.members}) == 1
            assert len(set(community.members)) == len(community.members) >= 3

    def test_strangers_share_nothing_with_others(self) -> None:
        assert not any(set(STRANGERS) & set(community.members) for community in COMMUNITIES)
        assert not any(each.handle in STRANGERS for pair in follows() for each in pair)

    def test_keys_are_unique(self) -> None:
        assert len({community.key for community in COMMUNITIES}) == 5
        assert len({(community.key, topic.theme) for community, topic in all_topics()}) == 14


class TestConversations:
    def test_conversations_are_deterministic(self) -> None:
        assert sum(len(each.lines) for _, _, each in CONVERSATIONS) == 3000
        assert [conversation(community, topic) for community, topic, _ in CONVERSATIONS] == [
            each for _, _, each in CONVERSATIONS
        ]

    def test_every_theme_has_scenes_and_topic(self) -> None:
        assert {topic.theme for _, topic in all_topics()} == set(scenes())
        assert {community.language for community in COMMUNITIES} == set(ASIDES)

    def test_every_line_is_a_valid_message(self) -> None:
        for community, _, each in CONVERSATIONS:
            for line in each.lines:
                assert line.author in community.members
                assert line.text.strip() or line.stamp_id
                assert len(line.text) <= 500
                assert line.stamp_id is None or find_stamp(line.stamp_id) is not None, line
                assert not re.search(r"[{}#]|https?:|www\.", line.text), line
                assert set(re.findall(r"@([a-z]+)", line.text)) <= set(community.members)

    def test_every_word_and_stamp_is_used(self) -> None:
        all_lines = "\n".join(line for theme in scenes().values() for scene in theme for line in scene)
        assert set(re.findall(r"{(\w+)}", all_lines)) == set(WORDS)
        assert len({line.stamp_id for _, _, each in CONVERSATIONS for line in each.lines}) == 13

    def test_reactions_come_from_permitted_members(self) -> None:
        for community, _, each in CONVERSATIONS:
            pairs = {(reaction.author, each.lines[reaction.line].author) for reaction in each.reactions}
            assert not any(reactor == author for reactor, author in pairs)
            assert (BLOCKER, BLOCKED) not in pairs
            assert {reactor for reactor, _ in pairs} <= set(community.members)
            assert max(reaction.line for reaction in each.reactions) < len(each.lines) - 1

    def test_reactions_and_unread_counts_vary(self) -> None:
        assert 800 < sum(len(each.reactions) for _, _, each in CONVERSATIONS) < 2000
        unread_counts = {len(each.lines) - 1 - line for _, _, each in CONVERSATIONS for line in each.read.values()}
        assert len(unread_counts) >= 5
        assert any(len(each.read) < len(community.members) for community, _, each in CONVERSATIONS)


@pytest.mark.parametrize("count", [1, filling.REACTIONS_PER_REQUEST])
def test_operations_are_valid_and_within_limits(count: int) -> None:
    documents = [filling.VIEWER, filling.CREATE_COMMUNITY, filling.JOIN_COMMUNITY, filling.CREATE_TOPIC]
    documents += [
        filling.FOLLOW,
        filling.CREATE_POST,
        filling.SET_CALL_LIMITS,
        filling.LAUNCH_CALL_JOB,
        filling.RECORD_DELIVERIES,
    ]
    documents += [filling.POST_MESSAGE, filling.MARK_READ, filling.BLOCK_USER, filling.FILLED]
    documents += [
        private_filling.START_TALK,
        private_filling.TALK,
        private_filling.LAST_MESSAGE,
        private_filling.REPOST,
        private_filling.MARK_READ,
    ]
    documents += [private_filling.POST_MESSAGE, uploads.CREATE_UPLOAD, uploads.UPLOAD_STATE]
    documents += [private_filling.ANSWER_POST, private_filling.REACT_TO_POST]
    cache = Operations(schema).documents
    for document in [*documents, filling._reactions_mutation(count)]:
        assert cache.prepare(document).errors({"limit": 200}, None) == []


class TestSchedule:
    def test_operations_are_valid(self) -> None:
        cache = Operations(schema).documents
        for document in (filling.SCHEDULED, filling.SCHEDULE_POST):
            assert cache.prepare(document).errors(None, None) == []

    def test_scheduled_texts_are_unique_and_times_ascend(self) -> None:
        now = datetime.now(UTC)
        posts = scheduled_posts(now)
        assert len({each.text for each in posts}) == len(posts)
        assert [each.due_at for each in posts] == sorted(each.due_at for each in posts)
        assert [each.text for each in posts if each.due_at <= now] == [posts[0].text]


CONTENT = """
{ blockedUsers { handle } communities(joined: true, limit: 2) { name description memberCount topics(limit: 2) {
  title unreadCount readUpTo messages(oldest: "0.000000", limit: 40) { items {
    timestamp text author { handle } stamp { id } reactions { emoji users { handle } } mentions { handle } } } } }
  localFeed(latest: "now") { items { text author { handle followerCount } } } viewer { followingCount } }
"""

CALLS = """
{ callLimits { concurrentCalls } callJobs(oldest: "0.000000") { items { name state rowErrors { row } } } }
"""


RECORDED = """
mutation ($events: [DeliveryEventInput!]!) {
  recordDeliveries(events: $events) { accepted duplicates rejected { index } }
}
"""

ANSWERS_QUERY = '{ localFeed(latest: "now") { items { text replyCount quoteCount repostCount } } }'


class TestCalls:
    def test_call_lists_hold_only_fictitious_numbers(self) -> None:
        for each in call_lists():
            rows = list(csv.DictReader(StringIO(each.csv)))
            numbers = [row["phone_number"] for row in rows]
            valid = [number for number in numbers if len(number) == 13 and "-" not in number]
            assert all(re.fullmatch(r"\+447700900\d{3}", number) for number in valid)
            assert len(rows) - len(valid) == (2 if each.key == "demo-calls-typos" else 0)
            assert each.operator.roles == ("OPERATOR",)


class TestFill:
    def test_second_fill_changes_nothing(
        self, web: WebProcess, small_demo: list[tuple[DemoCommunity, DemoTopic]]
    ) -> None:
        steps: list[tuple[int, int]] = []
        asyncio.run(fill(web.url, self.token_for(web), lambda done, total: steps.append((done, total))))
        content_by_user = {
            handle: content(web, self.token_for(web), handle) for handle in ("hana", "sora", "emma", "priya")
        }
        assert steps[-1][0] == steps[-1][1] == max(steps)[0]
        for community, topic in small_demo:
            reader = "hana" if community.key == "hikers" else "priya"
            self.check_topic(content_by_user[reader], community, topic, conversation(community, topic))
        assert content_by_user["emma"]["blockedUsers"] == [{"handle": "sora"}]
        expected_posts = [
            (author.handle, text) for _, author, text in demo_posts() if author.organization_id == "globex"
        ]
        feed_posts = [
            (post["author"]["handle"], post["text"]) for post in content_by_user["priya"]["localFeed"]["items"]
        ]
        assert sorted(feed_posts) == sorted(expected_posts)
        assert content_by_user["priya"]["viewer"]["followingCount"] == 2
        self.check_calls(web)
        self.check_mail(web)
        talks_by_user = {handle: self.check_talks(web, handle) for handle in ("hana", "priya")}
        self.check_followed_thread(web)
        self.check_answers(web)

        steps.clear()
        asyncio.run(fill(web.url, self.token_for(web), lambda done, total: steps.append((done, total))))
        assert steps == []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(filling, "_is_filled", return_false)
            asyncio.run(fill(web.url, self.token_for(web)))
        headers = {"authorization": f"Bearer {self.token_for(web)(planner())}"}
        answer = post_graphql(web, {"query": filling.SCHEDULED}, headers)["data"]
        texts = sorted(each["text"] for each in answer["scheduledPosts"]["items"])
        assert texts == sorted(each.text for each in scheduled_posts(datetime.now(UTC))), (
            "A scheduled post is missing or duplicated."
        )
        assert {handle: content(web, self.token_for(web), handle) for handle in content_by_user} == content_by_user
        assert {handle: self.check_talks(web, handle) for handle in talks_by_user} == talks_by_user

    def test_fill_without_telephony_ignores_limits_of_writes(
        self,
        tmp_path: Path,
        mongodb_uri: str,
        redis_url: str,
        database: str,
        small_demo: list[tuple[DemoCommunity, DemoTopic]],
    ) -> None:
        one_write_a_minute = dict.fromkeys(NO_WRITE_LIMITS, "1")
        settings: dict[str, Any] = {"NOROSHI_TELEPHONY": ""} | one_write_a_minute
        with web_process(tmp_path, mongodb_uri, redis_url, database=database, **settings) as web:
            asyncio.run(fill(web.url, self.token_for(web)))
            assert content(web, self.token_for(web), "ken", CALLS)["callJobs"]["items"] == []
            assert content(web, self.token_for(web), "emma")["blockedUsers"] == [{"handle": "sora"}]

    def check_talks(self, web: WebProcess, handle: str) -> dict[str, Any]:
        """Asserts that a person has all conversations, without pictures, and one request. Returns them."""
        own_talks = [talk for talk in TALKS if handle in talk.people]
        replies = sum(len(talk.thread.replies) for talk in own_talks if talk.thread)

        def read_talks() -> dict[str, Any] | None:
            shown = content(web, self.token_for(web), handle, TALKS_QUERY)
            # Reply counts follow within a second.
            return shown if sum(each["replyCount"] for each in shown_threads(shown)) == replies else None

        shown = eventually(read_talks, interval_s=0.5)
        assert shown, "The reply counts did not arrive."
        joined = [talk for talk in own_talks if talk.people[0] not in STRANGERS]
        assert [*map(shown_talk, shown["talks"]["items"])] == [*map(expected_talk, reversed(joined))]
        (request,) = [talk for talk in own_talks if talk.people[0] in STRANGERS]
        assert [*map(shown_talk, shown["requests"]["items"])] == [expected_talk(request)]
        assert [(each["followed"], each["unreadCount"]) for each in shown_threads(shown)] == [(True, 2)]
        return shown

    def check_followed_thread(self, web: WebProcess) -> None:
        """Asserts that Hana follows the thread of the topic, with replies that she has not read."""
        followed = content(web, self.token_for(web), "hana", TALKS_QUERY)["followedThreads"]["items"]
        (thread,) = [each["thread"] for each in followed if each["parentTopic"]["title"] == "今週の山"]
        assert thread == {"unreadCount": 2, "lastMessage": {"text": THREAD_REPLIES[-1].text}}

    def check_answers(self, web: WebProcess) -> None:
        """Asserts that the first post has been answered."""
        posts = content(web, self.token_for(web), "hana", ANSWERS_QUERY)["localFeed"]["items"]
        (post,) = [each for each in posts if each["text"] == next(demo_posts())[2]]
        assert (post["replyCount"], post["quoteCount"], post["repostCount"]) == (3, 1, 1)

    def check_calls(self, web: WebProcess) -> None:
        """Asserts that ken has three jobs: one running, one rejected, and one that runs or waits for its window."""
        jobs = content(web, self.token_for(web), "ken", CALLS)["callJobs"]["items"]
        assert [job["name"] for job in jobs] == [each.name for each in call_lists() if each.operator.handle == "ken"]
        assert [job["state"] for job in jobs[:2]] == ["RUNNING", "REJECTED"]
        assert jobs[2]["state"] in ("RUNNING", "WAITING_FOR_WINDOW")
        assert [error["row"] for error in jobs[1]["rowErrors"]] == [22, 23]
        assert content(web, self.token_for(web), "liam", CALLS)["callLimits"]["concurrentCalls"] == 2

    def check_mail(self, web: WebProcess) -> None:
        """Asserts that the mail of today is recorded in each organization."""
        today, *_ = days_of_mail(datetime.now(UTC))
        for sender in senders():
            headers = {"authorization": f"Bearer {self.token_for(web)(replace(sender, roles=('SERVICE',)))}"}
            body = {"query": RECORDED, "variables": {"events": today}}
            answer = post_graphql(web, body, headers)["data"]["recordDeliveries"]
            assert answer == {"accepted": 0, "duplicates": SENT_A_DAY, "rejected": []}

    @staticmethod
    def token_for(web: WebProcess) -> Callable[[DemoUser], str]:
        return lambda each: mint(
            web.secret,
            user_id=each.id,
            organization_id=each.organization_id,
            roles=each.roles,
            name=each.name,
            handle=each.handle,
        )

    @staticmethod
    def check_topic(
        viewer_content: dict[str, Any], community: DemoCommunity, topic: DemoTopic, expected: DemoConversation
    ) -> None:
        """Asserts that the topic shows the conversation's messages, stamps, reactions and mentions."""
        (community_content,) = [each for each in viewer_content["communities"] if each["name"] == community.name]
        assert (community_content["memberCount"], community_content["description"]) == (
            len(community.members),
            community.description,
        )
        (topic_content,) = [each for each in community_content["topics"] if each["title"] == topic.title]
        items = topic_content["messages"]["items"]
        assert [(each["author"]["handle"], each["text"]) for each in items] == [
            (line.author, line.text) for line in expected.lines
        ]
        assert [each["stamp"] and each["stamp"]["id"] for each in items] == [line.stamp_id for line in expected.lines]
        assert {
            (n, reactor["handle"], reaction["emoji"])
            for n, each in enumerate(items)
            for reaction in each["reactions"]
            for reactor in reaction["users"]
        } == {(reaction.line, reaction.author, reaction.emoji) for reaction in expected.reactions}
        assert all(set(re.findall(r"@([a-z]+)", each["text"])) == handles(each["mentions"]) for each in items)


def handles(users: list[dict[str, str]]) -> set[str]:
    return {each["handle"] for each in users}


def post_graphql(web: WebProcess, body: dict[str, Any], headers: dict[str, str]) -> dict[str, Any]:
    response = httpx2.post(f"{web.url}/graphql", json=body, headers=headers, trust_env=False, timeout=60)
    answer: dict[str, Any] = response.json()
    return answer


def content(web: WebProcess, token_for: Callable[[DemoUser], str], handle: str, query: str = CONTENT) -> dict[str, Any]:
    """Returns the query's data for the user with this handle."""
    headers = {"authorization": f"Bearer {token_for(user(handle))}"}
    answer = post_graphql(web, {"query": query}, headers)
    assert "errors" not in answer, answer["errors"]
    data: dict[str, Any] = answer["data"]
    return data


async def return_false(*_: object) -> bool:
    return False


@asynccontextmanager
async def fake_server(*answers: str | None) -> AsyncIterator[str]:
    """Yields the URL of a server that answers with these bodies in order, and repeats the last.

    None closes the connection without an answer.
    """
    remaining = list(answers)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
        await reader.readexactly(int(length[1]) if length else 0)
        body = remaining.pop(0) if len(remaining) > 1 else remaining[0]
        if body is not None:
            size = len(body.encode())
            writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {size}\r\nConnection: close\r\n\r\n{body}".encode())
            await writer.drain()
        writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with listening:
        yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"


def refusal(code: str, **extensions: object) -> str:
    """Returns the body of a response with one error."""
    return json.dumps({"errors": [{"message": "No.", "extensions": {"code": code, **extensions}}]})


FILLED = json.dumps(
    {
        "data": {
            "communities": [
                {"name": "Water Cooler", "topics": [{"title": "Ideas", "messages": {"items": [{}] * 999}}]},
            ]
        }
    }
)


@pytest.mark.anyio
class TestRefusals:
    async def test_refusal_names_operation_and_server_message(self) -> None:
        async with fake_server(refusal("FORBIDDEN")) as url:
            with pytest.raises(DemoError, match=r"^Filled as noor failed: No\. \(FORBIDDEN\)$"):
                await fill(url, lambda each: "token")

    async def test_first_of_many_failures_is_raised_alone(self) -> None:
        async with fake_server('{"data": {"communities": []}}', refusal("CONFLICT")) as url:
            with pytest.raises(DemoError, match=r"^Viewer as [a-z]+ failed: No\. \(CONFLICT\)$"):
                await fill(url, lambda each: "token")

    async def test_non_json_response_is_reported_by_status(self) -> None:
        async with fake_server("<html>") as url:
            with pytest.raises(DemoError, match="HTTP 200"):
                await fill(url, lambda each: "token")

    async def test_temporary_failure_is_retried(self) -> None:
        async with fake_server(None, refusal("UNAVAILABLE", retryAfterMs=1), FILLED) as url:
            await fill(url, lambda each: "token")

    async def test_retries_are_limited(self) -> None:
        async with fake_server(refusal("RATE_LIMITED", retryAfterMs=1)) as url:
            with pytest.raises(DemoError, match="RATE_LIMITED"):
                await fill(url, lambda each: "token")
        with pytest.raises(httpx2.ConnectError):
            await fill(url, lambda each: "token")
