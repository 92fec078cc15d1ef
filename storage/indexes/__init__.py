"""Every index. Most timelines need no index, because their `_id` sorts them.

A start creates the indexes of an empty database; `noroshi migrate` builds those that a later release adds or changes
(docs/adding-a-migration.md).
"""

from pymongo import IndexModel

from storage.indexes.calls import CALLS_INDEXES
from storage.indexes.chat import CHAT_INDEXES
from storage.indexes.feed import FEED_INDEXES
from storage.indexes.files import FILES_INDEXES
from storage.indexes.identity import IDENTITY_INDEXES
from storage.indexes.mail import MAIL_INDEXES
from storage.indexes.privacy import PRIVACY_INDEXES
from storage.indexes.publishing import PUBLISHING_INDEXES
from storage.indexes.shared import SHARED_INDEXES
from storage.indexes.streams import STREAMS_INDEXES
from storage.indexes.webhooks import WEBHOOKS_INDEXES

INDEXES: dict[str, list[IndexModel]] = {
    **IDENTITY_INDEXES,
    **CHAT_INDEXES,
    **FILES_INDEXES,
    **FEED_INDEXES,
    **PUBLISHING_INDEXES,
    **CALLS_INDEXES,
    **MAIL_INDEXES,
    **STREAMS_INDEXES,
    **WEBHOOKS_INDEXES,
    **PRIVACY_INDEXES,
    **SHARED_INDEXES,
}
"""The indexes of each collection. A comment names the type of its documents.

Collections without indexes are listed too. They are created at start, since transactions that write to them would
otherwise wait for their creation. An index that a query names as its hint needs a new name when its definition changes.
"""
