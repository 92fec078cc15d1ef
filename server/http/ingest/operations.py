"""Descriptions of the ingest routes, and the models of their bodies and answers."""

from dataclasses import MISSING
from typing import Any, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, create_model
from pydantic.alias_generators import to_camel
from strawberry import UNSET
from strawberry.types import get_object_definition

from resolvers.mail.inputs import DeliveryEventInput
from server.http.ingest.endpoint import INGEST_SCOPE
from server.http.openapi import Answer, AnswerModel, Body, Operation, Parameter, Scheme, Tag
from server.http.openapi.operations import JSON


class RejectedEvent(AnswerModel):
    """A rejected event and the reason. `index` counts lines, blank ones too, or elements, from 0.

    `eventId` is empty when it can't be read.
    """

    index: int
    event_id: str
    message: str


class RecordedDeliveries(AnswerModel):
    """How many events were recorded, and which were not."""

    accepted: int
    duplicates: int
    rejected: list[RejectedEvent]


class RecordedEvents(RecordedDeliveries):
    """How many events were recorded, which were not, and how many are no outcomes of deliveries."""

    ignored: int


def _delivery_event() -> type[BaseModel]:
    """Returns the model of DeliveryEventInput, whose rules the API's input type has."""
    hints = get_type_hints(DeliveryEventInput)
    fields: dict[str, Any] = {}
    for each in get_object_definition(DeliveryEventInput, strict=True).fields:
        default = None if each.default is UNSET else ... if each.default is MISSING else each.default
        fields[each.python_name] = (hints[each.python_name], Field(default, description=each.description))
    return create_model(
        "DeliveryEvent",
        __config__=ConfigDict(alias_generator=to_camel, extra="forbid"),
        __doc__="A mail server's report about one message to one address.",
        **fields,
    )


_ENCODING = Parameter("Content-Encoding", "header", "gzip, br or zstd.")
_ERRORS = (400, 401, 403, 413, 429, 503)
_SECURITY = {Scheme.BEARER: (INGEST_SCOPE,), Scheme.BASIC: (INGEST_SCOPE,)}
_REPEATED = "Sending an event again changes nothing. After 503, send the same request again."
_RECORDED = {200: Answer("The events are recorded, apart from the rejected ones.", RecordedDeliveries)}
_READ = {200: Answer("The events are recorded, apart from the rejected and the ignored ones.", RecordedEvents)}


def _provider_webhook(id_: str, provider: str, description: str) -> Operation:
    return Operation(
        id=id_,
        tag=Tag.MAIL,
        summary=f"Record events of {provider}",
        description=f"{description} {_REPEATED}",
        parameters=[_ENCODING],
        body=Body(media_type=JSON, description=f"A request of {provider}'s webhook."),
        answers=_READ,
        errors=_ERRORS,
        security=_SECURITY,
    )


OPERATIONS = {
    "deliveries": Operation(
        id="ingestDeliveries",
        tag=Tag.MAIL,
        summary="Record delivery events",
        description=_REPEATED,
        parameters=[_ENCODING],
        body=Body(
            media_type="application/x-ndjson",
            line=_delivery_event(),
            description="One event as JSON on each line, or a JSON array of events.",
        ),
        answers=_RECORDED,
        errors=_ERRORS,
        security=_SECURITY,
    ),
    "reports": Operation(
        id="ingestReport",
        tag=Tag.MAIL,
        summary="Record the events of a delivery report",
        parameters=[_ENCODING],
        body=Body(media_type="message/rfc822", description="One message: a DSN (RFC 3464), or a complaint (RFC 5965)."),
        answers=_RECORDED,
        errors=_ERRORS,
        security=_SECURITY,
    ),
    "postfix": Operation(
        id="ingestPostfix",
        tag=Tag.MAIL,
        summary="Record lines of Postfix's log",
        description=_REPEATED,
        parameters=[
            _ENCODING,
            Parameter("timeZone", "query", "IANA time zone of times without a zone; UTC by default."),
        ],
        body=Body(media_type="text/plain", description="Lines of the log, or JSON objects with lines."),
        answers=_READ,
        errors=_ERRORS,
        security=_SECURITY,
    ),
    "ses": _provider_webhook("ingestSes", "Amazon SES", "Amazon SNS signs the request; a subscription is confirmed."),
    "sendgrid": _provider_webhook("ingestSendgrid", "SendGrid", "SendGrid signs the request."),
    "postmark": _provider_webhook("ingestPostmark", "Postmark", "The service key proves the sender."),
    "mailgun": _provider_webhook("ingestMailgun", "Mailgun", "Mailgun signs the request."),
}
"""The operation of each ingest route, by the last part of its path."""
