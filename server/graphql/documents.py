"""Prepared GraphQL documents: parsed, validated and measured once, and shared by every transport of one schema."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cachetools import LRUCache
from graphql import (
    DocumentNode,
    GraphQLError,
    GraphQLSchema,
    OperationDefinitionNode,
    OperationType,
    parse,
    print_ast,
    specified_rules,
    validate,
)
from graphql.validation import ValuesOfCorrectTypeRule
from graphql.validation.rules import overlapping_fields_can_be_merged
from strawberry.schema.validation_rules.maybe_null import MaybeNullValidationRule
from strawberry.schema.validation_rules.one_of import OneOfInputValidationRule

from resolvers.arguments import require_storable
from schema.binding import ACCEPTS_LARGE_BODY, ANY_KEY, NO_KEY
from schema.sharing import depends_on_viewer, metadata_values, required_scopes, suits_audience
from schema.values.argument_values import ArgumentValuesRule
from server.graphql.cost import VariableSizes, measure_cost, size_of
from server.graphql.limits import (
    VALIDATION_FAILED,
    DocumentLimits,
    find_operation,
    operations_of,
    set_code,
    validation_error,
)
from storage.errors import BadUserInput, Forbidden, MissingScope

MAX_CACHE_BYTES = 32 * 1024 * 1024
MAX_CACHED_COSTS = 64
MAX_ERRORS = 10
MAX_COMPARISONS = 20_000
"""Comparisons of fields with equal response names, in graphql-core's units: two for each pair, and some for arguments.

graphql-core allows 500,000, which take a third of a second. Validation cannot be interrupted.
"""

PROPAGATE, NULL = "PROPAGATE", "NULL"

ABORTED = "Validation aborted."
"""graphql-core's message after too many comparisons."""

overlapping_fields_can_be_merged.MAX_COMPLEXITY_BUDGET = MAX_COMPARISONS


@dataclass(frozen=True, slots=True)
class OperationRequest:
    """The request for one operation of a document, over any transport."""

    query: str
    """The document's text. Empty if only `document_id` was sent."""
    variables: dict[str, Any] | None = None
    operation_name: str | None = None
    document_id: str | None = None
    """The id or hash of the document (server/graphql/persisted_documents.py)."""
    on_error: str | None = None
    """Handling of errors of non-null fields: PROPAGATE, which None means too, or NULL (ADR 108)."""

    @property
    def propagates_errors(self) -> bool:
        """Whether an error of a non-null field makes its parent null, too."""
        return self.on_error != NULL


class _Members:
    """The members of one operation, each of which may be missing or null."""

    def __init__(self, values: Mapping[str, Any], item: str) -> None:
        self._values, self._item = values, item

    def string(self, name: str) -> str | None:
        value: str | None = self._member(name, str, "a string")
        return value

    def object(self, name: str) -> dict[str, Any] | None:
        value: dict[str, Any] | None = self._member(name, dict, "an object")
        return value

    def _member(self, name: str, type_: type, expected: str) -> Any:
        value = self._values.get(name)
        if value is not None and not isinstance(value, type_):
            message = f"`{name}` must be {expected} or null, if provided."
            raise not_an_operation(f"body{self._item}", message)
        return value


def operation_request(values: object, item: str = "") -> OperationRequest:
    """Returns the request with these members. `item` is the index of a batch's item, such as `[2]`.

    Raises: BadUserInput.
    """
    if not isinstance(values, dict):
        raise not_an_operation(f"body{item}", "Send one operation as a JSON object, or a list of operations.")
    members = _Members(values, item)
    id_ = members.string("documentId") or _persisted_hash(members)
    query = members.string("query")
    if query is None and id_ is None:
        raise no_query(item)
    variables, name, on_error = members.object("variables"), members.string("operationName"), members.string("onError")
    return OperationRequest(query or "", variables, name, id_, on_error)


def _persisted_hash(members: _Members) -> str | None:
    """Returns the hash of Apollo's protocol; None without one."""
    persisted = (members.object("extensions") or {}).get("persistedQuery")
    if persisted is None:
        return None
    hash_ = persisted.get("sha256Hash") if isinstance(persisted, dict) else None
    if not isinstance(hash_, str) or not hash_:
        raise BadUserInput("extensions.persistedQuery.sha256Hash", "the SHA-256 of `query`, in hexadecimal")
    return hash_


def no_query(item: str = "") -> BadUserInput:
    """Returns the error of a request without a document."""
    return BadUserInput(f"{item}.query".lstrip("."), "a GraphQL document")


def not_an_operation(field: str, message: str) -> BadUserInput:
    """Returns the error of a request that has not the form of an operation."""
    return BadUserInput(field, "one GraphQL operation as a JSON object", message)


class OperationRefused(Exception):
    """The operation may not be executed. `errors` hold the reasons."""

    def __init__(self, errors: list[GraphQLError]) -> None:
        super().__init__(str(errors))
        self.errors = errors


class PreparedDocument:
    """A parsed document that has passed or failed every check that does not depend on variables."""

    def __init__(self, schema: GraphQLSchema, document: DocumentNode, limits: DocumentLimits) -> None:
        self.document = document
        self._schema, self._limits = schema, limits
        self._errors = limits.check_shape(document) or _validation_errors(schema, document, limits)
        self._size_variables: dict[int, frozenset[str]] = {}
        self._costs: LRUCache[object, tuple[int, list[GraphQLError]]] = LRUCache(MAX_CACHED_COSTS)

    def errors(self, variables: Mapping[str, Any] | None, operation_name: str | None) -> list[GraphQLError]:
        """Returns the errors that forbid executing the operation with these variables; empty if it may be executed."""
        return self.measure(variables, operation_name)[1]

    def measure(
        self, variables: Mapping[str, Any] | None, operation_name: str | None
    ) -> tuple[int, list[GraphQLError]]:
        """Returns the cost of the operation with these variables, and the errors that forbid executing it."""
        if self._errors:
            return 0, self._errors
        if operation_name is None and sum(1 for _ in operations_of(self.document)) > 1:
            message = "The document has several operations; operationName says which one to execute."
            return 0, [validation_error(message)]
        operation = find_operation(self.document, operation_name)
        return (0, []) if operation is None else self._measure(operation, variables or {})

    def _measure(
        self, operation: OperationDefinitionNode, variables: Mapping[str, Any]
    ) -> tuple[int, list[GraphQLError]]:
        """Returns the cost of the operation, and the error of a cost over the limit."""
        sizes = self._sizes(operation, variables)
        # Operations of one document have different costs, even with the same variables.
        key = (id(operation), *sizes.items())
        measured = self._costs.get(key)
        if measured is None:
            cost = measure_cost(self._schema, self.document, operation, sizes)
            measured = self._costs[key] = cost.total or 0, self._limits.check_cost(cost, operation)
        return measured

    @cached_property
    def normalized_text(self) -> str:
        """The document's text with uniform spaces and without comments."""
        return print_ast(self.document)

    @cached_property
    def is_coalescible(self) -> bool:
        """Whether one execution may answer several viewers: it has only queries, whose fields suit an audience."""
        are_queries = all(each.operation is OperationType.QUERY for each in operations_of(self.document))
        return are_queries and not self._errors and suits_audience(self._schema, self.document)

    @cached_property
    def depends_on_viewer(self) -> bool:
        """Whether viewers with the same rights may get different data for the same event."""
        return depends_on_viewer(self._schema, self.document)

    @cached_property
    def accepts_large_body(self) -> bool:
        """Whether a selected field accepts larger request bodies."""
        return bool(metadata_values(self._schema, self.document, ACCEPTS_LARGE_BODY))

    def require_scopes(self, scopes: frozenset[str] | None) -> None:
        """Raises Forbidden unless a key with these scopes may select the document's root fields. None: no key."""
        if scopes is None:
            return
        for name, scope in self.scopes.items():
            if scope == NO_KEY:
                raise Forbidden(f"Service keys cannot use {name}.")
            if scope not in scopes and scope != ANY_KEY:
                raise MissingScope(scope)

    @cached_property
    def scopes(self) -> dict[str, str]:
        """The scope that each selected root field needs, by name."""
        return required_scopes(self._schema, self.document)

    def _sizes(self, operation: OperationDefinitionNode, variables: Mapping[str, Any]) -> VariableSizes:
        """Returns the sizes of the variables that the cost depends on. Other variables do not change the cost."""
        if id(operation) not in self._size_variables:
            cost = measure_cost(self._schema, self.document, operation, {})
            self._size_variables[id(operation)] = cost.size_variables
        return {name: size_of(variables[name]) for name in self._size_variables[id(operation)] if name in variables}


@dataclass(frozen=True, slots=True)
class PreparedOperation:
    """An operation that passed every check that does not depend on the viewer."""

    document: PreparedDocument
    node: OperationDefinitionNode
    request: OperationRequest
    cost: int

    @property
    def is_query(self) -> bool:
        """Whether the operation is a query."""
        return self.node.operation is OperationType.QUERY

    @property
    def is_mutation(self) -> bool:
        """Whether the operation is a mutation."""
        return self.node.operation is OperationType.MUTATION

    @property
    def is_subscription(self) -> bool:
        """Whether the operation is a subscription."""
        return self.node.operation is OperationType.SUBSCRIPTION


class DocumentCache:
    """The limits of one schema and its least-recently-used cache of prepared documents, by text."""

    def __init__(
        self, schema: GraphQLSchema, limits: DocumentLimits | None = None, max_bytes: int = MAX_CACHE_BYTES
    ) -> None:
        """The cache takes about `max_bytes` bytes of memory."""
        self._schema, self._limits = schema, limits or DocumentLimits()
        self._documents: LRUCache[str, PreparedDocument] = LRUCache(max_bytes, _size_bytes)

    def find(self, query: str) -> PreparedDocument | None:
        """Returns the cached document of the text and marks it as used; None if it is not cached."""
        return self._documents.get(query)

    def prepare(self, query: str) -> PreparedDocument:
        """Returns the document of the text, cached or new.

        Raises: GraphQLError when it cannot be parsed; BadUserInput for a lone surrogate.
        """
        prepared = self.find(query)
        if prepared is None:
            require_storable(query, "query")
            self._limits.check_text(query)
            document = parse(query, max_tokens=self._limits.tokens)
            prepared = PreparedDocument(self._schema, document, self._limits)
            # A document that is larger than the cache is not cached.
            with suppress(ValueError):
                self._documents[query] = prepared
        return prepared

    def operation(self, request: OperationRequest) -> PreparedOperation:
        """Returns the requested operation.

        Raises: OperationRefused by GraphQL itself and by the limits; BadUserInput for a lone surrogate, for another
        `onError`, and if the document has no operation of the name.
        """
        if request.on_error not in (None, PROPAGATE, NULL):
            raise BadUserInput("onError", f"{PROPAGATE} or {NULL}")
        try:
            document = self.prepare(request.query)
        except GraphQLError as error:
            raise OperationRefused([error]) from error
        cost, errors = document.measure(request.variables, request.operation_name)
        if errors:
            raise OperationRefused(errors)
        node = find_operation(document.document, request.operation_name)
        if node is None:
            raise BadUserInput("operationName", "the name of an operation of the document")
        return PreparedOperation(document, node, request, cost)


RULES = (
    *(ArgumentValuesRule if each is ValuesOfCorrectTypeRule else each for each in specified_rules),
    MaybeNullValidationRule,
    OneOfInputValidationRule,
)


def _validation_errors(schema: GraphQLSchema, document: DocumentNode, limits: DocumentLimits) -> list[GraphQLError]:
    hides = not limits.allows_introspection
    errors = validate(schema, document, RULES, max_errors=MAX_ERRORS, hide_suggestions=hides)
    for error in errors:
        if error.message == ABORTED:
            error.message = "The document selects fields with equal names too often. Select each field once."
        set_code(error, VALIDATION_FAILED)
    return errors


def _size_bytes(prepared: PreparedDocument) -> int:
    """Returns about how many bytes a document takes: the text twice, and 1,100 for each token.

    For each token, the syntax tree takes 370 bytes and compiled plans take 670: 1,040, rounded up.
    """
    location = prepared.document.loc
    return 2 * len(location.source.body if location else "") + 1100 * prepared.document.token_count
