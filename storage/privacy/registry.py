"""The registry of personal data: one entry for each collection and each kind of Redis key."""

from collections.abc import Mapping, Sequence

import storage.calls.personal_data
import storage.chat.personal_data
import storage.feed.personal_data
import storage.identity.personal_data
import storage.mail.personal_data
import storage.publishing.personal_data
from storage.feed.records import home_stream
from storage.identity.privacy_rules import Export, Person, PersonalData, Selection, changed, deleted, own_range, seconds
from storage.identity.records import user_stream
from storage.mongo import Document
from storage.streams.documents import NotificationDocument

NOBODY = "No document concerns a person."


def _user_events(person: Person) -> Document:
    return _events(user_stream(*person).name)


def _home_events(person: Person) -> Document:
    return _events(home_stream(*person).name)


def _events(stream: str) -> Document:
    return {"_id": {"$gt": {"s": stream, "n": 0}, "$lt": {"s": stream, "n": 2**62}}}


def _notifications(person: Person) -> Document:
    return own_range(person, "ts")


def _notification_mark(person: Person) -> Document:
    return {"_id": {"o": person.organization_id, "u": person.user_id}}


def _idempotency_keys(person: Person) -> Document:
    owner = {"org": person.organization_id, "user": person.user_id}
    return {"_id": {"$gte": owner, "$lt": {**owner, "mutation": "\U0010ffff"}}}


def _export(person: Person) -> Document:
    return {"_id": {"org": person.organization_id, "id": person.user_id}}


def _export_chunks(person: Person) -> Document:
    return {"org": person.organization_id, "user": person.user_id}


def _export_notification(notification: NotificationDocument) -> Document:
    return {
        "timestamp": seconds(notification["_id"]["ts"]),
        "kind": notification["kind"],
        "actorId": notification["actor"],
    }


_MECHANISMS = (
    PersonalData("streams", "Ids in the names of streams, with numbers of events."),
    PersonalData(
        "events",
        "References to changed objects, by id, for 24 hours.",
        rules=[changed(_user_events), changed(_home_events)],
    ),
    PersonalData("outbox", "References to changed objects, by id, until they are relayed."),
    PersonalData(
        "notifications",
        "Nothing of the person's own. Notifications of other people refer to the person by id.",
        rules=[deleted(_notifications)],
        exports=[Export(Selection(_notifications), _export_notification)],
    ),
    PersonalData("notification_marks", "Nothing.", rules=[deleted(_notification_mark)]),
    PersonalData("idempotency", "Nothing.", rules=[deleted(_idempotency_keys)]),
    PersonalData("exports", "Nothing.", rules=[deleted(_export)]),
    PersonalData("export_chunks", "Nothing.", rules=[deleted(_export_chunks)]),
    PersonalData("erasures", "Who requested the erasure and when, by ids, for two years."),
    PersonalData("process_locks", NOBODY),
    PersonalData("fences", NOBODY),
    PersonalData("data_version", NOBODY),
    PersonalData("key_fingerprints", NOBODY),
    PersonalData("secrets", NOBODY),
    PersonalData("workers", NOBODY),
)

_AREAS: Sequence[Sequence[PersonalData]] = (
    storage.identity.personal_data.PERSONAL_DATA,
    storage.chat.personal_data.PERSONAL_DATA,
    storage.feed.personal_data.PERSONAL_DATA,
    storage.publishing.personal_data.PERSONAL_DATA,
    storage.calls.personal_data.PERSONAL_DATA,
    storage.mail.personal_data.PERSONAL_DATA,
    _MECHANISMS,
)

PERSONAL_DATA: Mapping[str, PersonalData] = {entry.collection: entry for area in _AREAS for entry in area}
"""The entries by collection."""

REDIS_DATA: Mapping[str, str] = {
    "channel": "Events pass through: references to changed objects, by id. Nothing is stored.",
    "write_lease": "Ids in the names of streams, for 200 ms.",
    "hot_page": "Messages of hot topics. The deletion of a message replaces it, and the page ends a minute after use.",
    "queue": "Names and ids of jobs, until they have run.",
    "call_wake_ups": "Ids of organizations pass through. Nothing is stored.",
}
"""The data that an erasure leaves in Redis, by the method of `storage.redis.keys.Keys`."""
