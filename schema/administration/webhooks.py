"""GraphQL types and root fields of webhooks. schema/root.py adds them to the root types."""

from datetime import datetime

import strawberry
from strawberry import ID

import resolvers.administration.webhooks
from resolvers.limits.writes import WriteLimit
from schema.binding import field, mutation
from schema.identity import User
from storage.webhooks.records import DeliveryOutcome, DisabledReason, WebhookFormat


@strawberry.type(
    description="An address that receives events of the organization as signed requests. Events of one "
    "stream, such as a topic, arrive in order and at least once."
)
class Webhook:
    id: ID = strawberry.field(description="Unique identifier. Treat as an opaque string.")
    name: str = strawberry.field(description="Name.")
    url: str = strawberry.field(description="Address that receives the events.")
    account: User = field(
        resolvers.administration.webhooks.account,
        "The service account as which the webhook reads. Its id is that of the service key without `ServiceKey:`. The "
        "webhook sends events of PUBLIC communities and of those that this account has joined, and what the scopes of "
        "the key allow.",
        batch_resolver=resolvers.administration.webhooks.accounts,
    )
    event_types: list[str] = strawberry.field(
        description="Types of the events that are sent, in alphabetical order. They are names of GraphQL types."
    )
    community_ids: list[ID] = strawberry.field(
        description="Ids of communities. If one of `communityIds`, `topicIds` and `jobIds` is not empty, only events "
        "of what they name are sent."
    )
    topic_ids: list[ID] = strawberry.field(description="Ids of topics, whose threads count as well.")
    job_ids: list[ID] = strawberry.field(description="Ids of call jobs and scheduled posts.")
    format: WebhookFormat = strawberry.field(description="Format of the messages.")
    created_at: datetime = strawberry.field(description="When the webhook was created.")
    created_by_id: ID = strawberry.field(
        description="Id of the administrator or of the service account that created it."
    )
    last_delivered_at: datetime | None = strawberry.field(
        description="When events were last delivered. Null before the first one."
    )
    failing_since: datetime | None = strawberry.field(
        description="When the message failed first that was not delivered since. Null while no such message waits."
    )
    last_error: str | None = strawberry.field(
        description="What went wrong last, in English: the answer of the receiver, or why there was none. Null while "
        "no message waits that has failed."
    )
    next_try_at: datetime | None = strawberry.field(
        description="When the failed request is repeated. Null if no request failed."
    )
    disabled_at: datetime | None = strawberry.field(
        description="When the webhook was disabled. Null while it is enabled."
    )
    disabled_reason: DisabledReason | None = strawberry.field(
        description="Why the webhook is disabled. Null while it is enabled."
    )
    previous_secret_until: datetime | None = strawberry.field(
        description="Until when requests are also signed by a secret from before a rotation. Null if only the newest "
        "secret signs."
    )


@strawberry.type(description="A webhook with its new secret.")
class IssuedWebhook:
    webhook: Webhook = strawberry.field(description="The webhook.")
    secret: str | None = strawberry.field(
        description="The secret that signs requests: `whsec_` and base64. It is shown only here and cannot be read "
        "again. Null when the mutation is repeated with the same `idempotencyKey`."
    )


@strawberry.type(description="One try to deliver an event to a webhook, or a test. It is kept for three days.")
class WebhookDelivery:
    id: ID = strawberry.field(description="Unique identifier. Treat as an opaque string.")
    webhook_id: ID = strawberry.field(description="Id of the webhook.")
    event_type: str = strawberry.field(
        description="Type of the event: one of `Webhook.eventTypes`, `WebhookTest` for a test, or `StreamReady` for "
        "the message that events of a stream were lost."
    )
    message_id: ID = strawberry.field(
        description="The header `webhook-id`. It is the same for each try of an event, and for its repetitions."
    )
    at: datetime = strawberry.field(description="When the request ended; while it waits, when it was asked for.")
    outcome: DeliveryOutcome = strawberry.field(description="How the request ended.")
    request: str | None = strawberry.field(
        description="Body of the request, at most the first 16 KiB. Null while it waits."
    )
    status: int | None = strawberry.field(description="HTTP status of the answer. Null without an answer.")
    answer: str | None = strawberry.field(
        description="The first 1,000 characters of the answer, or what went wrong. Null while the request waits."
    )
    duration_ms: int | None = strawberry.field(
        description="Duration of the request in milliseconds. Null while it waits."
    )


@strawberry.type
class WebhookQuery:
    """Lists of webhooks and deliveries."""

    webhooks: list[Webhook] = field(
        resolvers.administration.webhooks.webhooks,
        "Webhooks of the organization, the newest first; at most 20. Needs the role ADMIN. A service key sees those "
        "that read as this key.",
    )
    webhook_deliveries: list[WebhookDelivery] = field(
        resolvers.administration.webhooks.webhook_deliveries,
        "Deliveries of a webhook in the last three days, the newest first. Needs the role ADMIN, or the service key of "
        "the webhook.",
    )


@strawberry.type
class WebhookMutation:
    """Changes of webhooks."""

    create_webhook: IssuedWebhook = mutation(
        resolvers.administration.webhooks.create_webhook,
        "Creates a webhook, which sends later events. CONFLICT for 20 webhooks. Needs the role ADMIN, or a "
        "service key, which then is the key of the webhook.",
        limit=WriteLimit.OPERATIONS,
    )
    update_webhook: Webhook = mutation(
        resolvers.administration.webhooks.update_webhook,
        "Changes the name, the address or the events of a webhook. After a change of the events, up to a minute of "
        "earlier events may be sent, too. Needs the role ADMIN, or the service key of the webhook.",
        limit=WriteLimit.OPERATIONS,
    )
    rotate_webhook_secret: IssuedWebhook = mutation(
        resolvers.administration.webhooks.rotate_webhook_secret,
        "Issues a new secret. For `graceS` seconds, requests have a signature by each of the two secrets. CONFLICT "
        "while 4 earlier secrets are valid. Needs the role ADMIN, or the service key of the webhook.",
        limit=WriteLimit.OPERATIONS,
    )
    disable_webhook: Webhook = mutation(
        resolvers.administration.webhooks.disable_webhook,
        "Stops sending within a few seconds. Idempotent. Needs the role ADMIN, or the service key of the webhook.",
        limit=WriteLimit.OPERATIONS,
    )
    enable_webhook: Webhook = mutation(
        resolvers.administration.webhooks.enable_webhook,
        "Sends again, beginning with the events that were not delivered, as far as the log has them. Before events "
        "that follow a gap, a message of the type `StreamReady` says so. Idempotent. Needs the role ADMIN, or the "
        "service key of the webhook.",
        limit=WriteLimit.OPERATIONS,
    )
    delete_webhook: bool = mutation(
        resolvers.administration.webhooks.delete_webhook,
        "Deletes a webhook, and returns true. NOT_FOUND if there is none. Needs the role ADMIN, or the service key of "
        "the webhook.",
        limit=WriteLimit.OPERATIONS,
    )
    test_webhook: WebhookDelivery = mutation(
        resolvers.administration.webhooks.test_webhook,
        "Sends a message of the type `WebhookTest` once, within seconds, also to a disabled webhook. The outcome is in "
        "`webhookDeliveries`. Needs the role ADMIN, or the service key of the webhook.",
        limit=WriteLimit.OPERATIONS,
    )
    redeliver_webhook_event: WebhookDelivery = mutation(
        resolvers.administration.webhooks.redeliver_webhook_event,
        "Sends the event of a delivery once more, with the same `webhook-id` and in its current state. It overtakes "
        "events that wait. Needs the role ADMIN, or the service key of the webhook.",
        limit=WriteLimit.OPERATIONS,
    )
    replay_webhook: Webhook = mutation(
        resolvers.administration.webhooks.replay_webhook,
        "Sends events again in order, with the same `webhook-id`, as far as the log has them. CONFLICT for a disabled "
        "webhook. Needs the role ADMIN, or the service key of the webhook.",
        limit=WriteLimit.OPERATIONS,
    )
