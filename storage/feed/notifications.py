"""Notifications of posts: to people whom a post mentions, and to the author of the post that it answers."""

from collections.abc import Iterable

from storage.feed.documents import PostDocument
from storage.feed.records import PostParentKind, post_record
from storage.identity.records import user_stream
from storage.notifications import NotificationKind, notification_ref, notify
from storage.streams.changes import Batch


def notify_mentioned(batch: Batch, post: PostDocument, user_ids: Iterable[str]) -> None:
    """Notifies users whom the post mentions, when the batch is committed."""
    id_, root = post["_id"], post_record(post).root_key.timestamp
    for user_id in user_ids:
        notify(batch, id_["o"], user_id, NotificationKind.MENTION, post["author"], post=id_["ts"], root=root)


def notify_parent_author(batch: Batch, post: PostDocument) -> None:
    """Notifies the parent's author about a reply or quote, or about the post that was reposted."""
    id_, parent = post["_id"], post_record(post).parent
    if parent is None:
        return
    kind, author_id, root = NotificationKind[parent.kind.name], post["author"], parent.root
    if parent.kind is PostParentKind.REPOST:
        notify(batch, id_["o"], parent.author_id, kind, author_id, post=parent.timestamp, root=root)
    else:
        subject = parent.timestamp
        notify(batch, id_["o"], parent.author_id, kind, author_id, post=id_["ts"], root=root, subject=subject)


def withdraw_from_parent_author(batch: Batch, post: PostDocument) -> None:
    """Removes the notification about a reply or quote when the batch is committed. A notified repost stays notified."""
    parent = post_record(post).parent
    if parent is not None and parent.kind is not PostParentKind.REPOST and parent.author_id != post["author"]:
        content = notification_ref(NotificationKind[parent.kind.name], post["author"], post=post["_id"]["ts"])
        stream = user_stream(post["_id"]["o"], parent.author_id)
        batch.add_outbox_row(stream, "NotificationWithdrawn", content)
