"""Publishes to external targets (connected accounts): stores the intent, calls the network, stores the result.

A call that is cut off between intent and result is UNKNOWN and never repeated blindly (docs/semantics.md, 5). Every
change is committed under the fence of this claim, so a worker that lost its claim changes nothing.
"""

import asyncio
import random
from dataclasses import dataclass, replace
from weakref import WeakValueDictionary

import structlog

from jobs.providers.social.network import (
    Account,
    Author,
    MediaUpload,
    NetworkRefused,
    NoEffect,
    NotPublished,
    OutcomeUncertain,
    OutgoingPost,
    SocialNetwork,
    UploadExpired,
)
from jobs.providers.social.registry import Networks
from jobs.publishing.internal import FORBIDDEN
from jobs.publishing.leases import ClaimLease, keep_renewing, loop_time_s
from storage.identity.roles import Role, with_included
from storage.publishing.networks import BEHAVIOURS, Certainty, NetworkBehaviour
from storage.publishing.records import AccountTarget, CallPhase, Publication, PublicationState, ScheduledPost
from storage.publishing.transitions import (
    CALL_LEASE_S,
    LEASE_S,
    MANUAL,
    MANUAL_LEASE_S,
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
"""Pauses before the second to fifth attempt, each varied by 20 %, unless the network names another."""

RECONCILE_S = (2.0, 5.0, 15.0, 60.0, 300.0, 1800.0)
"""Pauses before each reconciliation of an unknown outcome; the last one repeats."""

UPLOAD_MARGIN_S = 5.0
"""An upload that expires less than this after the due moment is repeated."""

MAX_CALLS = 800
"""Concurrent calls of a process. More would make each of them slower and none earlier."""

MAX_CALLS_OF_ACCOUNT = 400
"""Concurrent calls for one account, so that an account that hangs leaves room for the others."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class NetworkCall:
    """A publication with everything that its call to the network needs."""

    publication: Publication
    post: OutgoingPost
    account: Account
    network: SocialNetwork
    behaviour: NetworkBehaviour
    key: str
    since_s: float = 0.0
    """When the last change was requested, by the loop's clock. The lease began then or later."""

    @property
    def lease_s(self) -> float:
        """How long the claim lasts without a renewal during the call."""
        return MANUAL_LEASE_S if self.network.certainty(self.account) is Certainty.OPAQUE else CALL_LEASE_S

    @property
    def reconciliation(self) -> ReconciliationPolicy:
        """When to reconcile this call if its outcome is unknown."""
        if self.network.certainty(self.account) is Certainty.OPAQUE:
            return MANUAL
        unknowns = sum(each.outcome == "UNKNOWN" for each in self.publication.attempts)
        in_s = max(RECONCILE_S[min(unknowns, len(RECONCILE_S) - 1)], self.behaviour.settle_s)
        return ReconciliationPolicy(in_s, self.behaviour.retention_s)


class PublishingForbidden(Exception):
    """The author may not publish to the account now, or its credentials are gone."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class ExternalPublisher:
    """Publishes to networks and reconciles unknown outcomes. One for each worker process."""

    def __init__(self, stores: Stores, networks: Networks) -> None:
        self._stores = stores
        self._networks = networks
        self._calls = asyncio.Semaphore(MAX_CALLS)
        self._calls_of_account: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    async def publish(self, publication: Publication, post: ScheduledPost) -> None:
        """Publishes from SCHEDULED or from a phase that cannot have had an effect. Raises: Unavailable."""
        target = publication.target
        assert isinstance(target, AccountTarget)
        of_account = self._calls_of_account.setdefault(target.account_id, asyncio.Semaphore(MAX_CALLS_OF_ACCOUNT))
        try:
            async with of_account, self._calls:
                outcome = await self._publish(publication, post)
            # Stored outside the semaphores, so that the next call starts meanwhile.
            if outcome is not None:
                await self._apply(outcome)
        except ClaimLost:
            return

    async def mark_unknown(self, publication: Publication, post: ScheduledPost) -> None:
        """Marks a publication UNKNOWN whose worker died during the call."""
        try:
            policy = (await self._prepare(publication, post)).reconciliation
        except PublishingForbidden:
            policy = MANUAL
        try:
            await self._apply(MarkUnknown(publication, "The worker stopped during the call.", policy))
        except ClaimLost:
            return

    async def reconcile(self, publication: Publication, post: ScheduledPost) -> None:
        """Finds the outcome of an UNKNOWN publication by the means its network offers."""
        try:
            await self._reconcile(publication, post)
        except ClaimLost:
            return

    async def upload_ahead(self, publication: Publication) -> MediaUpload:
        """Uploads media before the due moment. Raises: PublishingForbidden, and as SocialNetwork.upload."""
        post = await self._stores.scheduled_posts.get(publication.organization_id, publication.scheduled_post_id)
        return await self._upload_media(await self._prepare(publication, post))

    async def _upload_media(self, call: NetworkCall) -> MediaUpload:
        try:
            return await call.network.upload(call.account, call.post)
        except (NetworkRefused, NoEffect):
            raise
        except Exception as error:
            # An upload publishes nothing, so any failure may be retried.
            log.error("network_call_failed", network=type(call.network).__name__, exc_info=error)
            raise NoEffect(f"Unexpected error: {type(error).__name__}") from error

    async def _publish(self, publication: Publication, post: ScheduledPost) -> PublicationChange | None:
        """Returns the outcome to store; None when BeginAttempt has stored it already."""
        try:
            call = await self._prepare(publication, post)
        except PublishingForbidden as error:
            return MarkFailed(publication, error.code, str(error))
        has_media = self._has_media(call)
        call = await self._begin(call, CallPhase.CALLING if has_media else CallPhase.PREPARING)
        try:
            if not has_media and call.publication.state is not PublicationState.FAILED:
                call = await self._upload(call)
            return None if call.publication.state is PublicationState.FAILED else await self._call(call)
        except NetworkRefused as error:
            return MarkFailed(call.publication, error.code, str(error))
        except (NoEffect, UploadExpired) as error:
            return _retry(call, error)
        except OutcomeUncertain as error:
            return MarkUnknown(call.publication, str(error), call.reconciliation)

    async def _prepare(self, publication: Publication, post: ScheduledPost) -> NetworkCall:
        """Collects what the call needs. Checks the author and the account anew. Raises: PublishingForbidden."""
        target, organization_id = publication.target, publication.organization_id
        assert isinstance(target, AccountTarget)
        # Sequential reads: a thousand due publications share each batched read, and no extra task is created.
        account = await self._stores.accounts.get(organization_id, target.account_id)
        author = await self._stores.users.get(organization_id, publication.author_id)
        if account.disconnected_at is not None:
            raise PublishingForbidden(FORBIDDEN, "The account is disconnected.")
        if Role.OPERATOR not in with_included(author.roles):
            raise PublishingForbidden(FORBIDDEN, "The author no longer has the role OPERATOR.")
        try:
            secret = await self._stores.accounts.decrypt_credentials(account)
        except CredentialsLost as error:
            raise PublishingForbidden("CREDENTIALS_LOST", str(error)) from None
        network = self._networks[target.network]
        progress = publication.progress
        key = progress.key if progress is not None else network.new_key(publication.id, publication.due_at)
        outgoing = _outgoing_post(publication, post, Author(author.id, author.handle, author.name))
        account_with_secret = Account(account.id, account.base_url, secret)
        return NetworkCall(publication, outgoing, account_with_secret, network, BEHAVIOURS[target.network], key)

    def _has_media(self, call: NetworkCall) -> bool:
        """Whether all media that the network needs are uploaded and will not expire too early."""
        if not call.post.media or call.behaviour.upload_lead_s is None:
            return True
        upload = call.publication.upload
        if upload is None:
            return False
        left_s = None if upload.expires_at is None else (upload.expires_at - call.publication.due_at).total_seconds()
        return left_s is None or left_s > UPLOAD_MARGIN_S

    async def _begin(self, call: NetworkCall, phase: CallPhase) -> NetworkCall:
        publication = call.publication
        while True:
            try:
                return await self._apply_to(call, BeginAttempt(publication, phase, call.key, call.lease_s))
            except NotYetDue as early:
                await asyncio.sleep(early.wait_s)

    async def _upload(self, call: NetworkCall) -> NetworkCall:
        """Uploads missing media at the due moment; stores them with the intent. Raises: as SocialNetwork.upload."""
        publication = call.publication
        async with keep_renewing(lambda: self._stores.claims.renew(publication), LEASE_S / 3):
            uploaded = await self._upload_media(call)
        change = StoreUploadAndBegin(publication, uploaded.references, uploaded.expires_in_s, call.key, call.lease_s)
        return await self._apply_to(call, change)

    async def _apply_to(self, call: NetworkCall, change: PublicationChange) -> NetworkCall:
        """Commits a change that begins a lease, and returns the call with the changed publication."""
        since_s = loop_time_s()
        return replace(call, publication=await self._apply(change), since_s=since_s)

    def _lease(self, call: NetworkCall) -> ClaimLease:
        publication, lease_s = call.publication, call.lease_s
        return ClaimLease(lambda: self._stores.claims.renew(publication, lease_s), lease_s, call.since_s)

    async def _call(self, call: NetworkCall) -> MarkPublished:
        """Calls the network; an unexpected error is OutcomeUncertain. Raises: as SocialNetwork.publish, ClaimLost."""
        upload = call.publication.upload
        references = () if upload is None else upload.references
        try:
            async with self._lease(call).hold():
                published = await call.network.publish(call.account, call.post, call.key, references)
        except (NetworkRefused, NoEffect, UploadExpired, OutcomeUncertain, ClaimLost):
            raise
        except Exception as error:
            log.error("network_call_failed", network=type(call.network).__name__, exc_info=error)
            raise OutcomeUncertain(f"Unexpected error: {type(error).__name__}") from error
        return MarkPublished(call.publication, published.external_id, published.url)

    async def _reconcile(self, publication: Publication, post: ScheduledPost) -> None:
        try:
            call = await self._prepare(publication, post)
        except PublishingForbidden as error:
            await self._apply(MarkUnknown(publication, str(error), MANUAL))
            return
        is_queryable = call.network.certainty(call.account) is Certainty.QUERYABLE
        change = BeginReconciliation(publication, call.reconciliation, repeats_call=not is_queryable)
        call = await self._apply_to(call, change)
        outcome = await self._find_outcome(call, is_queryable)
        if outcome is not None:
            await self._apply(outcome)

    async def _find_outcome(self, call: NetworkCall, is_queryable: bool) -> PublicationChange | None:
        """Queries the network or repeats the call with its key. Returns None when only a person can reconcile."""
        held = call.publication
        if held.progress is None:
            return None
        try:
            return await (self._look_up(call) if is_queryable else self._call(call))
        except (NoEffect, OutcomeUncertain) as error:
            return MarkUnknown(held, str(error), call.reconciliation)
        except UploadExpired as error:
            # The first call may have used up the media.
            return MarkUnknown(held, str(error), MANUAL)
        except NetworkRefused as error:
            return _outcome_of_refusal(call, error, is_queryable)

    async def _look_up(self, call: NetworkCall) -> PublicationChange | None:
        """Looks the outcome up; publishes in the same container if there is none. Raises: as publish, ClaimLost."""
        upload, held = call.publication.upload, call.publication
        try:
            async with self._lease(call).hold():
                found = await call.network.look_up(call.account, () if upload is None else upload.references)
        except NotPublished:
            repeated = await self._apply_to(call, BeginReconciliation(held, call.reconciliation))
            return None if repeated.publication.progress is None else await self._call(repeated)
        if found is None:
            return MarkFailed(held, "NOT_PUBLISHED", "The network reports that the post was not published.")
        return MarkPublished(held, found.external_id, found.url, "looked up")

    async def _apply(self, change: PublicationChange) -> Publication:
        return await self._stores.scheduled_posts.apply(change)


def _retry(call: NetworkCall, error: NoEffect | UploadExpired) -> ScheduleRetry:
    held = call.publication
    tries = held.progress.tries if held.progress is not None else 0
    after_s = error.after_s if isinstance(error, NoEffect) else 0.0
    if after_s is None:
        after_s = RETRY_S[min(tries, len(RETRY_S) - 1)] * random.uniform(0.8, 1.2)  # noqa: S311
    return ScheduleRetry(held, after_s, str(error), upload_gone=isinstance(error, UploadExpired))


def _outcome_of_refusal(call: NetworkCall, error: NetworkRefused, is_queryable: bool) -> PublicationChange:
    """The outcome of the first call, given that the network refused the call that reconciles it."""
    if error.code in ("UNAUTHORIZED", "BAD_ADDRESS"):
        # Authentication failed, or the address must not be reached. Neither says anything about the first call.
        return MarkUnknown(call.publication, str(error), MANUAL)
    if is_queryable:
        # The first call may have taken effect meanwhile, which the next lookup will show.
        return MarkUnknown(call.publication, str(error), call.reconciliation)
    # An idempotent network repeats its answer to a known key, so a refusal means that the first call had no effect.
    return MarkFailed(call.publication, error.code, str(error))


def _outgoing_post(publication: Publication, post: ScheduledPost, author: Author) -> OutgoingPost:
    return OutgoingPost(publication.id, post.text, post.media, publication.due_at, author)
