"""Webhooks through the API: who manages which, what is refused and where, and secrets that are shown once."""

from dataclasses import dataclass
from typing import Any

import pytest

from storage.identity.roles import Role
from storage.webhooks import store
from tests.jobs.webhooks.conftest import CREATE, DELIVERIES, DISABLE, ENABLE, LIST, REPLAY, create_key
from tests.resolvers.chat.test_conversations import start
from tests.resolvers.people import Answer, Person, SignIn

pytestmark = pytest.mark.anyio

URL = "https://hooks.example.org/noroshi"
ROTATE = """mutation ($input: RotateWebhookSecretInput!) {
  done: rotateWebhookSecret(input: $input) { secret webhook { previousSecretUntil } }
}"""
UPDATE = """mutation ($input: UpdateWebhookInput!) {
  done: updateWebhook(input: $input) { name url eventTypes communityIds topicIds jobIds }
}"""
DELETE = "mutation ($id: ID!) { done: deleteWebhook(webhookId: $id) }"
TEST = "mutation ($id: ID!) { done: testWebhook(webhookId: $id) { id outcome } }"
REDELIVER = "mutation ($id: ID!) { done: redeliverWebhookEvent(deliveryId: $id) { id } }"


@dataclass
class Administration:
    """Ada, an ADMIN, Ann, and a service key that may read chat only."""

    ada: Person
    ann: Person
    key: str

    async def create(self, **more: Any) -> Answer:
        """Creates a webhook, and returns it with its secret."""
        given = {"name": "Warehouse", "url": URL, "eventTypes": ["MessagePosted"], "serviceKeyId": self.key, **more}
        return await self.ada.do(CREATE, input=given)

    async def refused(self, **more: Any) -> tuple[str, str]:
        """Returns the code and the field of the error of a creation."""
        given = {"name": "Warehouse", "url": URL, "eventTypes": ["MessagePosted"], "serviceKeyId": self.key, **more}
        error = await self.ada.fails(CREATE, input=given)
        return error["code"], error.get("field", "")

    async def of_key(self, key: str, *scopes: str) -> Person:
        """Returns the account of a service key as a viewer."""
        user = await self.ada.stores.users.get("acme", key)
        return Person(self.ada.stores, user, frozenset(user.roles), scopes=frozenset(scopes))


@pytest.fixture
async def acme(sign_in: SignIn) -> Administration:
    ada, ann = await sign_in("ada", roles=[Role.ADMIN]), await sign_in("ann")
    return Administration(ada, ann, await create_key(ada, "chat:read", "webhooks:read", "webhooks:write"))


async def test_webhook_is_created_listed_and_deleted(acme: Administration) -> None:
    created = await acme.create()
    assert created["secret"].startswith("whsec_")
    webhook = created["webhook"]
    assert (webhook["account"]["id"], webhook["disabledAt"]) == (acme.key, None)
    assert await acme.ada.do(LIST) == [webhook]
    stored = await acme.ada.stores.mongo["webhooks"].find_one({})
    assert created["secret"] not in str(stored)
    assert await acme.ada.do(DELETE, id=webhook["id"]) is True
    assert await acme.ada.code(DELETE, id=webhook["id"]) == "NOT_FOUND"
    assert await acme.ada.do(LIST) == []


async def test_repeated_creation_shows_no_secret_again(acme: Administration) -> None:
    first, second = [await acme.create(idempotencyKey="once") for _ in range(2)]
    assert second == {"secret": None, "webhook": first["webhook"]}


async def test_bad_input_names_field_and_index(acme: Administration) -> None:
    ann, ada = acme.ann, acme.ada
    private = await ann.create_community(visibility="PRIVATE")
    topic, conversation = await ann.create_topic(private), await start(ann, ada)
    public = await ann.create_community()
    refused = {
        "name": {"name": " "},
        "url": {"url": "ftp://example.org"},
        "eventTypes": {"eventTypes": []},
        "eventTypes[1]": {"eventTypes": ["MessagePosted", "DataExportChanged"]},
        "eventTypes[0]": {"eventTypes": ["CallTaskChanged"]},
        "topicIds": {"topicIds": [str(number) for number in range(101)]},
    }
    for field, given in refused.items():
        assert await acme.refused(**given) == ("BAD_USER_INPUT", field)
    unknown = {
        "communityIds[1]": {"communityIds": [public, private]},
        "topicIds[0]": {"topicIds": [topic]},
        "topicIds[1]": {"topicIds": [await ann.create_topic(public), conversation]},
        "jobIds[0]": {"jobIds": ["unknown"]},
        "": {"serviceKeyId": "unknown"},
    }
    for field, given in unknown.items():
        assert await acme.refused(**given) == ("NOT_FOUND", field)
    assert await acme.refused(serviceKeyId=None) == ("BAD_USER_INPUT", "serviceKeyId")
    assert await ada.do(LIST) == []


async def test_address_is_checked_as_every_outgoing_address(acme: Administration) -> None:
    async def refusal(url: str) -> str | None:
        return "10.0.0.1 is not a public address" if "internal" in url else None

    guarded = _Guarded(acme.ada.stores, acme.ada.user, acme.ada.roles, refusal=refusal)
    given = {"name": "Warehouse", "eventTypes": ["MessagePosted"], "serviceKeyId": acme.key}
    error = await guarded.fails(CREATE, input={**given, "url": "https://internal.example.org/"})
    assert (error["code"], error["field"]) == ("BAD_USER_INPUT", "url")
    id_ = (await guarded.do(CREATE, input={**given, "url": URL}))["webhook"]["id"]
    error = await guarded.fails(UPDATE, input={"webhookId": id_, "url": "https://internal.example.org/"})
    assert (error["code"], error["field"]) == ("BAD_USER_INPUT", "url")


@dataclass
class _Guarded(Person):
    refusal: Any = None

    @property
    def context(self) -> Any:
        context = super().context
        context.egress_refusal = self.refusal
        return context


async def test_only_administrators_manage_webhooks(acme: Administration) -> None:
    webhook = (await acme.create())["webhook"]
    given = {"name": "Mine", "url": URL, "eventTypes": ["MessagePosted"], "serviceKeyId": acme.key}
    assert await acme.ann.code(CREATE, input=given) == "FORBIDDEN"
    assert await acme.ann.code(LIST) == "FORBIDDEN"
    for mutation in (DISABLE, ENABLE, DELETE, TEST):
        assert await acme.ann.code(mutation, id=webhook["id"]) == "FORBIDDEN"
    assert await acme.ann.code(DELIVERIES, id=webhook["id"]) == "FORBIDDEN"


async def test_service_key_manages_its_own_webhooks_only(acme: Administration) -> None:
    webhook = (await acme.create())["webhook"]
    other_key = await create_key(acme.ada, "chat:read", "webhooks:read", "webhooks:write")
    scopes = ("chat:read", "webhooks:read", "webhooks:write")
    own, other = await acme.of_key(acme.key, *scopes), await acme.of_key(other_key, *scopes)
    assert [each["id"] for each in await own.do(LIST)] == [webhook["id"]]
    assert await other.do(LIST) == []
    for mutation in (DISABLE, ENABLE, TEST, DELETE):
        assert await other.code(mutation, id=webhook["id"]) == "NOT_FOUND"
    delivery = (await own.do(TEST, id=webhook["id"]))["id"]
    assert await other.code(REDELIVER, id=delivery) == "NOT_FOUND"
    given = {"name": "Mine", "url": URL, "eventTypes": ["MessagePosted"]}
    created = await other.do(CREATE, input=given)
    assert created["webhook"]["account"]["id"] == other_key
    error = await other.fails(CREATE, input={**given, "serviceKeyId": acme.key})
    assert (error["code"], error["field"]) == ("BAD_USER_INPUT", "serviceKeyId")


async def test_webhook_of_another_organization_is_not_found(acme: Administration, sign_in: SignIn) -> None:
    webhook = (await acme.create())["webhook"]
    eva = await sign_in("eva", "other", [Role.ADMIN])
    assert await eva.do(LIST) == []
    assert await eva.code(DISABLE, id=webhook["id"]) == "NOT_FOUND"
    delivery = (await acme.ada.do(TEST, id=webhook["id"]))["id"]
    assert await eva.code(REDELIVER, id=delivery) == "NOT_FOUND"
    given = {"name": "x", "url": URL, "eventTypes": ["MessagePosted"], "serviceKeyId": acme.key}
    assert await eva.code(CREATE, input=given) == "NOT_FOUND"


async def test_update_keeps_what_is_omitted(acme: Administration) -> None:
    community = await acme.ann.create_community()
    id_ = (await acme.create(communityIds=[community]))["webhook"]["id"]
    updated = await acme.ada.do(UPDATE, input={"webhookId": id_, "name": "Lake"})
    assert updated == {
        "name": "Lake",
        "url": URL,
        "eventTypes": ["MessagePosted"],
        "communityIds": [community],
        "topicIds": [],
        "jobIds": [],
    }
    updated = await acme.ada.do(UPDATE, input={"webhookId": id_, "communityIds": [], "eventTypes": ["TopicCreated"]})
    assert (updated["communityIds"], updated["eventTypes"]) == ([], ["TopicCreated"])


async def test_rotation_keeps_the_present_secret_for_a_while(acme: Administration) -> None:
    created = await acme.create()
    id_ = created["webhook"]["id"]
    rotated = await acme.ada.do(ROTATE, input={"webhookId": id_, "graceS": 60})
    assert rotated["secret"] not in (None, created["secret"])
    assert rotated["webhook"]["previousSecretUntil"]
    await acme.ada.stores.webhook_claims.wake(id_)
    (claimed,) = await acme.ada.stores.webhook_claims.claim(1)
    assert claimed.secrets == [rotated["secret"], created["secret"]]
    for _ in range(3):
        await acme.ada.do(ROTATE, input={"webhookId": id_, "graceS": 60})
    assert await acme.ada.code(ROTATE, input={"webhookId": id_, "graceS": 60}) == "CONFLICT"
    last = await acme.ada.do(ROTATE, input={"webhookId": id_, "graceS": 0, "idempotencyKey": "last"})
    again = await acme.ada.do(ROTATE, input={"webhookId": id_, "graceS": 0, "idempotencyKey": "last"})
    assert (bool(last["secret"]), again["secret"]) == (True, None)


async def test_organization_has_a_limit_of_webhooks(acme: Administration, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "MAX_WEBHOOKS", 2)
    for _ in range(2):
        await acme.create()
    assert await acme.refused() == ("CONFLICT", "")


async def test_replay_needs_one_valid_position(acme: Administration) -> None:
    id_ = (await acme.create())["webhook"]["id"]
    for given in ({}, {"since": "2026-01-01T00:00:00Z", "cursor": "x"}, {"since": "2100-01-01T00:00:00Z"}):
        error = await acme.ada.fails(REPLAY, input={"webhookId": id_, **given})
        assert (error["code"], error["field"]) == ("BAD_USER_INPUT", "since")
    error = await acme.ada.fails(REPLAY, input={"webhookId": id_, "cursor": "nonsense"})
    assert (error["code"], error["field"]) == ("BAD_USER_INPUT", "cursor")
    await acme.ada.run(DISABLE, id=id_)
    assert await acme.ada.code(REPLAY, input={"webhookId": id_, "since": "2026-01-01T00:00:00Z"}) == "CONFLICT"
