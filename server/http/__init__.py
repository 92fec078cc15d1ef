"""HTTP routes beside GraphQL: pages, images, callbacks, ingest, health and metrics."""
