"""Descriptions of personal data: which documents concern a person, and what an export and an erasure do with them.

Each area describes its collections in its module `personal_data.py`. `storage/privacy/registry.py` collects them.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

from storage.mongo import Document, Mongo

BATCH = 200
"""Number of documents that an export or an erasure reads at once."""


class Person(NamedTuple):
    """A user of an organization, whose data are exported or erased."""

    organization_id: str
    user_id: str


class Scope(NamedTuple):
    """How the organization of a document is found whose fields don't name it: by an id in the document.

    The same user id may exist in several organizations.
    """

    path: str
    """Path of the id."""

    collection: str
    """The collection of the document with this id, which has the organization as `org`."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Documents of one collection that concern a person. An index finds them in the order of `order`."""

    find: Callable[[Person], Document]
    """Returns the filter."""

    order: str = "_id"
    """Path of a field whose values differ among the documents."""

    scope: Scope | None = None


class Erasure(Enum):
    """How a document is erased."""

    DELETE = "DELETE"
    """The document is deleted."""

    EMPTY = "EMPTY"
    """Texts are removed from the document, which keeps ids and times."""

    CHANGE = "CHANGE"
    """A change of the area erases the document, with its counts and events. storage/privacy/steps.py commits it."""


@dataclass(frozen=True, slots=True)
class ErasureRule:
    """The treatment of some documents of a collection by an erasure."""

    erasure: Erasure
    documents: Selection
    emptied: Mapping[str, Any] | None = None
    """The new values of fields, for EMPTY."""


@dataclass(frozen=True, slots=True)
class Export:
    """Documents that the person's export contains, and how each of them is written: by the names of the API."""

    documents: Selection
    write: Callable[[Any], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class PersonalData:
    """The personal data of one collection."""

    collection: str
    remains: str
    """The data about an erased person that the collection still holds, and why; or why it holds none about people."""

    rules: Sequence[ErasureRule] = ()
    exports: Sequence[Export] = ()


def deleted(find: Callable[[Person], Document], order: str = "_id", scope: Scope | None = None) -> ErasureRule:
    """Returns the rule that deletes documents."""
    return ErasureRule(Erasure.DELETE, Selection(find, order, scope))


def changed(find: Callable[[Person], Document], order: str = "_id", scope: Scope | None = None) -> ErasureRule:
    """Returns the rule for documents that a change of their area erases."""
    return ErasureRule(Erasure.CHANGE, Selection(find, order, scope))


def emptied(find: Callable[[Person], Document], scope: Scope | None = None, **values: Any) -> ErasureRule:
    """Returns the rule that replaces fields. Two underscores in the name of a field stand for a dot."""
    fields = {name.replace("__", "."): value for name, value in values.items()}
    return ErasureRule(Erasure.EMPTY, Selection(find, scope=scope), fields)


def own_range(person: Person, last: str) -> Document:
    """Returns the filter for documents whose `_id` begins with organization and user, as `o` and `u`, before `last`."""
    owner = {"o": person.organization_id, "u": person.user_id}
    return {"_id": {"$gte": owner, "$lt": {**owner, last: 2**62}}}


async def batches(
    mongo: Mongo, collection: str, selection: Selection, person: Person, size: int = BATCH
) -> AsyncIterator[list[Document]]:
    """Yields the documents of a person, at most `size` at a time. Documents may be erased meanwhile."""
    query = selection.find(person)
    while documents := await mongo.find(collection, query, None, [(selection.order, 1)], size):
        yield await _of_organization(mongo, documents, selection.scope, person.organization_id)
        last = value_at(documents[-1], selection.order)
        query = {"$and": [selection.find(person), {selection.order: {"$gt": last}}]}


async def _of_organization(
    mongo: Mongo, documents: list[Document], scope: Scope | None, organization_id: str
) -> list[Document]:
    if scope is None:
        return documents
    ids = {value_at(document, scope.path) for document in documents}
    owners = await mongo.find(scope.collection, {"_id": {"$in": list(ids)}, "org": organization_id}, {"_id": 1})
    own_ids = {owner["_id"] for owner in owners}
    return [document for document in documents if value_at(document, scope.path) in own_ids]


def value_at(document: Document, path: str) -> Any:
    """Returns the value of a field, whose path may have dots."""
    value: Any = document
    for name in path.split("."):
        value = value[name]
    return value


def seconds(timestamp: int) -> str:
    """Returns a timestamp in microseconds as the API writes it."""
    return f"{timestamp // 1_000_000}.{timestamp % 1_000_000:06}"
