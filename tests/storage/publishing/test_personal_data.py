"""Personal data of publishing: whose documents an export and an erasure take, and the fields of an export."""

from typing import Any

import pytest

from storage.identity.privacy_rules import ErasureMethod
from storage.ids import UserKey
from storage.publishing.personal_data import PERSONAL_DATA
from tests.storage.in_memory_stream import ORG, in_s
from tests.storage.publishing.in_memory_posts import MEDIUM, stored_post

BY_COLLECTION = {each.collection: each for each in PERSONAL_DATA}
MEDIA = [{"url": MEDIUM["url"], "altText": "A hill", "kind": "IMAGE"}]
ACCOUNT: dict[str, Any] = {"_id": "a", "network": "X", "name": "ours", "base_url": "https://example.org"}
ACCOUNT |= {"connected_at": in_s(-9), "credentials": "sealed", "handle": "@ann", "network_id": "7"}
EXPORTED_ACCOUNT = {"id": "a", "network": "X", "name": "ours", "baseUrl": "https://example.org"}
EXPORTED_ACCOUNT |= {"handle": "@ann", "connectedAt": in_s(-9), "disconnectedAt": None}
EXPORTED_POST = {
    "id": "post",
    "text": "hello",
    "media": MEDIA,
    "attachments": [],
    "dueAt": in_s(-10),
    "timeZone": "UTC",
}


@pytest.mark.parametrize(
    ("collection", "field", "order", "document", "exported"),
    [
        ("accounts", "connected_by", "_id", ACCOUNT, EXPORTED_ACCOUNT),
        ("scheduled_posts", "author", "ts", stored_post(), EXPORTED_POST | {"createdAt": in_s(-99)}),
    ],
)
def test_documents_of_person_are_exported_and_erased(
    collection: str, field: str, order: str, document: dict[str, Any], exported: dict[str, Any]
) -> None:
    ((rule,), (export,)) = BY_COLLECTION[collection].rules, BY_COLLECTION[collection].exports
    for selection in (rule.documents, export.documents):
        assert selection.find(UserKey(ORG, "ann")) == {"org": ORG, field: "ann"}
        assert (selection.order, selection.parent) == (order, None)
    assert (rule.erasure, export.write(document)) == (ErasureMethod.CHANGE, exported)


def test_account_export_holds_disconnection() -> None:
    (export,) = BY_COLLECTION["accounts"].exports
    assert export.write(ACCOUNT | {"disconnected_at": in_s(-1)})["disconnectedAt"] == in_s(-1)
