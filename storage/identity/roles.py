"""The roles of users. Imports no other module of the product, so that the command line starts fast."""

from enum import Enum
from functools import lru_cache


class Role(Enum):
    """A role of a user. ADMIN includes OPERATOR, and OPERATOR includes MEMBER. SERVICE includes no other role."""

    MEMBER = "MEMBER"
    OPERATOR = "OPERATOR"
    SERVICE = "SERVICE"
    ADMIN = "ADMIN"


INCLUDED_ROLES: dict[Role, frozenset[Role]] = {
    Role.MEMBER: frozenset({Role.MEMBER}),
    Role.OPERATOR: frozenset({Role.OPERATOR, Role.MEMBER}),
    Role.ADMIN: frozenset({Role.ADMIN, Role.OPERATOR, Role.MEMBER}),
    Role.SERVICE: frozenset({Role.SERVICE}),
}


@lru_cache(maxsize=64)
def with_included(roles: frozenset[Role] | tuple[Role, ...]) -> frozenset[Role]:
    """Returns the roles and all roles that they include."""
    return frozenset().union(*(INCLUDED_ROLES[role] for role in roles))


def narrow_roles(granted: tuple[Role, ...], token_roles: frozenset[Role]) -> frozenset[Role]:
    """Returns the granted roles that a token also has, with all roles that they include. A token adds no role."""
    return with_included(granted) & with_included(token_roles)
