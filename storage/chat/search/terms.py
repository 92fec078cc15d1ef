"""The documents that make messages and topics found."""

from datetime import datetime

from storage.chat.documents import MessageDocument
from storage.chat.search.documents import MessageTermsDocument, TopicTermsDocument, TopicTermsId
from storage.chat.threads.documents import ThreadFields
from storage.mongo.text_index.entries import ContentKind, content_term, entry_terms, topic_term
from storage.mongo.text_index.tokenizer import terms

MESSAGE_TERMS = "message_terms"
TOPIC_TERMS = "topic_terms"


def message_terms(
    document: MessageDocument, community_id: str, thread: ThreadFields | None = None
) -> MessageTermsDocument:
    """Returns the terms of a message; none for a tombstone. A reply is also found in the topic of its parent.

    A step of the migration writes the same.
    """
    found: list[str] = []
    if document.get("deleted_at") is None:
        filters = [topic_term(document["_id"]["t"])]
        if thread is not None:
            filters.append(topic_term(thread["topic"]))
        if "stamp" in document:
            filters.append(content_term(ContentKind.STAMP))
        if "attachments" in document:
            filters.append(content_term(ContentKind.FILE))
        found = entry_terms(document["author"], document["text"], *filters)
    return {"_id": document["_id"], "place": community_id, "terms": found}


def topic_terms_id(topic_id: str, created_at: datetime) -> TopicTermsId:
    """Returns the `_id` of the terms of a topic."""
    return {"t": topic_id, "ts": round(created_at.timestamp() * 1000) * 1000}


def topic_terms(topic_id: str, created_at: datetime, community_id: str, title: str) -> TopicTermsDocument:
    """Returns the terms of a topic of a community. A step of the migration writes the same."""
    return {"_id": topic_terms_id(topic_id, created_at), "place": community_id, "terms": terms(title)}
