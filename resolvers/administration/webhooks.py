"""Use cases about webhooks: of administrators, and of service keys about the webhooks that read as this key."""

from collections.abc import Collection, Sequence
from typing import Annotated

import strawberry
from strawberry import ID, UNSET, Parent

from resolvers.access import granted_roles, require_signed_in
from resolvers.administration.service_keys import MAX_GRACE_S
from resolvers.administration.webhook_inputs import (
    CreateWebhookInput,
    ReplayWebhookInput,
    RotateWebhookSecretInput,
    UpdateWebhookInput,
)
from resolvers.arguments import After, ListLimit, checked_limit, checked_text, instant_or_none, text_or_none
from resolvers.context import Info
from resolvers.idempotency import input_key
from resolvers.publishing.addresses import checked_web_address
from storage.errors import BadUserInput, Forbidden, NotFound
from storage.feed.records import local_stream
from storage.identity.keys.records import ServiceKey
from storage.identity.records import User
from storage.identity.roles import Role
from storage.streams.log import decode_cursor
from storage.webhooks.event_types import EVENT_TYPES, types_of_stream
from storage.webhooks.records import (
    DeliveryOutcome,
    DisabledReason,
    IssuedWebhook,
    NewWebhook,
    Webhook,
    WebhookDelivery,
    WebhookFilter,
    WebhookFormat,
)
from storage.webhooks.store import WebhookManager

MAX_NAME_CHARS = 100
MAX_FILTER_IDS = 100

strawberry.enum(
    DisabledReason,
    name="WebhookDisabledReason",
    description="Why a webhook is disabled. REQUESTED: by `disableWebhook`. FAILING: a message has failed for "
    "three days. GONE: the address answered 410. KEY_ENDED: its service key was revoked or has expired.",
)
strawberry.enum(
    DeliveryOutcome,
    name="WebhookDeliveryOutcome",
    description="How a request ended. WAITING: a worker sends it within seconds. DELIVERED: the answer was 2xx. "
    "FAILED: there was another answer, or none.",
)

WebhookId = Annotated[ID, strawberry.argument(description="Id of the webhook.")]


async def webhooks(info: Info) -> list[Webhook]:
    """Lists the webhooks that the viewer manages, the newest first."""
    return await info.context.stores.webhooks.list_webhooks(_manager(info))


async def webhook_deliveries(
    info: Info,
    webhook_id: WebhookId,
    outcome: Annotated[
        DeliveryOutcome | None, strawberry.argument(description="Only deliveries with this outcome. Null: all.")
    ] = UNSET,
    after: After = UNSET,
    limit: ListLimit = 50,
) -> list[WebhookDelivery]:
    """Lists the deliveries of a webhook, the newest first."""
    stores = info.context.stores
    webhook = await stores.webhooks.get(_manager(info), webhook_id)
    only = outcome if isinstance(outcome, DeliveryOutcome) else None
    return await stores.webhook_deliveries.list_deliveries(webhook, only, text_or_none(after), checked_limit(limit))


async def create_webhook(
    info: Info, input: Annotated[CreateWebhookInput, strawberry.argument(description="The webhook to create.")]
) -> IssuedWebhook:
    """Creates a webhook."""
    manager, stores = _manager(info), info.context.stores
    service_key = await _checked_key(info, manager, text_or_none(input.service_key_id))
    name = checked_text("name", input.name, 1, MAX_NAME_CHARS)
    url = await _checked_url(info, input.url)
    filter_ = WebhookFilter(
        _checked_types(service_key, input.event_types),
        await _checked_communities(info, service_key, _ids(input.community_ids)),
        await _checked_topics(info, service_key, _ids(input.topic_ids)),
        await _checked_jobs(info, _ids(input.job_ids)),
    )
    key = input_key(require_signed_in(info), "createWebhook", input)
    await _open_local_feed(info, filter_)
    new = NewWebhook(name, url, service_key.id, filter_, _format(input.format) or WebhookFormat.EVENT)
    return await stores.webhooks.create(manager, new, key)


async def update_webhook(
    info: Info, input: Annotated[UpdateWebhookInput, strawberry.argument(description="The changes.")]
) -> Webhook:
    """Changes a webhook."""
    manager, stores = _manager(info), info.context.stores
    old = await stores.webhooks.get(manager, input.webhook_id)
    service_key = await _readable_key(info, old.key_id)
    name = old.name if (text := text_or_none(input.name)) is None else checked_text("name", text, 1, MAX_NAME_CHARS)
    url = old.url if (text := text_or_none(input.url)) is None else await _checked_url(info, text)
    types, communities = _ids(input.event_types), _ids(input.community_ids)
    topics, jobs = _ids(input.topic_ids), _ids(input.job_ids)
    filter_ = WebhookFilter(
        old.event_types if types is None else _checked_types(service_key, types),
        old.community_ids if communities is None else await _checked_communities(info, service_key, communities),
        old.topic_ids if topics is None else await _checked_topics(info, service_key, topics),
        old.job_ids if jobs is None else await _checked_jobs(info, jobs),
    )
    await _open_local_feed(info, filter_)
    return await stores.webhooks.change(manager, old.id, name, url, filter_, _format(input.format))


async def rotate_webhook_secret(
    info: Info, input: Annotated[RotateWebhookSecretInput, strawberry.argument(description="The rotation.")]
) -> IssuedWebhook:
    """Issues a new secret for a webhook."""
    manager = _manager(info)
    if not 0 <= input.grace_s <= MAX_GRACE_S:
        raise BadUserInput("graceS", f"0 to {MAX_GRACE_S} seconds")
    key = input_key(require_signed_in(info), "rotateWebhookSecret", input)
    return await info.context.stores.webhooks.rotate(manager, input.webhook_id, input.grace_s, key)


async def enable_webhook(info: Info, webhook_id: WebhookId) -> Webhook:
    """Lets a disabled webhook send again."""
    manager, stores = _manager(info), info.context.stores
    webhook = await stores.webhooks.get(manager, webhook_id)
    await _readable_key(info, webhook.key_id)
    await _open_local_feed(info, webhook.filter)
    return await stores.webhooks.enable(manager, webhook_id)


async def disable_webhook(info: Info, webhook_id: WebhookId) -> Webhook:
    """Stops a webhook."""
    return await info.context.stores.webhooks.disable(_manager(info), webhook_id)


async def delete_webhook(info: Info, webhook_id: WebhookId) -> bool:
    """Deletes a webhook."""
    await info.context.stores.webhooks.delete(_manager(info), webhook_id)
    return True


async def test_webhook(info: Info, webhook_id: WebhookId) -> WebhookDelivery:
    """Requests a test delivery."""
    stores = info.context.stores
    webhook = await stores.webhooks.get(_manager(info), webhook_id)
    delivery = await stores.webhook_deliveries.request_test(webhook)
    await stores.webhook_claims.wake(webhook.id)
    return delivery


async def redeliver_webhook_event(
    info: Info, delivery_id: Annotated[ID, strawberry.argument(description="Id of a delivery of the event.")]
) -> WebhookDelivery:
    """Requests that an event is sent again."""
    manager, stores = _manager(info), info.context.stores
    earlier = await stores.webhook_deliveries.get(manager.actor.organization_id, delivery_id)
    try:
        webhook = await stores.webhooks.get(manager, earlier.webhook_id)
    except NotFound:
        raise NotFound("webhook delivery", delivery_id) from None
    delivery = await stores.webhook_deliveries.request_again(webhook, earlier)
    await stores.webhook_claims.wake(webhook.id)
    return delivery


async def replay_webhook(
    info: Info, input: Annotated[ReplayWebhookInput, strawberry.argument(description="What to send again.")]
) -> Webhook:
    """Sends events again."""
    manager, stores = _manager(info), info.context.stores
    since, cursor = instant_or_none(input.since), text_or_none(input.cursor)
    if (since is None) == (cursor is None):
        raise BadUserInput("since", "exactly one of since and cursor")
    if since is not None:
        if since > await stores.clock.now():
            raise BadUserInput("since", "an instant in the past")
        return await stores.webhooks.replay_since(manager, input.webhook_id, since)
    return await stores.webhooks.replay_after(manager, input.webhook_id, *_parsed_cursor(cursor or ""))


async def account(root: Parent[Webhook], info: Info) -> User:
    """Returns the service account as which the webhook reads."""
    return (await accounts([root], info))[0]


async def accounts(webhooks: Sequence[Webhook], info: Info) -> list[User]:
    """Returns the service account of each webhook."""
    if not webhooks:
        return []
    return await info.context.stores.users.get_all(webhooks[0].organization_id, [each.key_id for each in webhooks])


def _manager(info: Info) -> WebhookManager:
    """Returns the viewer as a manager. Raises: Unauthenticated; Forbidden for persons who are no ADMIN."""
    viewer, context = require_signed_in(info), info.context
    if Role.ADMIN in granted_roles(context):
        return WebhookManager(context.actor)
    if context.scopes is None:
        raise Forbidden("This needs the role ADMIN.")
    return WebhookManager(context.actor, viewer.id)


async def _checked_key(info: Info, manager: WebhookManager, key_id: str | None) -> ServiceKey:
    """Returns the key as which a new webhook reads. Raises: BadUserInput."""
    if manager.key_id is not None:
        if key_id not in (None, manager.key_id):
            raise BadUserInput("serviceKeyId", "the id of the service key that sends the request, or null")
        return await _readable_key(info, manager.key_id)
    if key_id is None:
        raise BadUserInput("serviceKeyId", "the id of a service key of the organization")
    return await _readable_key(info, key_id)


async def _readable_key(info: Info, key_id: str) -> ServiceKey:
    """Returns an active key of the organization. Raises: NotFound; BadUserInput for a key that has ended."""
    key = await info.context.stores.service_keys.get(require_signed_in(info).organization_id, key_id)
    if not key.is_active:
        raise BadUserInput("serviceKeyId", "the id of a service key that has not ended")
    return key


async def _checked_url(info: Info, url: str) -> str:
    address = checked_web_address("url", url)
    if (refusal := await info.context.egress_refusal(address)) is not None:
        raise BadUserInput("url", f"an address to which this server may send requests, but {refusal}")
    return address


def _checked_types(key: ServiceKey, types: Sequence[str]) -> list[str]:
    """Returns the types if the key may read them all. Raises: BadUserInput."""
    if not types:
        raise BadUserInput("eventTypes", "at least one type")
    for index, name in enumerate(types):
        event_type = EVENT_TYPES.get(name)
        if event_type is None:
            raise BadUserInput(f"eventTypes[{index}]", f"one of {', '.join(EVENT_TYPES)}")
        if event_type.scope not in key.scopes:
            raise BadUserInput(
                f"eventTypes[{index}]",
                f"a type that the service key may read, but it lacks the scope {event_type.scope}",
            )
    return sorted(set(types))


def _format(format_: WebhookFormat | None) -> WebhookFormat | None:
    """Returns the format; None if it was omitted."""
    return format_ if isinstance(format_, WebhookFormat) else None


def _ids(ids: list[str] | list[ID] | None) -> list[str] | None:
    """Returns the ids, each once; None if the list was omitted."""
    return list(dict.fromkeys(map(str, ids))) if isinstance(ids, list) else None


async def _checked_communities(info: Info, key: ServiceKey, ids: list[str] | None) -> list[str]:
    """Returns the ids if the key's account may read all communities. Raises: NotFound, BadUserInput."""
    communities = await info.context.stores.communities.by_id(ids or ())
    own = [id_ for id_, each in communities.items() if each.organization_id == key.organization_id]
    readable = await info.context.stores.communities.readable_by(own, key.id)
    return _checked_ids("communityIds", "community", ids, readable)


async def _checked_topics(info: Info, key: ServiceKey, ids: list[str] | None) -> list[str]:
    """Returns the ids if the key's account may read all topics. Raises: NotFound, BadUserInput."""
    stores = info.context.stores
    topics = (await stores.topics.by_id(ids or ())).values()
    own = [each for each in topics if each.organization_id == key.organization_id and not each.is_conversation]
    readable = await stores.communities.readable_by({topic.community_id for topic in own}, key.id)
    return _checked_ids("topicIds", "topic", ids, {topic.id for topic in own if topic.community_id in readable})


async def _checked_jobs(info: Info, ids: list[str] | None) -> list[str]:
    """Returns the ids if each is of a call job or a scheduled post of the organization. Raises as `_checked_ids`."""
    stores, organization_id = info.context.stores, require_signed_in(info).organization_id
    known = {
        id_
        for id_ in (ids or ())[: MAX_FILTER_IDS + 1]
        if await stores.call_jobs.find(organization_id, id_) or await stores.scheduled_posts.find(organization_id, id_)
    }
    return _checked_ids("jobIds", "job", ids, known)


def _checked_ids(field: str, kind: str, ids: list[str] | None, known: Collection[str]) -> list[str]:
    """Returns the ids. Raises: BadUserInput for too many; NotFound for one that is not known."""
    checked = ids or []
    if len(checked) > MAX_FILTER_IDS:
        raise BadUserInput(field, f"at most {MAX_FILTER_IDS} ids, not {len(checked)}")
    for index, id_ in enumerate(checked):
        if id_ not in known:
            raise NotFound(kind, id_, field=f"{field}[{index}]")
    return checked


def _parsed_cursor(cursor: str) -> tuple[str, str, int]:
    """Returns the digest of the stream, its epoch and the number of the event. Raises: BadUserInput."""
    try:
        digest, epoch, n = decode_cursor(cursor).split(".")
        return digest, epoch, int(n)
    except ValueError:
        raise BadUserInput("cursor", "a cursor of an event that was delivered") from None


async def _open_local_feed(info: Info, filter_: WebhookFilter) -> None:
    """Lets later posts be events if the webhook sends them. A worker keeps the feed open."""
    if types_of_stream("local", filter_.types):
        organization_id = require_signed_in(info).organization_id
        await info.context.stores.list_subscribers.record(local_stream(organization_id))
