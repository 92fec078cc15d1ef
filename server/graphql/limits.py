"""How much one GraphQL document may ask for: text, tokens, depth, aliases, root fields and cost.

Holds for queries, mutations and subscriptions over HTTP and WebSocket alike, because the checks are a schema
extension. A text is parsed, validated and measured once; only a cost that variables decide is looked up anew.
"""

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, cast

from graphql import (
    ASTValidationRule,
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLError,
    GraphQLSchema,
    InlineFragmentNode,
    Node,
    OperationDefinitionNode,
    SelectionNode,
    SelectionSetNode,
)
from strawberry.extensions import SchemaExtension
from strawberry.schema.schema import validate_document
from strawberry.types import ExecutionContext

from server.graphql.cost import Cost, Sizes, measure_cost, size_of

PARSE_FAILED = "GRAPHQL_PARSE_FAILED"
VALIDATION_FAILED = "GRAPHQL_VALIDATION_FAILED"
INTROSPECTION_FIELDS = frozenset({"__schema", "__type"})
CACHE_BYTES_MAX = 32 * 1024 * 1024
COSTS_MAX = 64

Rules = tuple[type[ASTValidationRule], ...]


class FragmentCycle(Exception):
    """A fragment spreads itself, directly or through others."""


@dataclass(frozen=True, slots=True)
class Extent:
    """How far a selection set reaches, every fragment counted wherever it is spread."""

    depth: int = 0
    introspection_depth: int = 0
    aliases: int = 0
    fields: int = 0


@dataclass(frozen=True, slots=True)
class DocumentLimits:
    """The limits of docs/semantics.md, 8. Each refusal tells the limit and what was measured."""

    text_bytes: int = 102_400
    tokens: int = 1_000
    depth: int = 12
    introspection_depth: int = 20
    aliases: int = 15
    root_fields: int = 20
    cost: int = 200_000

    def check(
        self,
        schema: GraphQLSchema,
        document: DocumentNode,
        variables: Mapping[str, Any] | None,
        operation_name: str | None,
    ) -> list[GraphQLError]:
        """Every limit of a parsed document, whether it was validated or not."""
        if errors := self.check_shape(document):
            return errors
        operation = find_operation(document, operation_name)
        if operation is None:
            return []
        sizes = {name: size_of(value) for name, value in (variables or {}).items()}
        return self.check_cost(measure_cost(schema, document, operation, sizes), operation)

    def check_text(self, query: str) -> None:
        """Raises: GraphQLError when the text is too long, counted in UTF-8."""
        text_bytes = len(query) if query.isascii() else len(query.encode("utf-8", "surrogatepass"))
        if text_bytes > self.text_bytes:
            message = f"The query text has {text_bytes} bytes; at most {self.text_bytes} are allowed."
            raise GraphQLError(message, extensions={"code": PARSE_FAILED})

    def check_shape(self, document: DocumentNode) -> list[GraphQLError]:
        """What no variable changes: tokens, depth, aliases, root fields, and fragments in a circle."""
        if document.token_count > self.tokens:
            message = f"The document has {document.token_count} tokens; at most {self.tokens} are allowed."
            return [_refusal(message)]
        fragments = _Fragments(document)
        try:
            measured = [(node, fragments.extent(node.selection_set)) for node in _operations(document)]
        except FragmentCycle as cycle:
            return [_refusal(f"Cannot spread fragment '{cycle}' within itself.")]
        except RecursionError:
            return [_refusal(f"The document is nested too deeply; at most {self.depth} levels are allowed.")]
        return [error for node, extent in measured for error in self._check_extent(extent, node)]

    def check_cost(self, cost: Cost, operation: OperationDefinitionNode) -> list[GraphQLError]:
        """What one operation may cost at most, measured by `measure_cost`."""
        if cost.total is None:
            return [_refusal("The fragments are too entangled to tell what they cost.", operation)]
        return _over("The operation costs {}", cost.total, self.cost, operation)

    def _check_extent(self, extent: Extent, node: OperationDefinitionNode) -> list[GraphQLError]:
        introspection = "The operation is {} levels deep in introspection"
        return [
            *_over("The operation is {} levels deep", extent.depth, self.depth, node),
            *_over(introspection, extent.introspection_depth, self.introspection_depth, node),
            *_over("The operation has {} aliases", extent.aliases, self.aliases, node),
            *_over("The operation has {} root fields", extent.fields, self.root_fields, node),
        ]


class PreparedDocument:
    """One text's document with everything that is known before its variables are."""

    def __init__(self, schema: GraphQLSchema, document: DocumentNode, rules: Rules, limits: DocumentLimits) -> None:
        self.document, self.rules = document, rules
        self._schema, self._limits = schema, limits
        self._errors = limits.check_shape(document) or _validated(schema, document, rules)
        self._sized_by: dict[int, frozenset[str]] = {}
        self._refusals: OrderedDict[object, list[GraphQLError]] = OrderedDict()

    def errors(self, variables: Mapping[str, Any] | None, operation_name: str | None) -> list[GraphQLError]:
        """Why the operation must not be executed with these variables; empty when it may."""
        if self._errors:
            return self._errors
        if operation_name is None and sum(1 for _ in _operations(self.document)) > 1:
            # Strawberry would execute the first one.
            return [_refusal("The document has several operations; operationName says which one to execute.")]
        operation = find_operation(self.document, operation_name)
        if operation is None:
            return []
        sizes = self._sizes(operation, variables or {})
        place = (id(operation), *sizes.items())
        if place not in self._refusals:
            cost = measure_cost(self._schema, self.document, operation, sizes)
            self._refusals[place] = self._limits.check_cost(cost, operation)
            if len(self._refusals) > COSTS_MAX:
                self._refusals.popitem(last=False)
        return self._refusals[place]

    def _sizes(self, operation: OperationDefinitionNode, variables: Mapping[str, Any]) -> Sizes:
        """Only of those variables that the cost depends on, so that the others ask for no new measurement."""
        if id(operation) not in self._sized_by:
            cost = measure_cost(self._schema, self.document, operation, {})
            self._sized_by[id(operation)] = cost.sized_by
        return {name: size_of(variables[name]) for name in self._sized_by[id(operation)] if name in variables}


class DocumentCache:
    """The documents used last, by schema and text, in about `bytes_max` of memory."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max, self._bytes = bytes_max, 0
        self._documents: OrderedDict[tuple[GraphQLSchema, str], PreparedDocument] = OrderedDict()

    def find(self, schema: GraphQLSchema, query: str) -> PreparedDocument | None:
        """The document of this text, which counts as used now."""
        prepared = self._documents.get((schema, query))
        if prepared is not None:
            self._documents.move_to_end((schema, query))
        return prepared

    def keep(self, schema: GraphQLSchema, query: str, prepared: PreparedDocument) -> None:
        """Replaces what this text had, and drops what was not used for longest."""
        previous = self._documents.pop((schema, query), None)
        self._documents[schema, query] = prepared
        self._bytes += _weight(query, prepared) - (_weight(query, previous) if previous else 0)
        while self._bytes > self._bytes_max:
            (_, text), dropped = self._documents.popitem(last=False)
            self._bytes -= _weight(text, dropped)


class DocumentLimitsExtension(SchemaExtension):
    """Applies the limits to every operation of a schema, and gives parse and validation errors their code.

    Takes the place of Strawberry's ParserCache and ValidationCache. Refusals are ordinary errors of the steps they
    belong to, so every transport answers them as it answers a syntax error. The schema takes the class, never an
    instance: what is shared between requests is the cache, which belongs to the class.
    """

    limits: ClassVar[DocumentLimits] = DocumentLimits()
    documents: ClassVar[DocumentCache] = DocumentCache(CACHE_BYTES_MAX)

    def on_parse(self) -> Iterator[None]:
        context = self.execution_context
        prepared = self.documents.find(context.schema._schema, context.query or "")
        if prepared is not None:
            context.graphql_document = prepared.document
        too_long = None if prepared else self._limit_parser(context)
        yield
        for error in context.pre_execution_errors or ():
            error.message = too_long or error.message
            _code(error, PARSE_FAILED)

    def on_validate(self) -> Iterator[None]:
        context = self.execution_context
        if context.pre_execution_errors is None:
            prepared = self._prepare(context)
            # `operation_name` would be that of the first operation when the request names none.
            name = context._provided_operation_name
            context.pre_execution_errors = list(prepared.errors(context.variables, name))
        yield

    def _limit_parser(self, context: ExecutionContext) -> str | None:
        """Makes the parser refuse what is too long; it can't count bytes, so the message comes from here."""
        options = cast("dict[str, int]", context.parse_options)
        options["max_tokens"] = self.limits.tokens
        try:
            self.limits.check_text(context.query or "")
        except GraphQLError as error:
            options["max_source_length"] = 0
            return error.message
        return None

    def _prepare(self, context: ExecutionContext) -> PreparedDocument:
        schema, document = context.schema._schema, cast("DocumentNode", context.graphql_document)
        prepared = self.documents.find(schema, context.query or "")
        if prepared is None or prepared.document is not document or prepared.rules != context.validation_rules:
            prepared = PreparedDocument(schema, document, context.validation_rules, self.limits)
            # An extension may have put another document in the place of the text's own.
            if document.loc is not None and document.loc.source.body == context.query:
                self.documents.keep(schema, context.query, prepared)
        return prepared


class _Fragments:
    """Measures selection sets; each fragment once, however often it is spread."""

    def __init__(self, document: DocumentNode) -> None:
        self._nodes = {
            node.name.value: node for node in document.definitions if isinstance(node, FragmentDefinitionNode)
        }
        self._extents: dict[str, Extent | None] = {}

    def extent(self, selection_set: SelectionSetNode | None) -> Extent:
        """Raises: FragmentCycle."""
        nodes = selection_set.selections if selection_set else ()
        parts = [self._field(node) if isinstance(node, FieldNode) else self._spread(node) for node in nodes]
        return Extent(
            depth=max((part.depth for part in parts), default=0),
            introspection_depth=max((part.introspection_depth for part in parts), default=0),
            aliases=sum(part.aliases for part in parts),
            fields=sum(part.fields for part in parts),
        )

    def _field(self, node: FieldNode) -> Extent:
        below = self.extent(node.selection_set)
        aliases = below.aliases + (node.alias is not None)
        if node.name.value in INTROSPECTION_FIELDS:
            return Extent(0, 1 + max(below.depth, below.introspection_depth), aliases, 1)
        inspected = below.introspection_depth
        return Extent(1 + below.depth, inspected + 1 if inspected else 0, aliases, 1)

    def _spread(self, node: SelectionNode) -> Extent:
        if not isinstance(node, FragmentSpreadNode):
            return self.extent(cast("InlineFragmentNode", node).selection_set)
        name = node.name.value
        if name not in self._extents:
            self._extents[name] = None
            fragment = self._nodes.get(name)
            self._extents[name] = self.extent(fragment.selection_set) if fragment else Extent()
        if (known := self._extents[name]) is None:
            raise FragmentCycle(name)
        return known


def _operations(document: DocumentNode) -> Iterator[OperationDefinitionNode]:
    return (node for node in document.definitions if isinstance(node, OperationDefinitionNode))


def find_operation(document: DocumentNode, name: str | None) -> OperationDefinitionNode | None:
    """The one of that name, the first when none is named."""
    fitting = (node for node in _operations(document) if name is None or (node.name and node.name.value == name))
    return next(fitting, None)


def _validated(schema: GraphQLSchema, document: DocumentNode, rules: Rules) -> list[GraphQLError]:
    errors = validate_document(schema, document, rules)
    for error in errors:
        _code(error, VALIDATION_FAILED)
    return errors


def _over(what: str, measured: int, limit: int, node: OperationDefinitionNode) -> list[GraphQLError]:
    if measured <= limit:
        return []
    return [_refusal(f"{what.format(measured)}; at most {limit} are allowed.", node)]


def _refusal(message: str, node: Node | None = None) -> GraphQLError:
    return GraphQLError(message, node, extensions={"code": VALIDATION_FAILED})


def _code(error: GraphQLError, code: str) -> None:
    error.extensions = {"code": code, **(error.extensions or {})}


def _weight(text: str, prepared: PreparedDocument) -> int:
    """Measured: 370 bytes a token beside the text, which the tokens hold once more; 670 when it was compiled."""
    return 2 * len(text) + 1100 * prepared.document.token_count
