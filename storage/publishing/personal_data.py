"""Personal data of connected accounts and scheduled posts."""

from storage.files.attachments import export_attachments
from storage.identity.privacy_rules import (
    ExportedSelection,
    PersonalData,
    PersonalDataSelection,
    change_rule,
    delete_rule,
)
from storage.ids import UserKey
from storage.mongo import Document
from storage.publishing.documents import AccountDocument, ScheduledPostDocument


def _accounts(person: UserKey) -> Document:
    return {"org": person.organization_id, "connected_by": person.user_id}


def _account_connections(person: UserKey) -> Document:
    return {"org": person.organization_id, "user": person.user_id}


def _scheduled_posts(person: UserKey) -> Document:
    return {"org": person.organization_id, "author": person.user_id}


def _publication_summaries(person: UserKey) -> Document:
    return {"_id": {"o": person.organization_id, "u": person.user_id}}


def _export_account(account: AccountDocument) -> Document:
    return {
        "id": account["_id"],
        "network": account["network"],
        "name": account["name"],
        "handle": account.get("handle"),
        "baseUrl": account["base_url"],
        "connectedAt": account["connected_at"],
        "disconnectedAt": account.get("disconnected_at"),
    }


def _export_scheduled_post(post: ScheduledPostDocument) -> Document:
    media = [{"url": each["url"], "altText": each["alt"], "kind": each["kind"]} for each in post["media"]]
    return {
        "id": post["_id"],
        "text": post["text"],
        "media": media,
        "attachments": export_attachments(post.get("attachments", ())),
        "dueAt": post["due"],
        "timeZone": post["zone"],
        "createdAt": post["at"],
    }


PERSONAL_DATA = (
    PersonalData(
        "accounts",
        "Network, id and times of accounts that the person connected, without credentials, names and address. Ids of "
        "authors whose posts wait for other credentials.",
        rules=[change_rule(_accounts)],
        exports=[ExportedSelection(PersonalDataSelection(_accounts), _export_account)],
    ),
    PersonalData("account_connections", "Nothing.", rules=[delete_rule(_account_connections)]),
    PersonalData(
        "scheduled_posts",
        "Ids, times and the number of targets, without text and media.",
        rules=[change_rule(_scheduled_posts, "ts")],
        exports=[ExportedSelection(PersonalDataSelection(_scheduled_posts, "ts"), _export_scheduled_post)],
    ),
    PersonalData("publications", "Ids, state and times. Texts are removed with those of the scheduled post."),
    PersonalData("publication_problems", "Nothing: it holds nothing about people."),
    PersonalData("publication_summaries", "Nothing.", rules=[delete_rule(_publication_summaries)]),
    PersonalData("sandbox_posts", "Nothing: posts of the built-in sandbox are deleted with the scheduled post."),
)
