"""What clients see of errors: every one has a code of the closed list; the unexpected is masked and logged whole."""

import re
import secrets
from collections.abc import Iterator
from typing import Any

import structlog
from graphql import GraphQLError, GraphQLSyntaxError
from strawberry.exceptions import MissingQueryError
from strawberry.extensions import SchemaExtension
from strawberry.schema.exceptions import CannotGetOperationTypeError, InvalidOperationTypeError

from storage.errors import BadUserInput, DomainError
from storage.mongo import unavailable

_VARIABLE = re.compile(r"Variable '\$(\w+)'")

log = structlog.get_logger(__name__)


def presented(error: GraphQLError) -> GraphQLError:
    """The error as clients see it."""
    original = error.original_error
    if original is None or isinstance(original, GraphQLError):
        return _coded(error)
    known = original if isinstance(original, DomainError) else _unexecutable(original) or unavailable(original)
    if known is None:
        return _masked(error, original)
    return _copy(error, known.message, known.extensions)


def _unexecutable(error: BaseException) -> BadUserInput | None:
    """Why a request has nothing to execute; None for every other error."""
    if isinstance(error, MissingQueryError):
        return BadUserInput("query", "a GraphQL document")
    if isinstance(error, InvalidOperationTypeError):
        return BadUserInput("query", "a query or a mutation; subscriptions go over WebSocket")
    if isinstance(error, CannotGetOperationTypeError):
        return BadUserInput("operationName", "the name of an operation of the document")
    return None


def _coded(error: GraphQLError) -> GraphQLError:
    """GraphQL's own errors: about the document, unless they are about values given for a field."""
    extensions = dict(error.extensions or {})
    if isinstance(error, GraphQLSyntaxError):
        extensions.setdefault("code", "GRAPHQL_PARSE_FAILED")
    elif variable := _VARIABLE.match(error.message):
        extensions = {"code": "BAD_USER_INPUT", "field": variable[1], **extensions}
    elif error.path is None:
        extensions.setdefault("code", "GRAPHQL_VALIDATION_FAILED")
    else:
        extensions.setdefault("code", "BAD_USER_INPUT")
    return _copy(error, error.message, extensions)


def _masked(error: GraphQLError, original: BaseException) -> GraphQLError:
    request_id = secrets.token_hex(8)
    log.error("unexpected_error", request_id=request_id, path=error.path, exc_info=original)
    extensions = {"code": "INTERNAL_SERVER_ERROR", "requestId": request_id}
    return _copy(error, "Unexpected error.", extensions)


def _copy(error: GraphQLError, message: str, extensions: dict[str, Any]) -> GraphQLError:
    return GraphQLError(message, error.nodes, error.source, error.positions, error.path, None, extensions)


class PresentErrors(SchemaExtension):
    """Puts every error of a result through `presented`, those of subscription events too."""

    def on_operation(self) -> Iterator[None]:
        """After everything else was done."""
        yield
        result = self.execution_context.result
        if result is not None:
            self._present(result)

    def on_stream_result(self, result: Any) -> Iterator[None]:
        """Each event's result."""
        self._present(result)
        yield

    @staticmethod
    def _present(result: Any) -> None:
        if getattr(result, "errors", None):
            result.errors = [presented(error) for error in result.errors]
