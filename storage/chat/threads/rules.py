"""Rules of threads, which commits of the parent's topic and of the thread check.

A thread is a topic of its own. Its commits read the topic of the parent message, whose archive, slow mode and people
apply to the thread. A change of these is committed to another stream than a reply, so the two do not conflict. Such a
change is therefore followed by `wait_for_thread_commits`.
"""

import hashlib
from typing import Any

from storage.chat.documents import MessageDocument
from storage.chat.threads.documents import ThreadFields
from storage.ids import MessageKey
from storage.mongo import Mongo, Session
from storage.streams.changes import Batch
from storage.streams.log import Stream

PARENT_TOPIC = "thread_parent_topic"
_PARENT_FIELDS = {"direct": 1, "archived_at": 1, "slow_s": 1}


def thread_id(parent: MessageKey) -> str:
    """Returns the id of the topic that is the thread of a message."""
    return hashlib.sha256(f"thread:{parent.id}".encode()).hexdigest()[:32]


def thread_fields(batch: Batch) -> ThreadFields | None:
    """Returns the fields of the thread, or None if the batch is for another topic."""
    thread: ThreadFields | None = batch.head.get("thread")
    return thread


async def load_parent_topic(mongo: Mongo, session: Session, batch: Batch) -> None:
    """Reads the topic of the parent message, once for all changes of the batch. Does nothing outside of threads."""
    thread = thread_fields(batch)
    if thread is None or PARENT_TOPIC in batch.shared:
        return
    query = {"_id": thread["topic"]}
    (batch.shared[PARENT_TOPIC],) = await mongo.find("topics", query, _PARENT_FIELDS, limit=1, session=session)


def governing_topic(batch: Batch) -> Any:
    """Returns the topic whose settings and people apply: for a thread that of the parent message.

    `load_parent_topic` must have been awaited.
    """
    return batch.shared.get(PARENT_TOPIC, batch.head)


def count_reply(batch: Batch, step: int) -> None:
    """Changes the number of replies, and lets the relay update the parent message. Does nothing outside of threads."""
    thread = thread_fields(batch)
    if thread is None:
        return
    batch.change_head(thread={**thread, "replies": thread["replies"] + step})
    batch.add_outbox_row(Stream("topic", thread["topic"]), "ThreadActivity", batch.stream.id)


def relay_reply(batch: Batch, reply: MessageDocument) -> None:
    """Lets the relay bring the cross-post of a reply up to date. Does nothing for other messages."""
    thread = thread_fields(batch)
    if thread is not None and "also_in_topic" in reply:
        batch.add_outbox_row(Stream("topic", thread["topic"]), "CrossPost", reply["_id"])


async def wait_for_thread_commits(mongo: Mongo, topic_id: str) -> None:
    """Waits for the commits in progress to threads of a topic. Later commits see the topic as it is now."""
    await mongo.write_past_orphans(
        lambda: mongo["topics"].update_many({"thread.topic": topic_id}, {"$inc": {"fences": 1}})
    )
