"""The sandbox: a network inside the product for trials and tests. An account's credentials select its behaviour."""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from jobs.providers.social.network import (
    MediaUpload,
    OutcomeUncertain,
    OutgoingPost,
    PublishedPost,
    PublishingAccount,
    PublishingRefused,
)
from storage.publishing.networks import ReconciliationMethod
from storage.publishing.records import NOT_VERIFIED, VerifiedAccount
from storage.publishing.sandbox import SandboxStore

SLOW_DELAY_S = 3.0


class Sandbox:
    """The network that stores posts in the database. Credentials select the behaviour of an account.

    `ok` publishes, `fail` refuses, `slow` publishes after a delay, and `lose` publishes but loses the response.
    """

    def __init__(self, store: SandboxStore, delay_s: float = SLOW_DELAY_S) -> None:
        self._store = store
        self._delay_s = delay_s

    async def verify(self, account: PublishingAccount) -> VerifiedAccount:
        """Returns an empty account: all credentials of the sandbox are valid."""
        return NOT_VERIFIED

    async def upload(self, account: PublishingAccount, post: OutgoingPost) -> MediaUpload:
        """Uploads nothing: media are part of the post."""
        return MediaUpload((), None)

    async def publish(
        self, account: PublishingAccount, post: OutgoingPost, key: str, references: Sequence[Any]
    ) -> PublishedPost:
        """Stores one post per key, unless the credentials are `fail`."""
        if account.secret == "fail":  # noqa: S105 - selects a behaviour, is not a password
            raise PublishingRefused("REFUSED", "The sandbox account is set to fail.")
        if account.secret == "slow":  # noqa: S105
            await asyncio.sleep(self._delay_s)
        published = await self._store.publish(account.id, key, post.text)
        if account.secret == "lose":  # noqa: S105
            raise OutcomeUncertain("The sandbox account is set to lose its responses.")
        return PublishedPost(published.id, None)

    async def look_up(self, account: PublishingAccount, references: Sequence[Any]) -> PublishedPost | None:
        """Raises OutcomeUncertain, because the sandbox offers no query."""
        raise OutcomeUncertain("The sandbox offers no query.")

    def reconciliation_method(self, account: PublishingAccount) -> ReconciliationMethod:
        """Returns MANUAL for an account that loses its responses, REPEAT otherwise."""
        return ReconciliationMethod.MANUAL if account.secret == "lose" else ReconciliationMethod.REPEAT  # noqa: S105

    def new_key(self, publication_id: str, due_at: datetime) -> str:
        """Returns the publication's id, which is the same on every attempt."""
        return publication_id
