"""Rights of authors at the due moment (docs/semantics.md, 5)."""

from storage.identity.records import User
from storage.identity.roles import Role, with_included
from storage.identity.users import UserStore


async def missing_role(users: UserStore, author: User, role: Role) -> str | None:
    """Returns why the author may not publish with this role now, or None if the author may."""
    if role in with_included(await users.lasting_roles(author.organization_id, author.id)):
        return None
    return f"The author no longer has the role {role.value}."
