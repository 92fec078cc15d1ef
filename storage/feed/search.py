"""Search of posts. A result is always compared with the stored post."""

from collections.abc import Sequence
from dataclasses import dataclass

from storage.feed.changes import POST_TERMS
from storage.feed.posts import PostStore
from storage.feed.records import Post
from storage.ids import PostDocumentId
from storage.mongo import Mongo
from storage.mongo.text_index.clauses import ExcerptFragment, excerpt, find_matches
from storage.mongo.text_index.pages import SearchFilter, SearchPage, read_matches
from storage.mongo.text_index.term_index import TermIndex, TermQuery
from storage.timeline import TimelineRange


@dataclass(frozen=True, slots=True)
class PostMatch:
    """A post that matches a query."""

    post: Post
    excerpt: Sequence[ExcerptFragment]


@dataclass(frozen=True, slots=True)
class PostSearch:
    """Finds posts."""

    mongo: Mongo
    posts: PostStore

    async def page(
        self, organization_id: str, hidden: frozenset[str], filter_: SearchFilter, range_: TimelineRange
    ) -> SearchPage[PostMatch]:
        """Returns a page of the organization's posts, without deleted ones and those of the authors `hidden`."""
        index = TermIndex(self.mongo, POST_TERMS, "_id.o")

        async def resolve(ids: Sequence[PostDocumentId]) -> list[PostMatch | None]:
            posts = await self.posts.by_timestamp(organization_id, [id_["ts"] for id_ in ids])
            return [_match(posts.get(id_["ts"]), hidden, filter_) for id_ in ids]

        query = TermQuery([organization_id], filter_.terms)
        return await read_matches(index, query, range_, (filter_.low, filter_.high), resolve)


def _match(post: Post | None, hidden: frozenset[str], filter_: SearchFilter) -> PostMatch | None:
    """Returns the match of a post; None if it was deleted, if its author is hidden, or if it does not match."""
    if post is None or post.author_id in hidden:
        return None
    found = find_matches(filter_.clauses, post.text)
    return None if found is None else PostMatch(post, excerpt(post.text, found))
