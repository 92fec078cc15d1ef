"""Rights of authors at the due moment (docs/semantics.md, 5)."""

from storage.identity.records import User
from storage.identity.roles import Role, with_included
from storage.identity.users import UserStore


async def missing_role_reason(users: UserStore, author: User, role: Role) -> str | None:
    """Returns an error message if the author no longer has the role; None if the author may publish with it."""
    if role in with_included(await users.lasting_roles(author.organization_id, author.id)):
        return None
    return f"The author no longer has the role {role.value}."
