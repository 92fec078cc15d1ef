"""Search of topics. A result is always compared with the stored topic and with the present memberships."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from storage.chat.communities import CommunityStore
from storage.chat.records import Topic
from storage.chat.search.documents import TopicTermsId
from storage.chat.search.terms import TOPIC_TERMS
from storage.chat.topics import TopicStore
from storage.mongo import Mongo
from storage.mongo.text_index.clauses import ExcerptFragment, SearchClause, excerpt, find_matches
from storage.mongo.text_index.pages import SearchFilter, SearchPage, read_matches
from storage.mongo.text_index.term_index import TermIndex, TermQuery
from storage.timeline import TimelineRange


@dataclass(frozen=True, slots=True)
class TopicMatch:
    """A topic whose title matches a query."""

    topic: Topic
    excerpt: Sequence[ExcerptFragment]


@dataclass(frozen=True, slots=True)
class TopicSearch:
    """Finds topics of communities by their titles."""

    mongo: Mongo
    topics: TopicStore
    communities: CommunityStore

    async def page(
        self,
        organization_id: str,
        user_id: str,
        filter_: SearchFilter,
        range_: TimelineRange,
        community_id: str | None = None,
    ) -> SearchPage[TopicMatch]:
        """Returns a page of the topics of the communities that the user has joined, by creation, also archived ones.

        `community_id` limits the search to one community.
        """
        places = await self.communities.joined_by(organization_id, user_id, community_id)

        async def resolve(ids: Sequence[TopicTermsId]) -> list[TopicMatch | None]:
            topics = await self.topics.find_many([id_["t"] for id_ in ids])
            return [_match(topics.get(id_["t"]), places, filter_.clauses) for id_ in ids]

        query = TermQuery(sorted(places), filter_.terms)
        bounds = (filter_.low, filter_.high)
        return await read_matches(TermIndex(self.mongo, TOPIC_TERMS), query, range_, bounds, resolve)


def _match(topic: Topic | None, places: Collection[str], clauses: Sequence[SearchClause]) -> TopicMatch | None:
    """Returns the match of a topic; None if the topic is in none of the communities, or does not match."""
    if topic is None or topic.community_id not in places:
        return None
    found = find_matches(clauses, topic.title)
    return None if found is None else TopicMatch(topic, excerpt(topic.title, found))
