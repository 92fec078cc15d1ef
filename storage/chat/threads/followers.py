"""The people who follow a thread: who follows it automatically, and who is notified of a reply."""

from collections.abc import Collection, Sequence

from storage.chat.threads.rules import thread_fields
from storage.identity.documents import BlockDocument, MuteDocument
from storage.identity.mutes import MUTES, MUTES_IN_FORCE, MuteSubject
from storage.ids import MessageKey
from storage.mongo import Mongo, Session
from storage.notifications import NotificationKind, notify
from storage.streams.changes import Batch

MAX_FOLLOWERS = 100
"""Maximum number of people who follow a thread. A reply notifies each of them."""

NOTIFIED = "notified_thread_followers"
HIDDEN_AUTHORS = "authors_hidden_from_thread_followers"


async def load_hidden_authors(mongo: Mongo, session: Session, batch: Batch, author_ids: Collection[str]) -> None:
    """Reads which followers have blocked or muted which authors, once for all changes of the batch.

    Reads nothing for one author: the notification of a hidden author is not shown anyway.
    """
    followers = _followers(batch)
    if not followers or len(author_ids) < 2 or HIDDEN_AUTHORS in batch.shared:
        return
    org, users, authors = batch.head["org"], {"$in": list(followers)}, {"$in": list(author_ids)}
    blocked = {"org": org, "user": users, "blocked": authors}
    blocks: list[BlockDocument] = await mongo.find("blocks", blocked, session=session)
    muted = {"_id.o": org, "_id.s": authors, "_id.u": users, "_id.k": MuteSubject.USER.value}
    mutes: list[MuteDocument] = await mongo.find(MUTES, {"$and": [muted, MUTES_IN_FORCE]}, session=session)
    batch.shared[HIDDEN_AUTHORS] = {
        *((block["user"], block["blocked"]) for block in blocks),
        *((mute["_id"]["u"], mute["_id"]["s"]) for mute in mutes),
    }


def notify_followers(batch: Batch, reply: MessageKey, author_id: str, mentioned_ids: Sequence[str]) -> None:
    """Notifies the people who follow the thread of a reply, except those whom it mentions.

    Of replies that are committed together, a person is notified once, of one by somebody whom the person sees.
    `load_hidden_authors` must have been awaited.
    """
    notified: set[str] = batch.shared.setdefault(NOTIFIED, set())
    hidden: set[tuple[str, str]] = batch.shared.get(HIDDEN_AUTHORS, set())
    for user_id in _followers(batch):
        is_excluded = user_id in notified or user_id == author_id or user_id in mentioned_ids
        if not is_excluded and (user_id, author_id) not in hidden:
            notified.add(user_id)
            notify(batch, batch.head["org"], user_id, NotificationKind.THREAD_REPLY, author_id, message=reply)


def add_followers(batch: Batch, user_ids: Sequence[str]) -> None:
    """Makes people follow the thread, as long as it has fewer than the maximum number of followers."""
    thread = thread_fields(batch)
    if thread is None:
        return
    followers = list(dict.fromkeys([*_followers(batch), *user_ids]))[:MAX_FOLLOWERS]
    if followers != thread.get("followers"):
        batch.change_head(thread={**thread, "followers": followers})


def _followers(batch: Batch) -> Sequence[str]:
    """Returns the people who follow the thread; nobody outside of threads."""
    thread = thread_fields(batch)
    return () if thread is None else thread.get("followers", ())
