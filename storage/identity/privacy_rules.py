"""Descriptions of personal data: which documents concern a person, and what an export and an erasure do with them.

Each area describes its collections in its module `personal_data.py`. `storage/privacy/registry.py` collects them.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

from storage.ids import UserKey
from storage.mongo import Document, Mongo

BATCH = 200
"""Number of documents that an export or an erasure reads at once."""


class ParentReference(NamedTuple):
    """The id of a parent document, for documents that have no field for the organization. The parent has one: `org`.

    The organization is needed because the same user id may exist in several organizations.
    """

    path: str
    """Path of the id in the document."""

    collection: str
    """Collection of the parent."""


@dataclass(frozen=True, slots=True)
class PersonalDataSelection:
    """Documents of one collection that concern a person. An index finds them in the order of `order`."""

    find: Callable[[UserKey], Document]
    """Returns the filter."""

    order: str = "_id"
    """Path of a field whose values differ among the documents."""

    parent: ParentReference | None = None
    """Needed if the filter does not select the organization."""


class ErasureMethod(Enum):
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

    erasure: ErasureMethod
    documents: PersonalDataSelection
    new_values: Mapping[str, Any] | None = None
    """The new values of fields, for EMPTY."""


@dataclass(frozen=True, slots=True)
class ExportedSelection:
    """Documents that the person's export contains."""

    documents: PersonalDataSelection
    write: Callable[[Any], dict[str, Any]]
    """Returns the JSON object for a document, with field names of the API."""


@dataclass(frozen=True, slots=True)
class PersonalData:
    """The personal data of one collection."""

    collection: str
    remains: str
    """The data about an erased person that the collection still holds, and why; or why it holds none about people."""

    rules: Sequence[ErasureRule] = ()
    exports: Sequence[ExportedSelection] = ()


def delete_rule(
    find: Callable[[UserKey], Document], order: str = "_id", parent: ParentReference | None = None
) -> ErasureRule:
    """Returns the rule that deletes documents."""
    return ErasureRule(ErasureMethod.DELETE, PersonalDataSelection(find, order, parent))


def change_rule(
    find: Callable[[UserKey], Document], order: str = "_id", parent: ParentReference | None = None
) -> ErasureRule:
    """Returns the rule for documents that a change of their area erases."""
    return ErasureRule(ErasureMethod.CHANGE, PersonalDataSelection(find, order, parent))


def empty_rule(
    find: Callable[[UserKey], Document], parent: ParentReference | None = None, **values: Any
) -> ErasureRule:
    """Returns the rule that replaces fields. In the names of fields, two underscores mean a dot."""
    fields = {name.replace("__", "."): value for name, value in values.items()}
    return ErasureRule(ErasureMethod.EMPTY, PersonalDataSelection(find, parent=parent), fields)


def own_range(person: UserKey, last_field: str) -> Document:
    """Returns the filter for documents whose `_id` has the fields `o` (organization), `u` (user) and `last_field`."""
    owner = {"o": person.organization_id, "u": person.user_id}
    return {"_id": {"$gte": owner, "$lt": {**owner, last_field: 2**62}}}


async def read_batches(
    mongo: Mongo, collection: str, selection: PersonalDataSelection, person: UserKey, size: int = BATCH
) -> AsyncIterator[list[Document]]:
    """Yields the documents of a person, at most `size` at a time. Documents may be erased meanwhile."""
    query = selection.find(person)
    while documents := await mongo.find(collection, query, None, [(selection.order, 1)], size):
        yield await _of_organization(mongo, documents, selection.parent, person.organization_id)
        last = value_at(documents[-1], selection.order)
        query = {"$and": [selection.find(person), {selection.order: {"$gt": last}}]}


async def _of_organization(
    mongo: Mongo, documents: list[Document], parent: ParentReference | None, organization_id: str
) -> list[Document]:
    """Returns those of the documents whose parents belong to the organization."""
    if parent is None:
        return documents
    ids = {value_at(document, parent.path) for document in documents}
    own = await mongo.find(parent.collection, {"_id": {"$in": list(ids)}, "org": organization_id}, {"_id": 1})
    own_ids = {each["_id"] for each in own}
    return [document for document in documents if value_at(document, parent.path) in own_ids]


def value_at(document: Document, path: str) -> Any:
    """Returns the value of a field, whose path may have dots."""
    value: Any = document
    for name in path.split("."):
        value = value[name]
    return value
