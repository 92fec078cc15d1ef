"""The operations that the web client sends for its screens, as written in its sources."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

SOURCES = Path(__file__).parents[2] / "web-client/src"

_DOCUMENT = re.compile(r"graphql\(\s*`\s*((query|mutation|subscription|fragment) (\w+)[^`]*)`")
_SPREAD = re.compile(r"\.\.\.\s*(?!on\b)(\w+)")

SCREENS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "sidebar: communities": ("Communities", {"after": None, "limit": 50}),
    "sidebar: conversations": ("Conversations", {"state": "JOINED", "latest": "now", "limit": 20}),
    "sidebar: requests": ("Conversations", {"state": "REQUESTED", "latest": "now", "limit": 20}),
    "sidebar: threads": ("FollowedThreads", {"limit": 50}),
    "sidebar: trending": ("Trending", {}),
    "notifications": ("Notifications", {"latest": "now", "inclusive": True}),
    "schedule": ("ScheduledPosts", {"oldest": "0.000000", "latest": "9999999999.000000", "limit": 100}),
    "call jobs": ("CallJobs", {"latest": "now", "inclusive": True}),
    "home": ("HomeFeed", {"latest": "now", "inclusive": True}),
}
"""The operation of each list of a screen, and the variables of its first page."""


@cache
def document(operation: str) -> str:
    """Returns the text of an operation of the web client, with the fragments that it uses."""
    documents = _documents()
    return "\n".join(documents[name] for name in dict.fromkeys(_with_fragments(operation, documents)))


@cache
def _documents() -> Mapping[str, str]:
    sources = [path.read_text(encoding="utf-8") for path in sorted(SOURCES.rglob("*.ts"))]
    return {match[3]: match[1] for source in sources for match in _DOCUMENT.finditer(source)}


def _with_fragments(name: str, documents: Mapping[str, str]) -> Iterator[str]:
    yield name
    for fragment in _SPREAD.findall(documents[name]):
        yield from _with_fragments(fragment, documents)
