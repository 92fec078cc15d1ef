"""The one shape of the errors of HTTP routes, as tests read it."""

from typing import Any


def error_of(answer: Any) -> dict[str, Any]:
    """Returns the code, the details and the message of the only error of an answer. Raises: AssertionError."""
    assert answer.keys() == {"errors"}, answer
    (error,) = answer["errors"]
    assert error.keys() == {"message", "extensions"}, answer
    return {**error["extensions"], "message": error["message"]}
