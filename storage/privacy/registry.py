"""The registry of personal data: one entry for each collection and each kind of Redis key."""

from collections.abc import Mapping, Sequence

import storage.calls.personal_data
import storage.chat.personal_data
import storage.feed.personal_data
import storage.files.personal_data
import storage.identity.personal_data
import storage.mail.personal_data
import storage.publishing.personal_data
import storage.webhooks.personal_data
from storage.chat.conversations.rules import conversations_stream
from storage.feed.records import home_stream
from storage.identity.privacy_rules import (
    ExportedSelection,
    PersonalData,
    PersonalDataSelection,
    change_rule,
    delete_rule,
    own_range,
)
from storage.identity.records import user_stream
from storage.ids import UserKey
from storage.mongo import Document
from storage.notifications.documents import NotificationChannelDocument, NotificationSettingsDocument
from storage.streams.documents import NotificationDocument
from storage.timeline import format_timestamp

NOBODY = "No document concerns a person."


def _user_events(person: UserKey) -> Document:
    return _events(user_stream(*person).name)


def _home_events(person: UserKey) -> Document:
    return _events(home_stream(*person).name)


def _conversation_events(person: UserKey) -> Document:
    return _events(conversations_stream(*person).name)


def _events(stream: str) -> Document:
    return {"_id": {"$gt": {"s": stream, "n": 0}, "$lt": {"s": stream, "n": 2**62}}}


def _notifications(person: UserKey) -> Document:
    return own_range(person, "ts")


def _owner_document(person: UserKey) -> Document:
    return {"_id": {"o": person.organization_id, "u": person.user_id}}


def _idempotency_keys(person: UserKey) -> Document:
    owner = {"org": person.organization_id, "user": person.user_id}
    return {"_id": {"$gte": owner, "$lt": {**owner, "mutation": "\U0010ffff"}}}


def _export(person: UserKey) -> Document:
    return {"_id": {"org": person.organization_id, "id": person.user_id}}


def _fields_of_owner(person: UserKey) -> Document:
    return {"org": person.organization_id, "user": person.user_id}


def _export_notification(notification: NotificationDocument) -> Document:
    return {
        "timestamp": format_timestamp(notification["_id"]["ts"]),
        "kind": notification["kind"],
        "actorId": notification["actor"],
        "communityId": notification.get("community"),
    }


def _export_notification_settings(settings: NotificationSettingsDocument) -> Document:
    quiet = settings.get("quiet")
    return {
        "ways": settings.get("ways", {}),
        "levels": settings.get("levels", {}),
        "quietHours": quiet and {"start": quiet["start"], "end": quiet["end"], "timeZone": quiet["zone"]},
        "digest": settings.get("digest"),
        "language": settings.get("language"),
        "at": settings["at"],
    }


def _export_notification_channel(channel: NotificationChannelDocument) -> Document:
    subscription = channel.get("subscription")
    return {
        "way": channel["way"],
        "address": subscription and subscription["url"],
        "userAgent": channel.get("agent"),
        "period": channel.get("period"),
        "at": channel["at"],
    }


_SHARED_COLLECTIONS = (
    PersonalData("streams", "Ids in the names of streams, with numbers of events."),
    PersonalData(
        "events",
        "References to changed objects, by id, for 24 hours.",
        rules=[change_rule(_user_events), change_rule(_home_events), change_rule(_conversation_events)],
    ),
    PersonalData("outbox", "References to changed objects, by id, until they are relayed."),
    PersonalData(
        "notifications",
        "Nothing of the person's own. Notifications of other people refer to the person by id.",
        rules=[delete_rule(_notifications)],
        exports=[ExportedSelection(PersonalDataSelection(_notifications), _export_notification)],
    ),
    PersonalData("notification_marks", "Nothing.", rules=[delete_rule(_owner_document)]),
    PersonalData(
        "notification_settings",
        "Nothing.",
        rules=[delete_rule(_owner_document)],
        exports=[ExportedSelection(PersonalDataSelection(_owner_document), _export_notification_settings)],
    ),
    PersonalData(
        "notification_channels",
        "Nothing.",
        rules=[delete_rule(_fields_of_owner)],
        exports=[ExportedSelection(PersonalDataSelection(_fields_of_owner), _export_notification_channel)],
    ),
    PersonalData("notification_scans", NOBODY),
    PersonalData("idempotency", "Nothing.", rules=[delete_rule(_idempotency_keys)]),
    PersonalData("exports", "Nothing.", rules=[delete_rule(_export)]),
    PersonalData("export_chunks", "Nothing.", rules=[delete_rule(_fields_of_owner)]),
    PersonalData("organization_settings", "The id of the administrator who changed the settings."),
    PersonalData("retention_rules", "The id of the administrator who set the rule."),
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
    storage.files.personal_data.PERSONAL_DATA,
    storage.webhooks.personal_data.PERSONAL_DATA,
    _SHARED_COLLECTIONS,
)

PERSONAL_DATA: Mapping[str, PersonalData] = {entry.collection: entry for area in _AREAS for entry in area}
"""The entries by collection."""

REDIS_DATA: Mapping[str, str] = {
    "channel": "Events on their way to clients: references to changed objects, by id. Nothing is stored.",
    "queue": "Names and ids of jobs, until they have run.",
    "online": "Ids of people with an open socket, for 15 s after the last renewal.",
    "typing": "Ids of people who are typing, for 6 s after the last signal.",
    "persisted_document": "Texts of documents that clients name by their hash, for 7 days after the last use. Values "
    "are sent as variables; a client that writes them into the text keeps them there.",
    "persisted_documents": "Hashes of these texts, by the time of their last use.",
    "call_wake_ups": "Ids of organizations, on their way to workers. Nothing is stored.",
}
"""The data that an erasure leaves in Redis, by the method of `storage.redis.keys.Keys`."""
