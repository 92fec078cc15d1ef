"""Chooses between JSON and an event stream by the header Accept."""

from functools import lru_cache

EVENT_STREAM = "text/event-stream"
JSON_RANGES = frozenset(
    ("application/json", "application/graphql-response+json", "application/graphql+json", "application/*", "*/*")
)
"""The media ranges with which a client accepts JSON."""

Preference = tuple[float, int]
"""The quality of a media range, and its place in the header, counted from the end."""

NOT_ACCEPTED: Preference = (0.0, 0)


@lru_cache(maxsize=64)
def accepts_event_stream(accept: str) -> bool:
    """Returns whether the client accepts event streams, which a subscription then is. `*/*` is not enough."""
    return _preferences(accept).get(EVENT_STREAM, NOT_ACCEPTED) > NOT_ACCEPTED


@lru_cache(maxsize=64)
def prefers_event_stream(accept: str) -> bool:
    """Returns whether the client prefers an event stream to JSON: by quality, then by the order in the header."""
    preferences = _preferences(accept)
    json = max(preferences.get(each, NOT_ACCEPTED) for each in JSON_RANGES)
    return preferences.get(EVENT_STREAM, NOT_ACCEPTED) > json


def _preferences(accept: str) -> dict[str, Preference]:
    """Returns the preference of each media range. Ranges with quality 0 are left out."""
    ranges = [each.strip().lower() for each in accept.split(",")]
    preferences: dict[str, Preference] = {}
    for place, text in enumerate(reversed(ranges), 1):
        name, _, parameters = text.partition(";")
        quality = _quality(parameters)
        if quality > 0:
            preferences[name.strip()] = (quality, place)
    return preferences


def _quality(parameters: str) -> float:
    """Returns the parameter `q`; 1 if it is missing or no number."""
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                return float(value)
            except ValueError:
                return 1.0
    return 1.0
