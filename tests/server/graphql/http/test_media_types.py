"""The header Accept decides between JSON and an event stream."""

import pytest

from server.graphql.http.media_types import accepts_event_stream, prefers_event_stream

URQL = (
    "application/graphql-response+json, application/graphql+json, application/json, text/event-stream, multipart/mixed"
)


@pytest.mark.parametrize(
    ("accept", "is_accepted", "is_preferred"),
    [
        ("", False, False),
        ("*/*", False, False),
        ("text/*", False, False),
        ("application/json", False, False),
        ("text/event-stream", True, True),
        ("TEXT/Event-Stream ; q=0.5", True, True),
        ("text/event-stream, multipart/mixed", True, True),
        (URQL, True, False),
        ("text/event-stream, application/json", True, True),
        ("application/json, text/event-stream", True, False),
        ("*/*, text/event-stream", True, False),
        ("text/event-stream, */*;q=0.1", True, True),
        ("application/json;q=0.4, text/event-stream;q=0.5", True, True),
        ("text/event-stream;q=0.5, application/graphql-response+json", True, False),
        ("text/event-stream;q=0, application/json", False, False),
        ("text/event-stream;q=zero", True, True),
        ("text/event-stream-x", False, False),
    ],
)
def test_accept_selects_stream_or_json(accept: str, is_accepted: bool, is_preferred: bool) -> None:
    assert (accepts_event_stream(accept), prefers_event_stream(accept)) == (is_accepted, is_preferred)
