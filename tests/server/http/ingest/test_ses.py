"""POST /ingest/ses: signed notifications and confirmations, with a server on loopback in the place of Amazon SNS."""

import copy
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import httpx2
import orjson
import pytest
from starlette.applications import Starlette

from jobs.mail.inlets.sns_client import SnsClient
from jobs.providers.egress import Egress
from server.app import authenticators
from server.auth.tokens import mint
from server.auth.viewers import ViewerSessions
from server.http.ingest import ingest_routes
from server.settings import Settings
from storage.stores import Stores
from tests.certificates import create_tls_contexts
from tests.jobs.mail.inlets.examples import (
    SES_BOUNCE_WITH_DSN,
    SES_REJECT_EVENT,
    SNS_CONFIRMATION,
    SNS_NOTIFICATION,
)
from tests.jobs.mail.inlets.sns_signer import SnsSigner
from tests.jobs.providers.stub_server import StubServer, respond, stub_server
from tests.storage.mail.events import yesterday_noon
from tests.storage.mail.scenario import MailScenario

pytestmark = pytest.mark.anyio

SECRET = "a secret of the tests, longer than 32 bytes"
CONFIRM = "/?Action=ConfirmSubscription"


class SesSender:
    """Sends signed messages to the routes, as SNS does."""

    def __init__(self, http: httpx2.AsyncClient, server: StubServer) -> None:
        self.http, self.server = http, server
        self.signer = SnsSigner(datetime.now(UTC), self.url("/sns.pem"))
        server.answers["/sns.pem"] = respond(self.signer.certificate)

    def url(self, path: str) -> str:
        return self.server.url(path, scheme="https")

    async def send(self, message: dict[str, Any], version: str = "1", **change: object) -> httpx2.Response:
        """Sends a message, whose values in `change` were not signed."""
        body = orjson.dumps(self.signer.signed(message, version) | change)
        return await self.http.post("/ingest/ses", content=body, headers={"content-type": "text/plain; charset=UTF-8"})

    async def notify(self, notification: dict[str, Any], version: str = "1", **change: object) -> httpx2.Response:
        """Sends a notification of SES."""
        message = SNS_NOTIFICATION | {"Message": orjson.dumps(notification).decode()}
        return await self.send(message, version, **change)


@pytest.fixture
async def sns(stores: Stores, tmp_path: Path) -> AsyncIterator[SesSender]:
    settings = Settings.from_environment(auth_secret=SECRET)
    server_side, client_side = create_tls_contexts("127.0.0.1", tmp_path)
    egress = Egress((ip_network("127.0.0.0/8"),), ssl_context=client_side)
    token = mint(SECRET, user_id="ses", organization_id="acme", roles=("SERVICE",))
    async with stub_server(tls=server_side) as server:
        client = SnsClient(egress, lambda url: url.startswith(server.url("/", scheme="https")))
        viewers = ViewerSessions(authenticators(settings, stores))
        app = Starlette(routes=ingest_routes(settings, stores, viewers, client))
        async with httpx2.AsyncClient(
            transport=httpx2.ASGITransport(app),
            base_url="http://localhost",
            headers={"authorization": f"Bearer {token}"},
        ) as http:
            yield SesSender(http, server)
    await egress.aclose()


def bounce() -> dict[str, Any]:
    """Returns the published bounce, at noon of yesterday."""
    notification = copy.deepcopy(SES_BOUNCE_WITH_DSN)
    notification["bounce"]["timestamp"] = yesterday_noon().isoformat()
    return notification


@pytest.mark.parametrize("version", ["1", "2"])
async def test_signed_bounce_is_recorded_once(sns: SesSender, stores: Stores, version: str) -> None:
    answers = [await sns.notify(bounce(), version, UnsubscribeURL="https://x.example") for _ in range(2)]
    assert [each.json() for each in answers] == [
        {"accepted": 1, "duplicates": 0, "ignored": 0, "rejected": []},
        {"accepted": 0, "duplicates": 1, "ignored": 0, "rejected": []},
    ]
    mail = MailScenario(stores, "acme")
    await mail.aggregate()
    assert (await mail.standing("jane@example.com")).blocked
    assert sns.server.paths() == ["/sns.pem"]


async def test_changed_message_is_refused(sns: SesSender, stores: Stores) -> None:
    refused = await sns.notify(bounce(), Timestamp="2019-01-31T04:37:04.322Z")
    assert refused.status_code == 401
    assert "does not match" in refused.json()["errors"][0]["message"]
    foreign = await sns.notify(bounce(), SigningCertURL="https://example.org/sns.pem")
    assert (foreign.status_code, "no address of Amazon SNS" in foreign.text) == (401, True)
    assert await stores.mongo["mail_ledger"].count_documents({}) == 0


async def test_subscription_is_confirmed(sns: SesSender) -> None:
    confirmation = SNS_CONFIRMATION | {"SubscribeURL": sns.url(CONFIRM)}
    refused = await sns.send(confirmation)
    assert (refused.status_code, refused.json()["errors"][0]["extensions"]["field"]) == (400, "SubscribeURL")
    sns.server.answers[CONFIRM] = respond(b"<ConfirmSubscriptionResponse/>")
    assert (await sns.send(confirmation)).json() == {"accepted": 0, "duplicates": 0, "ignored": 1, "rejected": []}
    assert sns.server.paths()[1:] == [CONFIRM] * 2
    foreign = await sns.send(SNS_CONFIRMATION | {"SubscribeURL": "https://example.org/"})
    assert foreign.status_code == 400


async def test_unsigned_confirmation_fetches_nothing(sns: SesSender) -> None:
    confirmation = SNS_CONFIRMATION | {"SubscribeURL": sns.url(CONFIRM)}
    assert (await sns.send(confirmation, Token="other")).status_code == 401
    ended = await sns.send(confirmation | {"Type": "UnsubscribeConfirmation"})
    assert (ended.status_code, ended.json()["ignored"]) == (200, 1)
    assert CONFIRM not in sns.server.paths()


async def test_other_notifications_are_ignored_or_rejected(sns: SesSender) -> None:
    assert (await sns.notify(SES_REJECT_EVENT)).json()["ignored"] == 1
    unknown = await sns.notify({"eventType": "Teleport"})
    extensions = unknown.json()["errors"][0]["extensions"]
    assert unknown.status_code == 400
    assert extensions["rejected"] == [{"index": 0, "eventId": "", "message": "eventType: unknown type 'Teleport'."}]
    old = await sns.notify(SES_BOUNCE_WITH_DSN)
    assert (old.status_code, "at most 13 days ago" in old.text) == (400, True)


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b'{"Type": "Notification"}'])
async def test_other_body_is_400(sns: SesSender, content: bytes) -> None:
    assert (await sns.http.post("/ingest/ses", content=content)).status_code == 400


@pytest.mark.parametrize(
    ("path", "setting"),
    [("sendgrid", "NOROSHI_SENDGRID_KEYS"), ("mailgun", "NOROSHI_MAILGUN_SIGNING_KEYS")],
)
async def test_provider_without_key_error_names_setting(sns: SesSender, path: str, setting: str) -> None:
    answer = await sns.http.post(f"/ingest/{path}", content=b"[]")
    assert (answer.status_code, setting in answer.json()["errors"][0]["message"]) == (403, True)
