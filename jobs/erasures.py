"""The sweeper that erases users, step by step. When the claim of a killed worker ends, another one continues."""

import structlog

from jobs.context import JobContext
from storage.privacy.erasures import UserErasure
from storage.privacy.steps import STEPS, StepDelayed

log = structlog.get_logger(__name__)


async def erase_users(jobs: JobContext) -> int:
    """Continues all erasures that are due, one after the other. Returns how many."""
    count = 0
    while (erasure := await jobs.stores.erasures.claim()) is not None:
        count += 1
        await _erase(jobs, erasure)
    return count


async def _erase(jobs: JobContext, erasure: UserErasure) -> None:
    erasures = jobs.stores.erasures

    async def progress(changed: int) -> None:
        await erasures.add_progress(erasure, changed)

    try:
        for step in range(erasure.steps_done, len(STEPS)):
            await jobs.stores.eraser.run(step, erasure.person, progress)
            await erasures.finish_step(erasure, step)
        await erasures.complete(erasure)
    except StepDelayed:
        await erasures.postpone(erasure)
    except Exception as error:
        # The erasure is due again when its claim ends. The others must not wait for it.
        log.exception("erasure_failed", error=type(error).__name__)
