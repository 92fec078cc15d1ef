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
    """One change of the data. It is idempotent, and may run while processes of the last release serve."""

    version: int
    """Version of the data after the step."""

    title: str
    work: Work
    compatible_version: int = 0
    """The oldest DATA_VERSION of code that works with the data after the step."""


def drop_indexes(collection: str, *names: str) -> Work:
    """Returns a function that drops indexes which no release uses any more."""

    async def work(mongo: Mongo) -> None:
        for name in names:
            try:
                await mongo[collection].drop_index(name)
            except OperationFailure as error:
                if error.code not in (INDEX_NOT_FOUND, NAMESPACE_NOT_FOUND):
                    raise

    return work


async def appoint_owners(mongo: Mongo) -> None:
    """Makes the earliest member of each community without an owner its owner, one community at a time."""
    async for community in mongo["communities"].find({}, {"_id": 1}):
        members = {"community": community["_id"]}
        if await mongo["memberships"].find_one({**members, "role": "OWNER"}, {"_id": 1}) is None:
            earliest = await mongo["memberships"].find_one(members, {"_id": 1}, sort=[("at", 1), ("_id", 1)])
            if earliest is not None:
                await mongo["memberships"].update_one(earliest, {"$set": {"role": "OWNER"}})


STEPS = (
    Step(1, "drop the unused index org_1 of mail_domains", drop_indexes("mail_domains", "org_1")),
    Step(2, "make the earliest member of each community its owner", appoint_owners),
)
DATA_VERSION = STEPS[-1].version
"""Version of the data that this code writes."""
