"""GraphQL types and root fields of administration: users, the audit log, invitations and service keys."""

import schema.identity  # noqa: F401 - describes the enum Role, which modules of this package use
