"""The steps that bring the data of an older release to this one, in order (docs/adding-a-migration.md)."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from pymongo.errors import OperationFailure

from storage.mongo import Mongo

INDEX_NOT_FOUND = 27
NAMESPACE_NOT_FOUND = 26

Work = Callable[[Mongo], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Step:
    """One change of the data. It is idempotent, and may run while processes of the release before serve."""

    version: int
    """Version of the data after the step."""

    title: str
    work: Work
    compatible_version: int = 0
    """The oldest code version that works with the data after the step."""


def drop_indexes(collection: str, *names: str) -> Work:
    """Returns the work of dropping indexes that no release uses any more."""

    async def work(mongo: Mongo) -> None:
        for name in names:
            try:
                await mongo[collection].drop_index(name)
            except OperationFailure as error:
                if error.code not in (INDEX_NOT_FOUND, NAMESPACE_NOT_FOUND):
                    raise

    return work


STEPS = (Step(1, "drop the unused index org_1 of mail_domains", drop_indexes("mail_domains", "org_1")),)
DATA_VERSION = STEPS[-1].version
"""Version of the data that this code writes."""
