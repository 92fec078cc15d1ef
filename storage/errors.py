"""Errors that clients may see. The messages of all other errors are masked.

Each class has a code of the closed list in docs/error-codes.md. graphql-core copies `extensions` into the response, so
no layer below schema/ depends on GraphQL.
"""

from typing import ClassVar


class DomainError(Exception):
    """An expected failure. The client gets `message`, and `details` in `extensions` beside the code."""

    code: ClassVar[str] = "INTERNAL_SERVER_ERROR"

    def __init__(self, message: str, **details: object) -> None:
        super().__init__(message)
        self.message = message
        self.details = details

    @property
    def extensions(self) -> dict[str, object]:
        """The code and the details, for the GraphQL error."""
        return {"code": self.code, **self.details}


class BadUserInput(DomainError):
    """An argument is invalid.

    `field` is the argument's name in the API, `expected` a phrase such as "1 to 20 characters".
    """

    code = "BAD_USER_INPUT"

    def __init__(self, field: str, expected: str, message: str | None = None) -> None:
        super().__init__(message or f"{field}: expected {expected}.", field=field, expected=expected)


class CredentialsNotAccepted(BadUserInput):
    """A social network does not accept the credentials of an account. `reason` is in the network's words."""

    def __init__(self, network: str, reason: str) -> None:
        super().__init__("credentials", f"credentials that {network} accepts; it answered: {reason}")
        self.details["reason"] = reason


class Unauthenticated(DomainError):
    """The field needs a signed-in viewer."""

    code = "UNAUTHENTICATED"

    def __init__(self, message: str = "Not signed in. Send a bearer token in the Authorization header.") -> None:
        super().__init__(message)


class CredentialExpired(Unauthenticated):
    """The credential was valid until it expired. The same user can continue with a new one."""


class AccountDeactivated(Unauthenticated):
    """An administrator has deactivated the user."""

    def __init__(self) -> None:
        super().__init__("This account is deactivated. Ask an administrator of your organization.")


class Forbidden(DomainError):
    """The viewer may see the object, but may not perform the operation on it."""

    code = "FORBIDDEN"


class MissingScope(Forbidden):
    """The service key of the request lacks a scope."""

    def __init__(self, scope: str) -> None:
        super().__init__(f"The service key lacks the scope {scope}.", scope=scope)


class NotFound(DomainError):
    """The object never existed, was deleted, or belongs to another organization. Clients cannot tell which.

    `details` may have the `field` of an input with several ids.
    """

    code = "NOT_FOUND"

    def __init__(self, kind: str, id_: str, **details: object) -> None:
        super().__init__(f"There is no {kind} with the id {id_[:100]!r}.", **details)


class Conflict(DomainError):
    """The object's state does not allow the operation, or the idempotency key was used with other arguments."""

    code = "CONFLICT"


class QuotaExceeded(DomainError):
    """A limit of stored files or stamps is reached, of a user, an organization or a stamp pack."""

    code = "QUOTA_EXCEEDED"


class RateLimited(DomainError):
    """Too many requests. The client may try again after `retry_after_ms`."""

    code = "RATE_LIMITED"

    def __init__(self, message: str, retry_after_ms: int) -> None:
        super().__init__(message, retryAfterMs=retry_after_ms)


class Unavailable(DomainError):
    """A required service does not answer. The operation may have taken effect.

    The client can repeat it with the same idempotency key after `retry_after_ms`.
    """

    code = "UNAVAILABLE"

    def __init__(self, message: str, retry_after_ms: int = 1000) -> None:
        super().__init__(message, retryAfterMs=retry_after_ms)
