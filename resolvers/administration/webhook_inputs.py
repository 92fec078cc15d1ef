"""The input objects of mutations of webhooks."""

from datetime import datetime

import strawberry
from strawberry import ID, UNSET

from resolvers.idempotency import KEY_DESCRIPTION
from storage.streams.log import Cursor
from storage.webhooks.event_types import EVENT_TYPES
from storage.webhooks.records import WebhookFormat

strawberry.enum(
    WebhookFormat,
    name="WebhookFormat",
    description="Format of the body of a message. EVENT: the event as JSON of the GraphQL types. SLACK: "
    '`{"text": "..."}` with a text for people, in English, as incoming webhooks of Slack, Mattermost and '
    'Rocket.Chat take it, and addresses of Discord that end with `/slack`. DISCORD: `{"content": "..."}` with the same '
    "text, as other addresses of Discord take it. It notifies nobody.",
)

_EVENT_TYPES = (
    f"Types of events that are sent, at least one: {', '.join(EVENT_TYPES)}. They are names of GraphQL types. The "
    "service key needs the scope to read them: `chat:read`, `feed:read` or `jobs:read`."
)
_COMMUNITY_IDS = (
    "Ids of communities, at most 100. If `communityIds`, `topicIds` or `jobIds` name something, only events of what "
    "they name are sent."
)
_TOPIC_IDS = "Ids of topics, at most 100. Events of their threads are sent as well."
_JOB_IDS = "Ids of call jobs and scheduled posts, at most 100."


@strawberry.input(description="A new webhook.")
class CreateWebhookInput:
    name: str = strawberry.field(description="Name, such as `Data warehouse`: 1 to 100 characters.")
    url: str = strawberry.field(description="http or https address that receives the events, by POST.")
    event_types: list[str] = strawberry.field(description=_EVENT_TYPES)
    service_key_id: ID | None = strawberry.field(
        default=UNSET,
        description="Id of the service key as which the webhook reads: it sends what this key may read. An ADMIN must "
        "name one; a service key can name itself only, and does so by default.",
    )
    community_ids: list[ID] | None = strawberry.field(default=UNSET, description=_COMMUNITY_IDS)
    topic_ids: list[ID] | None = strawberry.field(default=UNSET, description=_TOPIC_IDS)
    job_ids: list[ID] | None = strawberry.field(default=UNSET, description=_JOB_IDS)
    format: WebhookFormat | None = strawberry.field(
        default=UNSET, description="Format of the messages. Omitted or null: EVENT."
    )
    idempotency_key: str | None = strawberry.field(default=UNSET, description=KEY_DESCRIPTION)


@strawberry.input(description="Changes of a webhook. What is omitted or null stays as it is.")
class UpdateWebhookInput:
    webhook_id: ID = strawberry.field(description="Id of the webhook.")
    name: str | None = strawberry.field(default=UNSET, description="Name: 1 to 100 characters.")
    url: str | None = strawberry.field(default=UNSET, description="http or https address that receives the events.")
    event_types: list[str] | None = strawberry.field(default=UNSET, description=_EVENT_TYPES)
    community_ids: list[ID] | None = strawberry.field(
        default=UNSET, description=f"{_COMMUNITY_IDS} Empty: no community."
    )
    topic_ids: list[ID] | None = strawberry.field(default=UNSET, description=f"{_TOPIC_IDS} Empty: no topic.")
    job_ids: list[ID] | None = strawberry.field(default=UNSET, description=f"{_JOB_IDS} Empty: no job.")
    format: WebhookFormat | None = strawberry.field(default=UNSET, description="Format of the messages.")


@strawberry.input(description="A rotation of a webhook's secret.")
class RotateWebhookSecretInput:
    webhook_id: ID = strawberry.field(description="Id of the webhook.")
    grace_s: int = strawberry.field(
        description="Seconds for which requests are also signed by the present secret: 0 to 2592000, which is 30 days."
    )
    idempotency_key: str | None = strawberry.field(default=UNSET, description=KEY_DESCRIPTION)


@strawberry.input(description="What a webhook sends again: exactly one of `since` and `cursor`.")
class ReplayWebhookInput:
    webhook_id: ID = strawberry.field(description="Id of the webhook.")
    since: datetime | None = strawberry.field(
        default=UNSET,
        description="All events since this instant. Events are kept for 24 hours, and longer while a webhook waits.",
    )
    cursor: Cursor | None = strawberry.field(
        default=UNSET, description="The events of one stream after this cursor of an event that was delivered."
    )
