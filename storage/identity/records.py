"""Users and their roles as read from the database."""

from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import quote, unquote

from storage.identity.documents import UserDocument, UserDocumentId
from storage.identity.roles import Role, with_included
from storage.ids import UserKey
from storage.streams.log import Stream


# Not frozen: a page creates fifty users, and a frozen dataclass takes three times as long to create.
@dataclass(slots=True)
class User:
    """A user of an organization. `id` is unique within the organization only; with tokens it is their `sub`."""

    id: str
    handle: str
    name: str
    organization_id: str
    roles: tuple[Role, ...]
    follower_count: int
    following_count: int
    email: str | None = None
    has_granted_roles: bool = False
    """Whether `roles` were granted. Otherwise they come from the newest token."""

    is_deactivated: bool = False
    is_erased: bool = False
    """Whether the user's erasure was requested. Once it is completed, handle and name are generated."""
    is_service: bool = False
    """Whether this is the service account of a service key."""
    avatar_url: str | None = None
    """Path of the avatar; None without one."""
    hides_presence: bool = False
    """Whether nobody sees that the user is online or typing."""
    bio: str | None = None
    banner_url: str | None = None
    """Path of the banner; None without one."""

    @property
    def key(self) -> UserKey:
        """The organization and the id of the user."""
        return UserKey(self.organization_id, self.id)


def user_stream(organization_id: str, user_id: str) -> Stream:
    """Returns the stream of the user's own events: notifications and received reactions."""
    return Stream("user", f"{quote(organization_id, safe='')}/{user_id}")


def stream_owner(stream: Stream) -> tuple[str, str]:
    """Returns the organization id and the user id of a user's stream."""
    organization_id, _, user_id = stream.id.partition("/")
    return unquote(organization_id), user_id


@lru_cache(maxsize=64)
def _roles(names: tuple[str, ...]) -> tuple[Role, ...]:
    return tuple(Role(name) for name in names)


def user_document_id(organization_id: str, id_: str) -> UserDocumentId:
    """Returns the `_id` of a user's document."""
    return {"org": organization_id, "id": id_}


def user_record(document: UserDocument) -> User:
    """Returns the record of a stored user."""
    id_ = document["_id"]
    # Positional arguments: keyword arguments would double the cost.
    return User(
        id_["id"],
        document["handle"],
        document["name"],
        id_["org"],
        _roles(tuple(document["roles"])),
        document["followers"],
        document["following"],
        document.get("email"),
        document.get("roles_granted", False),
        "deactivated_at" in document,
        "erasing_at" in document,
        "service" in document,
        avatar_path(document["avatar"]) if "avatar" in document else None,
        document.get("presence_hidden", False),
        document.get("bio"),
        banner_path(document["banner"]) if "banner" in document else None,
    )


def avatar_path(file_id: str) -> str:
    """Returns the path of the avatar, or the picture of a community, with this file: a thumbnail."""
    return f"/files/{file_id}/thumbnail"


def banner_path(file_id: str) -> str:
    """Returns the path of the banner with this file."""
    return f"/files/{file_id}/banner"


def has_access(document: UserDocument) -> bool:
    """Returns whether the user may sign in: is neither deactivated nor erased, and no erasure was requested."""
    return "deactivated_at" not in document and "erasing_at" not in document


def has_role(document: UserDocument, role: Role) -> bool:
    """Returns whether the user may act with the role, as far as the document says.

    True for a user without granted roles: only the token has that user's roles, and the request was checked for them.
    """
    if not has_access(document):
        return False
    return not document.get("roles_granted") or role in with_included(_roles(tuple(document["roles"])))


def is_administrator(document: UserDocument) -> bool:
    """Returns whether the user may administer the organization, as far as the document says. See `has_role`."""
    return has_role(document, Role.ADMIN)
