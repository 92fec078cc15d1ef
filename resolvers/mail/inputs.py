"""What mail servers tell, as clients write it."""

from datetime import datetime

import strawberry

from storage.mail.records import DeliveryEvent, DeliveryEventKind

# Here, as the input below must find it known.
strawberry.enum(
    DeliveryEventKind, description="A DELIVERY with neither smtpCode nor enhancedStatus is a connection that failed."
)


@strawberry.input(description="What a mail server says became of one message to one address.")
class DeliveryEventInput:
    event_id: strawberry.ID = strawberry.field(description="Unique per event; sending it again changes nothing.")
    address: str = strawberry.field(description="The recipient. Stored as a keyed hash only.")
    at: datetime = strawberry.field(description="When it happened: at most 13 days ago.")
    kind: DeliveryEventKind = strawberry.field(
        default=DeliveryEventKind.DELIVERY, description="A try to deliver, or a recipient's complaint."
    )
    smtp_code: int | None = strawberry.field(
        default=strawberry.UNSET, description="SMTP reply code, e.g. 250, 450, 550."
    )
    enhanced_status: str | None = strawberry.field(default=strawberry.UNSET, description="RFC 3463 status, e.g. 5.1.1.")
    diagnostic: str | None = strawberry.field(
        default=strawberry.UNSET, description="The server's words; they are read and not kept."
    )
    message_id: str | None = strawberry.field(
        default=strawberry.UNSET, description="Queue id of the message: its repeated tries count once a day."
    )

    def event(self) -> DeliveryEvent:
        """The same as a record."""
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
