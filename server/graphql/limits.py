"""Limits of one GraphQL document: text, tokens, depth, aliases, root fields and cost (docs/limits.md)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLError,
    InlineFragmentNode,
    Node,
    OperationDefinitionNode,
    SelectionNode,
    SelectionSetNode,
    TokenKind,
)

from server.graphql.cost import Cost

PARSE_FAILED = "GRAPHQL_PARSE_FAILED"
VALIDATION_FAILED = "GRAPHQL_VALIDATION_FAILED"
INTROSPECTION_FIELDS = frozenset({"__schema", "__type"})


class FragmentCycle(Exception):
    """A fragment spreads itself, directly or through others."""


@dataclass(frozen=True, slots=True)
class SelectionExtent:
    """The measured depth, aliases and fields of a selection set. Each fragment counts wherever it is spread."""

    depth: int = 0
    introspection_depth: int = 0
    aliases: int = 0
    fields: int = 0


@dataclass(frozen=True, slots=True)
class DocumentLimits:
    """The limits of docs/limits.md. The message of each error contains the limit and the measured value."""

    text_bytes: int = 102_400
    tokens: int = 1_000
    digits: int = 100
    depth: int = 12
    introspection_depth: int = 20
    aliases: int = 15
    root_fields: int = 20
    cost: int = 200_000
    allows_introspection: bool = True

    def check_text(self, query: str) -> None:
        """Raises: GraphQLError when the UTF-8 text is too long."""
        text_bytes = len(query) if query.isascii() else len(query.encode("utf-8", "surrogatepass"))
        if text_bytes > self.text_bytes:
            message = f"The query text has {text_bytes} bytes; at most {self.text_bytes} are allowed."
            raise GraphQLError(message, extensions={"code": PARSE_FAILED})

    def check_shape(self, document: DocumentNode) -> list[GraphQLError]:
        """Checks all limits except the text's length and the cost, and finds fragment cycles. Needs no variables."""
        if document.token_count > self.tokens:
            message = f"The document has {document.token_count} tokens; at most {self.tokens} are allowed."
            return [validation_error(message)]
        if (digits := _max_digits(document)) > self.digits:
            # Python raises ValueError for integers of thousands of digits, in the validation of any document.
            return [
                validation_error(f"An integer in the document has {digits} digits; at most {self.digits} are allowed.")
            ]
        measurement = _ExtentMeasurement(document)
        try:
            measured = [(node, measurement.extent(node.selection_set)) for node in operations_of(document)]
        except FragmentCycle as cycle:
            return [validation_error(f"Cannot spread fragment '{cycle}' within itself.")]
        except RecursionError:
            return [validation_error(f"The document is nested too deeply; at most {self.depth} levels are allowed.")]
        return [error for node, extent in measured for error in self._check_extent(extent, node)]

    def check_cost(self, cost: Cost, operation: OperationDefinitionNode) -> list[GraphQLError]:
        """Checks the cost of one operation, as measured by `measure_cost`."""
        if cost.total is None:
            return [validation_error("The fragments are too complex to measure the cost of the operation.", operation)]
        return _limit_errors("The operation costs {}", cost.total, self.cost, operation)

    def _check_extent(self, extent: SelectionExtent, node: OperationDefinitionNode) -> list[GraphQLError]:
        if extent.introspection_depth and not self.allows_introspection:
            return [validation_error("This server does not allow introspection.", node)]
        introspection = "The operation is {} levels deep in introspection"
        return [
            *_limit_errors("The operation is {} levels deep", extent.depth, self.depth, node),
            *_limit_errors(introspection, extent.introspection_depth, self.introspection_depth, node),
            *_limit_errors("The operation has {} aliases", extent.aliases, self.aliases, node),
            *_limit_errors("The operation has {} root fields", extent.fields, self.root_fields, node),
        ]


class _ExtentMeasurement:
    """Measures selection sets. Each fragment is measured once, even if it is spread several times."""

    def __init__(self, document: DocumentNode) -> None:
        self._nodes = {
            node.name.value: node for node in document.definitions if isinstance(node, FragmentDefinitionNode)
        }
        self._extents: dict[str, SelectionExtent | None] = {}

    def extent(self, selection_set: SelectionSetNode | None) -> SelectionExtent:
        """Returns the extent of a selection set. Raises: FragmentCycle."""
        nodes = selection_set.selections if selection_set else ()
        parts = [self._field(node) if isinstance(node, FieldNode) else self._spread(node) for node in nodes]
        return SelectionExtent(
            depth=max((part.depth for part in parts), default=0),
            introspection_depth=max((part.introspection_depth for part in parts), default=0),
            aliases=sum(part.aliases for part in parts),
            fields=sum(part.fields for part in parts),
        )

    def _field(self, node: FieldNode) -> SelectionExtent:
        below = self.extent(node.selection_set)
        aliases = below.aliases + (node.alias is not None)
        if node.name.value in INTROSPECTION_FIELDS:
            return SelectionExtent(0, 1 + max(below.depth, below.introspection_depth), aliases, 1)
        introspection_below = below.introspection_depth
        return SelectionExtent(1 + below.depth, introspection_below + 1 if introspection_below else 0, aliases, 1)

    def _spread(self, node: SelectionNode) -> SelectionExtent:
        if not isinstance(node, FragmentSpreadNode):
            return self.extent(cast("InlineFragmentNode", node).selection_set)
        name = node.name.value
        if name not in self._extents:
            self._extents[name] = None
            fragment = self._nodes.get(name)
            self._extents[name] = self.extent(fragment.selection_set) if fragment else SelectionExtent()
        if (extent := self._extents[name]) is None:
            raise FragmentCycle(name)
        return extent


def _max_digits(document: DocumentNode) -> int:
    """Returns the number of characters of the longest integer in the text."""
    longest, token = 0, document.loc and document.loc.start_token
    while token:
        if token.kind is TokenKind.INT:
            longest = max(longest, token.end - token.start)
        token = token.next
    return longest


def operations_of(document: DocumentNode) -> Iterator[OperationDefinitionNode]:
    """Yields the operations of the document."""
    return (node for node in document.definitions if isinstance(node, OperationDefinitionNode))


def find_operation(document: DocumentNode, name: str | None) -> OperationDefinitionNode | None:
    """Returns the operation with this name, or the first one if `name` is None; None if there is no such operation."""
    matching = (node for node in operations_of(document) if name is None or (node.name and node.name.value == name))
    return next(matching, None)


def _limit_errors(subject: str, measured: int, limit: int, node: OperationDefinitionNode) -> list[GraphQLError]:
    if measured <= limit:
        return []
    return [validation_error(f"{subject.format(measured)}; at most {limit} are allowed.", node)]


def validation_error(message: str, node: Node | None = None) -> GraphQLError:
    """Returns an error with the code GRAPHQL_VALIDATION_FAILED."""
    return GraphQLError(message, node, extensions={"code": VALIDATION_FAILED})


def set_code(error: GraphQLError, code: str) -> None:
    """Sets `extensions.code`, unless the error has one."""
    error.extensions = {"code": code, **(error.extensions or {})}
