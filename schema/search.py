"""GraphQL types and root fields of search."""

import strawberry

import resolvers.search.messages
import resolvers.search.people
import resolvers.search.posts
import resolvers.search.topics
from schema.binding import field
from schema.chat.communities import Topic
from schema.chat.messages import Message
from schema.feed.posts import Post
from schema.identity import User
from schema.timeline import PageMixin, Timeline
from storage.timeline import Timestamp

SEARCHED_TO = (
    "Null if the page is complete. Otherwise the search stopped at this timestamp to stay within its time, because the "
    "words are common but rarely occur together. To continue, pass it as the next bound."
)


@strawberry.type(description="A part of an excerpt. The parts follow each other without a gap.")
class ExcerptFragment:
    text: str = strawberry.field(description="Text of the part, as written.")
    is_match: bool = strawberry.field(description="Whether the part matches the query, and should be highlighted.")


@strawberry.type(description="A message that matches a query.")
class MessageMatch:
    message: Message = strawberry.field(description="The message as it is now.")
    topic: Topic = strawberry.field(description="Topic or conversation of the message.")
    excerpt: list[ExcerptFragment] = strawberry.field(
        description="About 200 characters of the text around the first match. An ellipsis stands for text that is left "
        "out. Empty for a message without text."
    )


@strawberry.type(description="A page of messages that match a query, ordered by the messages' timestamps.")
class MessageMatchTimeline(PageMixin, Timeline):
    items: list[MessageMatch] = strawberry.field(
        description="Items of the page, in the requested order. Items with the timestamp of the last one belong to the "
        "page too, even beyond `limit`."
    )
    searched_to: Timestamp | None = strawberry.field(description=SEARCHED_TO)


@strawberry.type(description="A topic whose title matches a query.")
class TopicMatch:
    topic: Topic = strawberry.field(description="The topic.")
    excerpt: list[ExcerptFragment] = strawberry.field(description="The title, in parts.")


@strawberry.type(description="A page of topics whose titles match a query, ordered by their creation.")
class TopicMatchTimeline(PageMixin, Timeline):
    items: list[TopicMatch] = strawberry.field(description="Items of the page, in the requested order.")
    searched_to: Timestamp | None = strawberry.field(description=SEARCHED_TO)


@strawberry.type(description="A post that matches a query.")
class PostMatch:
    post: Post = strawberry.field(description="The post.")
    excerpt: list[ExcerptFragment] = strawberry.field(
        description="About 200 characters of the text around the first match. An ellipsis stands for text that is left "
        "out. Empty for a post without text."
    )


@strawberry.type(description="A page of posts that match a query, ordered by time.")
class PostMatchTimeline(PageMixin, Timeline):
    items: list[PostMatch] = strawberry.field(description="Items of the page, in the requested order.")
    searched_to: Timestamp | None = strawberry.field(description=SEARCHED_TO)


@strawberry.type(description="A person who matches a query.")
class PersonMatch:
    user: User = strawberry.field(description="The person.")
    name_excerpt: list[ExcerptFragment] = strawberry.field(description="The display name, in parts.")
    handle_excerpt: list[ExcerptFragment] = strawberry.field(description="The handle, in parts.")


@strawberry.type
class SearchQuery:
    search_messages: MessageMatchTimeline = field(
        resolvers.search.messages.search_messages,
        "Messages that match a query, among those that the viewer may see now: of joined communities and of the "
        "viewer's conversations. Deleted messages and messages of blocked users are never found. BAD_USER_INPUT for a "
        "query that is not understood, with the wrong part in `extensions.term`.",
        queries_per_object=True,
        scope="chat:read",
    )
    search_topics: TopicMatchTimeline = field(
        resolvers.search.topics.search_topics,
        "Topics whose titles match a query, among those of joined communities, also archived ones. BAD_USER_INPUT for "
        "a query that is not understood, with the wrong part in `extensions.term`.",
        queries_per_object=True,
        scope="chat:read",
    )
    search_posts: PostMatchTimeline = field(
        resolvers.search.posts.search_posts,
        "Posts of the organization that match a query, without those of blocked and muted authors. BAD_USER_INPUT for "
        "a query that is not understood, with the wrong part in `extensions.term`.",
        queries_per_object=True,
        scope="feed:read",
    )
    search_people: list[PersonMatch] = field(
        resolvers.search.people.search_people,
        "People of the organization whose handle or name matches a query, ordered by handle. Deactivated and blocked "
        "people are found, erased ones are not. BAD_USER_INPUT for a query that is not understood, with the wrong part "
        "in `extensions.term`.",
        scope="identity:read",
    )
