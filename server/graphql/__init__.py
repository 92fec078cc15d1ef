"""The GraphQL engine: documents, limits, coalescing, compiled execution, HTTP and WebSocket."""
