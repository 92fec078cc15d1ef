"""Why a pass over a webhook ends early."""

from storage.webhooks.records import DisabledReason


class DeliveryFailed(Exception):
    """A request failed, or nothing can be sent: then `message_id` is empty. `reason` disables the webhook at once."""

    def __init__(
        self,
        error: str,
        message_id: str = "",
        retry_after_s: float | None = None,
        reason: DisabledReason | None = None,
    ) -> None:
        super().__init__(error)
        self.error, self.message_id = error, message_id
        self.retry_after_s, self.reason = retry_after_s, reason


class ClaimEnded(Exception):
    """Another worker may have claimed the webhook, or it was changed, disabled, deleted or replayed."""
