"""Sweeper that carries out decisions about content reports whose process died."""

from jobs.context import JobContext

BATCH_SIZE = 20


async def finish_report_effects(jobs: JobContext) -> int:
    """Carries out decisions that were not carried out within 30 s, and returns how many there were."""
    return await jobs.stores.report_effects.sweep(BATCH_SIZE)
