"""Finds in several collections with one command of a transaction.

The commands of a transaction wait for each other. Each costs the web process 0.2 ms, and as much time again (ADR 2).
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from storage.mongo import Document, Mongo, Session


class Find(NamedTuple):
    """A find in one collection. Without a projection, whole documents are read. `newest` limits it to the last ids."""

    collection: str
    query: Document
    projection: Document | None = None
    newest: int | None = None

    @property
    def pipeline(self) -> list[Document]:
        """The stages that find the documents."""
        stages: list[Document] = [{"$match": self.query}]
        if self.newest is not None:
            stages += [{"$sort": {"_id": -1}}, {"$limit": self.newest}]
        return stages if self.projection is None else [*stages, {"$project": self.projection}]


async def find_jointly(mongo: Mongo, anchor: tuple[str, Any], finds: Sequence[Find], session: Session) -> list[Any]:
    """Returns the list of documents of each find.

    The anchor is the collection and the `_id` of any document that exists. MongoDB joins the lists to it. The result is
    one document for MongoDB, so all found documents together may have 16 MB: use it for few or small documents.
    """
    collection, id_ = anchor
    joins = [
        {"$lookup": {"from": each.collection, "pipeline": each.pipeline, "as": f"f{n}"}} for n, each in enumerate(finds)
    ]
    pipeline: list[Document] = [{"$match": {"_id": id_}}, {"$project": {"_id": 1}}, *joins]
    (joined,) = await mongo.aggregate(collection, pipeline, session)
    return [joined[f"f{n}"] for n in range(len(finds))]
