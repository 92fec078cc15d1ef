"""The attempts that a request to sign in counts as, for the limits of sign-ins."""

from starlette.requests import Request

from storage.identity.accounts.attempt_limits import (
    SIGN_INS_BY_CLIENT,
    SIGN_INS_OF_ACCOUNT,
    SIGN_INS_OF_ACCOUNT_BY_CLIENT,
    LimitedAttempt,
    client_key,
)


def client_key_of(request: Request) -> str:
    """Returns the key by which limits count the client of a request."""
    return client_key(request.client and request.client.host)


def client_attempt(request: Request) -> LimitedAttempt:
    """Returns the attempt of the client at any account."""
    return SIGN_INS_BY_CLIENT, client_key_of(request)


def account_attempts(account: str, request: Request) -> list[LimitedAttempt]:
    """Returns the attempts at the account that the text `account` identifies: by this client, and by all clients."""
    return [(SIGN_INS_OF_ACCOUNT_BY_CLIENT, f"{account}\n{client_key_of(request)}"), (SIGN_INS_OF_ACCOUNT, account)]
