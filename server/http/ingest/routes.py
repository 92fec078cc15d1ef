"""The routes POST /ingest/...: own programs, log shippers, and one for each mail provider."""

from typing import Any

from starlette.requests import Request

from jobs.mail.inlets.read_events import ReadEvents
from jobs.mail.inlets.sns_client import SnsClient
from jobs.mail.reports import NotADeliveryReport, delivery_events
from server.auth.viewers import ViewerSessions
from server.http.ingest.deliveries import record_deliveries
from server.http.ingest.endpoint import ingest_endpoint
from server.http.ingest.operations import OPERATIONS
from server.http.ingest.postfix import PostfixInlet
from server.http.ingest.providers import ProviderInlets
from server.http.ingest.recording import Recording
from server.http.openapi import DescribedRoute
from server.settings import Settings
from storage.errors import BadUserInput
from storage.identity.records import User
from storage.stores import Stores


def ingest_routes(settings: Settings, stores: Stores, viewers: ViewerSessions, sns: SnsClient) -> list[DescribedRoute]:
    """Returns the ingest routes."""
    providers = ProviderInlets(settings, stores, sns)

    async def deliveries(_request: Request, sender: User, body: bytes) -> dict[str, Any]:
        return await record_deliveries(Recording(stores.ledger, sender), body)

    async def reports(_request: Request, sender: User, body: bytes) -> dict[str, Any]:
        try:
            events = delivery_events(body, await stores.mongo.now())
        except NotADeliveryReport as error:
            raise BadUserInput("body", "one DSN or ARF message", str(error)) from None
        recording = Recording(stores.ledger, sender)
        await recording.add(ReadEvents(events, [*range(len(events))]))
        return recording.answer()

    endpoints = {
        "deliveries": deliveries,
        "reports": reports,
        "postfix": PostfixInlet(stores).record,
        "ses": providers.ses,
        "sendgrid": providers.sendgrid,
        "postmark": providers.postmark,
        "mailgun": providers.mailgun,
    }
    return [
        DescribedRoute(f"/ingest/{name}", ingest_endpoint(viewers, record), {"POST": OPERATIONS[name]})
        for name, record in endpoints.items()
    ]
