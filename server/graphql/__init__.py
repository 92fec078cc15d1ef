"""The GraphQL engine, built on Strawberry and graphql-core. Other packages import only the names of `__all__`.

The engine adds to Strawberry:

- Documents are parsed, validated and measured once, in a cache with a memory bound (`DocumentCache`).
- Limits on text, tokens, depth, aliases, root fields and cost hold over every transport.
- Each viewer, service and organization has a budget of cost for a minute (`CostPerMinute`).
- Lists and objects are completed by compiled functions, with the results of graphql-core.
- Identical queries that arrive together share one execution (ADR 44). Identical subscriptions share one execution and
  one payload for each event (ADR 10).
- GraphQL over HTTP conforms to the audits of graphql-http, with batches and queries by GET (`GraphQLEndpoint`).
- Clients may send the hash of a document instead of its text, and roles may be limited to trusted documents
  (`PersistedDocuments`).
- Event streams answer subscriptions over plain HTTP as well (ADR 107). A process that stops ends its `PROCESS_STREAMS`.
- graphql-transport-ws has strict frames, sign-in, close codes, and bounded memory for slow clients (`GraphQLEndpoint`,
  and `WebSocketProtocol` for uvicorn).

An application creates the engine like this:

    endpoint = GraphQLEndpoint(schema, application)

`application` signs viewers in and makes contexts (`protocols.py`); the engine imports no area of the product.
All queries and mutations run by `Operations`, all subscriptions by `Subscriptions`. The binding of a field
(schema/binding.py) declares whether viewers may share the field, whether it serves audiences, and whether it accepts
larger request bodies.
"""

from server.graphql.budgets import CostPerMinute
from server.graphql.event_execution import EventExecution
from server.graphql.http.endpoint import GraphQLEndpoint
from server.graphql.http.event_streams import PROCESS_STREAMS
from server.graphql.limits import DocumentLimits
from server.graphql.operations import Operations
from server.graphql.persisted_documents import PersistedDocuments, TrustedDocuments
from server.graphql.socket_writer import WebSocketProtocol

__all__ = [
    "PROCESS_STREAMS",
    "CostPerMinute",
    "DocumentLimits",
    "EventExecution",
    "GraphQLEndpoint",
    "Operations",
    "PersistedDocuments",
    "TrustedDocuments",
    "WebSocketProtocol",
]
