"""Writes messages in the format of their webhook. SLACK and DISCORD: one or two lines for people, in their markup."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

import orjson

from jobs.webhooks.markup import DiscordMarkup, Markup, SlackMarkup
from storage.identity.formatting import plain_text
from storage.streams.log import parse_stream_name
from storage.webhooks.deliveries import SentMessage
from storage.webhooks.event_types import GAP_TYPE, TEST_TYPE
from storage.webhooks.records import WebhookFormat

TEXT_CHARS = 240
NAME_CHARS = 60
REPORT_CHARS = 100
"""Characters of each of the two texts of a report: the beginning of the post, and the reason."""

MAX_CHARS = 2000
"""Discord refuses longer texts. The longest text of this module is shorter, also when each character is escaped."""

MARKUPS: Mapping[WebhookFormat, Markup] = {
    WebhookFormat.SLACK: SlackMarkup(),
    WebhookFormat.DISCORD: DiscordMarkup(),
}
"""The markup of each format for people."""

_Values = Mapping[str, Any]


def formatted(message: SentMessage, format_: WebhookFormat, base_url: str) -> SentMessage:
    """Returns the message with its body in the format. Links lead to the web client at `base_url`."""
    if format_ not in MARKUPS:
        return message
    text = event_text(orjson.loads(message.body), format_, base_url)
    return replace(message, body=orjson.dumps(MARKUPS[format_].body(text)))


def event_text(event: _Values, format_: WebhookFormat, base_url: str) -> str:
    """Returns the text for the body of a message. A type without a text is shown by its name."""
    write = _WRITERS.get(event["type"])
    return str(event["type"]) if write is None else write(_Event(event, MARKUPS[format_], base_url))


def _words(state: str) -> str:
    return state.lower().replace("_", " ")


def _count(number: int, one: str, several: str | None = None) -> str:
    return f"{number} {one if number == 1 else several or f'{one}s'}"


@dataclass(frozen=True, slots=True)
class _Event:
    """The body of a message, the markup of its text, and the address of the web client."""

    body: _Values
    markup: Markup
    base_url: str

    @property
    def data(self) -> _Values:
        """The event."""
        data: _Values = self.body["data"]
        return data

    @property
    def message(self) -> _Values:
        """The message of an event of a topic."""
        message: _Values = self.data["message"]
        return message

    def short(self, text: str, chars: int) -> str:
        """Returns the beginning of a text in one line, escaped."""
        line = " ".join(text.split())
        return self.markup.escape(line if len(line) <= chars else f"{line[: chars - 1]}…")

    def person(self, user: _Values) -> str:
        """Returns the name of a person."""
        return self.markup.bold(self.short(user["name"], NAME_CHARS))

    def content(self, item: _Values) -> str:
        """Returns the text of a message or a post, and what else it has."""
        italic, stamp = self.markup.italic, item.get("stamp")
        if item.get("deletedAt") is not None:
            return italic("deleted")
        files = len(item["attachments"]) + len(item.get("mediaUrls") or ())
        parts = [
            self.short(plain_text(item["text"]), TEXT_CHARS),
            "" if stamp is None else italic(f"stamp {self.short(stamp['name'], NAME_CHARS)}"),
            italic(_count(files, "file")) if files else "",
        ]
        return " ".join(part for part in parts if part) or italic("no text")

    def link(self, label: str, *place: str) -> str:
        """Returns a link to a place of the web client. The label is escaped."""
        return self.markup.link(f"{self.base_url}/#/{'/'.join(quote(part, safe='') for part in place)}", label)

    def topic_of_message(self) -> str:
        """Returns the topic's title as a link to the message."""
        title = self.short((self.body.get("topic") or {}).get("title") or "", NAME_CHARS)
        return self.link(title or "a thread", "topic", self.message["topicId"], self.message["timestamp"])

    def author(self) -> str:
        """Returns the name of the message's author."""
        return self.person(self.message["author"])


def _posted(event: _Event) -> str:
    return f"{event.author()} in {event.topic_of_message()}: {event.content(event.message)}"


def _edited(event: _Event) -> str:
    return f"{event.author()} edited a message in {event.topic_of_message()}: {event.content(event.message)}"


def _deleted(event: _Event) -> str:
    return f"A message of {event.author()} in {event.topic_of_message()} was deleted."


def _pinned(event: _Event) -> str:
    return f"A message of {event.author()} was pinned in {event.topic_of_message()}: {event.content(event.message)}"


def _unpinned(event: _Event) -> str:
    return f"A message of {event.author()} is no longer pinned in {event.topic_of_message()}."


def _reactions(event: _Event) -> str:
    counts = " ".join(
        f"{event.short(each['emoji'], NAME_CHARS)} {each['count']}" for each in event.message["reactions"]
    )
    return f"Reactions to a message of {event.author()} in {event.topic_of_message()}: {counts or 'none'}"


def _thread(event: _Event) -> str:
    thread = event.message["thread"] or {"replyCount": 0}
    replies = _count(thread["replyCount"], "reply", "replies")
    return f"A message of {event.author()} in {event.topic_of_message()} has {replies}."


def _topic(sentence: str) -> Callable[[_Event], str]:
    """Returns the writer for an event of a topic. `sentence` has the places `topic` and `community`."""

    def write(event: _Event) -> str:
        topic, community = event.data["topic"], event.data["topic"]["community"] or {"name": ""}
        link = event.link(event.short(topic["title"], NAME_CHARS) or "a thread", "topic", topic["id"])
        text = sentence.format(topic=link, community=event.short(community["name"], NAME_CHARS))
        return text if topic["archivedAt"] is None else f"{text} It is archived."

    return write


def _community(event: _Event) -> str:
    community = event.data["community"]
    if community is None:
        return "A community was changed."
    link = event.link(event.short(community["name"], NAME_CHARS), "community", community["id"])
    text = f"The community {link} was changed. It has {_count(community['memberCount'], 'member')}."
    return text if community["archivedAt"] is None else f"{text} It is archived."


def _post(event: _Event) -> str:
    post = event.data["post"]
    link = event.link("reposted" if post["isRepost"] else "posted", "post", post["id"])
    return f"{event.person(post['author'])} {link}{' a post.' if post['isRepost'] else f': {event.content(post)}'}"


def _post_removed(_event: _Event) -> str:
    return "A post was removed."


def _job(event: _Event) -> str:
    job, progress = event.data["job"], event.data["job"]["progress"]
    done = progress["total"] - progress["queued"] - progress["active"]
    link = event.link(event.short(job["name"], NAME_CHARS), "callJob", job["id"])
    numbers = f"{done} of {_count(progress['total'], 'number')} done, {progress['active']} active"
    return f"Call job {link}: {_words(job['state'])}, {numbers}."


def _task(event: _Event) -> str:
    task = event.data["task"]
    label = f"Call to {event.short(task['phoneNumber'], NAME_CHARS) or 'row ' + str(task['row'])}"
    outcome = "" if task["outcome"] is None else f"{_words(task['outcome'])}, "
    reason = "" if task["error"] is None else f"\n{event.short(task['error'], TEXT_CHARS)}"
    state = f"{outcome}{_words(task['state'])} after {_count(task['attempts'], 'call')}."
    return f"{event.link(label, 'callJob', task['jobId'])}: {state}{reason}"


def _limits(event: _Event) -> str:
    limits = event.data["limits"]
    starts = f"{limits['callsPerSecond']:g} starts a second"
    return f"Limits of calls: {limits['concurrentCalls']} at a time, {starts}. {limits['activeCalls']} are active."


def _publication(event: _Event) -> str:
    publication = event.data["publication"]
    error, url = publication["error"], publication["url"] or ""
    reason = "" if error is None else f"\n{event.short(error['message'], TEXT_CHARS)}"
    address = f"\n{event.markup.address(url)}" if _is_short_address(url) else ""
    return f"Publication to {_target(publication['target'], event)}: {_words(publication['state'])}.{address}{reason}"


def _is_short_address(url: str) -> bool:
    """Returns whether an http address is shown. A part of an address would lead elsewhere."""
    return url.startswith(("http://", "https://")) and len(url) <= TEXT_CHARS and url.split() == [url]


def _report(event: _Event) -> str:
    """Returns a line with the post's beginning, its target, the outcome, the reason, and a link to the post."""
    report = event.data["report"]
    post, publication = report["post"], report["publication"]
    start = event.short(plain_text(post["text"]), REPORT_CHARS)
    label = f"“{start}”" if start else "a post without text"
    link = event.link(label, "publishing", "calendar", "today", post["id"])
    target, error = _target(publication["target"], event), publication["error"]
    outcome = _OUTCOMES[report["reason"]].format(target=target, late=_lateness(publication["latenessMs"]))
    reason = "" if error is None else f" {event.short(error['message'], REPORT_CHARS)}"
    return f"{link} of {event.person(post['author'])} {outcome}{reason}"


_OUTCOMES = {
    "FAILED": "was not published to {target}.",
    "NEEDS_ATTENTION": "waits for {target}: the credentials of the account were refused.",
    "UNKNOWN": "may or may not have been published to {target}: look there and answer.",
    "LATE": "was published to {target}{late} late.",
}
"""Outcomes of reported publications, by the reason of the report."""


def _lateness(late_ms: int | None) -> str:
    return "" if late_ms is None else f" {_count(round(late_ms / 60_000), 'minute')}"


def _target(target: _Values, event: _Event) -> str:
    if (author := target.get("author")) is not None:
        return f"the home feed of {event.person(author)}"
    if (account := target.get("account")) is not None:
        return f"{event.short(account['name'], NAME_CHARS)} ({_words(account['network'])})"
    topic = target.get("topic")
    return "a topic" if topic is None else event.link(event.short(topic["title"], NAME_CHARS), "topic", topic["id"])


def _test(_event: _Event) -> str:
    return "This is a test of a webhook. Events will appear here."


def _gap(event: _Event) -> str:
    stream = parse_stream_name(event.body["stream"])
    places = {"topic": "a topic", "community": "a community", "local": "posts", "jobs": "calls and publications"}
    place = places.get(stream.kind, stream.kind)
    link = event.link(place, stream.kind, stream.id) if stream.kind in ("topic", "community") else place
    return f"Events of {link} are missing here, because the log no longer has them. Later events follow."


_WRITERS: dict[str, Callable[[_Event], str]] = {
    "CallJobChanged": _job,
    "CallLimitsChanged": _limits,
    "CallTaskChanged": _task,
    "CommunityChanged": _community,
    "MessageDeleted": _deleted,
    "MessageEdited": _edited,
    "MessagePinned": _pinned,
    "MessagePosted": _posted,
    "MessageUnpinned": _unpinned,
    "PostArrived": _post,
    "PostRemoved": _post_removed,
    "PublicationChanged": _publication,
    "PublicationReported": _report,
    "ReactionsChanged": _reactions,
    "ThreadChanged": _thread,
    "TopicActivity": _topic("{topic} in {community} has new messages."),
    "TopicChanged": _topic("The topic {topic} in {community} was changed."),
    "TopicCreated": _topic("New topic in {community}: {topic}."),
    TEST_TYPE: _test,
    GAP_TYPE: _gap,
}
"""By the type of the message. A test compares the types with those that webhooks send."""
