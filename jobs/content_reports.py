"""Sweeper that carries out decisions about content reports which the web process could not carry out.

The process was killed after it had stored the decision, or the database did not answer.
"""

from jobs.context import JobContext

BATCH_SIZE = 20


async def finish_report_effects(jobs: JobContext) -> int:
    """Carries out decisions that were not carried out within 30 s, and returns their number."""
    return await jobs.stores.report_effects.sweep(BATCH_SIZE)
