"""Validation of scheduled posts from clients: each field, the targets, and the limits of every target."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from resolvers.access import require_joined_topic, require_role
from resolvers.arguments import checked_text, checked_time_zone
from resolvers.context import Info
from resolvers.files.attachments import checked_attachments
from resolvers.publishing.addresses import checked_web_address
from resolvers.publishing.inputs import (
    NewScheduledPostInput,
    ScheduledMediaInput,
    UpdateScheduledPostInput,
)
from resolvers.publishing.times import new_due_moment
from storage.errors import BadUserInput, Conflict
from storage.files.attachments import NewAttachment
from storage.identity.records import User
from storage.identity.roles import Role
from storage.publishing.editing import ScheduledPostEdit
from storage.publishing.network_files import FILE_LIMITS
from storage.publishing.networks import HOME_FEED_LIMITS, POST_LIMITS, TOPIC_LIMITS, PostLimits, limit_violation
from storage.publishing.records import (
    AccountTarget,
    HomeFeedTarget,
    ScheduledMedia,
    ScheduledPost,
    Target,
    TopicTarget,
)
from storage.publishing.scheduling import NewScheduledPost

MAX_TEXT_CHARS = 10_000
MAX_ALT_TEXT_CHARS = 1500
MAX_MEDIA = 20
MAX_TARGETS = 50
MAX_LATENESS_S = 7 * 86_400


async def new_scheduled_post(
    info: Info, viewer: User, input: NewScheduledPostInput, due_at: datetime, zone: str
) -> NewScheduledPost:
    """Returns the validated post. Raises: BadUserInput, NotFound, Forbidden, Conflict."""
    media = _media(input.media)
    attachments = await checked_attachments(info, input.attachments)
    targets = _home_feed(viewer, input.to_home_feed)
    targets += await _topics(info, input.to_topic_ids)
    targets += await _accounts(info, input.to_account_ids)
    new = NewScheduledPost(
        organization_id=viewer.organization_id,
        author_id=viewer.id,
        text=_text(input.text, bool(media or attachments)),
        media=media,
        targets=targets,
        due_at=due_at,
        time_zone=zone,
        max_lateness_s=checked_max_lateness_s(input.max_lateness_s),
        attachments=attachments,
    )
    check_targets(targets, new.text, media, has_files=bool(attachments))
    if attachments:
        _check_files_are_fetched(info, targets)
    return new


async def scheduled_post_edit(
    info: Info, viewer: User, post: ScheduledPost, input: UpdateScheduledPostInput
) -> ScheduledPostEdit:
    """Returns the validated edit. The edited post as a whole must fit its targets. Raises: as new_scheduled_post."""
    zone = checked_time_zone(input.time_zone) if isinstance(input.time_zone, str) else None
    media = _media(input.media) if isinstance(input.media, list) else None
    new_text = input.text if isinstance(input.text, str) else None
    targets = await _edited_targets(info, viewer, post, input)
    due_at = new_due_moment(input.due_at, input.due_at_local, zone or post.time_zone)
    edited_media = post.media if media is None else media
    attachments = await _edited_attachments(info, post, input)
    has_files = bool(post.attachments if attachments is None else attachments)
    edited_text = _text(post.text if new_text is None else new_text, bool(edited_media) or has_files)
    check_targets(targets, edited_text, edited_media, has_files=has_files)
    if has_files:
        _check_files_are_fetched(info, targets)
    lateness_s = checked_max_lateness_s(input.max_lateness_s) if isinstance(input.max_lateness_s, int) else None
    return ScheduledPostEdit(new_text, media, targets, due_at, zone, lateness_s, attachments, post.revision)


async def _edited_attachments(
    info: Info, post: ScheduledPost, input: UpdateScheduledPostInput
) -> Sequence[NewAttachment] | None:
    """Returns all files of the edited post; None if the input leaves them out."""
    if not isinstance(input.attachments, list):
        return None
    return await checked_attachments(info, input.attachments, {each.file_id for each in post.attachments})


async def _edited_targets(
    info: Info, viewer: User, post: ScheduledPost, input: UpdateScheduledPostInput
) -> list[Target]:
    """Returns all targets of the edited post. Targets of a kind that the input leaves out do not change."""
    targets = [each.target for each in await info.context.stores.scheduled_posts.publications_of(post.id)]
    home: Sequence[Target] = [each for each in targets if isinstance(each, HomeFeedTarget)]
    topics: Sequence[Target] = [each for each in targets if isinstance(each, TopicTarget)]
    accounts: Sequence[Target] = [each for each in targets if isinstance(each, AccountTarget)]
    if isinstance(input.to_home_feed, bool):
        home = _home_feed(viewer, input.to_home_feed)
    if isinstance(input.to_topic_ids, list):
        topics = await _topics(info, input.to_topic_ids)
    if isinstance(input.to_account_ids, list):
        accounts = await _accounts(info, input.to_account_ids)
    return [*home, *topics, *accounts]


def _home_feed(viewer: User, is_target: bool) -> list[Target]:
    return [HomeFeedTarget(viewer.id)] if is_target else []


async def _topics(info: Info, ids: Iterable[str]) -> list[Target]:
    """Returns the topics, whose communities the viewer must have joined. Raises: NotFound, Forbidden."""
    topics = [await require_joined_topic(info, id_) for id_ in _distinct("toTopicIds", ids)]
    if any(topic.is_conversation for topic in topics):
        # OPERATORs see scheduled posts. Nobody may learn from one that a conversation exists.
        raise BadUserInput("toTopicIds", "topics of communities; nothing can be scheduled to a conversation")
    if any(topic.thread_parent is not None for topic in topics):
        raise BadUserInput("toTopicIds", "topics of communities; nothing can be scheduled to a thread")
    return [TopicTarget(topic.id, topic.community_id) for topic in topics]


async def _accounts(info: Info, ids: Iterable[str]) -> list[Target]:
    """Returns the accounts, which must be connected. Raises: Forbidden, NotFound; Conflict for a disconnected one."""
    account_ids = _distinct("toAccountIds", ids)
    if not account_ids:
        return []
    viewer = require_role(info, Role.OPERATOR)
    accounts = [await info.context.stores.accounts.get(viewer.organization_id, id_) for id_ in account_ids]
    for account in accounts:
        if account.disconnected_at is not None:
            raise Conflict(f"The account {account.name!r} is disconnected. Choose a connected one.")
    return [AccountTarget(account.id, account.network) for account in accounts]


def _distinct(field: str, ids: Iterable[str]) -> list[str]:
    distinct = list(dict.fromkeys(ids))
    if len(distinct) > MAX_TARGETS:
        raise BadUserInput(field, f"at most {MAX_TARGETS} ids, not {len(distinct)}")
    return distinct


def _text(value: str, may_be_empty: bool) -> str:
    return checked_text("text", value, 0 if may_be_empty else 1, MAX_TEXT_CHARS)


def _media(media: Sequence[ScheduledMediaInput]) -> list[ScheduledMedia]:
    if len(media) > MAX_MEDIA:
        raise BadUserInput("media", f"at most {MAX_MEDIA} media, not {len(media)}")
    return [
        ScheduledMedia(
            checked_web_address("url", each.url),
            checked_text("altText", each.alt_text, 0, MAX_ALT_TEXT_CHARS),
            each.kind,
        )
        for each in media
    ]


def checked_max_lateness_s(seconds: int) -> int:
    """Returns the number of seconds if it is allowed. Raises: BadUserInput."""
    if not 1 <= seconds <= MAX_LATENESS_S:
        raise BadUserInput("maxLatenessS", f"a number of seconds from 1 to {MAX_LATENESS_S}, not {seconds}")
    return seconds


def check_targets(
    targets: Sequence[Target], text: str, media: Sequence[ScheduledMedia], *, has_files: bool = False
) -> None:
    """Checks that there is a target, and that the post is within the limits of each target. Raises: BadUserInput.

    With files, the limits of networks are checked when the post is stored, since they depend on the files.
    """
    if not targets:
        raise BadUserInput("toHomeFeed", "at least one target in toHomeFeed, toTopicIds or toAccountIds")
    kinds = [each.kind for each in media]
    for target in targets:
        if has_files and isinstance(target, AccountTarget):
            continue
        name, limits = _limits(target)
        violation = limit_violation(limits, text, kinds)
        if violation is not None:
            field, expected = violation
            raise BadUserInput(field, f"{expected} (for {name})")


def _check_files_are_fetched(info: Info, targets: Sequence[Target]) -> None:
    """Raises BadUserInput if a network has to fetch files from this server, but cannot reach it."""
    networks = {each.network for each in targets if isinstance(each, AccountTarget)}
    fetching = sorted(each.value for each in networks if FILE_LIMITS[each].is_fetched)
    if fetching and not info.context.has_public_address:
        raise BadUserInput(
            "attachments",
            f"no files for {' and '.join(fetching)}, which fetch files from this server, because it has no public "
            "address; give addresses of media, or ask the operator to set NOROSHI_PUBLIC_URL",
        )


def _limits(target: Target) -> tuple[str, PostLimits]:
    match target:
        case AccountTarget(_, network):
            return network.value, POST_LIMITS[network]
        case TopicTarget():
            return "a topic", TOPIC_LIMITS
        case HomeFeedTarget():
            return "the home feed", HOME_FEED_LIMITS
