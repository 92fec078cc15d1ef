"""Work outside a request: arq functions by queue, and sweepers over MongoDB. This is the registry."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from arq.worker import Function, func

from jobs.context import JobContext
from jobs.link_previews import find_lost_previews, preview_link
from jobs.publishing.mails import send_failure_mails
from jobs.publishing.sweeps import fail_disconnected, publish_due, upload_media, wake
from jobs.streams import move_outbox, prune_events
from storage.queue import PREVIEWS, PUBLISHING


@dataclass(frozen=True, slots=True)
class Sweeper:
    """Runs every `every_s` seconds in every worker; running twice at once must be harmless."""

    name: str
    every_s: float
    run: Callable[[JobContext], Awaitable[int]]


FUNCTIONS: dict[str, list[Function]] = {
    PREVIEWS: [func(preview_link, name="chat.preview_link", timeout=20, keep_result=0, max_tries=1000)],
    PUBLISHING: [func(wake, name="publishing.wake", timeout=10, keep_result=0, max_tries=1000)],
}

SWEEPERS: list[Sweeper] = [
    Sweeper("move_outbox", 2.0, move_outbox),
    Sweeper("find_lost_previews", 5.0, find_lost_previews),
    Sweeper("publish_due", 1.0, publish_due),
    Sweeper("upload_media", 1.0, upload_media),
    Sweeper("send_failure_mails", 2.0, send_failure_mails),
    Sweeper("fail_disconnected", 10.0, fail_disconnected),
    Sweeper("prune_events", 60.0, prune_events),
]
