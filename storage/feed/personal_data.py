"""Personal data of posts and home feeds."""

from storage.feed.content_reports.documents import ContentReportDocument
from storage.feed.documents import PostDocument, PostHistoryDocument, PostReactionDocument
from storage.feed.records import PostParentKind
from storage.files.attachments import export_attachments
from storage.identity.privacy_rules import (
    ExportedSelection,
    PersonalData,
    PersonalDataSelection,
    change_rule,
    delete_rule,
    empty_rule,
    own_range,
)
from storage.ids import PostKey, UserKey
from storage.mongo import Document
from storage.timeline import format_timestamp


def _posts(person: UserKey) -> Document:
    return {"_id.o": person.organization_id, "author": person.user_id}


def _feed_items(person: UserKey) -> Document:
    return own_range(person, "ts")


def _feed(person: UserKey) -> Document:
    return {"_id": {"o": person.organization_id, "u": person.user_id}}


def _post_reactions(person: UserKey) -> Document:
    return {"_id.o": person.organization_id, "_id.u": person.user_id}


def _own_reports(person: UserKey) -> Document:
    return {"org": person.organization_id, "reporter": person.user_id}


def _reports_about(person: UserKey) -> Document:
    return {"org": person.organization_id, "author": person.user_id, "content": {"$ne": ""}}


def _decided_reports(person: UserKey) -> Document:
    return {"org": person.organization_id, "by": person.user_id, "note": {"$ne": ""}}


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
        "timestamp": format_timestamp(key.timestamp),
        "text": post["text"],
        "mediaUrls": post.get("media", []),
        "mentionedUserIds": post.get("mentions", []),
        "attachments": export_attachments(post.get("attachments", ())),
        "linkPreview": post.get("preview"),
        "inReplyTo": _parent_id(post, PostParentKind.REPLY),
        "repostOf": _parent_id(post, PostParentKind.REPOST),
        "quoteOf": _parent_id(post, PostParentKind.QUOTE),
        "editedAt": post.get("edited_at"),
        "deletedAt": post.get("deleted_at"),
    }


def _export_post_reaction(reaction: PostReactionDocument) -> Document:
    id_ = reaction["_id"]
    return {"postId": PostKey(id_["o"], id_["ts"]).id, "emoji": id_["e"], "at": reaction["at"]}


def _export_history(history: PostHistoryDocument) -> Document:
    key = PostKey(history["_id"]["o"], history["_id"]["ts"])
    versions = [{"text": each["text"], "writtenAt": each["at"]} for each in history["versions"]]
    return {"postId": key.id, "earlierTexts": versions}


def _parent_id(post: PostDocument, kind: PostParentKind) -> str | None:
    parent = post.get("parent")
    is_of_kind = parent is not None and parent["kind"] == kind.value
    return PostKey(post["_id"]["o"], parent["ts"]).id if parent is not None and is_of_kind else None


PERSONAL_DATA = (
    PersonalData(
        "posts",
        "Tombstones without content, so that timestamps are never used again; the id in other people's replies.",
        rules=[change_rule(_posts, "_id.ts")],
        exports=[ExportedSelection(PersonalDataSelection(_posts, "_id.ts"), _export_post)],
    ),
    PersonalData(
        "post_reactions",
        "Nothing.",
        rules=[change_rule(_post_reactions)],
        exports=[ExportedSelection(PersonalDataSelection(_post_reactions), _export_post_reaction)],
    ),
    PersonalData(
        "post_histories",
        "Nothing.",
        rules=[delete_rule(_posts)],
        exports=[ExportedSelection(PersonalDataSelection(_posts), _export_history)],
    ),
    PersonalData("post_terms", "Ids of tombstones. The deletion of a post removes its terms."),
    PersonalData(
        "content_reports",
        "Ids, and the notes of other moderators, until 180 days after the decision.",
        rules=[
            delete_rule(_own_reports),
            empty_rule(_reports_about, content=""),
            empty_rule(_decided_reports, note=""),
        ],
        exports=[ExportedSelection(PersonalDataSelection(_own_reports), _export_report)],
    ),
    PersonalData("post_sources", "Ids, so that a publication never creates a second post; none of reposts."),
    PersonalData("merged_authors", "The id and numbers of events."),
    PersonalData("feed_items", "Nothing.", rules=[delete_rule(_feed_items)]),
    PersonalData("feeds", "Nothing.", rules=[delete_rule(_feed)]),
    PersonalData("fan_outs", "Ids and numbers of followers of each post."),
    PersonalData("feed_retries", "Ids, until the retry succeeds or for 30 days."),
)
