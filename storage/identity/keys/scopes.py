"""Scopes of service keys: an area of the schema and an action, such as `chat:read`.

A scope says which root fields and routes a key may use, and implies the role that they need. No scope implies the role
ADMIN, so that no key can administer an organization.
"""

from collections.abc import Collection

from storage.identity.roles import Role

ROLE_OF_SCOPE: dict[str, Role] = {
    "calls:read": Role.OPERATOR,
    "calls:report": Role.SERVICE,
    "calls:write": Role.OPERATOR,
    "chat:read": Role.MEMBER,
    "chat:write": Role.MEMBER,
    "feed:read": Role.MEMBER,
    "feed:write": Role.MEMBER,
    "files:read": Role.MEMBER,
    "files:write": Role.MEMBER,
    "identity:read": Role.MEMBER,
    "identity:write": Role.MEMBER,
    "jobs:read": Role.OPERATOR,
    "mail:ingest": Role.SERVICE,
    "mail:read": Role.SERVICE,
    "mail:write": Role.OPERATOR,
    "moderation:read": Role.MEMBER,
    "moderation:write": Role.MEMBER,
    "publishing:read": Role.OPERATOR,
    "publishing:write": Role.OPERATOR,
    "webhooks:read": Role.SERVICE,
    "webhooks:write": Role.SERVICE,
}
"""The role that each scope implies."""

SCOPES = tuple(ROLE_OF_SCOPE)


def roles_of_scopes(scopes: Collection[str]) -> frozenset[Role]:
    """Returns the roles of a service account whose key has these scopes. Scopes of other versions imply none."""
    return frozenset({Role.SERVICE} | {ROLE_OF_SCOPE[scope] for scope in scopes if scope in ROLE_OF_SCOPE})
