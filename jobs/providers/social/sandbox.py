"""A network inside the product for trials. The credentials say whether it works, fails, is slow or loses responses."""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from jobs.providers.social.network import (
    Account,
    MediaUpload,
    NetworkRefused,
    OutcomeUncertain,
    OutgoingPost,
    PublishedPost,
)
from storage.publishing.networks import Certainty
from storage.publishing.sandbox import SandboxStore

SLOW_S = 3.0


class Sandbox:
    """Behaves as the account's credentials say: ok, fail, lose or slow."""

    def __init__(self, store: SandboxStore, slow_s: float = SLOW_S) -> None:
        self._store = store
        self._slow_s = slow_s

    async def upload(self, account: Account, post: OutgoingPost) -> MediaUpload:
        """Uploads nothing: media are part of the post."""
        return MediaUpload((), None)

    async def publish(self, account: Account, post: OutgoingPost, key: str, references: Sequence[Any]) -> PublishedPost:
        """Stores one post per key. With `lose` it stores the post and loses the response."""
        if account.secret == "fail":  # noqa: S105 - says how to behave
            raise NetworkRefused("REFUSED", "The sandbox account is set to fail.")
        if account.secret == "slow":  # noqa: S105
            await asyncio.sleep(self._slow_s)
        published = await self._store.publish(account.id, key, post.text)
        if account.secret == "lose":  # noqa: S105
            raise OutcomeUncertain("The sandbox account is set to lose its responses.")
        return PublishedPost(published.id, None)

    async def look_up(self, account: Account, references: Sequence[Any]) -> PublishedPost | None:
        """Not supported: the sandbox offers no query."""
        raise OutcomeUncertain("The sandbox is not queried.")

    def certainty(self, account: Account) -> Certainty:
        """Returns OPAQUE for an account that loses its responses, IDEMPOTENT otherwise."""
        return Certainty.OPAQUE if account.secret == "lose" else Certainty.IDEMPOTENT  # noqa: S105

    def new_key(self, publication_id: str, due_at: datetime) -> str:
        """Returns the publication's id."""
        return publication_id
