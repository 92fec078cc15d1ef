"""Slow mode of a topic: the minimum time between two messages of one person. The commit of a message checks it.

A thread has the slow mode of its parent's topic. The times of each thread are counted apart.
"""

from datetime import timedelta

from storage.chat.documents import SlowModePostDocument, SlowModePostId
from storage.chat.threads.rules import governing_topic
from storage.errors import RateLimited
from storage.mongo import Mongo, Session
from storage.streams.changes import Batch

SLOW_MODE_POSTS = "slow_mode_posts"


async def load_last_posts(mongo: Mongo, session: Session, batch: Batch, user_ids: set[str]) -> None:
    """Reads when each of the people posted last, once for all changes of the batch. Reads nothing without slow mode."""
    if not governing_topic(batch).get("slow_s") or SLOW_MODE_POSTS in batch.shared:
        return
    batch.shared[SLOW_MODE_POSTS] = True
    ids = [_id(batch, user_id) for user_id in user_ids]
    for document in await mongo.find(SLOW_MODE_POSTS, {"_id": {"$in": ids}}, session=session):
        batch.add_loaded(SLOW_MODE_POSTS, document)


def record_post_in_slow_mode(batch: Batch, user_id: str) -> None:
    """Records that the person posts now. Raises: RateLimited if the person's last message is too recent."""
    seconds = governing_topic(batch).get("slow_s")
    if not seconds:
        return
    pause, id_ = timedelta(seconds=seconds), _id(batch, user_id)
    last: SlowModePostDocument | None = batch.get(SLOW_MODE_POSTS, id_)
    if last is not None and (wait := last["at"] + pause - batch.at) > timedelta():
        message = f"Slow mode: one message in {seconds} seconds."
        raise RateLimited(message, -(-wait // timedelta(milliseconds=1)))
    document: SlowModePostDocument = {"_id": id_, "at": batch.at, "ends_at": batch.at + pause}
    batch.put(SLOW_MODE_POSTS, document)


def _id(batch: Batch, user_id: str) -> SlowModePostId:
    return {"t": batch.stream.id, "u": user_id}
