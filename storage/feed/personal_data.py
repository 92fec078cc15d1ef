"""Personal data of posts and home feeds."""

from storage.feed.content_reports.documents import ContentReportDocument
from storage.feed.documents import PostDocument
from storage.identity.privacy_rules import (
    Export,
    Person,
    PersonalData,
    Selection,
    changed,
    deleted,
    emptied,
    own_range,
    seconds,
)
from storage.ids import PostKey
from storage.mongo import Document


def _posts(person: Person) -> Document:
    return {"_id.o": person.organization_id, "author": person.user_id}


def _feed_items(person: Person) -> Document:
    return own_range(person, "ts")


def _feed(person: Person) -> Document:
    return {"_id": {"o": person.organization_id, "u": person.user_id}}


def _own_reports(person: Person) -> Document:
    return {"org": person.organization_id, "reporter": person.user_id}


def _reports_about(person: Person) -> Document:
    return {"org": person.organization_id, "author": person.user_id, "content": {"$ne": ""}}


def _export_report(report: ContentReportDocument) -> Document:
    return {
        "subject": report["kind"],
        "subjectId": report["subject"],
        "category": report["category"],
        "text": report["text"],
        "reportedAt": report["at"],
    }


def _export_post(post: PostDocument) -> Document:
    key = PostKey(post["_id"]["o"], post["_id"]["ts"])
    return {
        "id": key.id,
        "timestamp": seconds(key.timestamp),
        "text": post["text"],
        "mediaUrls": post.get("media", []),
        "mentionedUserIds": post.get("mentions", []),
        "linkPreview": post.get("preview"),
        "deletedAt": post.get("deleted_at"),
    }


PERSONAL_DATA = (
    PersonalData(
        "posts",
        "Tombstones without content, so that timestamps are never used again.",
        rules=[changed(_posts, "_id.ts")],
        exports=[Export(Selection(_posts, "_id.ts"), _export_post)],
    ),
    PersonalData(
        "content_reports",
        "Ids, and the notes of moderators, until 180 days after the decision.",
        rules=[deleted(_own_reports), emptied(_reports_about, content="")],
        exports=[Export(Selection(_own_reports), _export_report)],
    ),
    PersonalData("post_sources", "Ids, so that a publication never creates a second post."),
    PersonalData("merged_authors", "The id and numbers of events."),
    PersonalData("feed_items", "Nothing.", rules=[deleted(_feed_items)]),
    PersonalData("feeds", "Nothing.", rules=[deleted(_feed)]),
    PersonalData("fan_outs", "Ids and numbers of followers of each post."),
    PersonalData("feed_retries", "Ids, until the retry succeeds or for 30 days."),
)
