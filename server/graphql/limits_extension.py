"""Applies the limits of documents to every operation that Strawberry executes."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from graphql import DocumentNode, GraphQLError
from strawberry.extensions import SchemaExtension
from strawberry.types import ExecutionContext

from server.graphql.documents import DocumentCache, PreparedDocument
from server.graphql.limits import PARSE_FAILED, set_code


def limits_extension(documents: DocumentCache) -> Callable[[], SchemaExtension]:
    """Returns an extension factory for the schema, which uses the limits and the cache of `documents`."""
    return partial(DocumentLimitsExtension, documents)


def is_limits_extension(extension: object) -> bool:
    """Returns whether the extension is the result of `limits_extension`."""
    return isinstance(extension, partial) and extension.func is DocumentLimitsExtension


class DocumentLimitsExtension(SchemaExtension):
    """Checks the limits while parsing and validating, and gives parse and validation errors their codes.

    Replaces Strawberry's ParserCache and ValidationCache. Each transport answers an exceeded limit like any other parse
    or validation error.
    """

    def __init__(self, documents: DocumentCache) -> None:
        super().__init__()
        self._documents = documents

    def on_parse(self) -> Iterator[None]:
        """Takes the document from the cache; otherwise limits the parser."""
        context = self.execution_context
        prepared = self._documents.find(context.query or "")
        if prepared is not None:
            context.graphql_document = prepared.document
        too_long = None if prepared else self._limit_parser(context)
        yield
        for error in context.pre_execution_errors or ():
            error.message = too_long or error.message
            set_code(error, PARSE_FAILED)

    def on_validate(self) -> Iterator[None]:
        """Sets the errors of the prepared document in place of Strawberry's validation."""
        context = self.execution_context
        if context.pre_execution_errors is None and context.graphql_document is not None:
            prepared = self._prepare(context, context.graphql_document)
            # If the request names no operation, `operation_name` is the name of the first one.
            name = context._provided_operation_name
            context.pre_execution_errors = list(prepared.errors(context.variables, name))
        yield

    def _limit_parser(self, context: ExecutionContext) -> str | None:
        """Makes the parser refuse a text over the limits.

        Returns the error message for a text with too many bytes, which the parser cannot count; None for other texts.
        """
        options: Any = context.parse_options
        options["max_tokens"] = self._documents.limits.tokens
        try:
            self._documents.limits.check_text(context.query or "")
        except GraphQLError as error:
            options["max_source_length"] = 0
            return error.message
        return None

    def _prepare(self, context: ExecutionContext, document: DocumentNode) -> PreparedDocument:
        query = context.query or ""
        prepared = self._documents.find(query)
        if prepared is None or prepared.document is not document or prepared.rules != context.validation_rules:
            schema = context.schema._schema
            prepared = PreparedDocument(schema, document, context.validation_rules, self._documents.limits)
            # Another extension may have replaced the document of the text.
            if document.loc is not None and document.loc.source.body == context.query:
                self._documents.store(query, prepared)
        return prepared
