"""Publishes to external targets (connected accounts): stores the intent, calls the network, stores the result.

A publication whose call is cut off between intent and result becomes UNKNOWN. The call is repeated only if this cannot
publish the post twice (docs/semantics.md, 5). Every change is committed under the claim's fence, so a worker that lost
its claim changes nothing.
"""

import asyncio
import random
from dataclasses import replace
from weakref import WeakValueDictionary

import structlog

from jobs.providers.social.network import (
    CredentialsRefused,
    MediaUpload,
    NotPublished,
    OutcomeUncertain,
    OutgoingPost,
    PostAuthor,
    PublishingAccount,
    PublishingRefused,
    RetryableFailure,
    UploadExpired,
)
from jobs.providers.social.registry import NetworkClients
from jobs.publishing.attached_media import AttachedMedia, SignMedia
from jobs.publishing.author_rights import author_and_missing_role
from jobs.publishing.calls import AuthorDeactivated, CredentialsUnusable, NetworkCall, PublishingForbidden
from jobs.publishing.internal import FORBIDDEN
from jobs.publishing.leases import ClaimLease, keep_renewing, loop_time_s
from storage.identity.roles import Role
from storage.publishing.attention import HoldForAttention
from storage.publishing.networks import BEHAVIOURS, ReconciliationMethod
from storage.publishing.records import (
    AccountTarget,
    ConnectedAccount,
    Publication,
    PublicationState,
    PublishingPhase,
    ScheduledPost,
)
from storage.publishing.transitions import (
    LEASE_S,
    MANUAL,
    BeginAttempt,
    BeginReconciliation,
    ClaimLost,
    MarkFailed,
    MarkPublished,
    MarkUnknown,
    NotYetDue,
    PublicationChange,
    ScheduleRetry,
    StoreUploadResultAndBegin,
)
from storage.secrets.credentials import CredentialsLost
from storage.stores import Stores

RETRY_S = (1.0, 2.0, 4.0, 8.0)
"""Pauses before the second to fifth attempt, each varied by 20 %, unless the network asks for another pause."""

UPLOAD_MARGIN_S = 5.0
"""An upload that expires less than this after the due moment is repeated."""

MAX_CALLS = 800
"""Concurrent calls of a process. More concurrent calls would each take longer, and none would end earlier."""

MAX_CALLS_PER_ACCOUNT = 400
"""Concurrent calls to one account. The limit leaves room for other accounts when one does not respond."""

log = structlog.get_logger(__name__)


class NetworkCaller:
    """Calls networks to publish posts, and reconciles unknown outcomes. One for each worker process."""

    def __init__(self, stores: Stores, networks: NetworkClients, sign_media: SignMedia | None = None) -> None:
        """`sign_media` is None if this server has no public address, from which networks could fetch files."""
        self._stores = stores
        self._attached = AttachedMedia(stores, sign_media)
        self._networks = networks
        self._call_slots = asyncio.Semaphore(MAX_CALLS)
        self._account_call_slots: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    async def publish(self, publication: Publication, post: ScheduledPost) -> None:
        """Publishes a claimed publication that no earlier attempt can have published. Raises: Unavailable."""
        target = publication.target
        assert isinstance(target, AccountTarget)
        account_slots = self._account_call_slots.setdefault(target.account_id, asyncio.Semaphore(MAX_CALLS_PER_ACCOUNT))
        try:
            async with account_slots, self._call_slots:
                outcome = await self._publish(publication, post)
            # Stored outside the semaphores, so that the next call need not wait for the database.
            if outcome is not None:
                await self._apply(outcome)
        except ClaimLost:
            return

    async def mark_unknown(self, publication: Publication, post: ScheduledPost) -> None:
        """Marks a publication UNKNOWN, because its worker died during the call."""
        try:
            policy = (await self._prepare(publication, post)).reconciliation
        except PublishingForbidden:
            policy = MANUAL
        try:
            await self._apply(MarkUnknown(publication, "The worker stopped during the call.", policy))
        except ClaimLost:
            return

    async def fail_with_refusal(self, publication: Publication) -> None:
        """Fails a publication whose account did not get other credentials in time."""
        error = publication.error
        assert error is not None
        try:
            await self._apply(MarkFailed(publication, error.code, error.message))
        except ClaimLost:
            return

    async def reconcile(self, publication: Publication, post: ScheduledPost) -> None:
        """Finds the outcome of an UNKNOWN publication by its network's reconciliation method."""
        try:
            await self._reconcile(publication, post)
        except ClaimLost:
            return

    async def upload_ahead(self, publication: Publication) -> MediaUpload:
        """Uploads media before the due moment. Raises: PublishingForbidden, and as SocialNetwork.upload."""
        post = await self._stores.scheduled_posts.get(publication.organization_id, publication.scheduled_post_id)
        return await self._upload_media(_usable(await self._prepare(publication, post)))

    async def _upload_media(self, call: NetworkCall) -> MediaUpload:
        try:
            return await call.network.upload(call.account, call.post)
        except (PublishingRefused, RetryableFailure):
            raise
        except Exception as error:
            # An upload publishes nothing, so any failure may be retried.
            log.error("network_call_failed", network=type(call.network).__name__, exc_info=error)
            raise RetryableFailure(f"Unexpected error: {type(error).__name__}") from error

    async def _publish(self, publication: Publication, post: ScheduledPost) -> PublicationChange | None:
        """Returns the outcome to store, or None if it is stored already: the publication has failed, or is held."""
        try:
            call = _usable(await self._prepare(publication, post))
            await self._attached.check(publication, post)
        except PublishingRefused as error:
            return MarkFailed(publication, error.code, str(error))
        except CredentialsUnusable as error:
            return HoldForAttention(publication, error.code, str(error), error.nonce)
        except PublishingForbidden as error:
            if isinstance(error, AuthorDeactivated) and publication.state is PublicationState.SCHEDULED:
                await self._stores.held_posts.hold(post.organization_id, post.id, publication.author_id)
                return None
            return MarkFailed(publication, error.code, str(error))
        has_upload = self._has_upload(call)
        call = await self._begin(call, PublishingPhase.CALLING if has_upload else PublishingPhase.PREPARING)
        try:
            if not has_upload and call.publication.state is not PublicationState.FAILED:
                call = await self._upload_and_begin(call)
            return None if call.publication.state is PublicationState.FAILED else await self._call_network(call)
        except CredentialsRefused as error:
            return HoldForAttention(call.publication, error.code, str(error), call.credentials_nonce)
        except PublishingRefused as error:
            return MarkFailed(call.publication, error.code, str(error))
        except (RetryableFailure, UploadExpired) as error:
            return _retry_change(call, error)
        except OutcomeUncertain as error:
            return MarkUnknown(call.publication, str(error), call.reconciliation)

    async def _prepare(self, publication: Publication, post: ScheduledPost) -> NetworkCall:
        """Collects what the call needs. Checks the author and the account anew. Raises: PublishingForbidden."""
        target, organization_id = publication.target, publication.organization_id
        assert isinstance(target, AccountTarget)
        # Sequential reads: a thousand due publications share each batched read, and no extra task is created.
        account = await self._stores.accounts.get(organization_id, target.account_id)
        author, reason = await author_and_missing_role(self._stores.users, publication, Role.OPERATOR)
        if account.disconnected_at is not None:
            raise PublishingForbidden(FORBIDDEN, "The account is disconnected.")
        if author.is_deactivated:
            raise AuthorDeactivated
        if reason is not None:
            raise PublishingForbidden(FORBIDDEN, reason)
        secret, nonce = await self._credentials(account)
        network = self._networks[target.network]
        progress = publication.progress
        key = progress.key if progress is not None else network.new_key(publication.id, publication.due_at)
        media = [*post.media, *self._attached.of(publication, post)]
        by = PostAuthor(author.id, author.handle, author.name)
        outgoing = OutgoingPost(publication.id, post.text, media, publication.due_at, by)
        account_with_secret = PublishingAccount(account.id, account.base_url, secret)
        behaviour = BEHAVIOURS[target.network]
        call = NetworkCall(publication, outgoing, account_with_secret, network, behaviour, key, nonce)
        return replace(call, attention=account.attention)

    async def _credentials(self, account: ConnectedAccount) -> tuple[str, bytes]:
        """Returns the decrypted credentials and their nonce. Raises: CredentialsUnusable."""
        nonce = None
        try:
            sealed = await self._stores.accounts.sealed_credentials(account)
            nonce = sealed["nonce"]
            return self._stores.accounts.open(account, sealed), nonce
        except CredentialsLost as error:
            raise CredentialsUnusable("CREDENTIALS_LOST", str(error), nonce) from None

    def _has_upload(self, call: NetworkCall) -> bool:
        """Returns whether the network needs no upload, or has an upload that does not expire too early."""
        if not call.post.media or call.behaviour.upload_lead_s is None:
            return True
        upload = call.publication.upload
        if upload is None:
            return False
        if upload.expires_at is None:
            return True
        return (upload.expires_at - call.publication.due_at).total_seconds() > UPLOAD_MARGIN_S

    async def _begin(self, call: NetworkCall, phase: PublishingPhase) -> NetworkCall:
        publication = call.publication
        while True:
            try:
                return await self._apply_to(call, BeginAttempt(publication, phase, call.key, call.lease_s))
            except NotYetDue as error:
                await asyncio.sleep(error.wait_s)

    async def _upload_and_begin(self, call: NetworkCall) -> NetworkCall:
        """Uploads media at the due moment, and stores them with the intent. Raises: as SocialNetwork.upload."""
        publication = call.publication
        async with keep_renewing(lambda: self._stores.claims.renew(publication), LEASE_S / 3):
            uploaded = await self._upload_media(call)
        change = StoreUploadResultAndBegin(
            publication, uploaded.references, uploaded.expires_in_s, call.key, call.lease_s
        )
        return await self._apply_to(call, change)

    async def _apply_to(self, call: NetworkCall, change: PublicationChange) -> NetworkCall:
        """Commits a change that begins a lease, and returns the call with the changed publication."""
        requested_at_s = loop_time_s()
        return replace(call, publication=await self._apply(change), lease_requested_at_s=requested_at_s)

    def _lease(self, call: NetworkCall) -> ClaimLease:
        publication, lease_s = call.publication, call.lease_s
        return ClaimLease(lambda: self._stores.claims.renew(publication, lease_s), lease_s, call.lease_requested_at_s)

    async def _call_network(self, call: NetworkCall) -> MarkPublished:
        """Calls the network. Raises: ClaimLost; the errors of SocialNetwork.publish; OutcomeUncertain for any other."""
        upload = call.publication.upload
        references = () if upload is None else upload.references
        try:
            async with self._lease(call).hold():
                published = await call.network.publish(call.account, call.post, call.key, references)
        except (PublishingRefused, RetryableFailure, UploadExpired, OutcomeUncertain, ClaimLost):
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
        is_queryable = call.reconciliation_method is ReconciliationMethod.QUERY
        change = BeginReconciliation(publication, call.reconciliation, repeats_call=not is_queryable)
        call = await self._apply_to(call, change)
        outcome = await self._find_outcome(call, is_queryable)
        if outcome is not None:
            await self._apply(outcome)

    async def _find_outcome(self, call: NetworkCall, is_queryable: bool) -> PublicationChange | None:
        """Queries the network if `is_queryable`, otherwise repeats the call with its key.

        Returns None when only a person can find the outcome.
        """
        publication = call.publication
        if publication.progress is None:
            return None
        try:
            return await (self._look_up(call) if is_queryable else self._call_network(call))
        except (RetryableFailure, OutcomeUncertain) as error:
            return MarkUnknown(publication, str(error), call.reconciliation)
        except UploadExpired as error:
            # The first call may have published, and thereby used up the media.
            return MarkUnknown(publication, str(error), MANUAL)
        except PublishingRefused as error:
            return _outcome_of_refusal(call, error, is_queryable)

    async def _look_up(self, call: NetworkCall) -> PublicationChange | None:
        """Queries the outcome; if nothing was published, repeats the call. Raises: ClaimLost; as SocialNetwork."""
        publication, upload = call.publication, call.publication.upload
        try:
            async with self._lease(call).hold():
                post = await call.network.look_up(call.account, () if upload is None else upload.references)
        except NotPublished:
            repeated = await self._apply_to(call, BeginReconciliation(publication, call.reconciliation))
            return None if repeated.publication.progress is None else await self._call_network(repeated)
        if post is None:
            return MarkFailed(publication, "NOT_PUBLISHED", "The network reports that the post was not published.")
        return MarkPublished(publication, post.external_id, post.url, "looked up")

    async def _apply(self, change: PublicationChange) -> Publication:
        return await self._stores.scheduled_posts.apply(change)


def _usable(call: NetworkCall) -> NetworkCall:
    """Returns the call. Raises: CredentialsUnusable if the network has refused the credentials before."""
    if call.attention is not None:
        raise CredentialsUnusable(call.attention.code, call.attention.reason, None)
    return call


def _retry_change(call: NetworkCall, error: RetryableFailure | UploadExpired) -> ScheduleRetry:
    publication = call.publication
    after_s = error.after_s if isinstance(error, RetryableFailure) else 0.0
    if after_s is None:
        after_s = RETRY_S[min(_failed_attempts(publication), len(RETRY_S)) - 1] * random.uniform(0.8, 1.2)  # noqa: S311
    return ScheduleRetry(publication, after_s, str(error), must_upload_again=isinstance(error, UploadExpired))


def _failed_attempts(publication: Publication) -> int:
    """Returns the number of attempts, including the one that has just failed. A failed upload is an attempt, too."""
    progress = publication.progress
    if progress is None:
        return 1
    return progress.tries + (progress.phase is not PublishingPhase.CALLING)


def _outcome_of_refusal(call: NetworkCall, error: PublishingRefused, is_queryable: bool) -> PublicationChange:
    """Returns the outcome of the first call, after the network refused the call that reconciles it."""
    if error.code in ("UNAUTHORIZED", "BAD_ADDRESS"):
        # Authentication failed, or the address is forbidden. The outcome of the first call remains unknown.
        return MarkUnknown(call.publication, str(error), MANUAL)
    if is_queryable:
        # The first call may have taken effect meanwhile. The next query shows whether it did.
        return MarkUnknown(call.publication, str(error), call.reconciliation)
    # An idempotent network repeats its answer to a known key, so a refusal means that the first call had no effect.
    return MarkFailed(call.publication, error.code, str(error))
