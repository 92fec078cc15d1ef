"""Records what mail providers send to their webhooks: verified by the provider's signature, and read by its form."""

import asyncio
from typing import Any

from pydantic import ValidationError
from starlette.requests import Request

from jobs.mail.inlets.answers import first_fault
from jobs.mail.inlets.mailgun import read_mailgun, verify_mailgun
from jobs.mail.inlets.postmark import read_postmark
from jobs.mail.inlets.read_events import ReadEvents
from jobs.mail.inlets.sendgrid import read_sendgrid, verify_sendgrid
from jobs.mail.inlets.ses import read_ses
from jobs.mail.inlets.sns import SnsMessage
from jobs.mail.inlets.sns_client import SnsClient
from jobs.providers.signed_webhooks import SignatureRefused
from server.http.ingest.items import BATCH, MAX_ITEMS
from server.http.ingest.recording import Recording
from server.settings import Settings, variable
from server.transport.json_decoding import decode_json
from storage.errors import BadUserInput, Forbidden, Unauthenticated
from storage.identity.records import User
from storage.stores import Stores


class ProviderInlets:
    """The webhooks of the providers. Each takes a request and its sender, and returns the answer."""

    def __init__(self, settings: Settings, stores: Stores, sns: SnsClient) -> None:
        self._sendgrid_keys, self._mailgun_keys = settings.sendgrid_keys, settings.mailgun_signing_keys
        self._stores = stores
        self._sns = sns

    async def ses(self, _request: Request, sender: User, body: bytes) -> dict[str, Any]:
        """Records a notification of Amazon SES, which SNS sends, or confirms the subscription of its topic."""
        try:
            message = SnsMessage.model_validate(_decoded(body))
        except ValidationError as error:
            raise BadUserInput("body", "a message of Amazon SNS", f"body: {first_fault(error)}.") from None
        now = await self._stores.mongo.now()
        try:
            message.verify(await self._sns.certificate(message.certificate_url), now)
        except SignatureRefused as error:
            raise _unverified(error) from None
        if message.type == "SubscriptionConfirmation":
            await self._confirm(message)
        read = read_ses(message.message) if message.type == "Notification" else ReadEvents(ignored=1)
        return await self._record(sender, read)

    async def sendgrid(self, request: Request, sender: User, body: bytes) -> dict[str, Any]:
        """Records the events of SendGrid's signed event webhook."""
        _require_keys(self._sendgrid_keys, "sendgrid_keys")
        try:
            verify_sendgrid(self._sendgrid_keys, request.headers, body)
        except SignatureRefused as error:
            raise _unverified(error) from None
        events = _decoded(body)
        if not isinstance(events, list) or len(events) > MAX_ITEMS:
            raise BadUserInput("body", f"a JSON array of at most {MAX_ITEMS:,} events")
        items = [*enumerate(events)]
        recording = Recording(self._stores.ledger, sender)
        for start in range(0, len(items), BATCH):
            await recording.add(read_sendgrid(items[start : start + BATCH]))
            await asyncio.sleep(0)
        return recording.answer(names_ignored=True)

    async def mailgun(self, _request: Request, sender: User, body: bytes) -> dict[str, Any]:
        """Records the event of Mailgun's webhook."""
        _require_keys(self._mailgun_keys, "mailgun_signing_keys")
        content, now = _decoded(body), await self._stores.mongo.now()
        try:
            verify_mailgun(self._mailgun_keys, content, now.timestamp())
        except SignatureRefused as error:
            raise _unverified(error) from None
        return await self._record(sender, read_mailgun(content))

    async def postmark(self, _request: Request, sender: User, body: bytes) -> dict[str, Any]:
        """Records the event of Postmark's webhook."""
        return await self._record(sender, read_postmark(_decoded(body)))

    async def _record(self, sender: User, read: ReadEvents) -> dict[str, Any]:
        recording = Recording(self._stores.ledger, sender)
        await recording.add(read)
        return recording.answer(names_ignored=True)

    async def _confirm(self, message: SnsMessage) -> None:
        try:
            is_confirmed = await self._sns.confirm(message.subscribe_url or "")
        except SignatureRefused as error:
            raise BadUserInput("SubscribeURL", "an address of Amazon SNS", f"{error}.") from None
        if not is_confirmed:
            raise BadUserInput("SubscribeURL", "an address that Amazon SNS still accepts")


def _unverified(error: SignatureRefused) -> Unauthenticated:
    return Unauthenticated(f"The signature is refused: {error}.")


def _require_keys(keys: tuple[str, ...], setting: str) -> None:
    if not keys:
        raise Forbidden(f"This server can't verify the provider's signature: {variable(setting)} is not set.")


def _decoded(body: bytes) -> Any:
    try:
        return decode_json(body)
    except ValueError:
        raise BadUserInput("body", "JSON") from None
