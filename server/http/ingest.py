"""POST /ingest/deliveries (NDJSON) and /ingest/reports (one DSN or ARF message), for the role SERVICE or a service key.

Bodies may be compressed by gzip, Brotli or zstd. Answers 200 with the result for the events, or 400, 401, 403, 413 or
429 if no event was recorded. After 503 with Retry-After, the client may repeat the request: recorded events count as
duplicates.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError
from pymongo.errors import PyMongoError
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from jobs.mail.reports import NotADeliveryReport, delivery_events
from resolvers.arguments import require_storable
from server.auth.credentials import bearer_credential
from server.auth.viewers import ViewerSessions
from server.http.json_answers import error_answer, json_answer
from server.http.openapi import Answer, AnswerModel, Body, DescribedRoute, Operation, Parameter, Scheme, Tag
from server.transport.bodies import PROCESS_BODIES, BodyTooLarge
from server.transport.json_decoding import decode_json
from storage.errors import BadUserInput, DomainError, Forbidden, Unauthenticated
from storage.identity.records import User
from storage.identity.roles import Role
from storage.mail.ledger import MAX_ID_CHARS, Ledger
from storage.mail.records import DeliveryEvent, DeliveryEventKind, RecordDeliveriesResult, RejectedDelivery
from storage.stores import Stores

BATCH = 1000
INGEST_SCOPE = "mail:ingest"

RecordBody = Callable[[User, bytes], Awaitable[RecordDeliveriesResult]]


class DeliveryLine(BaseModel):
    """One line of JSON in the form of DeliveryEventInput."""

    model_config = ConfigDict(strict=True, extra="ignore", hide_input_in_errors=True)

    event_id: str = Field(alias="eventId")
    address: str
    at: Annotated[AwareDatetime, Field(strict=False)]
    kind: Annotated[DeliveryEventKind, Field(strict=False)] = DeliveryEventKind.DELIVERY
    smtp_code: int | None = Field(default=None, alias="smtpCode")
    enhanced_status: str | None = Field(default=None, alias="enhancedStatus")
    diagnostic: str | None = None
    message_id: str | None = Field(default=None, alias="messageId")

    def event(self) -> DeliveryEvent:
        """Returns the line as a record."""
        return DeliveryEvent(
            event_id=self.event_id,
            address=self.address,
            at=self.at,
            kind=self.kind,
            smtp_code=self.smtp_code,
            enhanced_status=self.enhanced_status or None,
            diagnostic=self.diagnostic,
            message_id=self.message_id or None,
        )


class RejectedLine(AnswerModel):
    """A rejected event: its index, counting lines from 0 with blank ones, and the reason.

    `eventId` is empty when it can't be read.
    """

    index: int
    event_id: str
    message: str


class RecordedDeliveries(AnswerModel):
    """How many events were recorded, and which were not."""

    accepted: int
    duplicates: int
    rejected: list[RejectedLine]


_RECORDED = {200: Answer("The events are recorded, apart from the rejected ones.", RecordedDeliveries)}
_ENCODING = Parameter("Content-Encoding", "header", "gzip, br or zstd.")
_ERRORS = (400, 401, 403, 413, 429, 503)
_SECURITY = {Scheme.BEARER: (INGEST_SCOPE,)}
RECORD_DELIVERIES = Operation(
    id="ingestDeliveries",
    tag=Tag.MAIL,
    summary="Record delivery events",
    description="Sending an event again changes nothing. After 503, send the same request again.",
    parameters=[_ENCODING],
    body=Body(media_type="application/x-ndjson", line=DeliveryLine, description="One event as JSON on each line."),
    answers=_RECORDED,
    errors=_ERRORS,
    security=_SECURITY,
)
RECORD_REPORT = Operation(
    id="ingestReport",
    tag=Tag.MAIL,
    summary="Record the events of a delivery report",
    parameters=[_ENCODING],
    body=Body(media_type="message/rfc822", description="One message: a DSN (RFC 3464), or a complaint (RFC 5965)."),
    answers=_RECORDED,
    errors=_ERRORS,
    security=_SECURITY,
)


def ingest_routes(stores: Stores, viewers: ViewerSessions) -> list[DescribedRoute]:
    """Returns the two ingest routes."""

    async def deliveries(sender: User, body: bytes) -> RecordDeliveriesResult:
        return await record_lines(stores.ledger, sender, body)

    async def reports(sender: User, body: bytes) -> RecordDeliveriesResult:
        try:
            events = delivery_events(body, await stores.mongo.now())
        except NotADeliveryReport as error:
            raise BadUserInput("body", "one DSN or ARF message", str(error)) from None
        return await stores.ledger.record(sender.organization_id, sender.id, events)

    return [
        DescribedRoute("/ingest/deliveries", _endpoint(viewers, deliveries), {"POST": RECORD_DELIVERIES}),
        DescribedRoute("/ingest/reports", _endpoint(viewers, reports), {"POST": RECORD_REPORT}),
    ]


def _endpoint(viewers: ViewerSessions, record: RecordBody) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        try:
            sender = await _authenticate(viewers, request)
            with PROCESS_BODIES.hold(request.receive) as body:
                decoded = await body.read(request.headers.get("content-encoding", "identity"))
                return json_answer(RecordedDeliveries.model_validate(await record(sender, decoded)))
        except ClientDisconnect:
            return Response(status_code=400)
        except (DomainError, PyMongoError) as error:
            return error_answer(error, 413 if isinstance(error, BodyTooLarge) else None)

    return endpoint


async def _authenticate(viewers: ViewerSessions, request: Request) -> User:
    """Returns the user of a token with the role SERVICE, or the account of a key with the scope.

    Raises: Unauthenticated, Forbidden, Unavailable.
    """
    session = await viewers.session(bearer_credential(request.headers.get("authorization")))
    if session is None:
        raise Unauthenticated
    if Role.SERVICE not in session.roles:
        raise Forbidden("This request needs the role SERVICE.")
    session.require_scope(INGEST_SCOPE)
    return session.user


async def record_lines(ledger: Ledger, sender: User, body: bytes) -> RecordDeliveriesResult:
    """Records one event for each line. Reports rejected lines by their index, for which blank lines count too.

    Raises: BadUserInput when no line begins with `{`, so that a client that sends another format gets an error.
    """
    lines = body.split(b"\n")
    nonblank = [line for line in lines if line.strip()]
    if nonblank and not any(line.lstrip().startswith(b"{") for line in nonblank):
        raise BadUserInput("body", "NDJSON: one JSON object on each line")
    accepted = duplicates = 0
    rejected: list[RejectedDelivery] = []
    for start in range(0, len(lines), BATCH):
        indexes, events = _parse_lines(lines, start, rejected)
        if not events:
            continue
        result = await ledger.record(sender.organization_id, sender.id, events)
        accepted, duplicates = accepted + result.accepted, duplicates + result.duplicates
        rejected += [RejectedDelivery(indexes[each.index], each.event_id, each.message) for each in result.rejected]
    return RecordDeliveriesResult(accepted, duplicates, sorted(rejected, key=lambda each: each.index))


def _parse_lines(
    lines: Sequence[bytes], start: int, rejected: list[RejectedDelivery]
) -> tuple[list[int], list[DeliveryEvent]]:
    """Returns the events of a batch of lines with their indexes, and appends malformed lines to `rejected`."""
    indexes: list[int] = []
    events: list[DeliveryEvent] = []
    for index in range(start, min(start + BATCH, len(lines))):
        if not lines[index].strip():
            continue
        try:
            events.append(_delivery_line(lines[index]).event())
            indexes.append(index)
        except (ValidationError, BadUserInput) as error:
            rejected.append(RejectedDelivery(index, _event_id(lines[index]), _fault(error)))
    return indexes, events


def _delivery_line(line: bytes) -> DeliveryLine:
    """Returns the line. Raises: ValidationError; BadUserInput for a lone surrogate."""
    try:
        return DeliveryLine.model_validate_json(line)
    except ValidationError as error:
        value = _object_with_surrogates(line) if error.errors()[0]["type"] == "json_invalid" else None
        if value is None:
            raise
        delivery_line = DeliveryLine.model_validate(value)
        require_storable(delivery_line.model_dump(by_alias=True))
        return delivery_line


def _object_with_surrogates(line: bytes) -> dict[str, object] | None:
    """Returns the object of a line that Pydantic does not read; None if the line is malformed."""
    try:
        value = decode_json(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _fault(error: ValidationError | BadUserInput) -> str:
    """Returns what is wrong with a line, after the name of the field."""
    if isinstance(error, BadUserInput):
        return error.message
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(part) for part in first["loc"]) or "line"
    return f"{where}: {first['msg']}"


def _event_id(line: bytes) -> str:
    """Returns the eventId of a malformed line; an empty string when it cannot be read."""
    try:
        event_id = decode_json(line)["eventId"]
    except (ValueError, TypeError, KeyError):
        return ""
    # Answers can't have lone surrogates.
    return event_id[:MAX_ID_CHARS].encode("utf-8", "backslashreplace").decode() if isinstance(event_id, str) else ""
