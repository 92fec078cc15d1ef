"""How many bytes the files of each user and each organization have, within their quotas."""

from collections.abc import Sequence

from storage.errors import QuotaExceeded
from storage.files.documents import FileUsageDocument, FileUsageId
from storage.ids import UserKey
from storage.mongo import Mongo, Session

USAGE = "file_usage"


class FileUsage:
    """Counts bytes, in the transaction that creates or deletes a file."""

    def __init__(self, mongo: Mongo) -> None:
        self._mongo = mongo

    async def add(self, owner: UserKey, size: int, user_limit: int, organization_limit: int, session: Session) -> None:
        """Counts the bytes of a new file. Raises: QuotaExceeded if a sum is then above its limit.

        A negative size, of a file that is replaced by a smaller one, is never refused.
        """
        of_user, of_organization = ("Your files", user_limit), ("The files of your organization", organization_limit)
        for id_ in usage_ids(owner):
            subject, limit = of_user if id_["u"] else of_organization
            usage: FileUsageDocument = await self._mongo.find_one_and_update(
                USAGE, {"_id": id_}, {"$inc": {"bytes": size}}, session, upsert=True
            )
            if size > 0 and usage["bytes"] > limit:
                stored = usage["bytes"] - size
                raise QuotaExceeded(
                    f"{subject} have {stored} of {limit} bytes, and {size} more are too many. Delete some first."
                )

    async def subtract(self, owner: UserKey, size: int, session: Session) -> None:
        """Counts the bytes of a deleted file no longer."""
        for id_ in usage_ids(owner):
            await self._mongo[USAGE].update_one({"_id": id_}, {"$inc": {"bytes": -size}}, session=session)

    async def give_to_organization(self, owner: UserKey, size: int, session: Session) -> None:
        """Counts the bytes of a file for the organization only, and no longer for the user."""
        await self._mongo[USAGE].update_one({"_id": usage_ids(owner)[0]}, {"$inc": {"bytes": -size}}, session=session)

    async def add_to_library(self, owner: UserKey, limit: int, session: Session) -> None:
        """Counts a file of the user's library. Raises: QuotaExceeded if there are then more than `limit`."""
        usage: FileUsageDocument = await self._mongo.find_one_and_update(
            USAGE, {"_id": usage_ids(owner)[0]}, {"$inc": {"library": 1, "bytes": 0}}, session, upsert=True
        )
        if usage["library"] > limit:
            raise QuotaExceeded(f"Your library has {limit} files. Remove some of them first.")

    async def remove_from_library(self, owner: UserKey, session: Session) -> None:
        """Counts a file of the user's library no longer."""
        await self._mongo[USAGE].update_one({"_id": usage_ids(owner)[0]}, {"$inc": {"library": -1}}, session=session)

    async def of_user(self, owner: UserKey) -> int:
        """Returns the number of bytes of the user's files."""
        document = await self._mongo[USAGE].find_one({"_id": usage_ids(owner)[0]})
        return 0 if document is None else int(document["bytes"])


def usage_ids(owner: UserKey) -> Sequence[FileUsageId]:
    """Returns the `_id` of the usages of a user and of the user's organization.

    A file of the organization has no user, and so one usage.
    """
    organization_id, user_id = owner
    of_organization: FileUsageId = {"o": organization_id, "u": ""}
    return [{"o": organization_id, "u": user_id}, of_organization] if user_id else [of_organization]
