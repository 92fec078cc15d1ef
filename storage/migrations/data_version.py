"""The version of the stored data: one document, from which a process learns whether it understands the data."""

from typing import TypedDict

from storage.mongo import Mongo

COLLECTION = "data_version"
DOCUMENT_ID = "data"


class DataVersionDocument(TypedDict):
    """The version of all data of a database, in `data_version`. Documents of other collections carry no version."""

    _id: str
    """Always "data"."""

    version: int
    """Version of the last completed step. Like `compatible_version`, it only grows."""

    compatible_version: int
    """The oldest DATA_VERSION of code that works with the data. Lower than `version` after steps that only add."""


async def read_data_version(mongo: Mongo) -> DataVersionDocument | None:
    """Returns the version of the data. None for an empty database, and for data of releases without versions."""
    documents: list[DataVersionDocument] = await mongo.find(COLLECTION, {"_id": DOCUMENT_ID}, limit=1)
    return documents[0] if documents else None


async def record_data_version(mongo: Mongo, version: int, compatible_version: int) -> None:
    """Records that the step with this version is completed. Never lowers the versions."""
    versions = {"version": version, "compatible_version": compatible_version}
    await mongo[COLLECTION].update_one({"_id": DOCUMENT_ID}, {"$max": versions}, upsert=True)
