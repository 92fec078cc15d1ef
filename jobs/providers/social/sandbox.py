"""The twin inside the product, to try things with: it works, fails, answers slowly or loses its answers, as asked."""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from jobs.providers.social.network import Account, OutgoingPost, Published, Refused, Uncertain, Uploaded
from storage.publishing.networks import Certainty
from storage.publishing.sandbox import SandboxStore

SLOW_S = 3.0


class Sandbox:
    """How an account behaves is what its credentials say: ok, fail, lose or slow."""

    def __init__(self, store: SandboxStore, slow_s: float = SLOW_S) -> None:
        self._store = store
        self._slow_s = slow_s

    async def upload(self, account: Account, post: OutgoingPost) -> Uploaded:
        """Nothing: media go along."""
        return Uploaded((), None)

    async def publish(self, account: Account, post: OutgoingPost, key: str, references: Sequence[Any]) -> Published:
        """One post a key. `lose` acts and never answers."""
        if account.secret == "fail":  # noqa: S105 - says how to behave
            raise Refused("REFUSED", "The sandbox was told to fail.")
        if account.secret == "slow":  # noqa: S105
            await asyncio.sleep(self._slow_s)
        made = await self._store.publish(account.id, key, post.text)
        if account.secret == "lose":  # noqa: S105
            raise Uncertain("The sandbox was told to lose its answer.")
        return Published(made.id, None)

    async def look_up(self, account: Account, references: Sequence[Any]) -> Published | None:
        """Never asked."""
        raise Uncertain("The sandbox is not asked.")

    def certainty(self, account: Account) -> Certainty:
        """An account that loses its answers needs a person; every other one knows keys."""
        return Certainty.OPAQUE if account.secret == "lose" else Certainty.IDEMPOTENT  # noqa: S105

    def new_key(self, publication_id: str, due_at: datetime) -> str:
        """The publication's id."""
        return publication_id
