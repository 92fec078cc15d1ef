"""Conversations: requests, messages, quotes, threads and searches of their people, and others who try to read along."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from tests.lab.session import Laboratory, WorkloadSession
from tests.lab.workloads.conversation_changes import ACCEPT, START, ConversationChanges
from tests.lab.workloads.topic_messages import POST, new_message, posted_message, read_all, read_page
from tests.lab.workloads.topic_subscribers import TopicSubscriber

AREA = "conversations"
PEOPLE, STRANGERS = 8, 2
SEARCHED_AT_END = 100
QUOTES_AT_END = 20
QUOTE_SHARE, ALSO_SHARE, ASK_SHARE = 0.2, 0.3, 0.1
VIEWER = "query { viewer { id } }"
THREAD = "query ($id: ID!) { message(id: $id) { thread { id: topicId replyCount } } }"
QUOTE = "query ($id: ID!) { message(id: $id) { quote { message { id } } } }"
SEARCH = 'query ($text: String!) { searchMessages(query: $text, latest: "now") { items { message { text } } } }'
INTRUSIONS = {
    "conversation": "query ($topic: ID!) { conversation(id: $topic) { id } }",
    "page": 'query ($topic: ID!) { messages(topicId: $topic, latest: "now") { items { text } } }',
    "message": "query ($message: ID!) { message(id: $message) { text } }",
    "post": 'mutation ($topic: ID!) { postMessage(input: { topicId: $topic, text: "boo" }) { id } }',
    "reply": "mutation ($topic: ID!, $message: ID!) "
    '{ postMessage(input: { topicId: $topic, replyTo: $message, text: "boo" }) { id } }',
    "reaction": 'mutation ($message: ID!) { addReaction(messageId: $message, emoji: "👍") { id } }',
    "typing": "mutation ($topic: ID!) { setTyping(topicId: $topic) }",
}
"""Attempts of strangers, with ids of conversations, threads and messages. Each must be refused."""


@dataclass
class WrittenConversation:
    """A conversation, its people, and what they have written."""

    id: str
    people: list[str]
    parents: list[str] = field(default_factory=list)
    """Ids of the messages to which people reply."""

    threads: dict[str, str] = field(default_factory=dict)
    """Id of the thread of each parent that has an acknowledged reply."""

    messages: list[tuple[str, str]] = field(default_factory=list)
    """Id and text of acknowledged messages. A text is one word that no other message has."""

    quotes: dict[str, str] = field(default_factory=dict)
    """Id of the quoted message of each acknowledged message that has a quote."""


@dataclass
class ConversationsWorkload:
    """A group, a conversation of two of its people, strangers to both, and people who change conversations."""

    laboratory: Laboratory
    conversations: list[WrittenConversation] = field(default_factory=list)
    requests: dict[str, str] = field(default_factory=dict)
    """Id of the conversation that each stranger has started, and that nobody accepts."""

    subscribers: list[TopicSubscriber] = field(default_factory=list)
    changes: ConversationChanges = field(init=False)

    async def prepare(self) -> None:
        """Starts the conversations, which all people accept, and posts the messages to which people reply."""
        people, strangers = [f"friend{n}" for n in range(PEOPLE)], [f"stranger{n}" for n in range(STRANGERS)]
        for name in [*people, *strangers]:
            await self._session(name).run_until_ok("viewer", {}, VIEWER)
        for group_name, members in (("Hikers", people), ("", people[:2])):
            conversation = WrittenConversation(await self._start(members, group_name), members)
            for text in (f"first{len(members)}", f"second{len(members)}"):
                message = await self._post_until_ok(self._session(members[0]), conversation.id, text)
                conversation.parents.append(message["id"])
            self.conversations.append(conversation)
        for stranger in strangers:
            self.requests[stranger] = await self._start([stranger, people[0]], accepts=False)
        group = self.conversations[0]
        self.changes = ConversationChanges(
            self.laboratory, AREA, group.id, group.people[0], group.threads, self._attempt_intrusion
        )
        await self.changes.prepare()

    async def run(self) -> None:
        """Lets everybody act until the run ends."""
        self.subscribers = [
            TopicSubscriber(self._session(each.people[-1], "subscriber"), each.id) for each in self.conversations
        ]
        await asyncio.gather(
            *(subscriber.run() for subscriber in self.subscribers),
            *(self._talk(self._session(name), each) for each in self.conversations for name in each.people),
            *(self._intrude(self._session(name)) for name in self.requests),
            self.changes.run(),
        )

    async def finish(self) -> None:
        """Posts the last messages of each conversation, waits for the subscribers, and reads and finds everything."""
        for conversation in self.conversations:
            session = self._session(conversation.people[0])
            await self._post_last_messages(session, conversation)
            final = session.as_final()
            await read_all(final, conversation.id)
            for parent in conversation.parents:
                await self._read_thread(final, conversation, parent)
            for _, text in conversation.messages[-SEARCHED_AT_END:]:
                await final.run_until_ok("search", {"text": text}, SEARCH, _texts, text=text)
            for message, quoted in list(conversation.quotes.items())[-QUOTES_AT_END:]:
                await final.run_until_ok("quote", {"message": message, "quoted": quoted}, QUOTE, _quoted, id=message)
        await self.changes.finish()

    def _session(self, name: str, *more: str) -> WorkloadSession:
        return self.laboratory.session("-".join((name, *more)), AREA, user=name)

    async def _post_last_messages(self, session: WorkloadSession, conversation: WrittenConversation) -> None:
        """Posts the last replies, which follow in the conversation, and its last message, when they have arrived."""
        readers = [each for each in self.subscribers if each.topic == conversation.id]
        for number, parent in enumerate(conversation.parents):
            text = f"lastreply{number}in{len(conversation.people)}"
            arguments, input_ = _also_to_conversation(conversation, parent, text)
            await session.run_until_ok("post", arguments, POST, posted_message, input=input_)
            await asyncio.gather(*(each.read_until(text) for each in readers))
        text = f"last{len(conversation.people)}"
        await self._post_until_ok(session, conversation.id, text)
        await asyncio.gather(*(each.read_until(text) for each in readers))

    async def _start(self, people: list[str], group_name: str = "", accepts: bool = True) -> str:
        """Starts a conversation. The other people accept it, unless it stays a request. Returns its id."""
        key = {"userIds": people[1:], "groupName": group_name, "idempotencyKey": f"{people[0]}-{len(people)}"}
        started = await self._session(people[0]).run_until_ok("startConversation", {}, START, input=key)
        for name in people[1:] if accepts else ():
            await self._session(name).run_until_ok("acceptConversation", {}, ACCEPT, id=started["topic"]["id"])
        id_: str = started["topic"]["id"]
        return id_

    async def _post_until_ok(self, session: WorkloadSession, topic: str, text: str) -> dict[str, Any]:
        arguments = {"topic": topic, "text": text}
        message: dict[str, Any] = await session.run_until_ok(
            "post", arguments, POST, posted_message, input=new_message(topic, text)
        )
        return message

    async def _talk(self, session: WorkloadSession, conversation: WrittenConversation) -> None:
        actions = (self._post, self._post, self._reply, self._reply, self._read, self._search)
        number = 0
        while not self.laboratory.ended.is_set():
            number += 1
            text = f"{session.process}in{len(conversation.people)}n{number}"
            await session.rng.choice(actions)(session, conversation, text)
            await self.laboratory.pause(session.rng.uniform(0.05, 1.0))

    async def _post(self, session: WorkloadSession, conversation: WrittenConversation, text: str) -> None:
        """Posts a message, which may quote another one."""
        arguments, quoted = {"topic": conversation.id, "text": text}, None
        if conversation.messages and session.rng.random() < QUOTE_SHARE:
            quoted, _ = session.rng.choice(conversation.messages)
        input_ = new_message(conversation.id, text, **({"quotedMessageId": quoted} if quoted else {}))
        if message := await self._repeat_post(session, arguments, input_):
            conversation.messages.append((message["id"], text))
            if quoted:
                conversation.quotes[message["id"]] = quoted

    async def _reply(self, session: WorkloadSession, conversation: WrittenConversation, text: str) -> None:
        """Replies to a parent, by the id of the parent or of its thread if it is known. Some replies follow there."""
        parent = session.rng.choice(conversation.parents)
        thread, arguments = conversation.threads.get(parent), {"topic": replies_of(parent), "text": text}
        input_: dict[str, Any] = new_message(conversation.id, text, replyTo=parent)
        if session.rng.random() < ALSO_SHARE:
            arguments, input_ = _also_to_conversation(conversation, parent, text)
        if thread is not None and session.rng.random() < 0.5:
            input_ |= {"topicId": thread, "replyTo": None}
        if message := await self._repeat_post(session, arguments, input_):
            conversation.threads.setdefault(parent, message["topic"])
            conversation.messages.append((message["id"], text))

    async def _repeat_post(
        self, session: WorkloadSession, arguments: dict[str, str], input_: dict[str, Any]
    ) -> dict[str, Any] | None:
        for _ in range(session.rng.choice((1, 3, 10))):
            outcome, result = await session.run("post", arguments, POST, posted_message, input=input_)
            if outcome == "ok":
                message: dict[str, Any] = result
                return message
            await self.laboratory.pause(session.rng.uniform(0.1, 1.0))
        return None

    async def _read(self, session: WorkloadSession, conversation: WrittenConversation, _: str) -> None:
        limit, parent = session.rng.choice((1, 5, 50)), session.rng.choice([None, *conversation.threads])
        if parent is None:
            await read_page(session, conversation.id, latest="now", limit=limit)
        else:
            thread = conversation.threads[parent]
            await read_page(session, thread, latest="now", limit=limit, recorded_topic=replies_of(parent))

    async def _search(self, session: WorkloadSession, conversation: WrittenConversation, _: str) -> None:
        if conversation.messages:
            _, text = session.rng.choice(conversation.messages)
            await session.run("search", {"text": text}, SEARCH, _texts, text=text)

    async def _read_thread(self, session: WorkloadSession, conversation: WrittenConversation, parent: str) -> None:
        """Reads all replies to a parent, and their number."""
        shown = await session.run_until_ok("thread", {"parent": parent}, THREAD, _thread, id=parent)
        if shown["id"] is not None:
            await read_all(session, shown["id"], recorded_topic=replies_of(parent))

    async def _intrude(self, session: WorkloadSession) -> None:
        """Intrudes, and writes to a person who does not answer."""
        number = 0
        while not self.laboratory.ended.is_set():
            number += 1
            if session.rng.random() < ASK_SHARE:
                input_ = new_message(self.requests[session.process], f"{session.process}ask{number}")
                await session.run("ask", {"stranger": session.process}, POST, posted_message, input=input_)
            else:
                await self._attempt_intrusion(session)
            await self.laboratory.pause(session.rng.uniform(0.2, 1.0))

    async def _attempt_intrusion(self, session: WorkloadSession) -> None:
        """Tries an id of a conversation, a thread or a message, or searches for a word of a message."""
        conversation = session.rng.choice(self.conversations)
        topic = session.rng.choice([conversation.id, *conversation.threads.values()])
        message, text = session.rng.choice([(conversation.parents[0], "first8"), *conversation.messages])
        attempt = session.rng.choice([*INTRUSIONS, "search"])
        if attempt == "search":
            await session.run("intrude", {"attempt": attempt}, SEARCH, _texts, text=text)
            return
        query, ids = INTRUSIONS[attempt], {"topic": topic, "message": message}
        variables: dict[str, Any] = {name: id_ for name, id_ in ids.items() if f"${name}" in query}
        await session.run("intrude", {"attempt": attempt}, query, **variables)


def replies_of(parent: str) -> str:
    """Returns the name of a message's thread in the history. The first reply is posted before the thread has an id."""
    return f"replies of {parent}"


def _also_to_conversation(
    conversation: WrittenConversation, parent: str, text: str
) -> tuple[dict[str, str], dict[str, Any]]:
    """Returns the recorded arguments and the input of a reply that is also sent to the conversation."""
    arguments = {"topic": replies_of(parent), "text": text, "also_to": conversation.id}
    return arguments, {**new_message(conversation.id, text, replyTo=parent), "alsoToTopic": True}


def _texts(page: dict[str, Any]) -> list[str]:
    return [item["message"]["text"] for item in page["items"]]


def _thread(message: dict[str, Any]) -> dict[str, Any]:
    thread = message["thread"] or {"id": None, "replyCount": 0}
    return {"id": thread["id"], "replies": thread["replyCount"]}


def _quoted(message: dict[str, Any]) -> str | None:
    quoted = message["quote"] and message["quote"]["message"]
    return quoted["id"] if quoted else None
