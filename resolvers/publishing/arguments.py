"""Where a scheduled post goes: who may send it there, and whether every target takes it."""

from collections.abc import Iterable, Sequence

from resolvers.access import joined_topic, require
from resolvers.context import Info
from storage.errors import BadUserInput, Conflict
from storage.identity.records import Role
from storage.publishing.networks import HOME_FEED_LIMITS, POST_LIMITS, TOPIC_LIMITS, PostLimits, limit_violation
from storage.publishing.records import AccountTarget, HomeFeedTarget, ScheduledMedia, Target, TopicTarget

MAX_TARGETS = 50


async def topic_targets(info: Info, ids: Iterable[str]) -> list[Target]:
    """Topics of joined communities. Raises: NotFound, Forbidden."""
    topics = [await joined_topic(info, id_) for id_ in _checked(ids, "toTopicIds")]
    return [TopicTarget(topic.id, topic.community_id) for topic in topics]


async def account_targets(info: Info, ids: Iterable[str]) -> list[Target]:
    """Connected accounts. Raises: Forbidden, NotFound, Conflict for one that was disconnected."""
    wanted = _checked(ids, "toAccountIds")
    if not wanted:
        return []
    viewer = require(info, Role.OPERATOR)
    accounts = [await info.context.stores.accounts.get(viewer.organization_id, id_) for id_ in wanted]
    if any(account.disconnected_at is not None for account in accounts):
        raise Conflict("The account was disconnected.")
    return [AccountTarget(account.id, account.network) for account in accounts]


def _checked(ids: Iterable[str], field: str) -> list[str]:
    distinct = list(dict.fromkeys(ids))
    if len(distinct) > MAX_TARGETS:
        raise BadUserInput(field, f"at most {MAX_TARGETS} ids")
    return distinct


def check_targets(targets: Sequence[Target], text: str, media: Sequence[ScheduledMedia]) -> None:
    """Raises: BadUserInput for no target at all, and for a post that one of them does not take."""
    if not targets:
        raise BadUserInput("toHomeFeed", "at least one of toHomeFeed, toTopicIds and toAccountIds")
    kinds = [each.kind for each in media]
    for target in targets:
        name, allowance = _allowance(target)
        wrong = limit_violation(allowance, text, kinds)
        if wrong is not None:
            raise BadUserInput(wrong[0], f"for {name}: {wrong[1]}")


def _allowance(target: Target) -> tuple[str, PostLimits]:
    match target:
        case AccountTarget(_, network):
            return network.value, POST_LIMITS[network]
        case TopicTarget():
            return "a topic", TOPIC_LIMITS
        case HomeFeedTarget():
            return "the home feed", HOME_FEED_LIMITS
