"""Carries out decisions about reports: removes content, bans people.

A decision is first committed, with the time until which the same process has to carry it out. If the process dies, a
worker carries the decision out. Carrying out a decision twice is harmless.
"""

import structlog

from storage.chat.communities import CommunityStore
from storage.chat.messages import MessageStore
from storage.chat.moderation import ModerationStore
from storage.chat.roles import Moderator
from storage.errors import DomainError, Unavailable
from storage.feed.content_reports.records import ContentReport, ContentReportDecision, ContentReportSubject
from storage.feed.content_reports.store import ContentReportStore
from storage.feed.posts import PostStore
from storage.identity.administration import UserAdministration
from storage.identity.audit import Actor
from storage.ids import message_key, post_key
from storage.redis.queue import FAN_OUT, JobQueue

log = structlog.get_logger(__name__)


class ContentReportEffects:
    """Carries out decisions by the operations that moderators and administrators also use directly."""

    def __init__(
        self,
        reports: ContentReportStore,
        communities: CommunityStore,
        moderation: ModerationStore,
        messages: MessageStore,
        posts: PostStore,
        administration: UserAdministration,
        queue: JobQueue,
    ) -> None:
        self._reports = reports
        self._communities = communities
        self._moderation = moderation
        self._messages = messages
        self._posts = posts
        self._administration = administration
        self._queue = queue

    async def carry_out(self, report: ContentReport, actor: Actor | None = None) -> None:
        """Carries out the decision of a report. If that is temporarily impossible, a worker does it later.

        If the moderator has lost the right, or the content no longer exists, stores the reason with the report.
        """
        failure: str | None = None
        try:
            await self._apply(report, actor or _moderator_actor(report))
        except Unavailable as error:
            log.warning("report_effect_delayed", report=report.id, error=error.message)
            return
        except DomainError as error:
            failure = error.message
        await self._reports.finish_effect(report.id, failure)

    async def sweep(self, limit: int) -> int:
        """Carries out decisions that were not carried out in time. Returns their number, at most `limit`."""
        for count in range(limit):
            report = await self._reports.claim_effect()
            if report is None:
                return count
            await self.carry_out(report)
        return limit

    async def _apply(self, report: ContentReport, actor: Actor) -> None:
        match report.decision, report.subject:
            case ContentReportDecision.REMOVE, ContentReportSubject.MESSAGE:
                await self._messages.delete(message_key(report.subject_id), _moderator(report, actor))
            case ContentReportDecision.REMOVE, ContentReportSubject.POST:
                await self._delete_post(report, actor)
            case ContentReportDecision.BAN, _ if report.community_id is not None:
                await self._ban(report, actor)
            case ContentReportDecision.BAN, _:
                await self._administration.deactivate(actor, report.author_id, report.note or "")

    async def _delete_post(self, report: ContentReport, actor: Actor) -> None:
        key = post_key(report.organization_id, report.subject_id)
        await self._posts.delete(key, _moderator(report, actor))
        await self._queue.enqueue(FAN_OUT, "feed.fan_out", key.organization_id, key.timestamp)

    async def _ban(self, report: ContentReport, actor: Actor) -> None:
        assert report.community_id is not None
        community = await self._communities.get(report.organization_id, report.community_id)
        moderator = _moderator(report, actor)
        await self._moderation.ban_member(community, moderator, report.author_id, report.ban_until, report.note or "")


def _moderator_actor(report: ContentReport) -> Actor:
    assert report.decided_by_id is not None
    return Actor(report.organization_id, report.decided_by_id)


def _moderator(report: ContentReport, actor: Actor) -> Moderator:
    """Returns the person who decided, whose right is checked again."""
    return Moderator(actor.user_id, report.decided_by_admin, actor)
