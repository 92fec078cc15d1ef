"""Rights of authors at the due moment (docs/semantics.md, 5)."""

from storage.identity.records import User
from storage.identity.roles import Role, with_included
from storage.identity.users import UserStore
from storage.publishing.records import Publication


async def author_and_missing_role(users: UserStore, publication: Publication, role: Role) -> tuple[User, str | None]:
    """Returns the author, and an error message if the author no longer has the role.

    The author is read last. Otherwise a deactivation between the two reads would look like a missing role, and the
    publication would fail instead of being held.
    """
    roles = with_included(await users.lasting_roles(publication.organization_id, publication.author_id))
    author = await users.get(publication.organization_id, publication.author_id)
    return author, None if role in roles else f"The author no longer has the role {role.value}."
