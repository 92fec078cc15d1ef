"""Records a round of deliveries in one transaction.

The members of a replica set then get one entry of the log for each round, instead of one for each stream.
"""

from collections.abc import Sequence

from storage.mongo import Mongo, Session
from storage.webhooks.claims import WebhookClaims
from storage.webhooks.deliveries import DeliveryResult, SentMessage, WebhookDeliveries
from storage.webhooks.positions import Move, WebhookPositions
from storage.webhooks.records import ClaimedWebhook, DeliveryOutcome


class WebhookRounds:
    """Records tries and moves of positions, and renews the claim."""

    def __init__(
        self, mongo: Mongo, deliveries: WebhookDeliveries, claims: WebhookClaims, positions: WebhookPositions
    ) -> None:
        self._mongo = mongo
        self._deliveries, self._claims, self._positions = deliveries, claims, positions

    async def record(
        self, webhook: ClaimedWebhook, sent: Sequence[tuple[SentMessage, DeliveryResult]], moves: Sequence[Move]
    ) -> bool:
        """Stores tries, and moves positions if the claim has not ended.

        Returns False if it has, or if another worker or a replay has moved one of the positions meanwhile.
        """
        has_delivered = any(result.outcome is DeliveryOutcome.DELIVERED for _, result in sent)

        async def work(session: Session) -> bool:
            await self._deliveries.record(webhook.webhook, sent, session)
            is_claimed = await self._claims.renew(webhook, session, has_delivered=has_delivered)
            return is_claimed and await self._positions.advance(webhook.id, moves, session)

        return await self._mongo.transact(work)
