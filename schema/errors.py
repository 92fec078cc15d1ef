"""Presents errors to clients with the codes of docs/error-codes.md. Masks unexpected errors, and logs them in full."""

import secrets
from typing import Any

import structlog
from graphql import GraphQLError, GraphQLSyntaxError, ValueNode

from schema.values.input_errors import NOT_NULL, field_name, place_of
from storage.errors import DomainError
from storage.mongo import unavailable

log = structlog.get_logger(__name__)


def to_client_error(error: GraphQLError) -> GraphQLError:
    """Returns the error as clients see it: with a code, and without internal details."""
    original = error.original_error
    if original is None or isinstance(original, GraphQLError):
        return _with_code(error)
    domain_error = original if isinstance(original, DomainError) else unavailable(original)
    if domain_error is None:
        return _log_and_mask(error, original)
    return _copy(error, domain_error.message, domain_error.extensions)


def _with_code(error: GraphQLError) -> GraphQLError:
    """Adds a code to an error of GraphQL itself: about the document, an input value, or a resolver's value."""
    extensions = dict(error.extensions or {})
    if isinstance(error, GraphQLSyntaxError):
        extensions.setdefault("code", "GRAPHQL_PARSE_FAILED")
    elif error.nodes and isinstance(error.nodes[0], ValueNode):
        # Values are checked before the operation is executed, so a variable is null where its argument is required.
        field = field_name(place_of(error.nodes[0]))
        extensions = {"code": "BAD_USER_INPUT", "field": field, "expected": NOT_NULL, **extensions}
    elif error.path is None:
        extensions.setdefault("code", "GRAPHQL_VALIDATION_FAILED")
    elif "code" not in extensions:
        # The operation was executed, so a resolver has returned a value that cannot be serialized.
        return _log_and_mask(error, error.original_error or error)
    return _copy(error, error.message, extensions)


def _log_and_mask(error: GraphQLError, original: BaseException) -> GraphQLError:
    request_id = secrets.token_hex(8)
    log.error("unexpected_error", request_id=request_id, path=error.path, exc_info=original)
    extensions = {"code": "INTERNAL_SERVER_ERROR", "requestId": request_id}
    return _copy(error, "Unexpected error.", extensions)


def _copy(error: GraphQLError, message: str, extensions: dict[str, Any]) -> GraphQLError:
    # Messages of graphql-core quote names of the request, which may have lone surrogates.
    message = message.encode("utf-8", "backslashreplace").decode()
    return GraphQLError(message, error.nodes, error.source, error.positions, error.path, None, extensions)
