"""Message records, and the message ids of the API."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.chat.records import message_record
from storage.errors import NotFound
from storage.ids import MessageKey, message_key
from storage.timeline import MAX_TIMESTAMP


@given(st.text(min_size=1), st.integers(0, MAX_TIMESTAMP))
def test_message_key_is_parsed_back_from_its_id(topic_id: str, timestamp: int) -> None:
    assert message_key(MessageKey(topic_id, timestamp).id) == MessageKey(topic_id, timestamp)


@pytest.mark.parametrize("id_", ["", "-", "t", "t-", "-5", "t-x", "t--", "t-1.5", "t-１", "t-+1", "t-" + "9" * 17])
def test_malformed_message_id_is_not_found(id_: str) -> None:
    with pytest.raises(NotFound):
        message_key(id_)


def test_document_without_optional_fields_is_a_plain_message() -> None:
    message = message_record({"_id": {"t": "t", "ts": 5}, "author": "ann", "text": "hello"})
    assert (message.id, message.key) == ("t-5", MessageKey("t", 5))
    assert (message.stamp_id, message.link_preview, message.edited_at, message.deleted_at) == (None,) * 4
    assert not message.mention_ids
    assert not message.reaction_counts
