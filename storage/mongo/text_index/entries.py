"""The terms of an entry: those of a text, and one for each filter that finds the entry. Pure; no I/O."""

import re
from enum import Enum

from storage.mongo.text_index.tokenizer import terms

_LINK = re.compile("https?://", re.IGNORECASE)


class ContentKind(Enum):
    """A kind of content by which texts are filtered. The values are those of the operator `has:`."""

    LINK = "link"
    STAMP = "stamp"
    MEDIA = "media"
    FILE = "file"


def author_term(user_id: str) -> str:
    """Returns the term of texts by an author. Terms of words have no colon."""
    return f"from:{user_id}"


def topic_term(topic_id: str) -> str:
    """Returns the term of the messages of a topic."""
    return f"in:{topic_id}"


def content_term(content: ContentKind) -> str:
    """Returns the term of texts with this content."""
    return f"has:{content.value}"


def entry_terms(author_id: str, text: str, *filters: str) -> list[str]:
    """Returns the terms of a text by an author, with these further terms."""
    found = [author_term(author_id), *filters]
    if _LINK.search(text):
        found.append(content_term(ContentKind.LINK))
    return found + terms(text)
