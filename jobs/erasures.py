"""The sweeper that erases users, step by step. When the claim of a killed worker ends, another worker continues.

Mails to the person that are files in the worker's data folder are deleted, too. Files of other hosts stay until they
are 7 days old.
"""

import asyncio
from collections.abc import Collection

import structlog

from jobs.context import JobContext
from storage.privacy.addresses import addresses_of
from storage.privacy.erasures import UserErasure
from storage.privacy.steps import STEPS, StepDelayed

log = structlog.get_logger(__name__)


async def erase_users(jobs: JobContext) -> int:
    """Continues all erasures that are due, one after the other. Returns their number."""
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
        # Read before a step removes the addresses.
        addresses = await addresses_of(jobs.stores.mongo, erasure.person)
        await _delete_mail_files(jobs, erasure, addresses)
        for step in range(erasure.steps_done, len(STEPS)):
            await jobs.stores.eraser.run(step, erasure.person, progress)
            await erasures.finish_step(erasure, step)
        # Once more, because a mail that was due when the erasure began may have been stored meanwhile.
        await _delete_mail_files(jobs, erasure, addresses)
        await erasures.complete(erasure)
    except StepDelayed:
        await erasures.postpone(erasure)
    except Exception as error:
        # This erasure is due again when its claim ends. Other erasures must not wait for it.
        log.exception("erasure_failed", error=type(error).__name__)


async def _delete_mail_files(jobs: JobContext, erasure: UserErasure, addresses: Collection[str]) -> None:
    await asyncio.to_thread(jobs.mailer.files.delete_to, erasure.person, addresses)
