"""Publications: their targets, their retry by a person, and their events in jobEvents."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import strawberry
from strawberry import ID, UNSET, Parent

from resolvers.access import granted_roles, require_member
from resolvers.arguments import text_or_none
from resolvers.context import Context, Info
from resolvers.events import Event, JobEventView
from resolvers.idempotency import KEY_DESCRIPTION
from resolvers.publishing.posts import may_see
from storage.chat.records import Topic
from storage.errors import Forbidden
from storage.idempotency import idempotency_key as idempotency_key_of
from storage.identity.records import User
from storage.publishing.records import AccountTarget, ConnectedAccount, HomeFeedTarget, Publication, TopicTarget
from storage.publishing.reports.records import PublicationReport
from storage.redis.queue import PUBLISHING


@dataclass(frozen=True, slots=True)
class PublicationEvent(Event):
    """A change of a publication. `kind` is the event's GraphQL type."""

    kind: str
    publication: Publication


@dataclass(frozen=True, slots=True)
class PublicationReportEvent(Event):
    """A report of a publication. `kind` is the event's GraphQL type."""

    kind: str
    report: PublicationReport


JOB_EVENT_VIEWS = {
    "PublicationChanged": JobEventView(
        record=PublicationEvent,
        may_see=lambda viewer, roles, publication: may_see(viewer, roles, publication.author_id),
        job_ids=lambda publication: [publication.scheduled_post_id],
    ),
    "PublicationReported": JobEventView(
        record=PublicationReportEvent,
        may_see=lambda viewer, roles, report: may_see(viewer, roles, report.post.author_id),
        job_ids=lambda report: [report.post.id],
    ),
}


async def is_visible_job(context: Context, viewer: User, job_id: str) -> bool:
    """Returns whether the id belongs to a scheduled post. Raises: Forbidden if the viewer may not see the post."""
    post = await context.stores.scheduled_posts.find(viewer.organization_id, job_id)
    if post is not None and not may_see(viewer, granted_roles(context), post.author_id):
        raise Forbidden("A scheduled post is visible only to its author and to an OPERATOR.")
    return post is not None


async def retry_publication(
    info: Info,
    publication_id: Annotated[ID, strawberry.argument(description="Id of the publication.")],
    idempotency_key: Annotated[str | None, strawberry.argument(description=KEY_DESCRIPTION)] = UNSET,
) -> Publication:
    """Schedules a publication again, due at once, of which nothing was published."""
    viewer, stores = require_member(info), info.context.stores
    publication = await stores.scheduled_posts.publication(viewer.organization_id, publication_id)
    if not may_see(viewer, granted_roles(info.context), publication.author_id):
        raise Forbidden("A publication is visible only to its author and to an OPERATOR.")
    key, arguments = text_or_none(idempotency_key), {"publication_id": publication_id}
    used_key = idempotency_key_of(viewer.organization_id, viewer.id, "retryPublication", key, arguments)
    retried = await stores.scheduled_posts.retry(publication, info.context.actor, used_key)
    # A sweeper finds the publication if the job is lost.
    await stores.queue.enqueue(PUBLISHING, "publishing.wake", retried.scheduled_post_id, retried.fence)
    return retried


async def home_author(root: Parent[HomeFeedTarget], info: Info) -> User:
    """Returns the author whose followers receive the post."""
    return (await home_authors([root], info))[0]


async def home_authors(targets: Sequence[HomeFeedTarget], info: Info) -> list[User]:
    """Returns the author of each target."""
    ids = [each.author_id for each in targets]
    return await info.context.stores.users.get_all(require_member(info).organization_id, ids)


async def topic(root: Parent[TopicTarget], info: Info) -> Topic | None:
    """Returns the topic, or None if the viewer may not see it."""
    return (await topics([root], info))[0]


async def topics(targets: Sequence[TopicTarget], info: Info) -> list[Topic | None]:
    """Returns the topic of each target, or None if the viewer may not see it.

    Reads topics and rights at the same time, since a target names the community of its topic.
    """
    viewer, stores = require_member(info), info.context.stores
    found, visible = await asyncio.gather(
        stores.topics.find_many({each.topic_id for each in targets}),
        stores.communities.with_visible_topics(
            {each.community_id for each in targets}, info.context.joined_communities
        ),
    )
    shown = {
        id_: topic
        for id_, topic in found.items()
        if topic.organization_id == viewer.organization_id and topic.community_id in visible
    }
    return [shown.get(each.topic_id) for each in targets]


async def account(root: Parent[AccountTarget], info: Info) -> ConnectedAccount:
    """Returns the account, also if it is disconnected."""
    return (await accounts([root], info))[0]


async def accounts(targets: Sequence[AccountTarget], info: Info) -> list[ConnectedAccount]:
    """Returns the account of each target."""
    ids = [each.account_id for each in targets]
    return await info.context.stores.accounts.get_all(require_member(info).organization_id, ids)
