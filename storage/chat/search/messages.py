"""Search of messages. A result is always compared with the stored message and with the present memberships."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from storage.chat.communities import CommunityStore
from storage.chat.messages import MessageStore
from storage.chat.records import Message, Topic
from storage.chat.search.terms import MESSAGE_TERMS
from storage.chat.topics import TopicStore
from storage.ids import MessageDocumentId, MessageKey
from storage.mongo import Mongo
from storage.mongo.text_index.clauses import ExcerptFragment, SearchClause, excerpt, find_matches
from storage.mongo.text_index.pages import SearchFilter, SearchPage, read_matches
from storage.mongo.text_index.term_index import TermIndex, TermQuery
from storage.timeline import TimelineRange


@dataclass(frozen=True, slots=True)
class MessageMatch:
    """A message that matches a query."""

    message: Message
    topic: Topic
    excerpt: Sequence[ExcerptFragment]


@dataclass(frozen=True, slots=True)
class MessageSearch:
    """Finds messages."""

    mongo: Mongo
    messages: MessageStore
    topics: TopicStore
    communities: CommunityStore

    async def page(
        self,
        organization_id: str,
        user_id: str,
        blocked: frozenset[str],
        filter_: SearchFilter,
        range_: TimelineRange,
        community_id: str | None = None,
    ) -> SearchPage[MessageMatch]:
        """Returns a page of the messages that the user may see now.

        These are messages of communities that the user has joined, and of conversations that the user has joined or is
        asked to join. Messages of blocked users are left out, as are tombstones. `community_id` limits the search to
        one community or conversation.
        """
        places = await self.communities.joined_by(organization_id, user_id, community_id)
        index = TermIndex(self.mongo, MESSAGE_TERMS)

        async def resolve(ids: Sequence[MessageDocumentId]) -> list[MessageMatch | None]:
            keys = [MessageKey(id_["t"], id_["ts"]) for id_ in ids]
            messages = await self.messages.find_many(keys)
            topics = await self.topics.find_many({key.topic_id for key in keys})
            visible = {
                id_: topic
                for id_, topic in topics.items()
                if topic.community_id in places and topic.organization_id == organization_id
            }
            return [_match(messages.get(key), visible, blocked, filter_.clauses) for key in keys]

        query = TermQuery(sorted(places), filter_.terms)
        return await read_matches(index, query, range_, (filter_.low, filter_.high), resolve)


def _match(
    message: Message | None, topics: Mapping[str, Topic], blocked: frozenset[str], clauses: Sequence[SearchClause]
) -> MessageMatch | None:
    """Returns the match of a message in one of the topics; None if it does not match, or must not be seen."""
    if message is None or message.deleted_at is not None or message.author_id in blocked:
        return None
    topic = topics.get(message.topic_id)
    found = find_matches(clauses, message.text)
    if topic is None or found is None:
        return None
    return MessageMatch(message, topic, excerpt(message.text, found))
