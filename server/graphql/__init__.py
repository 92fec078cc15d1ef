"""GraphQL engine on Strawberry and graphql-core. Other packages import only the names of `__all__`.

What it adds to Strawberry:

- Documents are parsed, validated and measured once, in a cache with a memory bound (`Documents`).
- Limits on text, tokens, depth, aliases, root fields and cost hold over every transport (`limits_extension`).
- Lists and objects are completed by compiled functions, with the results of graphql-core (`compiled_executor`).
- Identical queries at the same moment share one execution (ADR 44), and identical subscriptions share one execution
  and one payload for each event (ADR 10).
- GraphQL over HTTP conforms to the audits of graphql-http; graphql-transport-ws has strict frames, sign-in, close codes
  and bounded memory for slow clients (`GraphQLEndpoint`, `WebSocketProtocol` for uvicorn).

How an application uses it:

    documents = Documents()
    schema = build_schema(limits_extension(documents), executor=compiled_executor(documents))
    endpoint = GraphQLEndpoint(schema, documents, viewers, new_context)

Fields declare what the engine must know of them where they are bound (schema/binding.py): whether viewers may share
them, whether they serve audiences, the gate that admits operations, and whether larger request bodies are accepted.
"""

from server.graphql.compiled import compiled_executor
from server.graphql.documents import Documents
from server.graphql.http import MAX_BODY_BYTES, BodyTooLarge, GraphQLEndpoint, limit_body
from server.graphql.limits import DocumentLimits
from server.graphql.limits_extension import limits_extension
from server.graphql.socket_writer import WebSocketProtocol

__all__ = [
    "MAX_BODY_BYTES",
    "BodyTooLarge",
    "DocumentLimits",
    "Documents",
    "GraphQLEndpoint",
    "WebSocketProtocol",
    "compiled_executor",
    "limit_body",
    "limits_extension",
]
