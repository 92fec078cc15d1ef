"""Unknown outcomes: what a person looks for at the account, and the mutation that stores the person's answer."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

import strawberry
from strawberry import ID, UNSET, Parent

from resolvers.access import granted_roles, require_member
from resolvers.arguments import checked_text, text_or_none
from resolvers.context import Info
from resolvers.idempotency import KEY_DESCRIPTION
from resolvers.publishing.addresses import checked_web_address
from resolvers.publishing.posts import may_see
from storage.errors import BadUserInput, Forbidden
from storage.idempotency import IdempotencyKey
from storage.idempotency import idempotency_key as idempotency_key_of
from storage.identity.records import User
from storage.publishing.profiles import profile_url
from storage.publishing.records import (
    AccountTarget,
    ConnectedAccount,
    Publication,
    PublicationState,
    ScheduledPost,
)
from storage.publishing.resolution import PersonalAnswer
from storage.redis.queue import PUBLISHING

MAX_EXTERNAL_ID_CHARS = 500
TEXT_START_CHARS = 100


@dataclass(frozen=True, slots=True)
class OutcomeCheck:
    """Facts by which a person finds the post of an UNKNOWN publication at its account."""

    account: ConnectedAccount
    profile_url: str | None
    text_start: str
    first_call_at: datetime
    last_call_at: datetime
    next_lookup_at: datetime | None


async def outcome_check(root: Parent[Publication], info: Info) -> OutcomeCheck | None:
    """Returns what a person looks for; None unless the publication is UNKNOWN."""
    return (await outcome_checks([root], info))[0]


async def outcome_checks(publications: Sequence[Publication], info: Info) -> list[OutcomeCheck | None]:
    """Returns for each publication what a person looks for. Reads the accounts and the posts of all at once."""
    viewer, stores = require_member(info), info.context.stores
    unknown = [each for each in publications if each.state is PublicationState.UNKNOWN]
    if not unknown:
        return [None] * len(publications)
    ids = [each.target.account_id for each in unknown if isinstance(each.target, AccountTarget)]
    accounts = {each.id: each for each in await stores.accounts.get_all(viewer.organization_id, ids)}
    posts = {each.id: each for each in await stores.scheduled_posts.get_many([p.scheduled_post_id for p in unknown])}
    return [_check_of(each, accounts, posts) for each in publications]


def _check_of(
    publication: Publication, accounts: dict[str, ConnectedAccount], posts: dict[str, ScheduledPost]
) -> OutcomeCheck | None:
    progress, target = publication.progress, publication.target
    if publication.state is not PublicationState.UNKNOWN or progress is None or not isinstance(target, AccountTarget):
        return None
    account, post = accounts[target.account_id], posts[publication.scheduled_post_id]
    return OutcomeCheck(
        account=account,
        profile_url=profile_url(account),
        text_start=post.text[:TEXT_START_CHARS],
        first_call_at=progress.first_at or progress.at,
        last_call_at=progress.at,
        next_lookup_at=publication.wake_at,
    )


async def resolve_publication(
    info: Info,
    id: Annotated[ID, strawberry.argument(description="Id of the publication.")],
    published: Annotated[bool, strawberry.argument(description="Whether the post was published to the account.")],
    external_id: Annotated[
        str | None,
        strawberry.argument(description="The network's id of the post, if it was published; 1 to 500 characters."),
    ] = UNSET,
    url: Annotated[
        str | None,
        strawberry.argument(description="Public address of the post, if it was published; http or https."),
    ] = UNSET,
    publish_again: Annotated[
        bool,
        strawberry.argument(
            description="Whether to publish the post again at once, if it was not published, even after "
            "`maxLatenessS`. The publication is then SCHEDULED, and has `maxLatenessS` from now. Without this, it is "
            "FAILED."
        ),
    ] = False,
    last_call_at: Annotated[
        datetime | None,
        strawberry.argument(
            description="`lastCallAt` of the `outcomeCheck` by which the person has looked. CONFLICT if the network "
            "was called again since, and the answer is that the post was not published."
        ),
    ] = UNSET,
    idempotency_key: Annotated[str | None, strawberry.argument(description=KEY_DESCRIPTION)] = UNSET,
) -> Publication:
    """Stores the answer of a person about an UNKNOWN publication, and wakes a worker if it is published again."""
    viewer, stores = require_member(info), info.context.stores
    publication = await stores.scheduled_posts.publication(viewer.organization_id, id)
    if not may_see(viewer, granted_roles(info.context), publication.author_id):
        raise Forbidden("A publication is visible only to its author and to an OPERATOR.")
    answer = _checked_answer(published, external_id, url, publish_again, last_call_at)
    key = _answer_key(viewer, id, answer, text_or_none(idempotency_key))
    resolved = await stores.scheduled_posts.resolve(publication, answer, info.context.actor, key)
    if resolved.state is PublicationState.SCHEDULED:
        # A sweeper finds the publication if the job is lost.
        await stores.queue.enqueue(PUBLISHING, "publishing.wake", resolved.scheduled_post_id, resolved.fence)
    return resolved


def _checked_answer(
    published: bool, external_id: str | None, url: str | None, publish_again: bool, last_call_at: datetime | None
) -> PersonalAnswer:
    network_id, address = text_or_none(external_id), text_or_none(url)
    if published and publish_again:
        raise BadUserInput("publishAgain", "false for a post that was published")
    if network_id is not None:
        network_id = checked_text("externalId", network_id, 1, MAX_EXTERNAL_ID_CHARS)
    if address is not None:
        address = checked_web_address("url", address)
    seen = last_call_at if isinstance(last_call_at, datetime) else None
    return PersonalAnswer(published, network_id, address, publish_again, seen)


def _answer_key(viewer: User, id_: str, answer: PersonalAnswer, key: str | None) -> IdempotencyKey | None:
    seen = answer.last_call_at
    arguments = {
        "id": id_,
        "published": answer.is_published,
        "external_id": answer.external_id,
        "url": answer.url,
        "publish_again": answer.publishes_again,
        "last_call_at": None if seen is None else seen.isoformat(),
    }
    return idempotency_key_of(viewer.organization_id, viewer.id, "resolvePublication", key, arguments)
