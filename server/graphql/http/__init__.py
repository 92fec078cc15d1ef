"""GraphQL over HTTP: requests, responses, and the endpoint that answers one with the other."""
