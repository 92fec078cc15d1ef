"""The loop that sends events. A worker claims a webhook, and sends the events of its streams in order.

A worker moves the position of a stream after its events were sent. If it is killed in between, the next worker sends
them again, with the same `webhook-id`. After a failure the webhook pauses as a whole, so that no event overtakes it.
"""

import asyncio
from contextlib import suppress

import structlog
from pymongo.errors import PyMongoError

from jobs.context import JobContext, WebhookTools
from jobs.webhooks.failures import ClaimEnded, DeliveryFailed
from jobs.webhooks.passes import WebhookPass
from storage.webhooks.records import ClaimedWebhook, DisabledReason

POLL_S = 0.25
MAX_ACTIVE = 200
"""Number of webhooks for which a worker sends at a time. Most of them wait for their next round."""

AFTER_ERROR_S = 1.0
"""The pause after an error of this server."""

FIRST_PAUSE_S = 1.0
PAUSES_OF_LIMIT = 72
"""The longest pause is this fraction of the time for which failed requests are repeated: an hour of three days."""

log = structlog.get_logger(__name__)


async def send_webhook_events(jobs: JobContext) -> None:
    """Claims due webhooks and sends their events, until it is cancelled. Claims are then given back."""
    tools = jobs.webhooks
    if tools is None:
        await asyncio.Event().wait()
        return
    active: set[asyncio.Task[None]] = set()
    try:
        while True:
            room = MAX_ACTIVE - len(active)
            for webhook in await jobs.stores.webhook_claims.claim(room) if room else ():
                task = asyncio.create_task(deliver(jobs, tools, webhook), name=f"webhook {webhook.id}")
                active.add(task)
                task.add_done_callback(active.discard)
            await asyncio.sleep(POLL_S)
    finally:
        for task in active:
            task.cancel()
        await asyncio.gather(*active, return_exceptions=True)


async def deliver(jobs: JobContext, tools: WebhookTools, webhook: ClaimedWebhook) -> None:
    """Sends what waits for a claimed webhook, and ends the claim."""
    claims, work = jobs.stores.webhook_claims, WebhookPass(jobs, tools, webhook)
    try:
        is_drained = await work.run()
        await claims.finish(webhook, is_drained=is_drained)
    except DeliveryFailed as failure:
        await _fail(jobs, webhook, failure, work)
    except ClaimEnded:
        log.info("webhook_claim_ended", webhook=webhook.id)
        # A replay may have moved positions without ending the claim.
        with suppress(PyMongoError):
            await claims.finish(webhook, is_drained=False)
    except Exception as error:
        # The receiver is not to blame.
        log.warning("webhook_pass_failed", webhook=webhook.id, error=repr(error))
        with suppress(PyMongoError):
            await claims.finish(webhook, is_drained=False, pause_s=AFTER_ERROR_S)
    except asyncio.CancelledError:
        with suppress(PyMongoError):
            await asyncio.shield(claims.finish(webhook, is_drained=False))
        raise


async def _fail(jobs: JobContext, webhook: ClaimedWebhook, failure: DeliveryFailed, work: WebhookPass) -> None:
    """Plans the next try, or disables the webhook."""
    claims = jobs.stores.webhook_claims
    failing_s = 0.0 if work.has_recovered else await claims.failing_s(webhook.webhook)
    if failure.reason is not None or failing_s > jobs.webhook_retry_s:
        reason = failure.reason or DisabledReason.FAILING
        if await claims.disable(webhook, reason, failure.error):
            log.warning("webhook_disabled", webhook=webhook.id, reason=reason.value, error=failure.error)
        return
    pause_s = retry_pause_s(failing_s, jobs.webhook_retry_s, failure.retry_after_s)
    await claims.fail(webhook, failure.message_id, failure.error, pause_s)


def retry_pause_s(failing_s: float, limit_s: float, requested_s: float | None = None) -> float:
    """Returns the pause before the next try. It grows by half of the time since the first failure."""
    longest_s = limit_s / PAUSES_OF_LIMIT
    return min(max(FIRST_PAUSE_S, failing_s / 2, requested_s or 0.0), longest_s)
