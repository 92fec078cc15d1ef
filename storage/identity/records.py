"""Users and their roles, as read. A user is unique within one organization."""

from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from urllib.parse import quote, unquote

from storage.mongo import Document
from storage.streams.log import Stream


class Role(Enum):
    """What a token may do. ADMIN includes OPERATOR includes MEMBER; SERVICE stands alone (docs/semantics.md, 8)."""

    MEMBER = "MEMBER"
    OPERATOR = "OPERATOR"
    SERVICE = "SERVICE"
    ADMIN = "ADMIN"


INCLUDED: dict[Role, frozenset[Role]] = {
    Role.MEMBER: frozenset({Role.MEMBER}),
    Role.OPERATOR: frozenset({Role.OPERATOR, Role.MEMBER}),
    Role.ADMIN: frozenset({Role.ADMIN, Role.OPERATOR, Role.MEMBER}),
    Role.SERVICE: frozenset({Role.SERVICE}),
}


@lru_cache(maxsize=64)
def with_included(roles: frozenset[Role] | tuple[Role, ...]) -> frozenset[Role]:
    """The roles and those that they include."""
    return frozenset().union(*(INCLUDED[role] for role in roles))


# Not frozen: a page makes fifty, and freezing triples what one costs.
@dataclass(slots=True)
class User:
    """A person of an organization. `id` is the token's `sub`, unique within the organization only."""

    id: str
    handle: str
    name: str
    organization_id: str
    roles: tuple[Role, ...]
    follower_count: int
    following_count: int
    email: str | None = None


def user_stream(organization_id: str, user_id: str) -> Stream:
    """The stream of what only this user hears."""
    return Stream("user", f"{quote(organization_id, safe='')}/{user_id}")


def stream_owner(stream: Stream) -> tuple[str, str]:
    """Organization and user of a user's stream."""
    organization_id, _, user_id = stream.id.partition("/")
    return unquote(organization_id), user_id


@lru_cache(maxsize=64)
def _roles(names: tuple[str, ...]) -> tuple[Role, ...]:
    return tuple(Role(name) for name in names)


def user_document_id(organization_id: str, id_: str) -> Document:
    """The `_id` of a user's document."""
    return {"org": organization_id, "id": id_}


def user_record(document: Document) -> User:
    """The user that a document holds."""
    id_ = document["_id"]
    # In the order of the fields: naming them costs as much as the record.
    return User(
        id_["id"],
        document["handle"],
        document["name"],
        id_["org"],
        _roles(tuple(document["roles"])),
        document["followers"],
        document["following"],
        document.get("email"),
    )
