"""The use case that records delivery events."""

from typing import Annotated

import strawberry

from resolvers.access import require_role
from resolvers.context import Info
from resolvers.mail.book import check_at_most_1000
from resolvers.mail.inputs import DeliveryEventInput
from storage.identity.roles import Role
from storage.mail.records import RecordDeliveriesResult

Events = Annotated[
    list[DeliveryEventInput],
    strawberry.argument(description="Events, at most 1000. Invalid events are rejected; all others are recorded."),
]


async def record_deliveries(info: Info, events: Events) -> RecordDeliveriesResult:
    """Records delivery events. Accepted events are durable on return."""
    viewer = require_role(info, Role.SERVICE)
    check_at_most_1000("events", events)
    ledger = info.context.stores.ledger
    return await ledger.record(viewer.organization_id, viewer.id, [each.event() for each in events])
