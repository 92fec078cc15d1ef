"""Slow mode of a topic: the minimum time between two messages of one person. The commit of a message checks it.

A thread has the slow mode of its parent's topic. The times of each thread are counted apart. A reply that is also sent
to the topic counts in both.
"""

from datetime import timedelta

from storage.chat.documents import SlowModePostDocument, SlowModePostId
from storage.chat.threads.rules import governing_topic, thread_fields
from storage.errors import RateLimited
from storage.mongo import Mongo, Session
from storage.streams.changes import Batch

SLOW_MODE_POSTS = "slow_mode_posts"


async def load_last_posts(mongo: Mongo, session: Session, batch: Batch, user_ids: set[str]) -> None:
    """Reads when each of the people posted last, once for all changes of the batch. Reads nothing without slow mode."""
    if not governing_topic(batch).get("slow_s") or SLOW_MODE_POSTS in batch.shared:
        return
    batch.shared[SLOW_MODE_POSTS] = True
    ids = [_id(topic_id, user_id) for topic_id in _places(batch, True) for user_id in user_ids]
    for document in await mongo.find(SLOW_MODE_POSTS, {"_id": {"$in": ids}}, session=session):
        batch.add_loaded(SLOW_MODE_POSTS, document)


def record_post_in_slow_mode(batch: Batch, user_id: str, also_in_topic: bool = False) -> None:
    """Records that the person posts now, with `also_in_topic` in the topic of the thread's parent, too.

    Raises: RateLimited if the person's last message is too recent.
    """
    seconds = governing_topic(batch).get("slow_s")
    if not seconds:
        return
    pause, ids = timedelta(seconds=seconds), [_id(topic_id, user_id) for topic_id in _places(batch, also_in_topic)]
    posts: list[SlowModePostDocument | None] = [batch.get(SLOW_MODE_POSTS, id_) for id_ in ids]
    wait = max((last["at"] + pause - batch.at for last in posts if last is not None), default=timedelta())
    if wait > timedelta():
        message = f"Slow mode: one message in {seconds} seconds."
        raise RateLimited(message, -(-wait // timedelta(milliseconds=1)))
    for id_ in ids:
        document: SlowModePostDocument = {"_id": id_, "at": batch.at, "ends_at": batch.at + pause}
        batch.put(SLOW_MODE_POSTS, document)


def _places(batch: Batch, with_parent: bool) -> list[str]:
    """Returns the ids of the topic or thread and, if asked for, of the topic of the thread's parent."""
    thread = thread_fields(batch)
    return [batch.stream.id] if thread is None or not with_parent else [batch.stream.id, thread["topic"]]


def _id(topic_id: str, user_id: str) -> SlowModePostId:
    return {"t": topic_id, "u": user_id}
