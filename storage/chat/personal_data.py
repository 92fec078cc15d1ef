"""Personal data of communities, messages and reactions."""

from storage.chat.documents import (
    JoinRequestDocument,
    MembershipDocument,
    MessageDocument,
    ReactionDocument,
    ReadMarkDocument,
)
from storage.identity.privacy_rules import (
    Export,
    Person,
    PersonalData,
    Scope,
    Selection,
    changed,
    deleted,
    emptied,
    own_range,
    seconds,
)
from storage.ids import MessageKey
from storage.mongo import Document

BY_TOPIC = Scope("_id.t", "topics")
BY_COMMUNITY = Scope("_id.c", "communities")


def _memberships(person: Person) -> Document:
    return {"org": person.organization_id, "user": person.user_id}


def _messages(person: Person) -> Document:
    return {"author": person.user_id}


def _by_user_in_id(person: Person) -> Document:
    return {"_id.u": person.user_id}


def _bans_by_person(person: Person) -> Document:
    return {"ban.by": person.user_id, "ban.reason": {"$ne": ""}}


def _received(person: Person) -> Document:
    return own_range(person, "ts")


def _export_membership(membership: MembershipDocument) -> Document:
    return {
        "communityId": membership["community"],
        "role": membership.get("role", "MEMBER"),
        "joinedAt": membership["at"],
    }


def _export_join_request(request: JoinRequestDocument) -> Document:
    return {"communityId": request["_id"]["c"], "message": request["message"], "at": request["at"]}


def _export_message(message: MessageDocument) -> Document:
    key = MessageKey(message["_id"]["t"], message["_id"]["ts"])
    return {
        "id": key.id,
        "topicId": key.topic_id,
        "timestamp": seconds(key.timestamp),
        "text": message["text"],
        "stampId": message.get("stamp"),
        "mentionedUserIds": message.get("mentions", []),
        "linkPreview": message.get("preview"),
        "editedAt": message.get("edited_at"),
        "deletedAt": message.get("deleted_at"),
    }


def _export_reaction(reaction: ReactionDocument) -> Document:
    id_ = reaction["_id"]
    return {"messageId": MessageKey(id_["t"], id_["ts"]).id, "emoji": id_["e"], "at": reaction["at"]}


def _export_read_mark(mark: ReadMarkDocument) -> Document:
    return {"topicId": mark["_id"]["t"], "readUpTo": seconds(mark["ts"])}


PERSONAL_DATA = (
    PersonalData("communities", "Names and descriptions belong to the members. No document names a person."),
    PersonalData(
        "memberships",
        "Nothing.",
        rules=[changed(_memberships)],
        exports=[Export(Selection(_memberships), _export_membership)],
    ),
    PersonalData(
        "community_restrictions",
        "Of bans that the person imposed: the ids and times, without the reason.",
        rules=[
            deleted(_by_user_in_id, scope=BY_COMMUNITY),
            emptied(_bans_by_person, BY_COMMUNITY, ban__reason=""),
        ],
    ),
    PersonalData(
        "join_requests",
        "Nothing.",
        rules=[changed(_by_user_in_id, scope=BY_COMMUNITY)],
        exports=[Export(Selection(_by_user_in_id, scope=BY_COMMUNITY), _export_join_request)],
    ),
    PersonalData(
        "topics",
        "Ids of the creator, of the last 50 people who posted and of moderators who pinned messages. Titles belong to "
        "the members.",
    ),
    PersonalData("slow_mode_posts", "Nothing.", rules=[deleted(_by_user_in_id, scope=BY_TOPIC)]),
    PersonalData("activity", "No document concerns a person."),
    PersonalData(
        "messages",
        "Tombstones without content, so that timestamps are never used again.",
        rules=[changed(_messages, scope=BY_TOPIC)],
        exports=[Export(Selection(_messages, scope=BY_TOPIC), _export_message)],
    ),
    PersonalData(
        "reactions",
        "Nothing.",
        rules=[changed(_by_user_in_id, scope=BY_TOPIC)],
        exports=[Export(Selection(_by_user_in_id, scope=BY_TOPIC), _export_reaction)],
    ),
    PersonalData("received_reactions", "Nothing.", rules=[deleted(_received)]),
    PersonalData(
        "read_marks",
        "Nothing.",
        rules=[deleted(_by_user_in_id, scope=BY_TOPIC)],
        exports=[Export(Selection(_by_user_in_id, scope=BY_TOPIC), _export_read_mark)],
    ),
)
