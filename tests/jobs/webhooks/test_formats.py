"""Webhooks with the formats SLACK and DISCORD send a text for each type of event, as chat systems take it."""

import re
from typing import Any

import orjson
import pytest

from jobs.webhooks.formats import MAX_CHARS, NAME_CHARS, REPORT_CHARS, TEXT_CHARS, event_text
from storage.calls.calls import NextCall, TimedStart
from storage.calls.records import CallOutcome, CallReportKind, TaskKey
from storage.webhooks.event_types import EVENT_TYPES
from storage.webhooks.records import WebhookFormat
from tests.jobs.webhooks.conftest import CREATE, WebhookScenario
from tests.resolvers.people import DELETE, EDIT, REACT, Answer
from tests.twins.discord import DiscordChannel
from tests.twins.slack import ARCHIVED, NO_SERVICE, SlackChannel
from tests.twins.twin import running_twin

pytestmark = pytest.mark.anyio

FORMAT = "query { done: webhooks { id format } }"
UPDATE = "mutation ($input: UpdateWebhookInput!) { done: updateWebhook(input: $input) { id format } }"
TEST = "mutation ($id: ID!) { done: testWebhook(webhookId: $id) { id } }"
PIN = "mutation ($id: ID!) { done: pinMessage(messageId: $id) { id } }"
UNPIN = "mutation ($id: ID!) { done: unpinMessage(messageId: $id) { id } }"
ARCHIVE = "mutation ($id: ID!) { done: archiveTopic(topicId: $id) { id } }"
DESCRIBE = 'mutation ($id: ID!) { done: updateCommunity(id: $id, description: "new") { id } }'
DELETE_POST = "mutation ($id: ID!) { done: deletePost(id: $id) { id } }"
LAUNCH = """mutation ($input: LaunchCallJobInput!) {
  done: launchCallJob(input: $input) { id tasks { row phoneNumber } }
}"""
LIMIT = "mutation ($input: CallLimitsInput!) { done: setCallLimits(input: $input) { id } }"
SCHEDULE = "mutation ($input: SchedulePostInput!) { done: schedulePost(input: $input) { id } }"
CANCEL = "mutation ($id: ID!) { done: cancelScheduledPost(id: $id) { id } }"

WEB = "http://127.0.0.1:8000/#"
LINK = re.compile(r"<http://127\.0\.0\.1:8000/#/(\w+)/[\w./-]+\|([^>]*)>")


@pytest.fixture
async def channel(webhooks: WebhookScenario) -> SlackChannel:
    channel = SlackChannel()
    await webhooks.stack.enter_async_context(running_twin(channel))
    return channel


@pytest.fixture
async def discord(webhooks: WebhookScenario) -> DiscordChannel:
    discord = DiscordChannel()
    await webhooks.stack.enter_async_context(running_twin(discord))
    return discord


async def follow(webhooks: WebhookScenario, channel: SlackChannel | DiscordChannel, *types: str) -> str:
    """Creates a webhook with the format of the channel, and returns its id."""
    format_ = "SLACK" if isinstance(channel, SlackChannel) else "DISCORD"
    channel_webhook = {"name": "Channel", "url": channel.address, "serviceKeyId": webhooks.key, "format": format_}
    created = await webhooks.ada.do(CREATE, input={"eventTypes": list(types), **channel_webhook})
    return str(created["webhook"]["id"])


def shown(texts: list[str]) -> list[str]:
    """Returns the texts as people see them: links as `[place: label]`."""
    return [LINK.sub(r"[\1: \2]", text) for text in texts]


async def test_message_is_a_line_with_a_link(webhooks: WebhookScenario, channel: SlackChannel) -> None:
    id_ = await follow(webhooks, channel, "MessagePosted")
    message = await webhooks.chat.ann.post(webhooks.chat.topic, "**High** water at 9\nBring boots")
    await webhooks.deliver()
    place = f"{WEB}/topic/{webhooks.chat.topic}/{message['timestamp']}"
    assert channel.texts == [f"*ann* in <{place}|Tides>: High water at 9 Bring boots"]
    (delivery,) = await webhooks.deliveries(id_)
    assert (delivery["status"], delivery["answer"]) == (200, "ok")
    assert orjson.loads(delivery["request"]) == {"text": channel.texts[0]}


async def test_discord_message_notifies_nobody(webhooks: WebhookScenario, discord: DiscordChannel) -> None:
    id_ = await follow(webhooks, discord, "MessagePosted")
    message = await webhooks.chat.ann.post(webhooks.chat.topic, "@everyone: <@1> a_b | c")
    await webhooks.deliver()
    place = f"{WEB}/topic/{webhooks.chat.topic}/{message['timestamp']}"
    text = rf"**ann** in [Tides](<{place}>): \@everyone\: \<\@1\> a\_b \| c"
    assert discord.bodies == [{"content": text, "allowed_mentions": {"parse": []}}]
    assert [each["status"] for each in await webhooks.deliveries(id_)] == [204]


async def test_discord_refuses_bodies_of_slack(webhooks: WebhookScenario, discord: DiscordChannel) -> None:
    id_ = await follow(webhooks, discord, "MessagePosted")
    await webhooks.ada.do(UPDATE, input={"webhookId": id_, "format": "SLACK"})
    await webhooks.chat.ann.post(webhooks.chat.topic)
    await webhooks.deliver()
    assert discord.bodies == []
    assert "400" in (await webhooks.webhook(id_))["lastError"]


async def test_chat_events_have_texts(webhooks: WebhookScenario, channel: SlackChannel) -> None:
    chat, types = webhooks.chat, [name for name, each in EVENT_TYPES.items() if each.scope == "chat:read"]
    await follow(webhooks, channel, *types)
    first = await chat.ann.post(chat.topic, "one")
    await chat.ann.do(EDIT, id=first["id"], text="two")
    await chat.bob.do(REACT, id=first["id"], emoji="👍")
    await chat.ann.do(PIN, id=first["id"])
    await chat.ann.do(UNPIN, id=first["id"])
    await chat.bob.post(chat.topic, "Yes", replyTo=first["id"])
    other = await chat.ann.create_topic(chat.community, "Nets")
    await webhooks.deliver()
    await chat.ann.do(DELETE, id=first["id"])
    await chat.ann.do(ARCHIVE, id=other)
    await chat.ann.do(DESCRIBE, id=chat.community)
    await webhooks.deliver()
    assert set(shown(channel.texts)) >= {
        "*ann* in [topic: Tides]: two",
        "*ann* edited a message in [topic: Tides]: two",
        "Reactions to a message of *ann* in [topic: Tides]: 👍 1",
        "A message of *ann* was pinned in [topic: Tides]: two",
        "A message of *ann* is no longer pinned in [topic: Tides].",
        "*bob* in [topic: a thread]: Yes",
        "A message of *ann* in [topic: Tides] has 1 reply.",
        "[topic: Tides] in Fishers has new messages.",
        "New topic in Fishers: [topic: Nets].",
        "A message of *ann* in [topic: Tides] was deleted.",
        "The topic [topic: Nets] in Fishers was changed. It is archived.",
        "The community [community: Fishers] was changed. It has 2 members.",
    }
    assert not set(channel.texts) & set(EVENT_TYPES)


async def test_post_events_have_texts(webhooks: WebhookScenario, channel: SlackChannel) -> None:
    await follow(webhooks, channel, "PostArrived", "PostRemoved")
    post = await webhooks.chat.ann.create_post("Low tide")
    await webhooks.deliver()
    await webhooks.chat.ann.do(DELETE_POST, id=post)
    await webhooks.deliver()
    assert channel.texts == [f"*ann* <{WEB}/post/{post}|posted>: Low tide", "A post was removed."]


async def test_call_events_have_texts(webhooks: WebhookScenario, channel: SlackChannel) -> None:
    await follow(webhooks, channel, "CallJobChanged", "CallTaskChanged", "CallLimitsChanged")
    job = await webhooks.ada.do(
        LAUNCH, input={"name": "Reminders", "scenario": "Hi", "csv": "phone_number\n+819012345678\n"}
    )
    await end_call(webhooks, job)
    await webhooks.ada.do(LIMIT, input={"concurrentCalls": 7, "callsPerSecond": 2})
    await webhooks.deliver()
    texts = shown(channel.texts)
    assert "[callJob: Call to +819012345678]: answered, completed after 1 call." in texts
    assert "Call job [callJob: Reminders]: completed, 1 of 1 number done, 0 active." in texts
    assert "Limits of calls: 7 at a time, 2 starts a second. 0 are active." in texts


async def end_call(webhooks: WebhookScenario, job: Answer) -> None:
    """Calls the only number of a job, which answers."""
    (task,) = job["tasks"]
    calls = webhooks.stores.calls
    start = await calls.start("acme", NextCall(TaskKey(job["id"], task["row"]), task["phoneNumber"]), 1)
    assert isinstance(start, TimedStart)
    await calls.report(start.call.id, 1, CallReportKind.ENDED, CallOutcome.ANSWERED)


async def test_publications_have_texts(webhooks: WebhookScenario, channel: SlackChannel) -> None:
    await follow(webhooks, channel, "PublicationChanged")
    later = {"text": "Soon", "toHomeFeed": True, "dueAt": "2030-01-01T00:00:00Z"}
    await webhooks.ada.do(CANCEL, id=(await webhooks.ada.do(SCHEDULE, input=later))["id"])
    await webhooks.deliver()
    assert channel.texts[-1] == "Publication to the home feed of *ada*: cancelled."


async def test_test_message_and_gap_have_texts(webhooks: WebhookScenario, channel: SlackChannel) -> None:
    id_ = await follow(webhooks, channel, "MessagePosted")
    await webhooks.ada.do(TEST, id=id_)
    await webhooks.send()
    await webhooks.chat.ann.post(webhooks.chat.topic, "lost")
    await webhooks.find()
    await webhooks.stores.events.prune(0.0)
    await webhooks.send()
    assert shown(channel.texts) == [
        "This is a test of a webhook. Events will appear here.",
        "Events of [topic: a topic] are missing here, because the log no longer has them. Later events follow.",
    ]


async def test_texts_of_people_notify_no_channel_and_hide_no_link(
    webhooks: WebhookScenario, channel: SlackChannel
) -> None:
    await follow(webhooks, channel, "MessagePosted")
    hostile = "<!channel> <https://evil.example|https://good.example> @everyone @Channel AT&T"
    await webhooks.chat.ann.post(webhooks.chat.topic, hostile)
    await webhooks.deliver()
    (text,) = channel.texts
    assert text.count("<") == text.count(">") == 1
    assert text.endswith(
        ": &lt;!channel&gt; &lt;https://evil.example|https://good.example&gt; @\u200beveryone @\u200bChannel AT&amp;T"
    )


def text_of(body: dict[str, Any], base_url: str = "http://127.0.0.1:8000") -> str:
    """Returns the text in the format SLACK."""
    return event_text(body, WebhookFormat.SLACK, base_url)


def message(text: str, name: str, title: str) -> dict[str, Any]:
    """Returns the body of a message about a new message."""
    author, topic_id, timestamp = {"name": name}, "t" * 32, "1700000000.000000"
    fields = {"author": author, "text": text, "topicId": topic_id, "timestamp": timestamp}
    return {"type": "MessagePosted", "topic": {"title": title}, "data": {"message": {**fields, "attachments": []}}}


def test_long_texts_are_shortened_before_they_are_escaped() -> None:
    text = text_of(message("&" * 9000, "&" * 900, "&" * 900), "https://noroshi.example.org")
    assert len(text) < MAX_CHARS
    assert text.count("&amp;") == TEXT_CHARS + 2 * NAME_CHARS - 3
    assert text.count("…") == 3
    assert text.endswith("&amp;…")


REPORT_URL = "https://noroshi.example.org"


def report(reason: str, **publication: Any) -> dict[str, Any]:
    """Returns the body of a message about a report."""
    target = {"account": {"name": "Shop", "network": "MASTODON"}}
    fields = {"target": target, "error": None, "latenessMs": None, **publication}
    post = {"id": "p1", "text": "**Open** at 9", "author": {"name": "Ann"}}
    return {"type": "PublicationReported", "data": {"report": {"reason": reason, "publication": fields, "post": post}}}


@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        (report("FAILED", error={"message": "Too long."}), "was not published to Shop (mastodon). Too long."),
        (
            report("NEEDS_ATTENTION", error={"message": "No."}),
            "waits for Shop (mastodon): the credentials of the account were refused. No.",
        ),
        (
            report("UNKNOWN", error={"message": "No answer."}),
            "may or may not have been published to Shop (mastodon): look there and answer. No answer.",
        ),
        (report("LATE", latenessMs=61_000), "was published to Shop (mastodon) 1 minute late."),
        (report("LATE", latenessMs=600_000), "was published to Shop (mastodon) 10 minutes late."),
    ],
)
def test_report_is_a_line_about_post_and_account(body: dict[str, Any], outcome: str) -> None:
    link = f"<{REPORT_URL}/#/publishing/calendar/today/p1|“Open at 9”>"
    assert text_of(body, REPORT_URL) == f"{link} of *Ann* {outcome}"


@pytest.mark.parametrize("format_", [WebhookFormat.SLACK, WebhookFormat.DISCORD])
def test_long_report_is_shortened_before_it_is_escaped(format_: WebhookFormat) -> None:
    body = report("UNKNOWN", error={"message": "&*" * 900})
    values = body["data"]["report"]
    values["post"] |= {"text": "&" * 900, "author": {"name": "&*" * 90}}
    values["publication"]["target"]["account"]["name"] = "&*" * 90
    text = event_text(body, format_, REPORT_URL)
    assert len(text) < MAX_CHARS
    assert text.count("…") == 4
    assert text.count("&") == 2 * NAME_CHARS // 2 + REPORT_CHARS - 1 + REPORT_CHARS // 2


@pytest.mark.parametrize(
    ("more", "shown_text"),
    [
        ({"stamp": {"name": "Hooray"}}, "_stamp Hooray_"),
        ({"attachments": [{}, {}]}, "_2 files_"),
        ({"deletedAt": "2026-11-22T09:00:00Z"}, "_deleted_"),
        ({}, "_no text_"),
    ],
)
def test_message_without_text_says_what_it_has(more: dict[str, Any], shown_text: str) -> None:
    body = message("", "Ann", "Tides")
    body["data"]["message"] |= more
    assert text_of(body).endswith(f"|Tides>: {shown_text}")


def test_unknown_type_is_shown_by_its_name() -> None:
    assert text_of({"type": "MoonRose"}) == "MoonRose"


@pytest.mark.parametrize(
    "target",
    [
        {"topic": None},
        {"topic": {"id": "t", "title": "Tides"}},
        {"account": {"name": "Shop", "network": "MASTODON"}},
    ],
)
def test_failed_publication_says_why(target: dict[str, Any]) -> None:
    error = {"code": "REFUSED", "message": "Too <long>"}
    publication = {"target": target, "state": "FAILED", "url": "javascript:alert(1)", "error": error}
    text = text_of({"type": "PublicationChanged", "data": {"publication": publication}})
    assert text.endswith(": failed.\nToo &lt;long&gt;")
    assert "javascript" not in text


async def test_removed_channel_pauses_and_archived_channel_disables(
    webhooks: WebhookScenario, channel: SlackChannel
) -> None:
    id_ = await follow(webhooks, channel, "MessagePosted")
    await webhooks.chat.ann.post(webhooks.chat.topic)
    channel.refusal = NO_SERVICE
    await webhooks.deliver()
    webhook = await webhooks.webhook(id_)
    assert (webhook["lastError"], webhook["disabledAt"]) == ("HTTP 404 no_service", None)
    channel.refusal = ARCHIVED
    await webhooks.end_pauses()
    await webhooks.send()
    assert (await webhooks.webhook(id_))["disabledReason"] == "GONE"


async def test_format_is_event_unless_it_is_chosen(webhooks: WebhookScenario, channel: SlackChannel) -> None:
    id_ = await webhooks.create(await webhooks.receiver())
    assert (await webhooks.ada.run(FORMAT))["done"] == [{"id": id_, "format": "EVENT"}]
    await webhooks.stores.mongo["webhooks"].update_one({"_id": id_}, {"$unset": {"format": ""}})
    assert (await webhooks.ada.run(FORMAT))["done"] == [{"id": id_, "format": "EVENT"}]
    slack = {"id": id_, "format": "SLACK"}
    assert await webhooks.ada.do(UPDATE, input={"webhookId": id_, "format": "SLACK"}) == slack
    assert await webhooks.ada.do(UPDATE, input={"webhookId": id_, "name": "Channel"}) == slack
    assert await webhooks.ada.do(UPDATE, input={"webhookId": id_, "format": None}) == slack
    assert (await webhooks.ada.do(UPDATE, input={"webhookId": id_, "format": "EVENT"}))["format"] == "EVENT"
