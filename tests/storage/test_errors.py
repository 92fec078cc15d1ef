"""Errors that clients may see: their messages, codes and details."""

import pytest

from storage.errors import (
    BadUserInput,
    Conflict,
    DomainError,
    Forbidden,
    NotFound,
    RateLimited,
    Unauthenticated,
    Unavailable,
)

EXTENSIONS = [
    (BadUserInput("limit", "1 to 999"), {"code": "BAD_USER_INPUT", "field": "limit", "expected": "1 to 999"}),
    (Unauthenticated(), {"code": "UNAUTHENTICATED"}),
    (Forbidden("no"), {"code": "FORBIDDEN"}),
    (NotFound("topic", "t"), {"code": "NOT_FOUND"}),
    (Conflict("no"), {"code": "CONFLICT"}),
    (RateLimited("slow down", 250), {"code": "RATE_LIMITED", "retryAfterMs": 250}),
    (Unavailable("later"), {"code": "UNAVAILABLE", "retryAfterMs": 1000}),
    (DomainError("?"), {"code": "INTERNAL_SERVER_ERROR"}),
]


@pytest.mark.parametrize(("error", "extensions"), EXTENSIONS, ids=[type(error).__name__ for error, _ in EXTENSIONS])
def test_error_extensions_hold_code_and_details(error: DomainError, extensions: dict[str, object]) -> None:
    assert error.extensions == extensions
    assert str(error) == error.message


def test_bad_user_input_names_field_and_expectation() -> None:
    assert BadUserInput("limit", "1 to 999").message == "limit: expected 1 to 999."
    assert BadUserInput("oldest", "a bound", "Give a bound.").message == "Give a bound."


def test_not_found_truncates_a_long_id() -> None:
    assert len(NotFound("topic", "x" * 10_000).message) < 200
