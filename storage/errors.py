"""The errors a client may see, and nothing else.

Each carries a code of the closed list (docs/semantics.md, 8). graphql-core copies `extensions` into the response, so
no layer below schema/ needs to know GraphQL. Anything that is not a DomainError is a fault of ours and is masked.
"""

from typing import ClassVar


class DomainError(Exception):
    """An expected failure: `message` is shown to the client, `details` travel in `extensions` beside the code."""

    code: ClassVar[str] = "INTERNAL_SERVER_ERROR"

    def __init__(self, message: str, **details: object) -> None:
        super().__init__(message)
        self.message = message
        self.details = details

    @property
    def extensions(self) -> dict[str, object]:
        """What the GraphQL error carries: the code and the details."""
        return {"code": self.code, **self.details}


class BadUserInput(DomainError):
    """An argument is wrong. Names the field as the client wrote it and what was expected instead."""

    code = "BAD_USER_INPUT"

    def __init__(self, field: str, expected: str, message: str | None = None) -> None:
        super().__init__(message or f"{field}: expected {expected}", field=field, expected=expected)


class Unauthenticated(DomainError):
    """Nobody is signed in, and the field needs somebody."""

    code = "UNAUTHENTICATED"

    def __init__(self, message: str = "Sign in: send a bearer token.") -> None:
        super().__init__(message)


class Forbidden(DomainError):
    """The viewer may know that it exists, but not do this with it."""

    code = "FORBIDDEN"


class NotFound(DomainError):
    """Never existed, is gone, or belongs to another organization: the same answer for all three."""

    code = "NOT_FOUND"

    def __init__(self, kind: str, id_: str) -> None:
        super().__init__(f"No {kind} with id {id_[:100]!r}.")


class Conflict(DomainError):
    """The state does not allow it, or the idempotency key was used with other arguments."""

    code = "CONFLICT"


class RateLimited(DomainError):
    """Too much in too little time; try again after `retry_after_ms`."""

    code = "RATE_LIMITED"

    def __init__(self, message: str, retry_after_ms: int) -> None:
        super().__init__(message, retryAfterMs=retry_after_ms)


class Unavailable(DomainError):
    """A server that is needed does not answer. Whether the work was done is open: repeat with the idempotency key."""

    code = "UNAVAILABLE"

    def __init__(self, message: str, retry_after_ms: int = 1000) -> None:
        super().__init__(message, retryAfterMs=retry_after_ms)
