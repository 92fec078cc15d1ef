"""Rules for writing to a conversation, which every commit to its topic checks.

Changes of the people are committed to the same topic, so the commit of a message reads their current states.
"""

from storage.chat.conversations.documents import DirectFields
from storage.chat.threads.rules import governing_topic, thread_fields
from storage.errors import Forbidden
from storage.identity.records import user_stream
from storage.mongo import Mongo, Session
from storage.streams.changes import Batch
from storage.streams.log import Stream

BLOCKS = "blocks"
CHANGED = "ConversationChanged"


def conversations_stream(organization_id: str, user_id: str) -> Stream:
    """Returns the stream of a person's conversations."""
    return Stream("conversations", user_stream(organization_id, user_id).id)


def notification_content(conversation_id: str) -> str:
    """Returns the content by which the notification of a conversation is found."""
    return f"CONVERSATION/{conversation_id}"


def direct_fields(batch: Batch) -> DirectFields | None:
    """Returns the states of the people, or None if neither the topic nor the parent's topic is a conversation."""
    direct: DirectFields | None = governing_topic(batch).get("direct")
    return direct


def people_of(direct: DirectFields) -> list[str]:
    """Returns everybody who is or was in the conversation, or was asked."""
    return [*direct["joined"], *direct["requested"], *direct["declined"], *direct["left"]]


async def load_pair_block(mongo: Mongo, session: Session, batch: Batch) -> None:
    """Reads whether one of the two people of a pair has blocked the other."""
    direct = direct_fields(batch)
    if direct is None or not direct["pair"] or BLOCKS in batch.shared:
        return
    one, other = people_of(direct)
    query = [{"user": one, "blocked": other}, {"user": other, "blocked": one}]
    found = await mongo.find(BLOCKS, {"org": batch.head["org"], "$or": query}, {"_id": 1}, limit=1, session=session)
    batch.shared[BLOCKS] = bool(found)


def is_blocked_pair(batch: Batch) -> bool:
    """Returns whether one of the two people has blocked the other. `load_pair_block` must have been awaited."""
    blocked: bool = batch.shared.get(BLOCKS, False)
    return blocked


def require_may_converse(batch: Batch, user_id: str) -> None:
    """Raises Forbidden for a person who has not joined the conversation, and between two people with a block.

    Does nothing in a topic of a community.
    """
    direct = direct_fields(batch)
    if direct is None:
        return
    if user_id in direct["requested"]:
        raise Forbidden("Accept the conversation before you write.")
    if user_id not in direct["joined"] or is_blocked_pair(batch):
        raise no_reader_error()


def record_message(batch: Batch, author_id: str) -> None:
    """Notes the author's message, which makes the conversation appear to the people who were asked.

    Raises: Forbidden for a person who is alone, if one message was already posted alone or nobody is asked. In a thread
    one message was already posted: the parent.
    """
    direct = direct_fields(batch)
    if direct is None:
        return
    is_alone = direct["joined"] == [author_id]
    if thread_fields(batch) is not None:
        if is_alone:
            raise no_reader_error()
        return
    # A person who has declined counts as asked, so that the author does not notice.
    if is_alone and (direct["asked"] or not (direct["requested"] or direct["declined"])):
        raise no_reader_error()
    if not direct["written"]:
        announce_change(batch, direct["requested"])
    if not direct["written"] or (is_alone and not direct["asked"]):
        batch.change_head(direct={**direct, "written": True, "asked": direct["asked"] or is_alone})


def no_reader_error() -> Forbidden:
    """Returns the error for a person whose message nobody would read.

    It does not tell whether the other people have not accepted, have left, or have blocked the person.
    """
    return Forbidden("Nobody else is in this conversation now. You can write again when somebody has joined it.")


def announce_change(batch: Batch, user_ids: list[str]) -> None:
    """Sends these people the event that the conversation has changed."""
    for user_id in user_ids:
        batch.add_outbox_row(conversations_stream(batch.head["org"], user_id), CHANGED, batch.stream.id)
