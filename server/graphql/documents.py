"""Prepared GraphQL documents: parsed, validated and measured once, and shared by every transport of one schema."""

from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any, Protocol

from cachetools import LRUCache
from graphql import (
    ASTValidationRule,
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
from graphql.validation.rules import overlapping_fields_can_be_merged
from strawberry.schema.validation_rules.maybe_null import MaybeNullValidationRule
from strawberry.schema.validation_rules.one_of import OneOfInputValidationRule

from schema.binding import ANY_KEY, NO_KEY
from schema.sharing import metadata_values, required_scopes
from server.graphql.cost import VariableSizes, measure_cost, size_of
from server.graphql.limits import (
    VALIDATION_FAILED,
    DocumentLimits,
    find_operation,
    operations_of,
    set_code,
    validation_error,
)
from storage.errors import Forbidden
from storage.identity.keys.scopes import missing_scope

MAX_CACHE_BYTES = 32 * 1024 * 1024
MAX_CACHED_COSTS = 64
MAX_ERRORS = 10
MAX_COMPARISONS = 20_000
"""Comparisons of fields with equal response names, in graphql-core's units: two for each pair, and some for arguments.

graphql-core allows 500,000, which take a third of a second. Validation cannot be interrupted.
"""

ABORTED = "Validation aborted."
"""graphql-core's message after too many comparisons."""

overlapping_fields_can_be_merged.MAX_COMPLEXITY_BUDGET = MAX_COMPARISONS

ValidationRules = tuple[type[ASTValidationRule], ...]


class OperationRequest(Protocol):
    """The request for one operation, over any transport."""

    @property
    def query(self) -> str | None: ...

    @property
    def variables(self) -> dict[str, Any] | None: ...

    @property
    def operation_name(self) -> str | None: ...


class PreparedDocument:
    """A parsed document that has passed or failed every check that does not depend on variables."""

    def __init__(
        self, schema: GraphQLSchema, document: DocumentNode, rules: ValidationRules, limits: DocumentLimits
    ) -> None:
        self.document, self.rules = document, rules
        self._schema, self._limits = schema, limits
        self._errors = limits.check_shape(document) or _validation_errors(schema, document, rules)
        self._size_variables: dict[int, frozenset[str]] = {}
        self._costs: LRUCache[object, tuple[int, list[GraphQLError]]] = LRUCache(MAX_CACHED_COSTS)

    def errors(self, variables: Mapping[str, Any] | None, operation_name: str | None) -> list[GraphQLError]:
        """Returns the errors that forbid executing the operation with these variables; empty if it may be executed."""
        if self._errors:
            return self._errors
        if operation_name is None and sum(1 for _ in operations_of(self.document)) > 1:
            # Strawberry would execute the first operation.
            return [validation_error("The document has several operations; operationName says which one to execute.")]
        return self._measure(variables, operation_name)[1]

    def cost(self, variables: Mapping[str, Any] | None, operation_name: str | None) -> int:
        """Returns the cost of the operation with these variables; 0 if it may not be executed."""
        return 0 if self.errors(variables, operation_name) else self._measure(variables, operation_name)[0]

    def _measure(
        self, variables: Mapping[str, Any] | None, operation_name: str | None
    ) -> tuple[int, list[GraphQLError]]:
        """Returns the cost of the operation, and the error of a cost over the limit."""
        operation = find_operation(self.document, operation_name)
        if operation is None:
            return 0, []
        sizes = self._sizes(operation, variables or {})
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
    def is_subscription(self) -> bool:
        """Whether one of the operations is a subscription."""
        return any(each.operation is OperationType.SUBSCRIPTION for each in operations_of(self.document))

    def metadata(self, key: str) -> list[Any]:
        """Returns the values of a metadata key in the bindings of the selected fields."""
        if key not in self._metadata:
            self._metadata[key] = metadata_values(self._schema, self.document, key)
        return self._metadata[key]

    def require_scopes(self, scopes: frozenset[str] | None) -> None:
        """Raises Forbidden unless a key with these scopes may select the document's root fields. None: no key."""
        if scopes is None:
            return
        for name, scope in self.scopes.items():
            if scope == NO_KEY:
                raise Forbidden(f"Service keys cannot use {name}.")
            if scope not in scopes and scope != ANY_KEY:
                raise missing_scope(scope)

    @cached_property
    def scopes(self) -> dict[str, str]:
        """The scope that each selected root field needs, by name."""
        return required_scopes(self._schema, self.document)

    @cached_property
    def _metadata(self) -> dict[str, list[Any]]:
        return {}

    def _sizes(self, operation: OperationDefinitionNode, variables: Mapping[str, Any]) -> VariableSizes:
        """Returns the sizes of the variables that the cost depends on. Other variables do not change the cost."""
        if id(operation) not in self._size_variables:
            cost = measure_cost(self._schema, self.document, operation, {})
            self._size_variables[id(operation)] = cost.size_variables
        return {name: size_of(variables[name]) for name in self._size_variables[id(operation)] if name in variables}


class DocumentCache:
    """The limits of one schema and its least-recently-used cache of prepared documents, by text."""

    def __init__(self, limits: DocumentLimits | None = None, max_bytes: int = MAX_CACHE_BYTES) -> None:
        """The cache takes about `max_bytes` bytes of memory."""
        self.limits = limits or DocumentLimits()
        self._documents: LRUCache[str, PreparedDocument] = LRUCache(max_bytes, _size_bytes)

    def find(self, query: str) -> PreparedDocument | None:
        """Returns the cached document of the text and marks it as used; None if it is not cached."""
        return self._documents.get(query)

    def store(self, query: str, prepared: PreparedDocument) -> None:
        """Caches the document, in place of an earlier document of the same text, unless it is larger than the cache."""
        with suppress(ValueError):
            self._documents[query] = prepared

    def prepare(self, schema: GraphQLSchema, query: str) -> PreparedDocument:
        """Returns the document of the text, cached or new. Raises: GraphQLError when it cannot be parsed."""
        prepared = self.find(query)
        if prepared is None:
            self.limits.check_text(query)
            document = parse(query, max_tokens=self.limits.tokens)
            prepared = PreparedDocument(schema, document, tuple(specified_rules), self.limits)
            self.store(query, prepared)
        return prepared


def _validation_errors(schema: GraphQLSchema, document: DocumentNode, rules: ValidationRules) -> list[GraphQLError]:
    rules = (*rules, MaybeNullValidationRule, OneOfInputValidationRule)
    errors = validate(schema, document, rules, max_errors=MAX_ERRORS)
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
