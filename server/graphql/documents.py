"""Prepared GraphQL documents: parsed, validated and measured once, and shared by every transport of one schema."""

from collections import OrderedDict
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from graphql import (
    ASTValidationRule,
    DocumentNode,
    GraphQLError,
    GraphQLSchema,
    OperationDefinitionNode,
    parse,
    specified_rules,
)
from strawberry.schema.schema import validate_document

from schema.sharing import metadata_values
from server.graphql.cost import Sizes, measure_cost, size_of
from server.graphql.limits import VALIDATION_FAILED, DocumentLimits, find_operation, operations_of, refusal, set_code

CACHE_BYTES_MAX = 32 * 1024 * 1024
COSTS_MAX = 64

Rules = tuple[type[ASTValidationRule], ...]


class PreparedDocument:
    """One document with every check that does not depend on variables done."""

    def __init__(self, schema: GraphQLSchema, document: DocumentNode, rules: Rules, limits: DocumentLimits) -> None:
        self.document, self.rules = document, rules
        self._schema, self._limits = schema, limits
        self._errors = limits.check_shape(document) or _validation_errors(schema, document, rules)
        self._size_variables: dict[int, frozenset[str]] = {}
        self._cost_errors: OrderedDict[object, list[GraphQLError]] = OrderedDict()

    def errors(self, variables: Mapping[str, Any] | None, operation_name: str | None) -> list[GraphQLError]:
        """Returns why the operation must not be executed with these variables; empty if it may be."""
        if self._errors:
            return self._errors
        if operation_name is None and sum(1 for _ in operations_of(self.document)) > 1:
            # Strawberry would execute the first operation.
            return [refusal("The document has several operations; operationName says which one to execute.")]
        operation = find_operation(self.document, operation_name)
        if operation is None:
            return []
        sizes = self._sizes(operation, variables or {})
        # Operations of one document have different costs, even with the same variables.
        key = (id(operation), *sizes.items())
        if key not in self._cost_errors:
            cost = measure_cost(self._schema, self.document, operation, sizes)
            self._cost_errors[key] = self._limits.check_cost(cost, operation)
            if len(self._cost_errors) > COSTS_MAX:
                self._cost_errors.popitem(last=False)
        return self._cost_errors[key]

    def metadata(self, key: str) -> list[Any]:
        """Returns the values that the bindings of the selected fields give to a metadata key."""
        if key not in self._metadata:
            self._metadata[key] = metadata_values(self._schema, self.document, key)
        return self._metadata[key]

    @cached_property
    def _metadata(self) -> dict[str, list[Any]]:
        return {}

    def _sizes(self, operation: OperationDefinitionNode, variables: Mapping[str, Any]) -> Sizes:
        """Returns the sizes of the variables that the cost depends on; other variables need no new measurement."""
        if id(operation) not in self._size_variables:
            cost = measure_cost(self._schema, self.document, operation, {})
            self._size_variables[id(operation)] = cost.sized_by
        return {name: size_of(variables[name]) for name in self._size_variables[id(operation)] if name in variables}


class Documents:
    """The limits of one schema and its least-recently-used cache of prepared documents, by text."""

    def __init__(self, limits: DocumentLimits | None = None, bytes_max: int = CACHE_BYTES_MAX) -> None:
        """The cache takes about `bytes_max` bytes of memory."""
        self.limits = limits or DocumentLimits()
        self._bytes_max, self._bytes = bytes_max, 0
        self._documents: OrderedDict[str, PreparedDocument] = OrderedDict()

    def find(self, query: str) -> PreparedDocument | None:
        """Returns the cached document of the text and marks it as used."""
        prepared = self._documents.get(query)
        if prepared is not None:
            self._documents.move_to_end(query)
        return prepared

    def keep(self, query: str, prepared: PreparedDocument) -> None:
        """Caches the document in place of any earlier one of the same text."""
        previous = self._documents.pop(query, None)
        self._documents[query] = prepared
        self._bytes += _weight(query, prepared) - (_weight(query, previous) if previous else 0)
        while self._bytes > self._bytes_max:
            text, dropped = self._documents.popitem(last=False)
            self._bytes -= _weight(text, dropped)

    def prepare(self, schema: GraphQLSchema, query: str) -> PreparedDocument:
        """Returns the document of the text, cached or new. Raises: GraphQLError when it cannot be parsed."""
        prepared = self.find(query)
        if prepared is None:
            self.limits.check_text(query)
            document = parse(query, max_tokens=self.limits.tokens)
            prepared = PreparedDocument(schema, document, tuple(specified_rules), self.limits)
            self.keep(query, prepared)
        return prepared


def _validation_errors(schema: GraphQLSchema, document: DocumentNode, rules: Rules) -> list[GraphQLError]:
    errors = validate_document(schema, document, rules)
    for error in errors:
        set_code(error, VALIDATION_FAILED)
    return errors


def _weight(text: str, prepared: PreparedDocument) -> int:
    """Returns about how many bytes a document takes: 370 for each token, 670 if compiled, and the text twice."""
    return 2 * len(text) + 1100 * prepared.document.token_count
