"""People of a topic, a service key, a receiver of its webhook, and a worker without pauses."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest

from jobs.context import JobContext, WebhookTools
from jobs.providers.egress import Egress
from jobs.providers.event_webhooks import WebhookSender
from jobs.providers.mailer import Mailer
from jobs.webhooks import passes
from jobs.webhooks.delivery import deliver
from resolvers.context import Context
from schema.root import schema
from server.webhook_payloads import WebhookPayloads
from storage.identity.roles import Role
from storage.stores import Stores
from tests.jobs.contexts import job_context
from tests.resolvers.people import Answer, ChatScenario, Person, SignIn, fake_signed_url, until_outbox_is_empty
from tests.twins.event_receiver import EventReceiver
from tests.twins.twin import running_twin

CREATE_KEY = (
    "mutation ($input: CreateServiceKeyInput!) { done: createServiceKey(input: $input) { key { account { id } } } }"
)
WEBHOOK = """
fragment webhook on Webhook {
  id name url eventTypes failingSince lastError nextTryAt disabledAt disabledReason lastDeliveredAt account { id }
}
"""
CREATE = (
    "mutation ($input: CreateWebhookInput!) { done: createWebhook(input: $input) { secret webhook { ...webhook } } }"
    + WEBHOOK
)
LIST = "{ done: webhooks { ...webhook } }" + WEBHOOK
DELIVERIES = """query ($id: ID!) { done: webhookDeliveries(webhookId: $id) {
  id eventType messageId at outcome request status answer durationMs
} }"""
ENABLE = "mutation ($id: ID!) { done: enableWebhook(webhookId: $id) { ...webhook } }" + WEBHOOK
DISABLE = "mutation ($id: ID!) { done: disableWebhook(webhookId: $id) { ...webhook } }" + WEBHOOK
UPDATE = "mutation ($input: UpdateWebhookInput!) { done: updateWebhook(input: $input) { id } }"
REPLAY = "mutation ($input: ReplayWebhookInput!) { done: replayWebhook(input: $input) { id } }"


@dataclass
class WebhookScenario:
    """Ada, an ADMIN, with Ann, Bob and Eve; a service key that may read everything; and a worker."""

    ada: Person
    chat: ChatScenario
    key: str
    jobs: JobContext
    stack: AsyncExitStack

    @property
    def stores(self) -> Stores:
        """The stores."""
        return self.jobs.stores

    async def receiver(self) -> EventReceiver:
        """Starts a receiver."""
        receiver = EventReceiver()
        await self.stack.enter_async_context(running_twin(receiver))
        return receiver

    async def create(self, receiver: EventReceiver, *types: str, **more: Any) -> str:
        """Creates a webhook, by default of new messages, and returns its id. The receiver verifies its signatures."""
        given = {"name": "Warehouse", "url": receiver.address, "serviceKeyId": self.key, **more}
        created = await self.ada.do(CREATE, input={"eventTypes": list(types or ["MessagePosted"]), **given})
        receiver.secret = created["secret"]
        return str(created["webhook"]["id"])

    async def find(self) -> None:
        """Finds the events that are committed now."""
        await until_outbox_is_empty(self.stores)
        discovery = self.stores.webhook_discovery
        if readers := await discovery.readers():
            await discovery.search_new(readers, await discovery.settled_at(readers))

    async def send(self) -> int:
        """Sends what is due now. Returns for how many webhooks."""
        claimed = await self.stores.webhook_claims.claim(100)
        assert self.jobs.webhooks is not None
        for webhook in claimed:
            await deliver(self.jobs, self.jobs.webhooks, webhook)
        return len(claimed)

    async def deliver(self) -> None:
        """Finds events, and sends what is due until nothing is."""
        await self.find()
        while await self.send():
            pass

    async def end_pauses(self) -> None:
        """Makes webhooks due that wait for the end of a pause or of a claim."""
        past = [{"$set": {"due": {"$subtract": ["$$NOW", 1000]}}}]
        await self.stores.mongo["webhooks"].update_many({"due": {"$exists": True}}, past)

    async def webhook(self, id_: str) -> Answer:
        """Returns a webhook as administrators see it."""
        (found,) = [each for each in await self.ada.do(LIST) if each["id"] == id_]
        webhook: Answer = found
        return webhook

    async def deliveries(self, id_: str) -> list[Answer]:
        """Returns the log of deliveries, the newest first."""
        return list(await self.ada.do(DELIVERIES, id=id_))

    def limited(self, retry_s: float) -> "WebhookScenario":
        """Returns the scenario with a worker that repeats failed requests for so long."""
        return replace(self, jobs=replace(self.jobs, webhook_retry_s=retry_s))


async def create_key(ada: Person, *scopes: str) -> str:
    """Creates a service key, and returns the id of its account."""
    return str((await ada.do(CREATE_KEY, input={"name": "Events", "scopes": list(scopes)}))["key"]["account"]["id"])


@pytest.fixture
async def webhooks(stores: Stores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[WebhookScenario]:
    monkeypatch.setattr(passes, "ROUND_S", 0.0)
    sign_in = SignIn(stores)
    ada = await sign_in("ada", roles=[Role.ADMIN])
    ann, bob, eve = [await sign_in(name) for name in ("ann", "bob", "eve")]
    community = await ann.create_community()
    await bob.join(community)
    chat = ChatScenario(ann, bob, eve, community, await ann.create_topic(community))
    egress = Egress((ip_network("127.0.0.0/8"),))
    tools = WebhookTools(
        WebhookSender(egress.transport),
        WebhookPayloads(schema, lambda **fields: Context(stores, fake_signed_url, **fields)),
    )
    mailer = Mailer(None, "noroshi@example.org", tmp_path / "mail")
    jobs = replace(job_context(stores, egress, mailer=mailer), webhooks=tools)
    key = await create_key(ada, "chat:read", "feed:read", "jobs:read")
    async with AsyncExitStack() as stack:
        yield WebhookScenario(ada, chat, key, jobs, stack)
    await egress.aclose()
