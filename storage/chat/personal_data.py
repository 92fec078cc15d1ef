"""Personal data of communities, messages and reactions."""

from storage.chat.documents import (
    JoinRequestDocument,
    MembershipDocument,
    MessageDocument,
    ReadMarkDocument,
    TopicDocument,
)
from storage.chat.reactions.documents import ReactionDocument
from storage.chat.stamps.documents import StampOwnershipDocument
from storage.chat.stamps.ownerships import owned_between
from storage.files.attachments import export_attachments
from storage.identity.privacy_rules import (
    ExportedSelection,
    ParentReference,
    PersonalData,
    PersonalDataSelection,
    change_rule,
    delete_rule,
    empty_rule,
    own_range,
)
from storage.ids import MessageKey, UserKey
from storage.mongo import Document
from storage.timeline import format_timestamp

BY_TOPIC = ParentReference("_id.t", "topics")
BY_COMMUNITY = ParentReference("_id.c", "communities")


def _memberships(person: UserKey) -> Document:
    return {"org": person.organization_id, "user": person.user_id}


def _messages(person: UserKey) -> Document:
    return {"author": person.user_id}


def _by_user_in_id(person: UserKey) -> Document:
    return {"_id.u": person.user_id}


def _followed_threads(person: UserKey) -> Document:
    return {"org": person.organization_id, "thread.followers": person.user_id}


def _bans_by_person(person: UserKey) -> Document:
    return {"ban.by": person.user_id, "ban.reason": {"$ne": ""}}


def _contact_count(person: UserKey) -> Document:
    return {"_id": {"o": person.organization_id, "u": person.user_id}}


def _received(person: UserKey) -> Document:
    return own_range(person, "ts")


def _stamp_ownerships(person: UserKey) -> Document:
    return owned_between(person.organization_id, person.user_id, person.user_id)


def _export_stamp_ownership(ownership: StampOwnershipDocument) -> Document:
    return {"packId": ownership["_id"]["p"], "ownedSince": ownership["at"], "givenById": ownership.get("by")}


def _export_membership(membership: MembershipDocument) -> Document:
    return {
        "communityId": membership["community"],
        "conversation": membership.get("conversation"),
        "role": membership.get("role", "MEMBER"),
        "joinedAt": membership["at"],
    }


def _export_join_request(request: JoinRequestDocument) -> Document:
    return {"communityId": request["_id"]["c"], "message": request["message"], "at": request["at"]}


def _export_message(message: MessageDocument) -> Document:
    key, quote = MessageKey(message["_id"]["t"], message["_id"]["ts"]), message.get("quote")
    reply = message.get("reply")
    return {
        "id": key.id,
        "topicId": key.topic_id,
        "timestamp": format_timestamp(key.timestamp),
        "text": message["text"],
        "stampId": message.get("stamp"),
        "mentionedUserIds": message.get("mentions", []),
        "quotedMessageId": None if quote is None else MessageKey(quote["t"], quote["ts"]).id,
        "threadReplyId": None if reply is None else MessageKey(reply["t"], reply["ts"]).id,
        "alsoInTopic": "also_in_topic" in message,
        "attachments": export_attachments(message.get("attachments", ())),
        "linkPreview": message.get("preview"),
        "editedAt": message.get("edited_at"),
        "deletedAt": message.get("deleted_at"),
    }


def _export_reaction(reaction: ReactionDocument) -> Document:
    id_ = reaction["_id"]
    return {"messageId": MessageKey(id_["t"], id_["ts"]).id, "emoji": id_["e"], "at": reaction["at"]}


def _export_followed_thread(topic: TopicDocument) -> Document:
    parent = topic["thread"]
    return {"threadId": topic["_id"], "messageId": MessageKey(parent["topic"], parent["ts"]).id}


def _export_read_mark(mark: ReadMarkDocument) -> Document:
    return {"topicId": mark["_id"]["t"], "readUpTo": format_timestamp(mark["ts"])}


PERSONAL_DATA = (
    PersonalData("communities", "Names and descriptions belong to the members. No document names a person."),
    PersonalData(
        "memberships",
        "Nothing.",
        rules=[change_rule(_memberships)],
        exports=[ExportedSelection(PersonalDataSelection(_memberships), _export_membership)],
    ),
    PersonalData(
        "community_restrictions",
        "Ids and times of bans that the person imposed, without the reason.",
        rules=[
            delete_rule(_by_user_in_id, parent=BY_COMMUNITY),
            empty_rule(_bans_by_person, BY_COMMUNITY, ban__reason=""),
        ],
    ),
    PersonalData(
        "join_requests",
        "Nothing.",
        rules=[change_rule(_by_user_in_id, parent=BY_COMMUNITY)],
        exports=[ExportedSelection(PersonalDataSelection(_by_user_in_id, parent=BY_COMMUNITY), _export_join_request)],
    ),
    PersonalData(
        "topics",
        "Ids of the creator, of the last 50 people who posted, of moderators who pinned messages, and of people who "
        "left a conversation. Titles belong to the members.",
        rules=[change_rule(_followed_threads)],
        exports=[ExportedSelection(PersonalDataSelection(_followed_threads), _export_followed_thread)],
    ),
    PersonalData("contact_counts", "Nothing.", rules=[delete_rule(_contact_count)]),
    PersonalData("slow_mode_posts", "Nothing.", rules=[delete_rule(_by_user_in_id, parent=BY_TOPIC)]),
    PersonalData("activity", "No document concerns a person."),
    PersonalData("stamp_catalogues", "The id of the user whom workers have evaluated last, until the walk ends."),
    PersonalData(
        "stamp_ownerships",
        "Nothing of the person's own. Packs that the person gave to others have the person's id.",
        rules=[delete_rule(_stamp_ownerships)],
        exports=[ExportedSelection(PersonalDataSelection(_stamp_ownerships), _export_stamp_ownership)],
    ),
    PersonalData("stamp_scans", "No document concerns a person."),
    PersonalData(
        "messages",
        "Tombstones without content, so that timestamps are never used again.",
        rules=[change_rule(_messages, parent=BY_TOPIC)],
        exports=[ExportedSelection(PersonalDataSelection(_messages, parent=BY_TOPIC), _export_message)],
    ),
    PersonalData("topic_terms", "Terms of titles, which belong to the members."),
    PersonalData("message_terms", "Ids of tombstones. The deletion of a message removes its terms."),
    PersonalData(
        "reactions",
        "Nothing.",
        rules=[change_rule(_by_user_in_id, parent=BY_TOPIC)],
        exports=[ExportedSelection(PersonalDataSelection(_by_user_in_id, parent=BY_TOPIC), _export_reaction)],
    ),
    PersonalData("received_reactions", "Nothing.", rules=[delete_rule(_received)]),
    PersonalData(
        "read_marks",
        "Nothing.",
        rules=[delete_rule(_by_user_in_id, parent=BY_TOPIC)],
        exports=[ExportedSelection(PersonalDataSelection(_by_user_in_id, parent=BY_TOPIC), _export_read_mark)],
    ),
)
