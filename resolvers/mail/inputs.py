"""The input object of a delivery event."""

from datetime import datetime

import strawberry

from storage.mail.records import DeliveryEvent, DeliveryEventKind

# Registered before the input type below, which uses it.
strawberry.enum(
    DeliveryEventKind,
    description="Kind of an event. A DELIVERY without smtpCode and enhancedStatus is a failed connection.",
)


@strawberry.input(description="A mail server's report about one message to one address.")
class DeliveryEventInput:
    event_id: strawberry.ID = strawberry.field(
        description="Id of the event, unique in the organization. An event with a recorded id changes nothing."
    )
    address: str = strawberry.field(description="Address of the recipient. Stored as a keyed hash only.")
    at: datetime = strawberry.field(
        description="When the event happened: at most 13 days ago, and at most 1 hour ahead of the server's clock."
    )
    kind: DeliveryEventKind = strawberry.field(
        default=DeliveryEventKind.DELIVERY, description="A delivery attempt, or a complaint of the recipient."
    )
    smtp_code: int | None = strawberry.field(
        default=strawberry.UNSET, description="SMTP reply code, e.g. 250, 450, 550."
    )
    enhanced_status: str | None = strawberry.field(default=strawberry.UNSET, description="RFC 3463 status, e.g. 5.1.1.")
    diagnostic: str | None = strawberry.field(
        default=strawberry.UNSET, description="Text of the server's answer. Used for classification and not stored."
    )
    message_id: str | None = strawberry.field(
        default=strawberry.UNSET,
        description="Id of the message in the mail server's queue. Soft bounces of one message on one day count once.",
    )

    def event(self) -> DeliveryEvent:
        """Returns the event as a record."""
        return DeliveryEvent(
            event_id=self.event_id,
            address=self.address,
            at=self.at,
            kind=self.kind,
            smtp_code=self.smtp_code if isinstance(self.smtp_code, int) else None,
            enhanced_status=self.enhanced_status or None,
            diagnostic=self.diagnostic or None,
            message_id=self.message_id or None,
        )
