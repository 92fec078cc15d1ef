"""Publications to connected accounts: an intent is stored, then the network is called, then the result is stored.

What was cut off between intent and result is unknown, and never repeated blindly (docs/semantics.md, 5). Every step is
committed by the fence of this claim, so whoever lost it changes nothing.
"""

import asyncio
import random
from dataclasses import dataclass, replace
from weakref import WeakValueDictionary

import structlog

from jobs.providers.social.network import (
    Account,
    Author,
    NoEffect,
    NotPublished,
    OutgoingPost,
    Refused,
    SocialNetwork,
    Uncertain,
    Uploaded,
    UploadGone,
)
from jobs.providers.social.registry import Networks
from jobs.publishing.internal import FORBIDDEN
from jobs.publishing.leases import ClaimLease, keep_renewing, loop_time_s
from storage.identity.records import Role, with_included
from storage.publishing.networks import BEHAVIOURS, Behaviour, Certainty
from storage.publishing.records import AccountTarget, CallPhase, Publication, PublicationState, ScheduledPost
from storage.publishing.transitions import (
    CALL_LEASE_S,
    LEASE_S,
    MANUAL,
    PERSONS_LEASE_S,
    BeginAttempt,
    BeginReconciliation,
    ClaimLost,
    MarkFailed,
    MarkPublished,
    MarkUnknown,
    NotYetDue,
    PublicationChange,
    ReconciliationPolicy,
    ScheduleRetry,
    StoreUploadAndBegin,
)
from storage.secrets.credentials import CredentialsLost
from storage.stores import Stores

RETRY_S = (1.0, 2.0, 4.0, 8.0)
SETTLE_S = (2.0, 5.0, 15.0, 60.0, 300.0, 1800.0)
UPLOAD_MARGIN_S = 5.0
MAX_CALLS = 800
MAX_CALLS_OF_ACCOUNT = 400
"""More at once make each slower and none earlier, and one account that hangs must not hold up the others."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Call:
    """One publication with all that calling its network takes."""

    publication: Publication
    post: OutgoingPost
    account: Account
    network: SocialNetwork
    behaviour: Behaviour
    key: str
    since_s: float = 0.0
    """When its last step was asked for, by the loop's clock: the lease began then or later."""

    @property
    def lease_s(self) -> float:
        """How long the call is held without a renewal."""
        return PERSONS_LEASE_S if self.network.certainty(self.account) is Certainty.OPAQUE else CALL_LEASE_S

    @property
    def settling(self) -> ReconciliationPolicy:
        """How an unknown outcome of this call settles."""
        doubts = sum(each.outcome == "UNKNOWN" for each in self.publication.attempts)
        in_s = max(SETTLE_S[min(doubts, len(SETTLE_S) - 1)], self.behaviour.settle_s)
        if self.network.certainty(self.account) is Certainty.OPAQUE:
            return MANUAL
        return ReconciliationPolicy(in_s, self.behaviour.retention_s)


class Forbidden(Exception):
    """The author may not publish there now, or there is nothing to publish with."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class ExternalPublisher:
    """Publishes to networks, and settles what is unknown. One for each worker process."""

    def __init__(self, stores: Stores, networks: Networks) -> None:
        self._stores = stores
        self._networks = networks
        self._calls = asyncio.Semaphore(MAX_CALLS)
        self._of_account: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    async def publish(self, publication: Publication, post: ScheduledPost) -> None:
        """From scheduled and due, or from a safe place in publishing, to an outcome. Raises: Unavailable."""
        target = publication.target
        assert isinstance(target, AccountTarget)
        of_account = self._of_account.setdefault(target.account_id, asyncio.Semaphore(MAX_CALLS_OF_ACCOUNT))
        try:
            async with of_account, self._calls:
                outcome = await self._publish(publication, post)
            # The next call need not wait until this one's result is stored.
            if outcome is not None:
                await self._step(outcome)
        except ClaimLost:
            return

    async def doubt(self, publication: Publication, post: ScheduledPost) -> None:
        """What was cut off while the network was called is unknown from now on."""
        try:
            settling = (await self._prepare(publication, post)).settling
        except Forbidden:
            settling = MANUAL
        try:
            await self._step(MarkUnknown(publication, "The worker died during the call.", settling))
        except ClaimLost:
            return

    async def settle(self, publication: Publication, post: ScheduledPost) -> None:
        """Finds out what became of an unknown one, by its network's way."""
        try:
            await self._settle(publication, post)
        except ClaimLost:
            return

    async def upload_ahead(self, publication: Publication) -> Uploaded:
        """Uploads the media of what is not due yet. Raises: Forbidden, and as SocialNetwork.upload."""
        post = await self._stores.scheduled_posts.get(publication.organization_id, publication.scheduled_post_id)
        return await self._upload_media(await self._prepare(publication, post))

    async def _upload_media(self, call: Call) -> Uploaded:
        try:
            return await call.network.upload(call.account, call.post)
        except (Refused, NoEffect):
            raise
        except Exception as error:
            # Nothing is published by uploading, so it may be tried again whatever it was.
            log.error("network_fault", network=type(call.network).__name__, exc_info=error)
            raise NoEffect(f"Unexpected: {type(error).__name__}") from error

    async def _publish(self, publication: Publication, post: ScheduledPost) -> PublicationChange | None:
        """What came of it, to be stored; None when that is stored already."""
        try:
            call = await self._prepare(publication, post)
        except Forbidden as error:
            return MarkFailed(publication, error.code, str(error))
        is_ready = self._has_media(call)
        call = await self._begin(call, CallPhase.CALLING if is_ready else CallPhase.PREPARING)
        try:
            if not is_ready and call.publication.state is not PublicationState.FAILED:
                call = await self._upload(call)
            return None if call.publication.state is PublicationState.FAILED else await self._call(call)
        except Refused as error:
            return MarkFailed(call.publication, error.code, str(error))
        except (NoEffect, UploadGone) as error:
            return _again(call, error)
        except Uncertain as error:
            return MarkUnknown(call.publication, str(error), call.settling)

    async def _prepare(self, publication: Publication, post: ScheduledPost) -> Call:
        """All that calling takes; rights and account are looked at as they are now. Raises: Forbidden."""
        target, organization_id = publication.target, publication.organization_id
        assert isinstance(target, AccountTarget)
        # One after the other: a thousand that are due at once share each read, and no task is made for it.
        account = await self._stores.accounts.get(organization_id, target.account_id)
        author = await self._stores.users.get(organization_id, publication.author_id)
        if account.disconnected_at is not None:
            raise Forbidden(FORBIDDEN, "The account was disconnected.")
        if Role.OPERATOR not in with_included(author.roles):
            raise Forbidden(FORBIDDEN, "The author has no longer the role OPERATOR.")
        try:
            secret = await self._stores.accounts.open(account)
        except CredentialsLost as error:
            raise Forbidden("CREDENTIALS_LOST", str(error)) from None
        network = self._networks[target.network]
        step = publication.progress
        key = step.key if step is not None else network.new_key(publication.id, publication.due_at)
        outgoing = _outgoing(publication, post, Author(author.id, author.handle, author.name))
        opened = Account(account.id, account.base_url, secret)
        return Call(publication, outgoing, opened, network, BEHAVIOURS[target.network], key)

    def _has_media(self, call: Call) -> bool:
        """Whether nothing has to be uploaded any more."""
        if not call.post.media or call.behaviour.upload_lead_s is None:
            return True
        upload = call.publication.upload
        if upload is None:
            return False
        left_s = None if upload.expires_at is None else (upload.expires_at - call.publication.due_at).total_seconds()
        return left_s is None or left_s > UPLOAD_MARGIN_S

    async def _begin(self, call: Call, phase: CallPhase) -> Call:
        publication = call.publication
        while True:
            try:
                return await self._take(call, BeginAttempt(publication, phase, call.key, call.lease_s))
            except NotYetDue as early:
                await asyncio.sleep(early.wait_s)

    async def _upload(self, call: Call) -> Call:
        """Uploads what is missing at the due moment, and stores it with the intent. Raises: as SocialNetwork.upload."""
        publication = call.publication
        async with keep_renewing(lambda: self._stores.claims.renew(publication), LEASE_S / 3):
            uploaded = await self._upload_media(call)
        prepared = StoreUploadAndBegin(publication, uploaded.references, uploaded.expires_in_s, call.key, call.lease_s)
        return await self._take(call, prepared)

    async def _take(self, call: Call, change: PublicationChange) -> Call:
        """The same after a step, which begins a lease."""
        since_s = loop_time_s()
        return replace(call, publication=await self._step(change), since_s=since_s)

    def _lease(self, call: Call) -> ClaimLease:
        publication, lease_s = call.publication, call.lease_s
        return ClaimLease(lambda: self._stores.claims.renew(publication, lease_s), lease_s, call.since_s)

    async def _call(self, call: Call) -> MarkPublished:
        """The call itself. Raises: as SocialNetwork.publish, ClaimLost; what is unexpected is Uncertain."""
        upload = call.publication.upload
        references = () if upload is None else upload.references
        try:
            async with self._lease(call).kept():
                published = await call.network.publish(call.account, call.post, call.key, references)
        except (Refused, NoEffect, UploadGone, Uncertain, ClaimLost):
            raise
        except Exception as error:
            log.error("network_fault", network=type(call.network).__name__, exc_info=error)
            raise Uncertain(f"Unexpected: {type(error).__name__}") from error
        return MarkPublished(call.publication, published.external_id, published.url)

    async def _settle(self, publication: Publication, post: ScheduledPost) -> None:
        try:
            call = await self._prepare(publication, post)
        except Forbidden as error:
            await self._step(MarkUnknown(publication, str(error), MANUAL))
            return
        is_asked = call.network.certainty(call.account) is Certainty.QUERYABLE
        call = await self._take(call, BeginReconciliation(publication, call.settling, calls=not is_asked))
        outcome = await self._ask_again(call, is_asked)
        if outcome is not None:
            await self._step(outcome)

    async def _ask_again(self, call: Call, is_asked: bool) -> PublicationChange | None:
        """What is known now; None when it was left to a person."""
        held = call.publication
        if held.progress is None:
            return None
        try:
            return await (self._look_up(call) if is_asked else self._call(call))
        except (NoEffect, Uncertain) as error:
            return MarkUnknown(held, str(error), call.settling)
        except UploadGone as error:
            # The media may be gone because the first call used them.
            return MarkUnknown(held, str(error), MANUAL)
        except Refused as error:
            return _refused_again(call, error, is_asked)

    async def _look_up(self, call: Call) -> PublicationChange | None:
        """Looks the outcome up; publishes in the same container if there is none. Raises: as publish, ClaimLost."""
        upload, held = call.publication.upload, call.publication
        try:
            async with self._lease(call).kept():
                found = await call.network.look_up(call.account, () if upload is None else upload.references)
        except NotPublished:
            again = await self._take(call, BeginReconciliation(held, call.settling))
            return None if again.publication.progress is None else await self._call(again)
        if found is None:
            return MarkFailed(held, "NOT_PUBLISHED", "The network has not published it.")
        return MarkPublished(held, found.external_id, found.url, "looked up")

    async def _step(self, change: PublicationChange) -> Publication:
        return await self._stores.scheduled_posts.apply(change)


def _again(call: Call, error: NoEffect | UploadGone) -> ScheduleRetry:
    """Another try, after a pause."""
    held = call.publication
    tries = held.progress.tries if held.progress is not None else 0
    after_s = error.after_s if isinstance(error, NoEffect) else 0.0
    if after_s is None:
        after_s = RETRY_S[min(tries, len(RETRY_S) - 1)] * random.uniform(0.8, 1.2)  # noqa: S311
    return ScheduleRetry(held, after_s, str(error), upload_gone=isinstance(error, UploadGone))


def _refused_again(call: Call, error: Refused, is_asked: bool) -> PublicationChange:
    """What a refusal of another call says of the first one."""
    if error.code in ("UNAUTHORIZED", "BAD_ADDRESS"):
        # It does not let us in at all.
        return MarkUnknown(call.publication, str(error), MANUAL)
    if is_asked:
        # Perhaps because the first call has had its effect by now: the next look tells.
        return MarkUnknown(call.publication, str(error), call.settling)
    # A network that knows keys answers a known one as before.
    return MarkFailed(call.publication, error.code, str(error))


def _outgoing(publication: Publication, post: ScheduledPost, author: Author) -> OutgoingPost:
    return OutgoingPost(publication.id, post.text, post.media, publication.due_at, author)
