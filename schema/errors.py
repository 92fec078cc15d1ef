"""Presents errors to clients with the codes of docs/error-codes.md. Masks unexpected errors, and logs them in full."""

import re
import secrets
from typing import Any

import structlog
from graphql import GraphQLError, GraphQLSyntaxError, Node, TokenKind, VariableDefinitionNode, print_ast

from storage.errors import DomainError
from storage.mongo import unavailable

_VALUE = re.compile(r"(?:Variable|Argument) '\$?(\w+)' has invalid value(?: at (\S+))?: (.*)", re.DOTALL)

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
    elif extensions.get("code") == "BAD_USER_INPUT" or _VALUE.match(error.message):
        extensions = {"code": "BAD_USER_INPUT", **_value_extensions(error), **extensions}
    elif error.path is None:
        extensions.setdefault("code", "GRAPHQL_VALIDATION_FAILED")
    elif "code" not in extensions:
        # The operation was executed, so a resolver has returned a value that cannot be serialized.
        return _log_and_mask(error, error.original_error or error)
    return _copy(error, error.message, extensions)


def _value_extensions(error: GraphQLError) -> dict[str, str]:
    """Returns `field` and `expected` for a refused literal, variable or argument."""
    node = error.nodes[0] if error.nodes else None
    refused = _VALUE.match(error.message)
    if refused is None:
        return {"field": _name_before(node)} if node else {}
    name, path, reason = refused.groups()
    inner_fields = re.findall(r"\.(\w+)", path or "")
    if path is None and isinstance(node, VariableDefinitionNode):
        return {"field": name, "expected": f"a value of type {print_ast(node.type)}"}
    return {"field": inner_fields[-1] if inner_fields else name, "expected": reason.removeprefix("Expected ")}


def _name_before(value: Node) -> str:
    """Returns the name of a literal's argument, input field or variable: the token before the colon to its left."""
    token = value.loc.start_token if value.loc else None
    while token and token.kind is not TokenKind.COLON:
        token = token.prev
    return token.prev.value or "" if token and token.prev else ""


def _log_and_mask(error: GraphQLError, original: BaseException) -> GraphQLError:
    request_id = secrets.token_hex(8)
    log.error("unexpected_error", request_id=request_id, path=error.path, exc_info=original)
    extensions = {"code": "INTERNAL_SERVER_ERROR", "requestId": request_id}
    return _copy(error, "Unexpected error.", extensions)


def _copy(error: GraphQLError, message: str, extensions: dict[str, Any]) -> GraphQLError:
    # Messages of graphql-core quote names of the request, which may have lone surrogates.
    message = message.encode("utf-8", "backslashreplace").decode()
    return GraphQLError(message, error.nodes, error.source, error.positions, error.path, None, extensions)
