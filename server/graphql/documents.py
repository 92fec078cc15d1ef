"""Documents of sockets, prepared as the schema's extension prepares those of requests: one cache, the same limits."""

from graphql import GraphQLSchema, parse, specified_rules

from server.graphql.limits import DocumentLimitsExtension, PreparedDocument


def prepare(schema: GraphQLSchema, query: str) -> PreparedDocument:
    """The document of the text, parsed, validated and measured once. Raises: GraphQLError when it can't be parsed."""
    cache, limits = DocumentLimitsExtension.documents, DocumentLimitsExtension.limits
    prepared = cache.find(schema, query)
    if prepared is None:
        limits.check_text(query)
        document = parse(query, max_tokens=limits.tokens)
        prepared = PreparedDocument(schema, document, tuple(specified_rules), limits)
        cache.keep(schema, query, prepared)
    return prepared
