"""Work outside a request: arq functions by queue, and sweepers over MongoDB. This is the registry."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from arq.worker import Function, func

from jobs.call_asking import ask_for_silent_calls, sweep_abandoned_lists
from jobs.call_manager import run_call_manager
from jobs.context import JobContext
from jobs.link_previews import find_lost_previews, preview_link
from jobs.streams import move_outbox, prune_events
from storage.queue import PREVIEWS


@dataclass(frozen=True, slots=True)
class Sweeper:
    """Runs every `every_s` seconds in every worker; running twice at once must be harmless."""

    name: str
    every_s: float
    run: Callable[[JobContext], Awaitable[int]]


FUNCTIONS: dict[str, list[Function]] = {
    PREVIEWS: [func(preview_link, name="chat.preview_link", timeout=20, keep_result=0, max_tries=1000)],
}


@dataclass(frozen=True, slots=True)
class Loop:
    """Runs in every worker until it is cancelled, and is started again when it fails."""

    name: str
    run: Callable[[JobContext], Awaitable[None]]


LOOPS: list[Loop] = [Loop("call_manager", run_call_manager)]

SWEEPERS: list[Sweeper] = [
    Sweeper("move_outbox", 2.0, move_outbox),
    Sweeper("find_lost_previews", 5.0, find_lost_previews),
    Sweeper("prune_events", 60.0, prune_events),
    Sweeper("ask_for_silent_calls", 1.0, ask_for_silent_calls),
    Sweeper("sweep_abandoned_lists", 600.0, sweep_abandoned_lists),
]
